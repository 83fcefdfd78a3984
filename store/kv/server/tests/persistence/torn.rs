// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copies of the folder of a running server, as a crash leaves it: whole, and with a part of the
//! log's end.

use std::fs;
use std::path::{Path, PathBuf};

use freeport_kv_server::{Policy, Server};
use tempfile::TempDir;

use super::{digest, folder, options, start, stop};
use crate::client::{Client, server_with};

/// A copy of the data of a server that is running.
fn copy(from: &Path) -> TempDir {
    let to = folder();
    for entry in fs::read_dir(from).expect("the folder is there") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.path().join(entry.file_name())).expect("it can be copied");
    }
    to
}

/// The log with the highest number.
fn last_log(folder: &Path) -> PathBuf {
    let names = fs::read_dir(folder).expect("the folder is there");
    let paths = names.map(|entry| entry.expect("an entry").path());
    let number = |path: &PathBuf| -> Option<u64> {
        path.file_name()?.to_str()?.strip_prefix("log.")?.parse().ok()
    };
    paths.max_by_key(number).expect("there is a log")
}

fn transaction(client: &mut Client, lines: &[&str]) {
    for line in ["MULTI"].iter().chain(lines).chain(&["EXEC"]) {
        client.send(line);
    }
    (0..lines.len() + 2).for_each(|_| drop(client.reply()));
}

fn counts(server: &Server) -> [String; 3] {
    let mut client = Client::new(server);
    ["GET a", "GET b", "LLEN {c}list"].map(|line| client.call(line))
}

#[test]
fn a_killed_server_has_all_that_it_acknowledged() {
    for policy in [Policy::Always, Policy::EverySecond, Policy::Never] {
        let folder = folder();
        let server = server_with(options(folder.path(), 3, policy));
        let mut client = Client::new(&server);
        for turn in 0..5 {
            transaction(&mut client, &["INCR a", "INCR b", "RPUSH list x"]);
            client.call(&format!("MSET x{turn} 1 y{turn} 2 z{turn} 3"));
            if turn == 2 {
                assert_eq!(client.call("SAVE"), "OK");
            }
            let expected = digest(&server);
            let copied = copy(folder.path());
            let other = start(copied.path(), 2);
            assert_eq!(digest(&other), expected);
            stop(other);
        }
    }
}

/// A transaction, a script and a command of several keys are there whole or not at all, wherever
/// the log ends.
#[test]
fn units_are_applied_whole_or_not_at_all() {
    let folder = folder();
    let server = server_with(options(folder.path(), 3, Policy::Never));
    let mut client = Client::new(&server);
    let script = b"for at = 1, 2 do redis.call('INCR', KEYS[at]) end \
                   redis.call('RPUSH', KEYS[3], 'x')";
    for _ in 0..4 {
        transaction(&mut client, &["INCR a", "INCR b", "RPUSH {c}list x"]);
        client.send_arguments(&[b"EVAL", script, b"3", b"a", b"b", b"{c}list"]);
        drop(client.reply());
    }
    let log = last_log(folder.path());
    let length = fs::metadata(&log).expect("it is there").len();
    let mut seen = std::collections::BTreeSet::new();
    for cut in (0..=length.min(700)).step_by(13) {
        let copied = copy(folder.path());
        let path = copied.path().join(log.file_name().expect("it has a name"));
        let file = fs::OpenOptions::new().write(true).open(path).expect("it is there");
        file.set_len(length - cut).expect("it can be cut");
        let Ok(other) = Server::start(options(copied.path(), 1, Policy::Never)) else {
            // Only if the header of the file is cut.
            assert!(length - cut < 200, "{cut} of {length}");
            continue;
        };
        stop(other);
        let other = start(copied.path(), 2);
        let [a, b, list] = counts(&other);
        assert_eq!(a, b, "{cut} bytes are cut");
        let number = a.trim_matches('"');
        assert_eq!(list.trim_start_matches("(integer) "), if a == "(nil)" { "0" } else { number });
        seen.insert(a);
        stop(other);
    }
    assert!(seen.len() > 4, "{seen:?}");
}
