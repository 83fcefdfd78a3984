// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sorted sets against a redis-server.

use super::server::{Reply, Server};
use super::with_server;
use freeport_kv_types::Limits;
use freeport_kv_types::zset::{
    AddOptions, Aggregate, BoundError, Compare, Existing, LexRange, Outcome, ScoreRange, Source,
    Weighted, ZSet, ZSetRef, difference, intersection, intersection_len, limit, parse_score,
    push_score, union,
};
use freeport_testbed::usual_or_long;
use std::ops::Range;

const SCORES: [&str; 20] = [
    "0", "1", "2", "-1", "-0", "1.5", "3.1", "inf", "-inf", "1e300", "-1e300", "1e20", "0.1",
    "100", "7", "1e-7", "0x10", "nan", "x", "1e999",
];
const BOUNDS: [&str; 12] =
    ["-inf", "+inf", "(1", "1", "(2", "1.5", "(-inf", "(inf", "", "x", "(x", "0"];
const LEX_BOUNDS: [&str; 11] = ["-", "+", "[b", "(b", "[m30", "(m30", "[", "(", "b", "-1", "[m100"];

fn text(score: f64) -> Vec<u8> {
    let mut out = vec![];
    push_score(score, &mut out);
    out
}

/// Both sides, of one key.
struct Pair {
    key: String,
    set: ZSet,
}

fn pick<'a>(random: &mut fastrand::Rng, choices: &[&'a str]) -> &'a str {
    choices[random.usize(..choices.len())]
}

fn member(random: &mut fastrand::Rng) -> String {
    match random.u8(..8) {
        0 => "long".repeat(random.usize(14..18)),
        1..3 => random.i8(..).to_string(),
        _ => format!("m{}", random.u8(..150)),
    }
}

/// Replies of ranges with scores: equal members, and equal scores.
fn assert_elements(reply: Reply, set: ZSetRef<'_>, ranks: Range<usize>, is_reverse: bool) {
    let found: Vec<_> =
        reply.array().chunks(2).map(|pair| (pair[0].clone(), pair[1].score())).collect();
    let elements = set.range(ranks).map(|(member, score)| (Reply::Text(member.to_vec()), score));
    let elements: Vec<_> = if is_reverse { elements.rev().collect() } else { elements.collect() };
    assert_eq!(elements, found);
}

fn add(server: &mut Server, pair: &mut Pair, random: &mut fastrand::Rng, limits: &Limits) {
    let (member, score) = (member(random), pick(random, &SCORES));
    let existing = [Existing::Any, Existing::Any, Existing::OnlyNew, Existing::OnlyExisting];
    let compare = [Compare::Any, Compare::Any, Compare::Greater, Compare::Less];
    let options = AddOptions {
        existing: existing[random.usize(..4)],
        compare: compare[random.usize(..4)],
        is_increment: random.bool(),
    };
    let mut words = vec!["zadd", &pair.key, "CH"];
    words.extend(match options.existing {
        Existing::Any => None,
        Existing::OnlyNew => Some("NX"),
        Existing::OnlyExisting => Some("XX"),
    });
    words.extend(match options.compare {
        Compare::Any => None,
        Compare::Greater => Some("GT"),
        Compare::Less => Some("LT"),
    });
    words.extend(options.is_increment.then_some("INCR"));
    words.extend([score, &member]);
    let reply = server.line(&words.join(" "));
    if options.existing == Existing::OnlyNew && options.compare != Compare::Any {
        let error = "ERR GT, LT, and/or NX options at the same time are not compatible";
        return assert_eq!(reply, Reply::Error(error.into()));
    }
    let Some(score) = parse_score(score.as_bytes()) else {
        return assert_eq!(reply, Reply::Error("ERR value is not a valid float".into()), "{score}");
    };
    match pair.set.add(limits, member.as_bytes(), score, options) {
        Err(error) => assert_eq!(reply, Reply::Error(format!("ERR {error}"))),
        Ok(Outcome::Refused) if options.is_increment => assert_eq!(reply, Reply::Nil),
        Ok(Outcome::Added(score) | Outcome::Updated(score) | Outcome::Same(score))
            if options.is_increment =>
        {
            assert_eq!(reply.score(), score);
        }
        Ok(outcome) => {
            let is_change = matches!(outcome, Outcome::Added(_) | Outcome::Updated(_));
            assert_eq!(reply, Reply::Integer(is_change.into()));
        }
    }
}

fn query(server: &mut Server, pair: &Pair, random: &mut fastrand::Rng) {
    let (key, set) = (pair.key.as_str(), pair.set.view());
    let numbers = [random.i64(-20..20), random.i64(-20..20)];
    let [one, two] = numbers.map(|number| number.to_string());
    let is_reverse = random.bool();
    let rev = if is_reverse { " REV" } else { "" };
    match random.u8(..5) {
        0 => {
            let name = member(random);
            let rank = server.line(&format!("zrank {key} {name}"));
            let score = server.line(&format!("zscore {key} {name}"));
            match set.rank(name.as_bytes()) {
                None => assert_eq!((rank, score), (Reply::Nil, Reply::Nil)),
                Some((found, found_score)) => {
                    assert_eq!((rank, score.score()), (Reply::from(found), found_score));
                }
            }
        }
        1 => {
            let reply = server.line(&format!("zrange {key} {one} {two}{rev} withscores"));
            let ranks = set.ranks_by_index(numbers[0], numbers[1], is_reverse);
            assert_elements(reply, set, ranks, is_reverse);
        }
        2 => {
            let (min, max) = (pick(random, &BOUNDS), pick(random, &BOUNDS));
            let (from, target) = if is_reverse { (max, min) } else { (min, max) };
            let command = format!("zrange {key} {from} {target} byscore{rev}");
            let reply = server.line(&format!("{command} limit {one} {two} withscores"));
            match ScoreRange::parse(min.as_bytes(), max.as_bytes()) {
                Err(error) => assert_eq!(reply, Reply::Error(format!("ERR {error}"))),
                Ok(range) => {
                    let ranks = set.ranks_by_score(&range);
                    let count = server.line(&format!("zcount {key} {min} {max}"));
                    assert_eq!(count, Reply::from(ranks.len()));
                    let ranks = limit(ranks, numbers[0], numbers[1], is_reverse);
                    assert_elements(reply, set, ranks, is_reverse);
                }
            }
        }
        3 => {
            let (min, max) = (pick(random, &LEX_BOUNDS), pick(random, &LEX_BOUNDS));
            let reply = server.line(&format!("zlexcount {key} {min} {max}"));
            match LexRange::parse(min.as_bytes(), max.as_bytes()) {
                Err(error) => {
                    assert_eq!(error, BoundError::Lex);
                    assert_eq!(reply, Reply::Error(format!("ERR {error}")));
                }
                // The count has a meaning only if all scores are equal.
                Ok(range) if key == "lex" => {
                    assert_eq!(reply, Reply::from(set.ranks_by_lex(&range).len()));
                }
                Ok(_) => {}
            }
        }
        _ => {
            let reply = server.line(&format!("zmscore {key} m1 m2"));
            let scores = ["m1", "m2"].map(|name| set.score(name.as_bytes()));
            for (reply, score) in reply.array().iter().zip(scores) {
                assert_eq!((*reply != Reply::Nil).then(|| reply.score()), score);
            }
        }
    }
}

fn remove(server: &mut Server, pair: &mut Pair, random: &mut fastrand::Rng) {
    let key = &pair.key;
    let (reply, removed) = match random.u8(..6) {
        0..3 => {
            let name = member(random);
            let reply = server.line(&format!("zrem {key} {name}"));
            (reply, usize::from(pair.set.remove(name.as_bytes()).is_some()))
        }
        3 => {
            let start = random.i64(-30..30);
            let stop = start + random.i64(-1..3);
            let reply = server.line(&format!("zremrangebyrank {key} {start} {stop}"));
            let ranks = pair.set.view().ranks_by_index(start, stop, false);
            (reply, pair.set.remove_ranks(ranks))
        }
        4 => {
            let reply = server.line(&format!("zremrangebyscore {key} (100 1e20"));
            let range = ScoreRange::parse(b"(100", b"1e20").unwrap();
            let ranks = pair.set.view().ranks_by_score(&range);
            (reply, pair.set.remove_ranks(ranks))
        }
        _ => {
            let (command, popped) = match random.bool() {
                true => ("zpopmin", pair.set.pop_min()),
                false => ("zpopmax", pair.set.pop_max()),
            };
            let reply = server.line(&format!("{command} {key}")).array();
            match popped {
                None => assert!(reply.is_empty()),
                Some((member, score)) => {
                    assert_eq!((&reply[0], reply[1].score()), (&Reply::Text(member), score));
                }
            }
            return;
        }
    };
    assert_eq!(reply, Reply::from(removed));
}

fn combine(server: &mut Server, pairs: &[Pair], random: &mut fastrand::Rng, limits: &Limits) {
    let chosen: Vec<_> = (0..random.usize(1..4)).map(|_| random.choice(pairs).unwrap()).collect();
    let keys: Vec<_> = chosen.iter().map(|pair| pair.key.as_str()).collect();
    let keys = format!("{} {}", keys.len(), keys.join(" "));
    let views: Vec<_> = chosen.iter().map(|pair| pair.set.view()).collect();
    let sources: Vec<&dyn Source> = views.iter().map(|view| view as &dyn Source).collect();
    let weights: Vec<_> =
        sources.iter().map(|_| pick(random, &["1", "2", "0", "-1", "inf"])).collect();
    let weighted: Vec<_> = sources
        .iter()
        .zip(&weights)
        .map(|(&source, weight)| Weighted { source, weight: weight.parse().unwrap() })
        .collect();
    let aggregates = [("sum", Aggregate::Sum), ("min", Aggregate::Min), ("max", Aggregate::Max)];
    let (name, aggregate) = aggregates[random.usize(..3)];
    let options = format!("weights {} aggregate {name} withscores", weights.join(" "));
    let (reply, found) = match random.u8(..4) {
        0 => {
            (server.line(&format!("zunion {keys} {options}")), union(limits, &weighted, aggregate))
        }
        1 => (
            server.line(&format!("zinter {keys} {options}")),
            intersection(limits, &weighted, aggregate),
        ),
        2 => (server.line(&format!("zdiff {keys} withscores")), difference(limits, &sources)),
        _ => {
            let most = random.usize(..5);
            let reply = server.line(&format!("zintercard {keys} limit {most}"));
            return assert_eq!(reply, Reply::from(intersection_len(&sources, most)));
        }
    };
    assert_elements(reply, found.view(), 0..found.len(), false);
}

/// A random command for some of the keys `a`, `b` and `lex`; scores of the last are all 0.
fn command(
    server: &mut Server,
    pairs: &mut [Pair; 3],
    random: &mut fastrand::Rng,
    limits: &Limits,
    is_shrinking: bool,
) {
    let at = random.usize(..2);
    match random.u8(..20) {
        10..13 if is_shrinking => remove(server, &mut pairs[at], random),
        0..10 => add(server, &mut pairs[at], random, limits),
        10 => {
            let name = member(random);
            let reply = server.line(&format!("zadd lex 0 {name}"));
            let added = pairs[2].set.add(limits, name.as_bytes(), 0.0, AddOptions::default());
            assert_eq!(reply, Reply::from(matches!(added, Ok(Outcome::Added(_)))));
        }
        11 | 12 => remove(server, &mut pairs[at], random),
        13..18 => query(server, random.choice(&*pairs).expect("there are three"), random),
        18 => {
            let pair = &mut pairs[at];
            let reply = server.line(&format!("object encoding {}", pair.key));
            let encoding = pair.set.view().encoding().to_owned();
            // A set that was empty in between is a new key in Redis.
            if reply == Reply::Nil {
                assert!(pair.set.is_empty());
                pair.set = ZSet::default();
            } else {
                assert!(reply == encoding.into() || reply == Reply::Text(b"listpack".to_vec()));
            }
        }
        _ => combine(server, pairs, random, limits),
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn sorted_sets_give_what_redis_gives() {
    with_server(usual_or_long(4, 40), |server, random| {
        let limits = Limits::default();
        let mut pairs =
            ["a", "b", "lex"].map(|key| Pair { key: key.to_owned(), set: ZSet::default() });
        for step in 0..3000 {
            command(server, &mut pairs, random, &limits, step % 1000 > 800);
        }
        for pair in &pairs {
            let reply = server.line(&format!("zrange {} 0 -1 withscores", pair.key));
            assert_elements(reply, pair.set.view(), 0..pair.set.len(), false);
        }
    });
}

#[test]
#[ignore = "long: needs redis-server"]
fn scores_are_the_numbers_that_redis_reads() {
    with_server(usual_or_long(1, 20), |server, random| {
        for _ in 0..2000 {
            let alphabet = b"0123456789.e-+xp ainf";
            let length = random.usize(1..9);
            let word: Vec<u8> =
                (0..length).map(|_| *random.choice(alphabet).expect("letters")).collect();
            let reply = server.call(&[&"zadd", &"key", &word, &"member"]);
            let shown = String::from_utf8_lossy(&word);
            let Some(score) = parse_score(&word) else {
                assert!(matches!(reply, Reply::Error(_)), "{shown}");
                continue;
            };
            assert!(matches!(reply, Reply::Integer(_)), "{shown}: {reply:?}");
            assert_eq!(server.line("zscore key member").score(), score, "{shown}");
            assert_eq!(parse_score(&text(score)), Some(score), "{shown}");
        }
    });
}
