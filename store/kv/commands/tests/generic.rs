// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of any type: replies that need no server to compare with.

use std::collections::HashSet;

use freeport_kv_keyspace::Keyspace;
use freeport_kv_protocol::resp::Value;
use freeport_kv_types::list::End;
use freeport_kv_types::{Limits, List};

use crate::harness::{Local, parsed};

/// Stores a list in large form.
fn push_many(local: &mut Local, key: &[u8], elements: u32) {
    let shard = local.store.shard_of(key);
    let database = local.store.shard_mut(shard).database_or_new(local.session.database);
    let push = |list: &mut List, limits: &Limits| {
        for number in 0..elements {
            list.push(limits, End::Back, format!("element {number}").as_bytes());
        }
    };
    database.change(key, 0, push).expect("there is memory");
}

fn texts(reply: &[u8]) -> Vec<Vec<u8>> {
    texts_of(&parsed(reply))
}

fn texts_of(value: &Value) -> Vec<Vec<u8>> {
    let Value::Array(values) = value else { panic!("no array: {value:?}") };
    let text = |value: &Value| match value {
        Value::Bulk(text) => text.clone(),
        other => panic!("no text: {other:?}"),
    };
    values.iter().map(text).collect()
}

/// All steps of a scan: cursors but the last, and keys.
fn scan(local: &mut Local, options: &str) -> (Vec<u64>, Vec<Vec<u8>>) {
    let (mut cursors, mut keys, mut cursor) = (vec![], vec![], b"0".to_vec());
    loop {
        let line = format!("SCAN {}{options}", String::from_utf8_lossy(&cursor));
        let Value::Array(parts) = parsed(&local.line(&line)) else { panic!("no array") };
        let Value::Bulk(next) = &parts[0] else { panic!("no cursor") };
        keys.extend(texts_of(&parts[1]));
        cursor.clone_from(next);
        if cursor == b"0" {
            return (cursors, keys);
        }
        cursors.push(str::from_utf8(&cursor).expect("digits").parse().expect("a number"));
    }
}

#[test]
fn keys_of_all_shards_are_counted_found_and_removed() {
    let mut local = Local::with_shards(3);
    for number in 0..100 {
        local.line(&format!("SET key:{number} value"));
    }
    assert_eq!(local.line("DBSIZE"), b":100\r\n");
    assert_eq!(local.line("EXISTS key:1 key:2 key:1 none"), b":3\r\n");
    assert_eq!(texts(&local.line("KEYS key:1?")).len(), 10);
    assert_eq!(texts(&local.line("KEYS *")).len(), 100);
    assert_eq!(local.line("DEL key:1 key:2 key:1 none"), b":2\r\n");
    assert_eq!(local.line("DBSIZE"), b":98\r\n");
    let key = parsed(&local.line("RANDOMKEY"));
    assert!(matches!(&key, Value::Bulk(key) if key.starts_with(b"key:")), "{key:?}");
    assert_eq!(local.line("FLUSHDB"), b"+OK\r\n");
    assert_eq!(local.line("DBSIZE"), b":0\r\n");
    assert_eq!(local.line("RANDOMKEY"), b"$-1\r\n");
}

#[test]
fn a_scan_returns_each_key_that_stays_and_is_bounded() {
    for shards in [1, 3] {
        let mut local = Local::with_shards(shards);
        for number in 0..3_000 {
            local.line(&format!("SET key:{number} value"));
        }
        let (cursors, keys) = scan(&mut local, "");
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 3_000);
        assert!(cursors.len() > 100, "{}", cursors.len());
        assert_eq!(scan(&mut local, " COUNT 100000").0, []);
        let (_, keys) = scan(&mut local, " MATCH key:1??? COUNT 7");
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 1_000);
        // Keys come and go between the steps.
        let mut seen = HashSet::new();
        let (mut cursor, mut step) = (b"0".to_vec(), 0);
        loop {
            let line = format!("SCAN {} COUNT 20", String::from_utf8_lossy(&cursor));
            let Value::Array(parts) = parsed(&local.line(&line)) else { panic!("no array") };
            seen.extend(texts_of(&parts[1]));
            let Value::Bulk(next) = &parts[0] else { panic!("no cursor") };
            cursor.clone_from(next);
            if cursor == b"0" {
                break;
            }
            for number in 0..50 {
                local.line(&format!("SET new:{step}:{number} value"));
            }
            local.line(&format!("DEL key:{}", 2_000 + step));
            step += 1;
        }
        let stays = |number: &i32| *number < 2_000;
        assert!(
            (0..3_000)
                .filter(stays)
                .all(|number| { seen.contains(format!("key:{number}").as_bytes()) })
        );
    }
}

#[test]
fn any_number_is_a_cursor() {
    let mut local = Local::with_shards(3);
    local.line("SET key value");
    for cursor in [u64::MAX, u64::MAX / 3, 1 << 63, 5, 1_000_000_007] {
        assert!(matches!(parsed(&local.line(&format!("SCAN {cursor}"))), Value::Array(_)));
    }
    assert_eq!(local.line("SCAN 18446744073709551616"), b"-ERR invalid cursor\r\n");
}

#[test]
fn a_scan_filters_by_type() {
    let mut local = Local::with_shards(3);
    local.line("SET string value");
    push_many(&mut local, b"list", 3);
    assert_eq!(scan(&mut local, " TYPE LIST").1, [b"list"]);
    assert_eq!(scan(&mut local, " TYPE string").1, [b"string"]);
    assert!(scan(&mut local, " TYPE none").1.is_empty());
}

#[test]
fn times_of_expiry_follow_the_clock() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000_000);
    local.line("SET key value");
    assert_eq!(local.line("EXPIRE key 100"), b":1\r\n");
    assert_eq!(local.line("PTTL key"), b":100000\r\n");
    assert_eq!(local.line("EXPIRETIME key"), b":1100\r\n");
    local.now_ms = Some(1_000_500);
    assert_eq!(local.line("TTL key"), b":100\r\n");
    local.now_ms = Some(1_000_501);
    assert_eq!(local.line("TTL key"), b":99\r\n");
    assert_eq!(local.line("EXPIRE key 200 LT"), b":0\r\n");
    assert_eq!(local.line("EXPIRE key 200 GT"), b":1\r\n");
    local.now_ms = Some(1_200_501);
    assert_eq!(local.line("TTL key"), b":-2\r\n");
    assert_eq!(local.line("EXISTS key"), b":0\r\n");
    assert_eq!(local.line("PERSIST key"), b":0\r\n");
    assert_eq!(local.line("RENAME key other"), b"-ERR no such key\r\n");
    assert_eq!(local.line("KEYS *"), b"*0\r\n");
}

#[test]
fn large_values_move_between_shards_and_databases() {
    let mut local = Local::with_shards(3);
    push_many(&mut local, b"0", 5_000);
    local.line("PEXPIREAT 0 9000000000000");
    let large = |local: &Local| -> usize {
        let databases = (0..16).flat_map(|number| {
            local.store.shards().filter_map(move |shard| shard.database(number))
        });
        databases.map(Keyspace::large_values).sum()
    };
    for number in 1..20 {
        assert_eq!(local.line(&format!("RENAME {} {number}", number - 1)), b"+OK\r\n");
    }
    assert_eq!((local.line("DBSIZE"), large(&local)), (b":1\r\n".to_vec(), 1));
    assert_eq!(local.line("MOVE 19 5"), b":1\r\n");
    assert_eq!(local.line("EXISTS 19"), b":0\r\n");
    local.session.database = 5;
    assert_eq!(local.line("COPY 19 copy DB 3"), b":1\r\n");
    assert_eq!(local.line("OBJECT ENCODING 19"), b"$9\r\nquicklist\r\n");
    assert_eq!((local.line("DEL 19"), large(&local)), (b":1\r\n".to_vec(), 1));
    local.session.database = 3;
    assert_eq!(local.line("PEXPIRETIME copy"), b":9000000000000\r\n");
    assert_eq!(local.line("SWAPDB 3 4"), b"+OK\r\n");
    assert_eq!(local.line("EXISTS copy"), b":0\r\n");
    assert_eq!(local.line("FLUSHALL ASYNC"), b"+OK\r\n");
    assert_eq!(large(&local), 0);
}

#[test]
fn encodings_are_those_of_redis_7_2() {
    let mut local = Local::with_shards(3);
    // A small list was a quicklist in 7.0.
    push_many(&mut local, b"list", 3);
    assert_eq!(local.line("OBJECT ENCODING list"), b"$8\r\nlistpack\r\n");
    local.line("SET number 12");
    assert_eq!(local.line("OBJECT ENCODING number"), b"$3\r\nint\r\n");
    let long = "x".repeat(45);
    local.line(&format!("SET text {long}"));
    assert_eq!(local.line("OBJECT ENCODING text"), b"$3\r\nraw\r\n");
    assert!(
        local
            .line("DEBUG OBJECT text")
            .ends_with(b" encoding:raw serializedlength:45 lru:0 lru_seconds_idle:0\r\n")
    );
}

#[test]
fn a_dumped_value_is_restored() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000);
    push_many(&mut local, b"list", 5_000);
    let Value::Bulk(payload) = parsed(&local.line("DUMP list")) else { panic!("no payload") };
    assert_eq!(local.call(&[b"RESTORE", b"copy", b"50", &payload]), b"+OK\r\n");
    assert_eq!(local.line("PEXPIRETIME copy"), b":1050\r\n");
    assert_eq!(local.line("DUMP copy"), local.line("DUMP list"));
    let busy = b"-BUSYKEY Target key name already exists.\r\n";
    assert_eq!(local.call(&[b"RESTORE", b"copy", b"0", &payload]), busy);
    let replace: [&[u8]; 5] = [b"RESTORE", b"copy", b"0", &payload, b"REPLACE"];
    assert_eq!(local.call(&replace), b"+OK\r\n");
    assert_eq!(local.line("PTTL copy"), b":-1\r\n");
    let mut damaged = payload.clone();
    damaged[100] ^= 1;
    let wrong = b"-ERR DUMP payload version or checksum are wrong\r\n";
    assert_eq!(local.call(&[b"RESTORE", b"third", b"0", &damaged]), wrong);
    let past: [&[u8]; 6] = [b"RESTORE", b"copy", b"5", &payload, b"REPLACE", b"ABSTTL"];
    assert_eq!(local.call(&past), b"+OK\r\n");
    assert_eq!(local.line("EXISTS copy third"), b":0\r\n");
}

#[test]
fn digests_are_those_of_the_contents() {
    let [mut one, mut other] = [Local::with_shards(1), Local::with_shards(3)];
    let zero = format!("+{}\r\n", "0".repeat(40)).into_bytes();
    assert_eq!(one.line("DEBUG DIGEST"), zero);
    for local in [&mut one, &mut other] {
        local.line("SET string value");
        push_many(local, b"list", 5_000);
        local.line("COPY list copy");
        local.session.database = 2;
        local.line("SET 17 17");
        local.session.database = 0;
    }
    let all = one.line("DEBUG DIGEST");
    assert_eq!(all, other.line("DEBUG DIGEST"));
    assert_eq!(one.line("DEBUG DIGEST-VALUE list"), one.line("DEBUG DIGEST-VALUE copy"));
    let none = [b"*1\r\n", &zero[..]].concat();
    assert_eq!(one.line("DEBUG DIGEST-VALUE none"), none);
    one.line("PEXPIREAT copy 9000000000000");
    assert_ne!(one.line("DEBUG DIGEST-VALUE list"), one.line("DEBUG DIGEST-VALUE copy"));
    assert_ne!(one.line("DEBUG DIGEST"), all);
    one.line("PERSIST copy");
    assert_eq!(one.line("DEBUG DIGEST"), all);
    one.line("MOVE string 2");
    assert_ne!(one.line("DEBUG DIGEST"), all);
}

#[test]
fn memory_of_a_value_is_counted() {
    let mut local = Local::with_shards(3);
    local.line("SET key value");
    push_many(&mut local, b"list", 5_000);
    let mut bytes = |line: &str| match parsed(&local.line(line)) {
        Value::Integer(bytes) => bytes,
        other => panic!("no number: {other:?}"),
    };
    assert!((8..100).contains(&bytes("MEMORY USAGE key")));
    assert!((60_000..200_000).contains(&bytes("MEMORY USAGE list SAMPLES 0")));
    assert_eq!(local.line("MEMORY USAGE none"), b"$-1\r\n");
}

#[test]
fn populated_keys_are_those_that_were_missing() {
    let mut local = Local::with_shards(3);
    local.line("SET key:3 mine");
    assert_eq!(local.line("DEBUG POPULATE 10"), b"+OK\r\n");
    assert_eq!(local.line("DBSIZE"), b":10\r\n");
    assert_eq!(local.line("GET key:3"), b"$4\r\nmine\r\n");
    assert_eq!(local.line("GET key:4"), b"$7\r\nvalue:4\r\n");
    assert_eq!(local.line("DEBUG POPULATE 2 other 3"), b"+OK\r\n");
    assert_eq!(local.line("GET other:1"), b"$3\r\nval\r\n");
    let refused = local.line("DEBUG POPULATE 2 other 9223372036854775807");
    assert!(refused.starts_with(b"-ERR string exceeds"));
}

#[test]
fn what_needs_memory_is_refused_by_a_full_store() {
    let mut local = Local::with_memory(3, 1 << 20);
    let refused = local.line("DEBUG POPULATE 1000000 filler 1000");
    assert_eq!(refused, b"-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    let keys = local.line("DBSIZE");
    let oom = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    let long = "x".repeat(1_000);
    let mut copied = 0;
    while local.line(&format!("COPY filler:0 {long}{copied}")) == b":1\r\n" {
        copied += 1;
    }
    assert_eq!(local.line(&format!("COPY filler:0 {long}{copied}")), oom);
    assert_eq!(local.line(&format!("EXISTS {long}{copied}")), b":0\r\n");
    (0..copied).for_each(|copy| drop(local.line(&format!("DEL {long}{copy}"))));
    assert_eq!(local.line("DBSIZE"), keys);
    assert_eq!(local.line("DEL filler:0"), b":1\r\n");
    assert_eq!(local.line("RENAME filler:1 filler:0"), b"+OK\r\n");
}
