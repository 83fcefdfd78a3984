// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sorted sets in this process, their keys in three shards.

use std::collections::BTreeSet;

use freeport_kv_keyspace::Kind;
use freeport_kv_protocol::resp::{Value, Version};

use crate::harness::{Local, fill, parsed, scanned};

/// Replies as text, as `redis-cli` shows them, with all values in one line.
#[track_caller]
fn check(local: &mut Local, cases: &[(&str, &str)]) {
    for (line, expected) in cases {
        let reply = parsed(&local.line(line)).to_string();
        let shown: Vec<&str> = reply.lines().map(str::trim).collect();
        assert_eq!(shown.join("; "), *expected, "{line}");
    }
}

fn texts(reply: &[u8]) -> Vec<String> {
    let Value::Array(values) = parsed(reply) else { panic!("{}", reply.escape_ascii()) };
    let text = |value: &Value| match value {
        Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.to_string(),
    };
    values.iter().map(text).collect()
}

#[test]
fn members_are_added_read_and_removed() {
    let mut local = Local::with_shards(3);
    check(
        &mut local,
        &[
            ("ZADD z 3 c 1 a 2 b", "(integer) 3"),
            ("ZADD z ch 2.5 b 4 d", "(integer) 2"),
            ("ZADD z gt incr -1 b", "(nil)"),
            ("ZINCRBY z 0.1 a", "\"1.1\""),
            (
                "ZRANGE z 0 -1 withscores",
                "1) \"a\"; 2) \"1.1\"; 3) \"b\"; 4) \"2.5\"; 5) \"c\"; \
             6) \"3\"; 7) \"d\"; 8) \"4\"",
            ),
            ("ZRANGE z +inf (2.5 byscore rev limit 1 5", "1) \"c\""),
            ("ZCOUNT z (1.1 3", "(integer) 2"),
            ("ZREMRANGEBYRANK z 0 1", "(integer) 2"),
            ("ZMPOP 2 none z max", "1) \"z\"; 2) 1) 1) \"d\"; 2) \"4\""),
            ("ZREM z c x", "(integer) 1"),
            ("ZCARD z", "(integer) 0"),
        ],
    );
}

#[test]
fn ranks_have_scores_as_in_redis_7_2() {
    let mut local = Local::with_shards(3);
    check(
        &mut local,
        &[
            ("ZADD z 1.5 a 2 b", "(integer) 2"),
            ("ZRANK z b WITHSCORE", "1) (integer) 1; 2) \"2\""),
            ("ZREVRANK z a withscore", "1) (integer) 1; 2) \"1.5\""),
            ("ZRANK z a withscores", "(error) ERR syntax error"),
            ("ZRANK z a withscore x", "(error) ERR wrong number of arguments for 'zrank' command"),
        ],
    );
    assert_eq!(local.line("ZRANK z x withscore"), b"*-1\r\n");
    assert_eq!(local.line("ZRANK none x withscore"), b"*-1\r\n");
    local.session.version = Version::Three;
    assert_eq!(local.line("ZRANK z a withscore"), b"*2\r\n:0\r\n,1.5\r\n");
}

#[test]
fn results_are_stored_in_other_shards() {
    let mut local = Local::with_shards(3);
    // These keys lie in three shards.
    let shards: BTreeSet<usize> =
        [b"a", b"b", b"c"].into_iter().map(|key| local.store.shard_of(key)).collect();
    assert_eq!(shards.len(), 3);
    check(
        &mut local,
        &[
            ("ZADD a 1 x 2 y 3 w", "(integer) 3"),
            ("ZADD b 10 y 20 z", "(integer) 2"),
            ("SET c text", "OK"),
            ("ZUNIONSTORE c 2 a b weights 1 2", "(integer) 4"),
            (
                "ZRANGE c 0 -1 withscores",
                "1) \"x\"; 2) \"1\"; 3) \"w\"; 4) \"3\"; 5) \"y\"; \
             6) \"22\"; 7) \"z\"; 8) \"40\"",
            ),
            ("ZINTERSTORE c 2 a b aggregate max", "(integer) 1"),
            ("ZRANGE c 0 -1 withscores", "1) \"y\"; 2) \"10\""),
            ("ZRANGESTORE c a 1 -1", "(integer) 2"),
            ("ZDIFFSTORE c 2 b b", "(integer) 0"),
            ("ZCARD c", "(integer) 0"),
            ("ZINTERCARD 2 a b", "(integer) 1"),
        ],
    );
}

#[test]
fn events_tell_what_changed() {
    let mut local = Local::with_shards(3);
    for (line, expected) in [
        ("ZADD z 1 a 2 b 3 c 4 d", &["zadd z"][..]),
        ("ZADD z 1 a", &[]),
        ("ZADD z nx 5 a", &[]),
        ("ZINCRBY z 1 a", &["zincr z"]),
        ("ZINCRBY z 0 a", &[]),
        ("ZREM z x", &[]),
        ("ZREM z a", &["zrem z"]),
        ("ZPOPMIN z 0", &[]),
        ("ZPOPMIN z 1", &["zpopmin z"]),
        ("ZRANGESTORE to z 0 -1", &["zrangestore to"]),
        ("ZREMRANGEBYSCORE z 50 60", &[]),
        ("ZREMRANGEBYSCORE z 0 60", &["zremrangebyscore z", "del z"]),
        ("ZUNIONSTORE to 1 none", &["del to"]),
        ("ZUNIONSTORE to 1 none", &[]),
    ] {
        local.line(line);
        assert_eq!(local.events(), expected, "{line}");
    }
    assert_eq!(local.effects.changes, 7);
}

#[test]
fn reads_make_nothing() {
    let mut local = Local::with_shards(3);
    for line in [
        "ZSCORE z a",
        "ZCARD z",
        "ZRANGE z 0 -1",
        "ZUNION 2 z y",
        "ZREM z a",
        "ZPOPMIN z",
        "ZRANDMEMBER z",
        "ZSCAN z 0",
        "ZADD z xx 1 a",
        "ZREMRANGEBYRANK z 0 -1",
        "BZPOPMIN z 0",
        "ZINTERSTORE to 2 z y",
        "GEOPOS z a",
        "GEOADD z xx 1 1 a",
    ] {
        local.line(line);
        assert!(local.store.shards().all(|shard| shard.database(0).is_none()), "{line}");
    }
}

#[test]
fn a_set_is_gone_at_its_time() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000);
    local.line("ZADD z 1 a 2 b");
    let shard = local.store.shard_of(b"z");
    let keyspace = local.store.shard_mut(shard).database_or_new(0);
    assert_eq!(keyspace.set_expiry(b"z", Some(2_000), 1_000), Ok(true));
    check(&mut local, &[("ZPOPMIN z", "1) \"a\"; 2) \"1\"")]);
    local.now_ms = Some(2_000);
    check(
        &mut local,
        &[
            ("ZCARD z", "(integer) 0"),
            ("ZADD z xx 1 b", "(integer) 0"),
            ("ZADD z 1 b", "(integer) 1"),
        ],
    );
}

#[test]
fn a_full_store_takes_removals_only() {
    const FULL: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    let mut local = Local::with_memory(1, 1 << 20);
    local.line("ZADD z 1 a 2 b 3 c 4 d 5 e");
    local.line("ZADD to 7 before");
    for number in 0..300 {
        local.line(&format!("ZADD large {number} m{number}"));
    }
    local.line(&format!("ZADD wide 1 {} 2 {}", "one".repeat(40), "two".repeat(40)));
    fill(&mut local);
    local.events();
    let long = format!("ZADD z 9 {}", "long".repeat(50));
    assert_eq!(local.line(&long), FULL);
    assert_eq!(local.line("ZRANGESTORE other wide 0 -1"), FULL);
    let large = format!("ZADD to 1 {} 2 x", "long".repeat(50));
    assert_eq!(local.line(&large), FULL);
    assert!(local.events().is_empty());
    check(
        &mut local,
        &[
            ("ZCARD z", "(integer) 5"),
            ("ZRANGE to 0 -1", "1) \"before\""),
            ("ZREM z c", "(integer) 1"),
            ("ZPOPMIN z", "1) \"a\"; 2) \"1\""),
            ("ZREMRANGEBYSCORE z 5 5", "(integer) 1"),
            ("ZUNIONSTORE to 1 none", "(integer) 0"),
            ("ZREM large m7 m8", "(integer) 2"),
            ("ZPOPMAX large", "1) \"m299\"; 2) \"299\""),
            ("ZREMRANGEBYRANK large 1 -1", "(integer) 296"),
            ("ZPOPMIN large", "1) \"m0\"; 2) \"0\""),
            ("ZCARD large", "(integer) 0"),
            ("ZRANGE z 0 -1", "1) \"b\"; 2) \"d\""),
        ],
    );
}

#[test]
fn a_client_waits_until_there_is_a_member() {
    let mut local = Local::with_shards(3);
    for (line, keys, push, expected) in [
        ("BZPOPMIN a b 0.5", vec![1, 2], "ZADD b 2 two 1 one", "1) \"b\"; 2) \"one\"; 3) \"1\""),
        ("BZPOPMAX c 0", vec![1], "ZADD c 2 two", "1) \"c\"; 2) \"two\"; 3) \"2\""),
        (
            "BZMPOP 0.5 2 x y min",
            vec![3, 4],
            "ZADD y 1 one",
            "1) \"y\"; 2) 1) 1) \"one\"; 2) \"1\"",
        ),
    ] {
        local.now_ms = Some(1_000);
        assert!(local.line(line).is_empty(), "{line}");
        let block = local.effects.block.take().expect("the client waits");
        assert_eq!((block.keys, block.kind), (keys, Kind::SortedSet));
        assert!(!block.wakes_on_removal && !block.is_null_string && block.arguments.is_none());
        assert_eq!(block.deadline_ms, line.contains("0.5").then_some(1_500));
        local.line(push);
        local.now_ms = Some(1_400);
        check(&mut local, &[(line, expected)]);
        assert_eq!(local.effects.block, None);
    }
    assert_eq!(local.line("BZPOPMIN b text 0").first(), Some(&b'*'));
    local.session.may_block = false;
    assert_eq!(local.line("BZPOPMIN a 0"), b"*-1\r\n");
    assert_eq!(local.line("BZMPOP 0 1 a max"), b"*-1\r\n");
    assert_eq!(local.effects.block, None);
    local.line("SET a text");
    assert!(local.line("BZPOPMIN a 0").starts_with(b"-WRONGTYPE"));
}

#[test]
fn random_members_are_members() {
    let mut local = Local::with_shards(3);
    let names: BTreeSet<String> = (0..500).map(|number| format!("m{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        local.line(&format!("ZADD large {number} {name}"));
        if number < 5 {
            local.line(&format!("ZADD small {number} {name}"));
        }
    }
    for (key, size) in [("small", 5), ("large", 500)] {
        let mut replies = |count: i64| texts(&local.line(&format!("ZRANDMEMBER {key} {count}")));
        for count in [0, 1, 3, 50, 1000] {
            let found = replies(count);
            assert_eq!(found.len(), size.min(count as usize));
            let different: BTreeSet<&String> = found.iter().collect();
            assert!(different.len() == found.len() && found.iter().all(|one| names.contains(one)));
        }
        let found = replies(-700);
        assert!(found.len() == 700 && found.iter().all(|one| names.contains(one)));
        let one = local.line(&format!("ZRANDMEMBER {key}"));
        assert!(matches!(parsed(&one), Value::Bulk(_)));
    }
    // Redis would send replies until no memory is left.
    let error = b"-ERR value is out of range\r\n";
    assert_eq!(local.line("ZRANDMEMBER small -4611686018427387904"), error);
    assert_eq!(local.line("ZRANDMEMBER small -4611686018427387904 withscores"), error);
}

#[test]
fn a_scan_returns_what_stays() {
    let mut local = Local::with_shards(3);
    for number in 0..600 {
        local.line(&format!("ZADD z {number} m{number}"));
    }
    let mut steps = 0;
    let found = scanned(&mut local, "ZSCAN z", "COUNT 25 MATCH m*0", |local| {
        // Others go meanwhile.
        local.line(&format!("ZREM z m{} m{}", 2 * steps + 1, 2 * steps + 301));
        steps += 1;
    });
    assert!(steps > 10);
    let mut different = BTreeSet::new();
    for pair in found.chunks(2) {
        assert_eq!(pair[0], [b"m", &pair[1][..]].concat());
        different.insert(&pair[0]);
    }
    assert_eq!(different.len(), 60);
}

#[test]
fn version_3_has_pairs_and_doubles() {
    let mut local = Local::with_shards(3);
    local.session.version = Version::Three;
    local.line("ZADD z 1 a 2.5 b");
    for (line, expected) in [
        ("ZSCORE z b", ",2.5|"),
        ("ZSCORE z x", "_|"),
        ("ZRANGE z 0 0 withscores", "*1|*2|$1|a|,1|"),
        ("ZINTER 1 z withscores", "*2|*2|$1|a|,1|*2|$1|b|,2.5|"),
        ("ZRANDMEMBER z 9 withscores", "*2|*2|$1|a|,1|*2|$1|b|,2.5|"),
        ("ZSCAN z 0", "*2|$1|0|*4|$1|a|$1|1|$1|b|$3|2.5|"),
        ("BZPOPMIN z 0", "*3|$1|z|$1|a|,1|"),
        ("ZPOPMAX z 5", "*1|*2|$1|b|,2.5|"),
        ("ZPOPMAX z", "*0|"),
        ("ZMPOP 1 z min", "_|"),
    ] {
        let reply = String::from_utf8(local.line(line)).expect("these are ASCII");
        assert_eq!(reply.replace("\r\n", "|"), expected, "{line}");
    }
}
