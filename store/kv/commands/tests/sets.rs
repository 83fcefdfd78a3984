// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets.

use std::collections::BTreeSet;

use freeport_kv_protocol::resp::{Value, Version};

use crate::harness::{Beside, Compared, Local, fill, parsed, scanned};

fn members(reply: &[u8]) -> BTreeSet<Vec<u8>> {
    let (Value::Array(values) | Value::Set(values)) = parsed(reply) else { panic!("several") };
    let count = values.len();
    let text = |value| if let Value::Bulk(text) = value { text } else { panic!("{value} is none") };
    let members: BTreeSet<Vec<u8>> = values.into_iter().map(text).collect();
    assert_eq!(members.len(), count, "members are different");
    members
}

#[test]
fn members_are_added_and_removed() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("SADD s 3 1 2 1"), b":3\r\n");
    assert_eq!(local.line("SADD s 1"), b":0\r\n");
    assert_eq!(local.line("SMEMBERS s"), b"*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n");
    local.session.version = Version::Three;
    assert_eq!(local.line("SMEMBERS s"), b"~3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n");
    assert_eq!(local.line("SMISMEMBER s 1 7"), b"*2\r\n:1\r\n:0\r\n");
    assert_eq!(local.line("SREM s 1 2 7"), b":2\r\n");
    assert_eq!(local.line("SREM s 3"), b":1\r\n");
    assert_eq!(local.line("SCARD s"), b":0\r\n");
    assert_eq!(local.events(), ["sadd s", "srem s", "srem s", "del s"]);
}

#[test]
fn sets_of_different_shards_are_combined() {
    let mut local = Local::with_shards(3);
    for number in 0..30 {
        local.line(&format!("SADD s{number} all {number} {}", number + 1));
    }
    let shards: BTreeSet<usize> =
        (0..30).map(|number| local.store.shard_of(format!("s{number}").as_bytes())).collect();
    assert_eq!(shards.len(), 3);
    let keys: Vec<String> = (0..30).map(|number| format!("s{number}")).collect();
    let keys = keys.join(" ");
    assert_eq!(local.line(&format!("SINTER {keys}")), b"*1\r\n$3\r\nall\r\n");
    assert_eq!(local.line(&format!("SUNIONSTORE to {keys}")), b":32\r\n");
    assert_eq!(local.line("SDIFFSTORE to to s0 s4"), b":27\r\n");
    assert_eq!(local.line("SINTERSTORE s5 s5 none"), b":0\r\n");
    assert_eq!(local.line("SINTERCARD 2 s0 s1"), b":2\r\n");
    for number in 1..30 {
        assert_eq!(
            local.line(&format!("SMOVE s{number} moved{number} all")),
            match number {
                5 => b":0\r\n",
                _ => b":1\r\n",
            }
        );
    }
    assert_eq!(local.line("SISMEMBER moved7 all"), b":1\r\n");
}

#[test]
fn a_stored_result_replaces_values_of_all_types_and_their_expiry() {
    let mut local = Local::new();
    local.now_ms = Some(1_000);
    local.line("SADD s a b");
    local.line("SET string x");
    local.line("SADD timed c");
    let keyspace = local.store.shard_mut(0).database_or_new(0);
    keyspace.set_expiry(b"timed", Some(2_000), 1_000).expect("there is memory");
    local.events();
    assert_eq!(local.line("SUNIONSTORE string s"), b":2\r\n");
    assert_eq!(local.line("SUNIONSTORE timed s"), b":2\r\n");
    local.now_ms = Some(3_000);
    assert_eq!(local.line("SCARD timed"), b":2\r\n");
    assert_eq!(local.line("SINTERSTORE string s none"), b":0\r\n");
    assert_eq!(local.line("SINTERSTORE string s none"), b":0\r\n");
    assert_eq!(local.events(), ["sunionstore string", "sunionstore timed", "del string"]);
    let keyspace = local.store.shard(0).database(0).expect("there are keys");
    assert_eq!((keyspace.len(), keyspace.expiring()), (2, 0));
}

#[test]
fn random_members_are_members() {
    let mut local = Local::new();
    for member in 0..700 {
        local.line(&format!("SADD s m{member}"));
    }
    assert_eq!(members(&local.line("SRANDMEMBER s 30")).len(), 30);
    let Value::Array(found) = parsed(&local.line("SRANDMEMBER s -900")) else { panic!("an array") };
    assert_eq!(found.len(), 900);
    local.events();
    let popped = members(&local.line("SPOP s 600"));
    assert_eq!(popped.len(), 600);
    let rest = members(&local.line("SMEMBERS s"));
    assert_eq!((rest.len(), rest.intersection(&popped).count()), (100, 0));
    let Value::Bulk(one) = parsed(&local.line("SPOP s")) else { panic!("a member") };
    assert!(rest.contains(&one));
    // The large form goes with its last member, and leaves nothing.
    assert_eq!(members(&local.line("SPOP s 99")).len(), 99);
    assert_eq!(local.events(), ["spop s", "spop s", "spop s", "del s"]);
    let keyspace = local.store.shard(0).database(0).expect("there were keys");
    assert_eq!((keyspace.len(), keyspace.large_values()), (0, 0));
    assert_eq!(local.line("SPOP s"), b"$-1\r\n");
    assert_eq!(local.line("SPOP s 2"), b"*0\r\n");
    local.line("SADD s a");
    let refused = b"-ERR value is out of range\r\n";
    assert_eq!(local.line("SRANDMEMBER s -9223372036854775807"), refused);
}

#[test]
fn a_scan_returns_each_member_once_while_others_are_removed() {
    let mut local = Local::new();
    for member in 0..3_000 {
        local.line(&format!("SADD s m{member}"));
    }
    let mut removed = 1_000..3_000;
    let found = scanned(&mut local, "SSCAN s", "COUNT 20", |local| {
        for member in removed.by_ref().take(30) {
            local.line(&format!("SREM s m{member}"));
        }
    });
    for member in 0..1_000 {
        let member = format!("m{member}").into_bytes();
        assert_eq!(found.iter().filter(|other| **other == member).count(), 1);
    }
    local.line("SADD integers 5 3 4");
    assert_eq!(scanned(&mut local, "SSCAN integers", "MATCH 5", |_| ()), [b"5"]);
}

#[test]
fn what_changes_nothing_has_no_event_and_makes_no_database() {
    let mut local = Local::new();
    let lines = [
        "SREM s a",
        "SPOP s",
        "SPOP s 2",
        "SMOVE s t a",
        "SMEMBERS s",
        "SISMEMBER s a",
        "SCARD s",
        "SMISMEMBER s a",
        "SRANDMEMBER s",
        "SRANDMEMBER s 4",
        "SINTER s t",
        "SINTERCARD 1 s",
        "SUNION s t",
        "SDIFF s t",
        "SINTERSTORE r s",
        "SUNIONSTORE r s",
        "SDIFFSTORE r s",
        "SSCAN s 0",
    ];
    lines.iter().for_each(|line| drop(local.line(line)));
    assert!(local.store.shard(0).database(0).is_none());
    local.line("SADD s a");
    local.events();
    let lines =
        ["SADD s a", "SREM s b", "SMOVE s t b", "SMOVE s s a", "SPOP s 0", "SDIFFSTORE r s s"];
    lines.iter().for_each(|line| drop(local.line(line)));
    assert!(local.events().is_empty());
}

#[test]
fn a_full_store_refuses_members_and_takes_removals() {
    let mut local = Local::with_memory(1, 1 << 20);
    let long = "x".repeat(2_000);
    local.line(&format!("SADD s a b c {long}"));
    local.line("SADD t 1 2");
    fill(&mut local);
    local.events();
    let refused = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    assert_eq!(local.line(&format!("SADD t {long}")), refused);
    assert_eq!(local.line(&format!("SMOVE s t {long}")), refused);
    assert_eq!(local.line("SUNIONSTORE new s t"), refused);
    assert_eq!(local.line(&format!("SISMEMBER s {long}")), b":1\r\n");
    assert!(local.events().is_empty());
    assert_eq!(local.line("SREM s a"), b":1\r\n");
    assert_eq!(members(&local.line("SPOP s 3")).len(), 3);
    assert_eq!(members(&local.line("SPOP t 2")).len(), 2);
    assert_eq!(local.events(), ["srem s", "spop s", "del s", "spop t", "del t"]);
}

#[test]
#[ignore = "long: needs redis-server"]
fn replies_and_events_are_those_of_redis() {
    Compared::once(|compared| Beside::new(compared).table(LINES));
}

const LINES: &str = "
    SET string x
    SADD s
    SADD s 3 1 2 1
    SADD s 2
    SADD t 2 3 4 x
    SADD t 007 7 1.5
    SADD string a
    SMEMBERS s
    SMEMBERS t
    SMEMBERS none
    SMEMBERS string
    SCARD s
    SCARD none
    SCARD string
    SISMEMBER s 1
    SISMEMBER s 01
    SISMEMBER t 007
    SISMEMBER none a
    SISMEMBER string a
    SMISMEMBER s 1 2 9
    SMISMEMBER none 1 2
    SMISMEMBER string 1
    SMISMEMBER s
    SREM s 9
    SREM s 1 1
    SREM none 1
    SREM string 1
    SINTER s t
    SINTER s
    SINTER s none
    SINTER none
    SINTER none string
    SINTER string none
    SINTER s none string
    SUNION s t
    SUNION s none t
    SUNION none
    SUNION s string
    SUNION string none
    SDIFF t s
    SDIFF s t
    SDIFF t none
    SDIFF none t
    SDIFF none string
    SDIFF t t
    SINTERSTORE to s t
    SMEMBERS to
    SINTERSTORE to s none
    SINTERSTORE to s none
    SINTERSTORE to string s
    SINTERSTORE string2 none none
    SUNIONSTORE to s t
    SUNIONSTORE to to none
    SUNIONSTORE to string
    SUNIONSTORE to none
    SUNIONSTORE to none
    SDIFFSTORE to t s
    SDIFFSTORE to to to
    SDIFFSTORE to t string
    SET replaced x
    SUNIONSTORE replaced s
    SMEMBERS replaced
    SET replaced x
    SINTERSTORE replaced none
    SINTERSTORE s s t
    SUNIONSTORE s s t
    SINTERCARD 2 s t
    SINTERCARD 1 s
    SINTERCARD 1 none
    SINTERCARD 2 s none
    SINTERCARD 2 none string
    SINTERCARD 2 s t LIMIT 1
    SINTERCARD 2 s t LIMIT 0
    SINTERCARD 2 s t limit 100
    SINTERCARD 2 s t LIMIT -1
    SINTERCARD 2 s t LIMIT x
    SINTERCARD 2 s t LIMIT
    SINTERCARD 2 s t LIMIT 1 LIMIT 2
    SINTERCARD 2 s t LIMIT 1 x
    SINTERCARD 2 s t x
    SINTERCARD 3 s t
    SINTERCARD 0 s t
    SINTERCARD -1 s t
    SINTERCARD x s t
    SINTERCARD 1.5 s t
    SINTERCARD 9223372036854775807 s t
    SINTERCARD 1 string
    SINTERCARD 1 string LIMIT x
    SINTERCARD 1
    SADD m a b
    SMOVE m n a
    SMOVE m n a
    SMOVE m n none
    SMOVE m m b
    SMOVE m m none
    SMOVE none n a
    SMOVE none string a
    SMOVE m string b
    SMOVE m string none
    SMOVE string m b
    SMOVE string none b
    SADD n b
    SMOVE m n b
    SMEMBERS m
    SMEMBERS n
    SPOP none
    SPOP none 3
    SPOP none 0
    SPOP n 0
    SPOP n -1
    SPOP n x
    SPOP n 1.5
    SPOP n 9223372036854775808
    SPOP n 2 x
    SPOP n x x
    SPOP string
    SPOP string 2
    SPOP string 0
    SPOP n 2
    SPOP n 2
    SADD single a
    SRANDMEMBER single
    SRANDMEMBER single -3
    SRANDMEMBER single 5
    SRANDMEMBER single 0
    SRANDMEMBER single -9223372036854775808
    SRANDMEMBER single 9223372036854775807
    SRANDMEMBER single x
    SRANDMEMBER single 1 x
    SRANDMEMBER none
    SRANDMEMBER none 4
    SRANDMEMBER none -4
    SRANDMEMBER string
    SRANDMEMBER string 4
    SPOP single
    SCARD single
    SSCAN t 0 COUNT 100
    SSCAN t 0 MATCH ? COUNT 100
    SSCAN t 0 COUNT 0
    SSCAN t 0 COUNT
    SSCAN t 0 MATCH
    SSCAN t x
    SSCAN t 18446744073709551616
    SSCAN none 0
    SSCAN none 0 x
    SSCAN string 0
    SADD integers 10 -5 300000 9223372036854775807
    SSCAN integers 0
    SSCAN integers 77 MATCH *0* COUNT 1
    SMEMBERS integers
";
