// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of stream commands, and whether they fail transactions, beside redis-server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Compared, Listener};
use crate::streams_random::{Generator, KEYS, commands};

/// Effects of a command besides its reply.
#[derive(Debug, PartialEq, Eq)]
struct Effects {
    events: Vec<String>,
    fails_transactions: bool,
}

fn effects_of_redis(compared: &mut Compared, listener: &mut Listener, words: &[&[u8]]) -> Effects {
    let mut watch: Vec<&[u8]> = vec![b"WATCH"];
    watch.extend(KEYS.map(str::as_bytes));
    compared.redis.call(&watch);
    compared.redis.call(words);
    compared.redis.call(&[b"MULTI"]);
    let fails_transactions = compared.redis.call(&[b"EXEC"]) == b"*-1\r\n";
    Effects { events: listener.events(), fails_transactions }
}

fn own_effects(compared: &mut Compared, flag: &AtomicBool, words: &[&[u8]]) -> Effects {
    compared.ours.call(words);
    let fails_transactions = flag.swap(false, Ordering::Relaxed);
    Effects { events: compared.ours.events(), fails_transactions }
}

#[test]
#[ignore = "long: needs redis-server"]
fn effects_are_those_of_redis() {
    Compared::for_seeds(4, |compared, random| {
        let mut listener = compared.listener();
        let flag = Arc::new(AtomicBool::new(false));
        for key in KEYS {
            compared.ours.store.shard_mut(0).watch(0, key.as_bytes(), &flag);
        }
        let mut generator = Generator { random, ms: 20 };
        for _ in 0..3_000 {
            let line = generator.line();
            for words in commands(&line) {
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
