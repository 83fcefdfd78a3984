// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of stream commands, and whether they fail transactions, beside redis-server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Compared, Connection};
use crate::streams_random::{Generator, KEYS, commands};

/// Last message of the events of a command.
const MARK: &[u8] = b"end of events\r\n";

/// Effects of a command besides its reply.
#[derive(Debug, PartialEq, Eq)]
struct Effects {
    events: Vec<String>,
    fails_transactions: bool,
}

fn effects_of_redis(
    compared: &mut Compared,
    listener: &mut Connection,
    words: &[&[u8]],
) -> Effects {
    let mut watch: Vec<&[u8]> = vec![b"WATCH"];
    watch.extend(KEYS.map(str::as_bytes));
    compared.redis.call(&watch);
    compared.redis.call(words);
    compared.redis.call(&[b"MULTI"]);
    let fails_transactions = compared.redis.call(&[b"EXEC"]) == b"*-1\r\n";
    compared.redis.call(&[b"PUBLISH", b"__keyevent@0__:mark", &MARK[..MARK.len() - 2]]);
    let messages = listener.read_until(MARK);
    let messages = String::from_utf8(messages).expect("names of events are texts");
    let names = messages.split("__keyevent@0__:").skip(1);
    let names = names.map(|rest| rest.lines().next().unwrap_or_default().to_owned());
    let events = names.filter(|name| name != "*" && name != "mark").collect();
    Effects { events, fails_transactions }
}

fn own_effects(compared: &mut Compared, flag: &AtomicBool, words: &[&[u8]]) -> Effects {
    compared.ours.call(words);
    let events = std::mem::take(&mut compared.ours.effects.events);
    let events = events.into_iter().map(|event| event.name.to_owned()).collect();
    Effects { events, fails_transactions: flag.swap(false, Ordering::Relaxed) }
}

#[test]
#[ignore = "long: needs redis-server"]
fn effects_are_those_of_redis() {
    Compared::for_seeds(4, |compared, random| {
        compared.redis.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"AE"]);
        let mut listener = compared.redis.connect();
        listener.call(&[b"PSUBSCRIBE", b"__keyevent@0__:*"]);
        let flag = Arc::new(AtomicBool::new(false));
        for key in KEYS {
            compared.ours.store.shard_mut(0).watch(0, key.as_bytes(), &flag);
        }
        let mut generator = Generator { random, ms: 20 };
        for _ in 0..3_000 {
            let line = generator.line();
            for words in commands(&line) {
                if matches!(words[0], b"DEL" | b"SET") {
                    continue;
                }
                let ours = own_effects(compared, &flag, &words);
                // Redis 7.2 refuses some that Redis 7.0 accepts.
                if words[0] == b"XSETID" && ours.events.is_empty() {
                    continue;
                }
                let theirs = effects_of_redis(compared, &mut listener, &words);
                assert_eq!(ours, theirs, "{line}");
            }
        }
    });
}
