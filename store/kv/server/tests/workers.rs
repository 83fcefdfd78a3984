// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands on keys of several workers are atomic.

use std::sync::atomic::{AtomicBool, Ordering};

use freeport_kv_protocol::resp::Value;

use crate::client::{Client, server};

const ACCOUNTS: usize = 6;

fn balance(value: &Value) -> i64 {
    match value {
        Value::Bulk(text) => String::from_utf8_lossy(text).parse().expect("a balance"),
        other => panic!("{other:?}"),
    }
}

fn balances(client: &mut Client) -> Vec<i64> {
    client.send("MULTI");
    (0..ACCOUNTS).for_each(|account| client.send(&format!("GET account{account}")));
    client.send("EXEC");
    let mut reply = client.reply();
    for _ in 0..=ACCOUNTS {
        reply = client.reply();
    }
    match reply {
        Value::Array(values) => values.iter().map(balance).collect(),
        other => panic!("{other:?}"),
    }
}

/// Money moves between accounts of different workers: in transactions, half of them with `WATCH`.
/// No reader ever sees a sum that is wrong.
#[test]
fn the_sum_of_all_accounts_never_changes() {
    let server = server(4);
    let mut control = Client::new(&server);
    for account in 0..ACCOUNTS {
        control.call(&format!("SET account{account} 100"));
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4_u64)
            .map(|number| {
                let mut client = Client::new(&server);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(number);
                    let mut watched = 0;
                    for _ in 0..150 {
                        let (from, to) = (random.usize(..ACCOUNTS), random.usize(..ACCOUNTS));
                        let amount = random.i64(1..20);
                        if random.bool() {
                            client.call("MULTI");
                            client.call(&format!("DECRBY account{from} {amount}"));
                            client.call(&format!("INCRBY account{to} {amount}"));
                            client.call("EXEC");
                            continue;
                        }
                        if from == to {
                            continue;
                        }
                        client.call(&format!("WATCH account{from} account{to}"));
                        client.send(&format!("GET account{from}"));
                        let one = balance(&client.reply());
                        client.send(&format!("GET account{to}"));
                        let two = balance(&client.reply());
                        client.call("MULTI");
                        client.call(&format!("SET account{from} {}", one - amount));
                        client.call(&format!("SET account{to} {}", two + amount));
                        watched += usize::from(client.call("EXEC") != "(nil)");
                    }
                    watched
                })
            })
            .collect();
        let mut reader = Client::new(&server);
        let is_over = &is_over;
        let reading = scope.spawn(move || {
            let mut reads = 0;
            while !is_over.load(Ordering::Relaxed) || reads == 0 {
                let balances = balances(&mut reader);
                assert_eq!(balances.iter().sum::<i64>(), 100 * ACCOUNTS as i64, "{balances:?}");
                reads += 1;
            }
        });
        let watched: usize =
            writers.into_iter().map(|writer| writer.join().expect("writers do not panic")).sum();
        is_over.store(true, Ordering::Relaxed);
        reading.join().expect("all sums were right");
        assert!(watched > 0, "no transaction with WATCH succeeded");
    });
}

/// Commands on several keys see all of a command on the same keys, or nothing.
#[test]
fn a_command_on_several_keys_is_atomic() {
    let server = server(3);
    std::thread::scope(|scope| {
        let mut writer = Client::new(&server);
        let mut reader = Client::new(&server);
        writer.call("MSET a 0 b 0 c 0 d 0");
        let writing = scope.spawn(move || {
            for number in 1..400 {
                writer.call(&format!("MSET a {number} b {number} c {number} d {number}"));
            }
        });
        while !writing.is_finished() {
            let reply = reader.call("MGET a b c d");
            let values: Vec<&str> = reply.split('"').skip(1).step_by(2).collect();
            assert!(values.iter().all(|value| *value == values[0]), "{reply}");
        }
    });
}
