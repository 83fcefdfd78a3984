// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes.

use std::collections::BTreeSet;

use freeport_kv_protocol::resp::{Value, Version};

use crate::harness::{Beside, Compared, Local, fill, parsed, scanned};

#[test]
fn fields_are_set_read_and_removed() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("HSET h name Ada visits 2"), b":2\r\n");
    assert_eq!(local.line("hset h name Bob"), b":0\r\n");
    assert_eq!(local.line("HGET h name"), b"$3\r\nBob\r\n");
    assert_eq!(local.line("HINCRBY h visits 5"), b":7\r\n");
    assert_eq!(local.line("HINCRBYFLOAT h visits 0.5"), b"$3\r\n7.5\r\n");
    assert_eq!(local.line("HMGET h visits none"), b"*2\r\n$3\r\n7.5\r\n$-1\r\n");
    assert_eq!(local.line("HDEL h name none"), b":1\r\n");
    assert_eq!(local.line("HKEYS h"), b"*1\r\n$6\r\nvisits\r\n");
    assert_eq!(local.line("HDEL h visits"), b":1\r\n");
    assert_eq!(local.line("HLEN h"), b":0\r\n");
    let expected = ["hset h", "hset h", "hincrby h", "hincrbyfloat h", "hdel h", "hdel h", "del h"];
    assert_eq!(local.events(), expected);
}

#[test]
fn a_map_is_a_map_in_version_3() {
    let mut local = Local::new();
    local.line("HSET h a 1");
    assert_eq!(local.line("HGETALL h"), b"*2\r\n$1\r\na\r\n$1\r\n1\r\n");
    local.session.version = Version::Three;
    assert_eq!(local.line("HGETALL h"), b"%1\r\n$1\r\na\r\n$1\r\n1\r\n");
    assert_eq!(local.line("HGETALL none"), b"%0\r\n");
    let pairs = local.line("HRANDFIELD h -2 WITHVALUES");
    assert_eq!(pairs, b"*2\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n");
}

#[test]
fn what_changes_nothing_has_no_event_and_makes_no_database() {
    let mut local = Local::new();
    let lines = [
        "HDEL h a",
        "HGET h a",
        "HMGET h a",
        "HGETALL h",
        "HLEN h",
        "HEXISTS h a",
        "HSTRLEN h a",
        "HRANDFIELD h",
        "HRANDFIELD h 3",
        "HSCAN h 0",
        "HKEYS h",
        "HVALS h",
    ];
    lines.iter().for_each(|line| drop(local.line(line)));
    assert!(local.store.shard(0).database(0).is_none());
    local.line("HSET h a x");
    local.events();
    let lines = ["HSETNX h a 2", "HINCRBY h a 1", "HINCRBYFLOAT h a 1", "HDEL h b", "HSET h a"];
    lines.iter().for_each(|line| drop(local.line(line)));
    assert!(local.events().is_empty());
    assert_eq!(local.line("HINCRBY new a x"), b"-ERR value is not an integer or out of range\r\n");
    assert_eq!(local.line("HLEN new"), b":0\r\n");
}

#[test]
fn an_expired_hash_begins_anew() {
    let mut local = Local::new();
    local.now_ms = Some(1_000);
    local.line("HSET h a 1");
    let keyspace = local.store.shard_mut(0).database_or_new(0);
    keyspace.set_expiry(b"h", Some(2_000), 1_000).expect("there is memory");
    local.now_ms = Some(2_000);
    assert_eq!(local.line("HGET h a"), b"$-1\r\n");
    assert_eq!(local.line("HDEL h a"), b":0\r\n");
    assert_eq!(local.line("HSET h b 1"), b":1\r\n");
    assert_eq!(local.line("HLEN h"), b":1\r\n");
}

#[test]
fn random_fields_are_fields() {
    let mut local = Local::new();
    (0..500).for_each(|number| drop(local.line(&format!("HSET h field{number} {number}"))));
    let Value::Array(pairs) = parsed(&local.line("HRANDFIELD h 50 WITHVALUES")) else {
        panic!("an array")
    };
    let mut fields = BTreeSet::new();
    for pair in pairs.chunks(2) {
        let [Value::Bulk(field), Value::Bulk(value)] = pair else { panic!("pairs") };
        assert_eq!(*field, [b"field", &value[..]].concat());
        assert!(fields.insert(field.clone()), "fields are different");
    }
    assert_eq!(fields.len(), 50);
    let Value::Array(fields) = parsed(&local.line("HRANDFIELD h -700")) else { panic!("an array") };
    assert_eq!(fields.len(), 700);
    let Value::Bulk(field) = parsed(&local.line("HRANDFIELD h")) else { panic!("a field") };
    assert!(field.starts_with(b"field"));
}

#[test]
fn a_number_of_repetitions_does_not_take_all_memory() {
    let mut local = Local::new();
    local.line("HSET h a 1");
    let refused = b"-ERR value is out of range\r\n";
    assert_eq!(local.line("HRANDFIELD h -4611686018427387903 WITHVALUES"), refused);
    assert_eq!(local.line("HRANDFIELD h -9223372036854775807"), refused);
    assert_eq!(local.line("HRANDFIELD h 9223372036854775807"), b"*1\r\n$1\r\na\r\n");
}

#[test]
fn a_scan_returns_each_field_once_while_the_hash_grows() {
    let mut local = Local::new();
    (0..1_000).for_each(|number| drop(local.line(&format!("HSET h {number} v"))));
    let mut others = 1_000..;
    let found = scanned(&mut local, "HSCAN h", "COUNT 7", |local| {
        let number = others.next().expect("there are more");
        local.line(&format!("HSET h {number} v"));
    });
    let fields: Vec<_> = found.chunks(2).map(|pair| pair[0].clone()).collect();
    for number in 0..1_000 {
        let field = number.to_string().into_bytes();
        assert_eq!(fields.iter().filter(|other| **other == field).count(), 1, "{number}");
    }
    let some = scanned(&mut local, "HSCAN h", "MATCH 99? COUNT 100", |_| ());
    assert_eq!(some.len(), 20);
}

#[test]
fn a_full_store_refuses_fields_and_takes_removals() {
    let mut local = Local::with_memory(1, 1 << 20);
    local.line("HSET h a 1 b 2");
    fill(&mut local);
    local.events();
    let long = "x".repeat(2_000);
    let refused = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    assert_eq!(local.line(&format!("HSET h c {long}")), refused);
    assert_eq!(local.line(&format!("HSETNX h c {long}")), refused);
    assert!(local.events().is_empty());
    assert_eq!(local.line("HGETALL h"), b"*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n");
    assert_eq!(local.line("HDEL h a b"), b":2\r\n");
    assert_eq!(local.events(), ["hdel h", "del h"]);
}

#[test]
#[ignore = "long: needs redis-server"]
fn replies_and_events_are_those_of_redis() {
    Compared::once(|compared| Beside::new(compared).table(LINES));
}

const LINES: &str = "
    SET string x
    HSET h
    HSET h a
    HSET h a 1 b
    HMSET h a 1 b
    HSET h a 1
    HSET h a 2 b 3 a 4
    HSET h 1 one 1.5 x -0 y 007 z
    HMSET h a 5
    HMSET new a 1 b 2 a 3
    HGETALL new
    HSET string a 1
    HMSET string a 1
    HSET string a
    HSETNX h a 9
    HSETNX h z 9
    HSETNX string z 9
    HSETNX fresh z 9
    HGET h a
    HGET h none
    HGET none a
    HGET string a
    HGET h
    HGET h a b
    HMGET h a none 1 a
    HMGET none a b
    HMGET string a
    HGETALL h
    HGETALL none
    HGETALL string
    HKEYS h
    HKEYS none
    HKEYS string
    HVALS h
    HVALS none
    HVALS string
    HLEN h
    HLEN none
    HLEN string
    HEXISTS h a
    HEXISTS h 007
    HEXISTS h 7
    HEXISTS none a
    HEXISTS string a
    HSTRLEN h a
    HSTRLEN h none
    HSTRLEN none a
    HSTRLEN string a
    HINCRBY h count 5
    HINCRBY h count -7
    HINCRBY h count x
    HINCRBY h count 1.5
    HINCRBY h count 9223372036854775808
    HINCRBY h count 007
    HINCRBY h a x
    HINCRBY h 1 1
    HINCRBY h 007 1
    HINCRBY string a 1
    HINCRBY string a x
    HSET h big 9223372036854775807 small -9223372036854775808 spaced 1x empty
    HSET h big 9223372036854775807 small -9223372036854775808 zeros 010
    HINCRBY h big 1
    HINCRBY h big -1
    HINCRBY h small -1
    HINCRBY h zeros 1
    HINCRBY none2 f 9223372036854775807
    HINCRBYFLOAT h float 0.1
    HINCRBYFLOAT h float 0.2
    HINCRBYFLOAT h float -1e3
    HINCRBYFLOAT h float x
    HINCRBYFLOAT h float nan
    HINCRBYFLOAT h float inf
    HINCRBYFLOAT h float -inf
    HINCRBYFLOAT h float 1e400
    HINCRBYFLOAT h 1 1
    HINCRBYFLOAT h big 1
    HINCRBYFLOAT h big 0x10
    HINCRBYFLOAT string a 1
    HINCRBYFLOAT string a x
    HSET h huge 1e4932
    HINCRBYFLOAT h huge 1e4932
    HSET h infinite inf
    HINCRBYFLOAT h infinite 1
    HDEL h none
    HDEL h a a b
    HDEL none a
    HDEL string a
    HDEL h
    HDEL fresh z
    HGETALL fresh
    HSET r a 1 b 2 c 3
    HRANDFIELD none
    HRANDFIELD none 0
    HRANDFIELD none 5
    HRANDFIELD none -5
    HRANDFIELD none 5 WITHVALUES
    HRANDFIELD r 0
    HRANDFIELD r 0 WITHVALUES
    HRANDFIELD r 3
    HRANDFIELD r 10 WITHVALUES
    HRANDFIELD r 10 withValues
    HRANDFIELD r x
    HRANDFIELD r 1.5
    HRANDFIELD r 3 WITHSCORES
    HRANDFIELD r 3 WITHVALUES x
    HRANDFIELD r x WITHVALUES x
    HRANDFIELD r -9223372036854775808
    HRANDFIELD r 9223372036854775808
    HRANDFIELD r 9223372036854775807 WITHVALUES
    HRANDFIELD r -9223372036854775807 WITHVALUES
    HRANDFIELD none 9223372036854775807 WITHVALUES
    HRANDFIELD string
    HRANDFIELD string 3
    HRANDFIELD string x
    HSET one only 1
    HRANDFIELD one
    HRANDFIELD one -3
    HRANDFIELD one -2 WITHVALUES
    HSCAN r 0
    HSCAN r 0 MATCH a*
    HSCAN r 0 MATCH *
    HSCAN r 0 MATCH x COUNT 1
    HSCAN r 0 COUNT 0
    HSCAN r 0 COUNT -1
    HSCAN r 0 COUNT x
    HSCAN r 0 COUNT
    HSCAN r 0 MATCH
    HSCAN r 0 COUNT 5 MATCH
    HSCAN r 0 COUNT 5 MATCH b COUNT 2
    HSCAN r 0 TYPE hash
    HSCAN r 0 NOVALUES x
    HSCAN r x
    HSCAN r -1
    HSCAN r 1.5
    HSCAN r 18446744073709551616
    HSCAN none 0
    HSCAN none 0 COUNT x
    HSCAN none x
    HSCAN string 0
    HSCAN string x
";
