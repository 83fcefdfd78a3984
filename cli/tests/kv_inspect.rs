// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv inspect` shows a folder, beside a server and after its end, and cuts a damaged log.

use crate::kv_server::{KvServer, output_of};
use freeport_testbed::wait_until;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Output;

/// Runs `freeport kv inspect` on a folder.
fn inspect(folder: &Path, options: &[&str]) -> Output {
    let folder = folder.to_str().expect("text");
    output_of(&[&["kv", "inspect", folder], options].concat(), "")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines of output, each a JSON object.
fn objects(output: &Output) -> Vec<Value> {
    let lines = text(&output.stdout);
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A server that keeps its data in a folder, durably.
fn server(folder: &Path) -> KvServer {
    let folder = folder.to_str().expect("text");
    KvServer::start(&["--dir", folder, "--appendfsync", "always"])
}

fn is_rewriting(server: &KvServer) -> bool {
    server.reply(&["--raw", "INFO", "persistence"]).contains("aof_rewrite_in_progress:1")
}

#[test]
fn it_shows_the_files_the_keys_and_the_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let server = server(folder);
    for command in [&["MSET", "a", "1", "b", "2"][..], &["RPUSH", "list", "x", "y"]] {
        server.reply(command);
    }
    server.reply(&["BGREWRITEAOF"]);
    wait_until("the snapshot is complete", || !is_rewriting(&server));
    let transaction = server.cli(&[], "MULTI\nSET c 'two words'\nDEL a\nEXEC\nSELECT 3\nINCR n\n");
    assert!(transaction.status.success(), "{transaction:?}");

    let shown = inspect(folder, &["--units"]);
    let printed = text(&shown.stdout);
    assert!(shown.status.success(), "{shown:?}");
    for part in [
        ": generation ",
        "\nsnapshot.",
        "\n  keys of type string in database 0: 2\n",
        "\n  keys of type list in database 0: 1\n",
        "\nthe log is complete\n",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
    let first: Vec<_> = printed.lines().collect();
    assert!(first[0].contains(" - ") && first[1].contains(" + "), "one unit: {printed}");
    assert!(first[0].ends_with(" [0] \"SET\" \"c\" \"two words\""), "{printed}");
    assert!(first[1].ends_with(" [0] \"DEL\" \"a\""), "{printed}");
    assert!(first[2].contains(" - ") && first[2].ends_with(" [3] \"INCR\" \"n\""), "{printed}");

    let objects = objects(&inspect(folder, &["--units", "--json"]));
    let [transaction, increment, about] = &objects[..] else { panic!("{objects:#?}") };
    assert_eq!(transaction["changes"][1]["command"], json!(["DEL", "a"]));
    assert_eq!(increment["changes"][0]["database"], 3);
    assert_eq!(about["segments"][0]["units"], 2);
    let keys = json!([
        {"database": 0, "type": "list", "count": 1},
        {"database": 0, "type": "string", "count": 2},
    ]);
    assert_eq!(about["snapshot"]["keys"], keys);
    assert_eq!(about["bad_place"], json!(null));

    let from = increment["position"].to_string();
    let later = self::objects(&inspect(folder, &["--units", "--from", &from, "--json"]));
    assert_eq!(&later[..], &objects[1..]);
    let one = self::objects(&inspect(folder, &["--units", "--limit", "1", "--json"]));
    assert_eq!(one, [transaction.clone(), about.clone()]);
}

#[test]
fn a_damaged_log_is_cut_when_the_user_agrees() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let first = server(folder);
    let key = |number: u32| format!("key:{number}");
    (0..9).for_each(|number| assert_eq!(first.reply(&["SET", &key(number), "value"]), "OK"));
    let places = objects(&inspect(folder, &["--units", "--json"]));
    let offset = places[4]["offset"].as_u64().expect("a number");
    let log = folder.join("log.1");
    let mut bytes = fs::read(&log).expect("it is there");
    bytes[usize::try_from(offset).expect("it is small") + 45] ^= 1;
    fs::write(&log, bytes).expect("it can be written");
    let refused = inspect(folder, &["--cut", "--yes"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("is in use by process"), "{refused:?}");
    first.signal(libc::SIGTERM);
    assert!(first.ended().success());

    let folder_name = folder.to_str().expect("text");
    let start = output_of(&["kv", "serve", "--port", "0", "--dir", folder_name], "");
    assert_eq!(start.status.code(), Some(1));
    let place = format!("{} at offset {offset}", log.display());
    assert!(text(&start.stderr).contains(&place), "{start:?}");

    let shown = inspect(folder, &[]);
    assert_eq!(shown.status.code(), Some(1), "{shown:?}");
    assert!(text(&shown.stdout).contains(&format!("log.1: bad at offset {offset}")), "{shown:?}");
    let about = objects(&inspect(folder, &["--json"])).remove(0);
    assert_eq!(about["bad_place"]["kind"], "corrupt");

    let refused = inspect(folder, &["--cut"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("add --yes"), "{refused:?}");
    let cut = inspect(folder, &["--cut", "--yes"]);
    assert!(cut.status.success(), "{cut:?}");
    assert!(text(&cut.stderr).contains(&format!("cut {place}")), "{cut:?}");
    let again = inspect(folder, &["--cut"]);
    assert!(again.status.success() && text(&again.stderr).contains("nothing to cut"), "{again:?}");

    let second = server(folder);
    assert_eq!(second.reply(&["DBSIZE"]), "(integer) 4");
    assert_eq!(second.reply(&["GET", "key:3"]), "\"value\"");
}

#[test]
fn another_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for folder in [folder.path(), &folder.path().join("none")] {
        let output = inspect(folder, &[]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.contains("there is no manifest"), "{said}");
    }
}
