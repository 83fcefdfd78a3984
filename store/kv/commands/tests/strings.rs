// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings: values, their expiry, events, and a store without memory.

use crate::harness::Local;

#[test]
fn a_string_is_stored_and_read() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("SET key value"), b"+OK\r\n");
    assert_eq!(local.line("get key"), b"$5\r\nvalue\r\n");
    assert_eq!(local.line("GET"), b"-ERR wrong number of arguments for 'get' command\r\n");
    assert_eq!(local.line("GETRANGE key 1 -2"), b"$3\r\nalu\r\n");
    assert_eq!(local.line("STRLEN key"), b":5\r\n");
    assert_eq!(local.events(), ["set key"]);
}

#[test]
fn conditions_of_set() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("SET key 1 XX"), b"$-1\r\n");
    assert_eq!(local.line("SET key 1 NX GET"), b"$-1\r\n");
    assert_eq!(local.line("SET key 2 NX GET"), b"$1\r\n1\r\n");
    assert_eq!(local.line("SET key 2 NX"), b"$-1\r\n");
    assert_eq!(local.line("SET key 3 XX GET"), b"$1\r\n1\r\n");
    assert_eq!(local.line("GET key"), b"$1\r\n3\r\n");
    assert_eq!(local.effects.changes, 2);
}

#[test]
fn strings_expire() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000);
    local.line("SET a 1 PX 500");
    local.line("SETEX b 1 2");
    local.line("SET c 3 PXAT 1500");
    local.line("SET c 4 KEEPTTL");
    local.line("INCR c");
    local.line("APPEND c 5");
    local.line("SET d 1 EX 1");
    local.line("SET d 1");
    assert_eq!(local.event_names()[..2], ["set", "expire"]);
    local.now_ms = Some(1_499);
    assert_eq!(local.line("MGET a b c d"), b"*4\r\n$1\r\n1\r\n$1\r\n2\r\n$2\r\n55\r\n$1\r\n1\r\n");
    local.now_ms = Some(1_500);
    assert_eq!(local.line("MGET a b c d"), b"*4\r\n$-1\r\n$1\r\n2\r\n$-1\r\n$1\r\n1\r\n");
    assert_eq!(local.line("SET c 1 KEEPTTL"), b"+OK\r\n");
    local.now_ms = Some(9_000);
    assert_eq!(local.line("GET c"), b"$1\r\n1\r\n");
}

#[test]
fn getex_changes_the_expiry() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000);
    local.line("SET key 1");
    local.line("GETEX key");
    local.line("GETEX key PERSIST");
    local.line("GETEX key PX 500");
    local.line("GETEX key PERSIST");
    assert_eq!(local.line("GETEX key EX 0"), b"-ERR invalid expire time in 'getex' command\r\n");
    assert_eq!(local.line("GETEX key PXAT 1000"), b"$1\r\n1\r\n");
    assert_eq!(local.line("GETEX key"), b"$-1\r\n");
    assert_eq!(local.event_names(), ["set", "expire", "persist", "del"]);
}

#[test]
fn counters_keep_to_integers() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("INCR n"), b":1\r\n");
    assert_eq!(local.line("DECRBY n 3"), b":-2\r\n");
    assert_eq!(local.line("INCRBYFLOAT n 0.5"), b"$4\r\n-1.5\r\n");
    assert_eq!(local.line("INCR n"), b"-ERR value is not an integer or out of range\r\n");
    assert_eq!(local.event_names(), ["incrby", "incrby", "incrbyfloat"]);
}

#[test]
fn another_type_is_refused() {
    let mut local = Local::with_shards(3);
    local.line("RPUSH list x");
    local.events();
    let commands = [
        "GET list",
        "GETDEL list",
        "GETEX list",
        "STRLEN list",
        "GETRANGE list 0 1",
        "SET list x GET",
        "GETSET list x",
        "APPEND list x",
        "SETRANGE list 0 x",
        "INCR list",
        "INCRBYFLOAT list 1",
    ];
    for line in commands {
        assert!(local.line(line).starts_with(b"-WRONGTYPE Operation"), "{line}");
    }
    assert_eq!(local.line("MGET list"), b"*1\r\n$-1\r\n");
    assert_eq!(local.line("SETNX list x"), b":0\r\n");
    assert!(local.events().is_empty());
    assert_eq!(local.line("SET list x"), b"+OK\r\n");
    assert_eq!(local.line("GETDEL list"), b"$1\r\nx\r\n");
    assert_eq!(local.event_names(), ["set", "del"]);
}

#[test]
fn several_strings_in_different_shards() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("MSET a 1 b 2 c 3 d 4 a 5"), b"+OK\r\n");
    assert_eq!(local.line("MGET a b e d"), b"*4\r\n$1\r\n5\r\n$1\r\n2\r\n$-1\r\n$1\r\n4\r\n");
    assert_eq!(local.line("MSETNX e 1 a 2"), b":0\r\n");
    assert_eq!(local.line("MSETNX e 1 f 2 e 3"), b":1\r\n");
    assert_eq!(local.line("MGET e f"), b"*2\r\n$1\r\n3\r\n$1\r\n2\r\n");
    assert_eq!(local.line("MSET a"), b"-ERR wrong number of arguments for 'mset' command\r\n");
    let odd = "-ERR wrong number of arguments for 'msetnx' command\r\n";
    assert_eq!(local.line("MSETNX a 1 b"), odd.as_bytes());
    assert_eq!(local.effects.changes, 8);
    assert_eq!(local.line("LCS a b"), b"$0\r\n\r\n");
}

#[test]
fn a_string_grows_by_small_parts() {
    let mut local = Local::with_shards(3);
    let mut expected = vec![];
    for number in 0..3_000_u32 {
        let part = number.to_string();
        expected.extend_from_slice(part.as_bytes());
        let reply = local.call(&[b"APPEND", b"key", part.as_bytes()]);
        assert_eq!(reply, format!(":{}\r\n", expected.len()).as_bytes());
    }
    let mut reply = format!("${}\r\n", expected.len()).into_bytes();
    reply.extend_from_slice(&expected);
    reply.extend_from_slice(b"\r\n");
    assert_eq!(local.line("GET key"), reply);
}

#[test]
fn reads_make_no_database() {
    let mut local = Local::with_shards(3);
    for line in ["GET a", "MGET a b c d", "STRLEN a", "GETDEL a", "GETEX a EX 1", "BITCOUNT b"] {
        local.line(line);
    }
    assert!(local.store.shards().all(|shard| shard.memory_bytes() == 0));
}

#[test]
fn a_full_store_refuses_growth_and_keeps_what_it_has() {
    const OUT_OF_MEMORY: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    let mut local = Local::with_memory(1, 1 << 20);
    let value = vec![b'x'; 10_000];
    let mut keys = 0;
    while local.call(&[b"SET", format!("key{keys}").as_bytes(), &value]) == b"+OK\r\n" {
        keys += 1;
    }
    assert!(keys > 20, "{keys} values");
    local.effects = Default::default();
    assert_eq!(local.call(&[b"SETNX", b"new", &value]), OUT_OF_MEMORY);
    assert_eq!(local.call(&[b"MSETNX", b"a", b"1", b"new", &value]), OUT_OF_MEMORY);
    assert_eq!(local.line("GET a"), b"$-1\r\n");
    assert_eq!(local.call(&[b"APPEND", b"key0", &value]), OUT_OF_MEMORY);
    assert_eq!(local.line("SETRANGE key0 536870000 x"), OUT_OF_MEMORY);
    assert_eq!(local.line("SETBIT key0 4294967295 1"), OUT_OF_MEMORY);
    assert_eq!(local.line("BITFIELD key0 SET u8 4294960000 1"), OUT_OF_MEMORY);
    assert_eq!(local.effects.changes, 0);
    // Commands that keep the size, or give memory back, are still possible.
    assert_eq!(local.line("SETRANGE key0 9 yy"), b":10000\r\n");
    assert_eq!(local.line("GETRANGE key0 8 11"), b"$4\r\nxyyx\r\n");
    local.line("GETDEL key0");
    assert_eq!(local.call(&[b"SETNX", b"new", &value]), b":1\r\n");
}
