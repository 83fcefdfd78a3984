// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sorted sets beside redis-server.

use freeport_kv_protocol::resp::Version;
use freeport_testbed::usual_or_long;

use crate::harness::{Beside, Compared, Templates};
use crate::specs::check_keys;

/// Commands of which each reply is compared. Two spaces have an empty word between them.
const LINES: &str = include_str!("sorted_sets.txt");

/// Random commands of sorted sets; see [`Templates`].
pub const TEMPLATES: &str = "
ZADD KEY S M
ZADD KEY S M S M S M
ZADD KEY nx? xx? gt? lt? ch? incr? S M [ S M ]
ZADD KEY nx? ch? S M [ S M ] [ S M ]
ZADD KEY xx? gt? ch? S M [ S M ] [ S M ]
ZADD KEY xx? lt? ch? S M [ S M ] [ S M ]
ZADD KEY incr gt? S M
ZINCRBY KEY S M
ZREM KEY M M? M?
ZSCORE KEY M
ZMSCORE KEY M M? M?
ZCARD KEY
ZCOUNT KEY B B
ZLEXCOUNT SAME L L
ZRANK KEY M
ZREVRANK KEY M
ZRANGE KEY I I withscores? rev?
ZRANGE KEY B B byscore rev? withscores? [ limit I I ]
ZRANGE SAME L L bylex rev? [ limit I I ]
ZRANGE SAME I I byscore? bylex? rev? withscores? [ limit I I ]
ZREVRANGE KEY I I withscores?
ZRANGEBYSCORE KEY B B withscores? [ limit I I ]
ZREVRANGEBYSCORE KEY B B withscores? [ limit I I ]
ZRANGEBYLEX SAME L L [ limit I I ]
ZREVRANGEBYLEX SAME L L [ limit I I ]
ZRANGESTORE KEY KEY I I rev?
ZRANGESTORE KEY KEY B B byscore rev? [ limit I I ]
ZRANGESTORE KEY SAME L L bylex rev? [ limit I I ]
ZREMRANGEBYRANK KEY I I
ZREMRANGEBYSCORE KEY B B
ZREMRANGEBYLEX SAME L L
ZPOPMIN KEY COUNT?
ZPOPMAX KEY COUNT?
ZMPOP 1 KEY END [ count COUNT ]
ZMPOP 3 KEY KEY KEY END [ count COUNT ]
BZPOPMIN KEY KEY? T
BZPOPMAX KEY KEY? T
BZMPOP T 2 KEY KEY END [ count COUNT ]
ZUNION 2 KEY KEY [ weights W W ] [ aggregate A ] withscores?
ZINTER 2 KEY KEY [ weights W W ] [ aggregate A ] withscores?
ZUNION 3 KEY KEY KEY [ weights W W W ] [ aggregate A ] withscores?
ZINTER 3 KEY KEY KEY [ weights W W W ] [ aggregate A ] withscores?
ZDIFF 1 KEY withscores?
ZDIFF 3 KEY KEY KEY withscores?
ZINTERCARD 2 KEY KEY [ limit COUNT ]
ZUNIONSTORE KEY 2 KEY KEY [ weights W W ] [ aggregate A ]
ZINTERSTORE KEY 2 KEY KEY [ weights W W ] [ aggregate A ]
ZDIFFSTORE KEY 2 KEY KEY
ZSCAN KEY 0 [ match P ] [ count 1000 ]
SET KEY text
";

/// Choices of their words.
pub const CHOICES: &[(&str, &[&str])] = &[
    ("KEY", &["a", "b", "c", "d", "e", "members", "none"]),
    // Only sets of equal scores have ranges of members.
    ("SAME", &["same"]),
    (
        "S",
        &[
            "0", "1", "2", "3", "-1", "-2.5", "1.5", "3.1", "1e3", "inf", "-inf", "+inf", "1e20",
            "0x10", "nan", "x", "5", "7", "8",
        ],
    ),
    (
        "M",
        &["one", "two", "three", "4", "55", "-6", "", "m1", "m2", "m3", "m4", "m5", "x y", "7.0"],
    ),
    ("B", &["-inf", "+inf", "0", "(1", "1", "2", "(3", "5", "1e3", "(inf", "x", "(x", "-2"]),
    ("L", &["-", "+", "[1", "(1", "[15", "(3", "[", "x", "[4"]),
    ("I", &["0", "1", "2", "3", "5", "-1", "-2", "-3", "100", "-100", "x"]),
    ("COUNT", &["0", "1", "2", "3", "10", "-1", "x"]),
    ("END", &["min", "max", "MAX"]),
    ("T", &["0", "0.5", "-1", "x"]),
    ("W", &["1", "2", "-1", "0", "0.5", "inf", "x"]),
    ("A", &["sum", "min", "max", "MAX", "x"]),
    ("P", &["*", "m*", "?", "[^m]*"]),
];

/// Redis 7.0 does not have `ZRANK key member WITHSCORE`; `SET` is tested elsewhere.
fn is_comparable(arguments: &[Vec<u8>]) -> bool {
    let has_more = |name: &[u8]| arguments[0] == name && arguments.len() > 3;
    ![&b"ZRANK"[..], b"ZREVRANK", b"SET"].into_iter().any(has_more)
}

#[test]
#[ignore = "long: needs redis-server"]
fn odd_lines_have_the_replies_of_redis() {
    Compared::once(|compared| {
        Beside::new(compared).table(&format!("SADD members one 3 five\n{LINES}"));
    });
}

#[test]
#[ignore = "long: needs redis-server"]
fn random_commands_have_the_replies_of_redis() {
    let templates = Templates::new(TEMPLATES, CHOICES);
    Compared::for_seeds(usual_or_long(10, 40), |compared, random| {
        let mut beside = Beside::new(compared);
        let version = if random.bool() { Version::Two } else { Version::Three };
        beside.empty(version);
        for step in 0..10_000 {
            if step % 100 == 0 {
                beside.lines("DEL members\nSADD members one m2 m4 55");
                beside.same(&[b"DEL", [b"a", b"b", b"c"][random.usize(..3)]]);
            }
            if step % 5 == 0 {
                let member = random.u8(..20).to_string();
                beside.same(&[b"ZADD", b"same", b"0", member.as_bytes()]);
            }
            let command = templates.command(random);
            if is_comparable(&command) {
                beside.same(&command.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
            if step % 10 == 0 {
                let key = [b"a", b"b", b"c", b"d", b"e"][random.usize(..5)];
                beside.same(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]);
            }
        }
    });
}

/// Long members and many of them make large sets.
#[test]
#[ignore = "long: needs redis-server"]
fn large_sets_have_the_replies_of_redis() {
    let members: Vec<String> = (0..400).map(|number| format!("m{number}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let mut choices = CHOICES.to_vec();
    choices.retain(|(name, _)| !["M", "L", "I", "COUNT"].contains(name));
    choices.push(("M", &members));
    choices.push(("L", &["-", "+", "[m2", "(m2", "[m4", "(m150", "[m300", "(m399"]));
    choices.push(("I", &["0", "10", "-1", "50", "-70", "200", "3"]));
    choices.push(("COUNT", &["1", "2", "3"]));
    let templates = Templates::new(TEMPLATES, &choices);
    Compared::for_seeds(usual_or_long(3, 20), |compared, random| {
        let mut beside = Beside::new(compared);
        beside.empty(Version::Three);
        for step in 0..10_000 {
            if step % 25 == 0 {
                let scores: Vec<String> =
                    (0..100).map(|_| random.i32(-100..100).to_string()).collect();
                let key: &[u8] = [b"a", b"b", b"c", b"d"][random.usize(..4)];
                let mut request: Vec<&[u8]> = vec![b"ZADD", key];
                for score in &scores {
                    request.push(score.as_bytes());
                    request.push(members[random.usize(..members.len())].as_bytes());
                }
                beside.same(&request);
                request[1] = b"same";
                request[2..].iter_mut().step_by(2).for_each(|score| *score = b"0");
                beside.same(&request);
            }
            let command = templates.command(random);
            // Scans of large sets have another order; these are compared below.
            if is_comparable(&command) && command[0] != b"ZSCAN" {
                beside.same(&command.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
        }
    });
}

#[test]
#[ignore = "long: needs redis-server"]
fn keys_are_those_that_redis_finds() {
    Compared::once(|compared| check_keys(compared, LINES));
}
