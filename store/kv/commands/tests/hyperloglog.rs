// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HyperLogLogs: counts that are stored, unions, and a store without memory.

use crate::harness::Local;

fn add(local: &mut Local, key: &str, elements: std::ops::Range<u32>) {
    for element in elements {
        local.line(&format!("PFADD {key} {element}"));
    }
}

fn count(local: &mut Local, keys: &str) -> u32 {
    let reply = local.line(&format!("PFCOUNT {keys}"));
    let text = String::from_utf8(reply).expect("counts are decimal");
    text[1..].trim().parse().expect("the reply is an integer")
}

#[test]
fn elements_of_several_keys_are_counted_once() {
    let mut local = Local::with_shards(3);
    add(&mut local, "a", 0..600);
    add(&mut local, "b", 300..900);
    for (keys, expected) in [("a", 600), ("b", 600), ("a b none", 900), ("none", 0)] {
        assert!(count(&mut local, keys).abs_diff(expected) <= expected / 20, "{keys}");
    }
    assert_eq!(local.line("PFMERGE c a b none"), b"+OK\r\n");
    assert_eq!(count(&mut local, "c"), count(&mut local, "a b"));
}

#[test]
fn a_count_is_stored_until_registers_change() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("PFADD h"), b":1\r\n");
    assert_eq!(local.line("PFADD h a b"), b":1\r\n");
    assert_eq!(local.line("PFADD h a b"), b":0\r\n");
    assert_eq!(local.events().len(), 2);
    let changes = local.effects.changes;
    for _ in 0..3 {
        assert_eq!(count(&mut local, "h"), 2);
    }
    // The first count changed the bytes. It has no event.
    assert_eq!(local.effects.changes, changes + 1);
    assert!(local.events().is_empty());
}

#[test]
fn dense_registers_are_raised_where_they_lie() {
    let mut local = Local::with_memory(1, 1 << 20);
    assert_eq!(local.line("PFADD h a"), b":1\r\n");
    assert_eq!(local.line("PFDEBUG TODENSE h"), b":1\r\n");
    assert_eq!(local.line("PFDEBUG TODENSE h"), b":0\r\n");
    assert_eq!(local.line("PFADD s a"), b":1\r\n");
    let mut number = 0;
    // Until nothing fits any more.
    for size in [10_000, 100, 10] {
        let value = vec![b'x'; size];
        while local.call(&[b"SET", format!("{number}").as_bytes(), &value]) == b"+OK\r\n" {
            number += 1;
        }
    }
    add(&mut local, "h", 0..1_000);
    assert!(count(&mut local, "h").abs_diff(1_001) < 60);
    let out_of_memory = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    assert_eq!(local.line("PFDEBUG TODENSE s"), out_of_memory);
    assert_eq!(count(&mut local, "s"), 1);
    assert_eq!(local.line("PFSELFTEST"), b"+OK\r\n");
}

#[test]
fn other_strings_are_refused() {
    let mut local = Local::with_shards(3);
    local.line("SET s text");
    local.line("RPUSH list x");
    let invalid = b"-WRONGTYPE Key is not a valid HyperLogLog string value.\r\n";
    for line in ["PFADD s a", "PFCOUNT s", "PFCOUNT s list", "PFMERGE h s", "PFDEBUG GETREG s"] {
        assert_eq!(local.line(line), invalid, "{line}");
    }
    assert!(local.line("PFCOUNT list s").starts_with(b"-WRONGTYPE Operation"));
    assert_eq!(local.line("GET h"), b"$-1\r\n");
}
