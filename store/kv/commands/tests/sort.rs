// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sorting: patterns, results that are stored, and a full store.

use freeport_kv_commands::{Keys, sort};

use crate::harness::Local;

fn text(reply: &[u8]) -> String {
    let text = String::from_utf8_lossy(reply);
    let words = text.split("\r\n").filter(|word| !word.is_empty() && !word.starts_with('$'));
    words.collect::<Vec<_>>().join(" ")
}

fn prepared() -> Local {
    let mut local = Local::with_shards(3);
    local.line("RPUSH list 3 10 1 2");
    local.line("HSET hash:1 weight 9 name one");
    local.line("HSET hash:2 weight 8 name two");
    local.line("HSET hash:3 weight 7 name three");
    for line in ["SET w_1 30", "SET w_2 20", "SET w_3 10", "SET w_10 0"] {
        local.line(line);
    }
    local.effects.events.clear();
    local
}

#[test]
fn elements_are_ordered_by_themselves_or_by_other_keys() {
    let mut local = prepared();
    for (line, expected) in [
        ("SORT list", "*4 1 2 3 10"),
        ("SORT list DESC", "*4 10 3 2 1"),
        ("SORT list ALPHA", "*4 1 10 2 3"),
        ("SORT_RO list LIMIT 1 2", "*2 2 3"),
        ("SORT list BY w_*", "*4 10 3 2 1"),
        ("SORT list BY hash:*->weight", "*4 10 3 2 1"),
        ("SORT list BY nosort DESC LIMIT 0 2", "*2 2 1"),
        ("SORT list GET # GET hash:*->name LIMIT 0 2", "*4 1 one 2 two"),
        ("SORT none", "*0"),
        ("SORT w_1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ] {
        assert_eq!(text(&local.line(line)), expected, "{line}");
    }
    assert_eq!(local.line("SORT list GET none_* LIMIT 0 1"), b"*1\r\n$-1\r\n");
}

#[test]
fn a_result_replaces_any_key() {
    let mut local = prepared();
    assert_eq!(local.line("SORT list STORE w_1"), b":4\r\n");
    assert_eq!(text(&local.line("SORT w_1 BY nosort")), "*4 1 2 3 10");
    assert_eq!(local.line("SORT list DESC STORE list"), b":4\r\n");
    assert_eq!(text(&local.line("SORT list BY nosort")), "*4 10 3 2 1");
    assert_eq!(local.line("SORT list GET none_* STORE new"), b":4\r\n");
    assert_eq!(text(&local.line("SORT new BY nosort")), "*4");
    assert_eq!(local.line("SORT none STORE w_1"), b":0\r\n");
    assert_eq!(local.line("SORT none STORE w_1"), b":0\r\n");
    let events: Vec<_> = local.effects.events.iter().map(|event| event.name).collect();
    assert_eq!(events, ["sortstore", "sortstore", "sortstore", "del"]);
    assert_eq!(local.line("GET w_1"), b"$-1\r\n");
}

#[test]
fn a_full_store_refuses_the_result() {
    let mut local = Local::with_memory(1, 4 << 20);
    let words: Vec<String> = (0..100).rev().map(|number| number.to_string()).collect();
    local.line(&format!("RPUSH list {}", words.join(" ")));
    let value = vec![b'v'; 4096];
    let mut count = 0;
    while local.call(&[b"SET", format!("key {count}").as_bytes(), &value]) == b"+OK\r\n" {
        count += 1;
    }
    while local.call(&[b"SET", format!("key {count}").as_bytes(), b"value"]) == b"+OK\r\n" {
        count += 1;
    }
    local.effects.events.clear();
    assert!(local.line("SORT list STORE new").starts_with(b"-OOM"));
    assert_eq!(text(&local.line("SORT list LIMIT 0 3")), "*3 0 1 2");
    assert!(local.effects.events.is_empty());
}

#[test]
fn patterns_need_the_shards_of_all_keys() {
    let sort = &sort::COMMANDS[0].spec;
    assert!(matches!(sort.keys, Keys::Made { .. }));
    assert!(sort.keys.needs_all(&[b"sort", b"list", b"BY", b"w_*"]));
    assert!(!sort.keys.needs_all(&[b"sort", b"list", b"STORE", b"w_*"]));
}
