// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lists against a redis-server.

use super::server::{Reply, Server};
use super::with_server;
use freeport_kv_types::list::{End, List, Search};
use freeport_kv_types::{Entry, Limits, indexes};
use freeport_testbed::usual_or_long;
use std::num::NonZeroI64;

fn reply(entry: Entry<'_>) -> Reply {
    Reply::Text(entry.to_vec())
}

fn value(random: &mut fastrand::Rng) -> String {
    match random.u8(..12) {
        0 => "long".repeat(random.usize(..900)) + "x",
        1 => "0".to_owned() + &random.u8(..3).to_string(),
        2..6 => random.i8(-3..3).to_string(),
        _ => format!("value{}", random.u8(..20)),
    }
}

/// Sends a random command, and compares its reply.
fn step(server: &mut Server, list: &mut List, random: &mut fastrand::Rng, limits: &Limits) {
    let (one, two) = (random.i64(-40..40), random.i64(-40..40));
    let word = value(random);
    let (end, side) = match random.bool() {
        true => (End::Front, "l"),
        false => (End::Back, "r"),
    };
    match random.u8(..16) {
        0..6 => {
            let found = server.line(&format!("{side}push key {word}"));
            list.push(limits, end, word.as_bytes());
            assert_eq!(found, Reply::from(list.len()));
        }
        6 | 7 => {
            let found = server.line(&format!("{side}pop key"));
            let popped = list.pop(limits, end);
            assert_eq!(found, popped.map_or(Reply::Nil, Reply::Text));
        }
        8 | 9 => {
            let pivot = value(random);
            let place = if end == End::Front { "before" } else { "after" };
            let found = server.line(&format!("linsert key {place} {pivot} {word}"));
            let expected = match list.insert(limits, end, pivot.as_bytes(), word.as_bytes()) {
                true => Reply::from(list.len()),
                false if list.is_empty() => Reply::Integer(0),
                false => Reply::Integer(-1),
            };
            assert_eq!(found, expected);
        }
        10 => {
            let found = server.line(&format!("lset key {one} {word}"));
            let expected = match list.set(limits, one, word.as_bytes()) {
                true => Reply::Text(b"OK".to_vec()),
                false if list.is_empty() => Reply::Error("ERR no such key".into()),
                false => Reply::Error("ERR index out of range".into()),
            };
            assert_eq!(found, expected);
        }
        11 => {
            let count = random.i64(-3..4);
            let found = server.line(&format!("lrem key {count} {word}"));
            assert_eq!(found, Reply::from(list.remove(limits, count, word.as_bytes())));
        }
        12 if random.u8(..20) == 0 => {
            server.line(&format!("ltrim key {one} {two}"));
            list.trim(limits, indexes::range(list.len(), one, two));
        }
        13 => {
            let rank = NonZeroI64::new(random.i64(-3..4)).unwrap_or(NonZeroI64::new(4).unwrap());
            let (count, most) = (random.usize(..4), random.usize(..60));
            let command = format!("lpos key {word} rank {rank} count {count} maxlen {most}");
            let found = server.line(&command);
            let search = Search {
                rank,
                count: (count > 0).then_some(count),
                max_compared: (most > 0).then_some(most),
            };
            let mut expected = vec![];
            let view = list.view();
            view.positions(word.as_bytes(), search, |index| expected.push(Reply::from(index)));
            assert_eq!(found, Reply::Array(expected), "{command}");
        }
        14 => {
            let found = server.line(&format!("lindex key {one}"));
            assert_eq!(found, list.view().get(one).map_or(Reply::Nil, reply));
        }
        _ => {
            let found = server.line(&format!("lrange key {one} {two}"));
            let range = indexes::range(list.len(), one, two);
            assert_eq!(found, Reply::Array(list.view().range(range).map(reply).collect()));
        }
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn lists_give_what_redis_gives() {
    with_server(usual_or_long(4, 40), |server, random| {
        let limits = Limits { list_node_bytes: 500, ..Limits::default() };
        let mut list = List::default();
        for _ in 0..3000 {
            step(server, &mut list, random, &limits);
        }
        let all = server.line("lrange key 0 -1");
        assert_eq!(all, Reply::Array(list.view().iter().map(reply).collect()));
    });
}
