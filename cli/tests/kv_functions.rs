// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of a user on the command line: `freeport kv functions` lists and refuses files, and
//! `freeport kv serve --functions` has them, and the results of those of an earlier start.

use crate::kv_server::{KvServer, output_of};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;

const STOCK: &str = "\
    /// Takes from a stock, which is refilled.\n\
    template <T> T order(T v, T amount, T least, T refill) {\n    \
        return v >= amount && v - amount >= least ? v - amount : v - amount + refill;\n\
    }\n\
    bool odd(uchar v) { return v & 1; }\n";

const FLOAT: &str = "float half(float v) { return v / 2; }\n";

/// A file in a folder.
fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("the folder is writable");
    path
}

/// Runs `freeport kv functions`.
fn functions(arguments: &[&str]) -> Output {
    output_of(&[&["kv", "functions"], arguments].concat(), "")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A text without the breaks of its lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn files_are_checked_and_functions_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let stock = file(folder.path(), "stock.cnp", STOCK);
    let sum =
        file(folder.path(), "sum.cnp", "ulong all(uint v, ulong sigma) { return sigma + v; }");
    let [stock, sum] = [&stock, &sum].map(|path| path.to_str().expect("text"));
    let listed = functions(&[stock, sum]);
    assert!(listed.status.success(), "{listed:?}");
    let expected = [
        "id kind name operands elements",
        "128 update order amount, least, refill u8 u16 u32 u64 i8 i16 i32 i64",
        "129 filter odd - u8",
        "130 reduction all sigma u32",
    ];
    assert_eq!(text(&listed.stdout).lines().map(words).collect::<Vec<_>>(), expected);

    let listed = functions(&["--json", sum, stock]);
    let lines = text(&listed.stdout);
    let objects: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let first = json!({
        "event": "function", "id": 128, "name": "all", "kind": "reduction",
        "operands": ["sigma"], "elements": ["u32"],
    });
    assert_eq!((objects.len(), &objects[0]), (3, &first));
    assert_eq!((&objects[1]["id"], &objects[1]["name"]), (&129.into(), &"order".into()));
}

#[test]
fn a_refused_file_is_shown_with_the_place_and_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let stock = file(folder.path(), "stock.cnp", STOCK);
    let float = file(folder.path(), "float.cnp", FLOAT);
    let [stock, float] = [&stock, &float].map(|path| path.to_str().expect("text"));
    let refused = functions(&[stock, float]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let complaint = text(&refused.stderr);
    assert!(complaint.contains("error[E0105]"), "{complaint}");
    assert!(complaint.contains(&format!("{float}:1:1")), "{complaint}");

    let refused = functions(&["--json", float]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let lines = text(&refused.stdout);
    let first = lines.lines().next().expect("there is an error");
    let object: Value = serde_json::from_str(first).expect("JSON");
    assert_eq!((&object["code"], &object["line"]), (&"E0105".into(), &1.into()), "{object}");

    // Nothing is started: neither is the folder made, nor is a port opened.
    let data = folder.path().join("data");
    let serve = ["kv", "serve", "--port", "0", "--dir", data.to_str().expect("text")];
    let refused =
        output_of(&[&serve[..], &["--functions", stock, "--functions", float]].concat(), "");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let complaint = text(&refused.stderr);
    assert!(complaint.contains("a file with functions is refused"), "{complaint}");
    assert!(complaint.contains(&format!("{float}:1:1")), "{complaint}");
    assert!(refused.stdout.is_empty() && !data.exists(), "{refused:?}");

    let missing = functions(&["none.cnp"]);
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    assert!(text(&missing.stderr).contains("none.cnp"), "{missing:?}");
}

#[test]
fn a_server_has_the_functions_of_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let stock = file(folder.path(), "stock.cnp", STOCK);
    let data = folder.path().join("data");
    let [stock, data] = [&stock, &data].map(|path| path.to_str().expect("text"));
    let server = KvServer::start(&["--dir", data, "--workers", "2", "--functions", stock]);
    let said: Value = serde_json::from_str(&server.ready).expect("JSON");
    assert_eq!(said["functions"], 2, "{said}");
    assert_eq!(server.reply(&["SET", "stock", "0d}"]), "OK");
    let order = ["KV.UPDATEV", "stock", "order", "u8", "DELTA", "5", "10", "91"];
    assert_eq!(server.reply(&[&order[..], &["RETURN"]].concat()), "\"0d}\"");
    assert_eq!(server.reply(&["GET", "stock"]), "\"+_x\"");
    assert_eq!(server.reply(&["KV.FILTER", "stock", "odd", "u8"]), "\"+_\"");
    assert_eq!(server.reply(&order), "OK");
    assert!(server.reply(&["KV.FUNCTIONS"]).contains("\"refill\""));
    drop(server);

    // The process was killed. Without the functions, the data is the same.
    let server = KvServer::start(&["--dir", data]);
    assert_eq!(server.reply(&["GET", "stock"]), "\"&Zs\"");
    let gone = server.cli(&order, "");
    assert!(text(&gone.stdout).contains("ERR no update is named 'order'"), "{gone:?}");
}

/// Native code is called by several workers at once, each on keys of its own.
#[test]
fn clients_of_several_workers_call_functions_at_once() {
    const CLIENTS: usize = 4;
    const CALLS: usize = 100;
    const KEYS: [&str; 3] = ["a", "b", "c"];
    let folder = tempfile::tempdir().expect("a folder");
    let text = "ulong next(ulong v, ulong add) { return v * 6364136223846793005 + add; }";
    let next = file(folder.path(), "next.cnp", text);
    let server = KvServer::start(&["--workers", "3", "--functions", next.to_str().expect("text")]);
    let vector = format!("\"{}\"", r"\x01\x00\x00\x00\x00\x00\x00\x00".repeat(500));
    for key in KEYS {
        let set = server.cli(&[], &format!("SET {key} {vector}\n"));
        assert!(set.status.success(), "{set:?}");
    }
    let calls = KEYS.map(|key| format!("KV.UPDATEV {key} next u64 DELTA 7\n")).concat();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let done = server.cli(&[], &calls.repeat(CALLS));
                assert!(done.status.success(), "{done:?}");
                assert!(self::text(&done.stdout).lines().all(|line| line == "OK"), "{done:?}");
            });
        }
    });
    let apply = |value: u64, _| value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(7);
    let last = (0..CLIENTS * CALLS).fold(1, apply).to_string();
    for key in KEYS {
        for reduce in ["minimum", "maximum"] {
            let first = if reduce == "minimum" { u64::MAX } else { 0 }.to_string();
            let reply = server.reply(&["--raw", "KV.REDUCE", key, reduce, "u64", &first]);
            assert_eq!(reply, last, "{key}");
        }
    }
}
