// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Concurrent clients see a server that executes one request after the other: their histories are
//! linearizable, over all keys, transactions and scripts.

mod model;
mod packets;
mod record;

use freeport_kv_protocol::resp::Value;
use freeport_kv_server::{Options, PersistenceOptions, Policy, Server};
use freeport_testbed::history::{contradiction, is_linearizable, show};

use crate::batched::client::served_with;
use crate::client::server_with;
use crate::functions::registry;
use model::{Call, Command, Operation, State};
use record::{Behaviour, record};

/// Records a history for each seed and checks it. `FREEPORT_SEED` is the first seed.
fn check(behaviour: Behaviour, seeds: u64) {
    let first = freeport_testbed::seed();
    for seed in first..first + seeds {
        let options =
            Options { workers: behaviour.workers, functions: registry(), ..Options::default() };
        check_history(&server_with(options), behaviour, seed);
    }
}

fn check_history(server: &Server, behaviour: Behaviour, seed: u64) {
    let history = record(server, behaviour, seed);
    assert!(
        is_linearizable(&history),
        "seed {seed}, {behaviour:?}: no order explains\n{}",
        show(&contradiction(&history))
    );
}

#[test]
fn histories_of_one_worker_are_linearizable() {
    check(Behaviour { clients: 6, batched: 0, turns: 40, workers: 1 }, 3);
}

#[test]
fn histories_of_four_workers_are_linearizable() {
    check(Behaviour { clients: 6, batched: 0, turns: 40, workers: 4 }, 4);
}

/// Replies wait for the log here.
#[test]
fn histories_of_a_durable_server_are_linearizable() {
    let behaviour = Behaviour { clients: 6, batched: 0, turns: 30, workers: 3 };
    let first = freeport_testbed::seed();
    for seed in first..first + 2 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let persistence = PersistenceOptions {
            policy: Policy::Always,
            ..PersistenceOptions::new(folder.path().into())
        };
        let server = server_with(Options {
            workers: behaviour.workers,
            persistence: Some(persistence),
            functions: registry(),
            ..Options::default()
        });
        check_history(&server, behaviour, seed);
    }
}

/// Some clients send packets of the batched protocol.
#[test]
fn histories_with_packets_are_linearizable() {
    let first = freeport_testbed::seed();
    for (workers, seeds) in [(1, 2), (4, 4)] {
        let behaviour = Behaviour { clients: 3, batched: 3, turns: 40, workers };
        for seed in first..first + seeds {
            let options = Options { workers, functions: registry(), ..Options::default() };
            check_history(&served_with(options).server, behaviour, seed);
        }
    }
}

#[test]
#[ignore = "long: two hundred histories of up to eight clients"]
fn long_histories_are_linearizable() {
    for (clients, turns, workers) in [(4, 200, 4), (8, 80, 4), (8, 80, 1), (4, 100, 2)] {
        check(Behaviour { clients, batched: 0, turns, workers }, 50);
    }
}

/// An operation of a client on the key `a`, with the times of its call and return.
fn operation(client: usize, command: Command, reply: Value, times: [u64; 2]) -> Operation {
    Operation {
        client,
        call: Call::Command(command),
        reply: Some(reply),
        called_ns: times[0],
        returned_ns: times[1],
        after: vec![],
    }
}

fn set(client: usize, value: &str, times: [u64; 2]) -> Operation {
    operation(client, Command::Set(0, value.into()), Value::Status(b"OK".to_vec()), times)
}

fn get(client: usize, value: &str, times: [u64; 2]) -> Operation {
    operation(client, Command::Get(0), Value::Bulk(value.into()), times)
}

#[test]
fn the_checker_finds_orders_that_explain_a_history() {
    // The reads see the second value before the first one: both writes are under way meanwhile.
    let history =
        [set(0, "1", [0, 9]), set(1, "2", [0, 9]), get(2, "2", [1, 2]), get(2, "1", [3, 4])];
    assert!(is_linearizable(&history));
    // An operation that has not returned may have taken effect.
    let mut history = [set(0, "1", [0, 9]), get(1, "1", [1, 2])];
    history[0].reply = None;
    assert!(is_linearizable(&history));
    assert!(is_linearizable(&history[..1]) && is_linearizable::<State>(&[]));
}

#[test]
fn the_checker_refuses_wrong_histories() {
    // An old value after a new one was read.
    let stale = [
        set(0, "1", [0, 1]),
        set(1, "2", [2, 9]),
        get(2, "2", [3, 4]),
        get(3, "1", [5, 6]),
        get(3, "2", [7, 8]),
    ];
    assert!(!is_linearizable(&stale));
    let shown = show(&contradiction(&stale));
    assert_eq!(shown.lines().count(), 4, "the last read is not needed:\n{shown}");
    // A lost update.
    let increment = |client| operation(client, Command::Incr(0), Value::Integer(1), [0, 9]);
    assert!(!is_linearizable(&[increment(0), increment(1)]));
    assert!(is_linearizable(&[increment(0)]));
    // Two requests of one client that were sent at once, against their order.
    let mut burst = [set(0, "1", [0, 9]), get(0, "1", [0, 9]), set(1, "2", [0, 9])];
    burst[0].after = vec![1];
    assert!(!is_linearizable(&burst));
}

#[test]
fn the_checker_refuses_parts_of_transactions() {
    let two = |value: &str| vec![(0, value.to_owned()), (1, value.to_owned())];
    let written = |client, value, times| {
        operation(client, Command::MSet(two(value)), Value::Status(b"OK".to_vec()), times)
    };
    let read = |values: [&str; 2]| {
        let values = values.map(|value| Value::Bulk(value.into())).to_vec();
        operation(2, Command::MGet(vec![0, 1]), Value::Array(values), [2, 3])
    };
    for (values, is_right) in [(["1", "1"], true), (["2", "2"], true), (["1", "2"], false)] {
        let history = [written(0, "1", [0, 1]), written(1, "2", [1, 9]), read(values)];
        assert_eq!(is_linearizable(&history), is_right, "{values:?}");
    }
}

/// The transaction changes nothing if it is the first, but it explains why the key is missing.
#[test]
fn the_checker_tries_writes_that_change_nothing_later_too() {
    let written = Command::Set(0, "1".into());
    let exec = Operation {
        call: Call::Exec(vec![written, Command::Del(0)]),
        reply: Some(Value::Array(vec![Value::Status(b"OK".to_vec()), Value::Integer(1)])),
        ..set(0, "1", [0, 9])
    };
    let nothing = operation(1, Command::Get(0), Value::Null, [4, 5]);
    assert!(is_linearizable(&[exec, set(1, "2", [1, 2]), nothing]));
}

#[test]
fn the_checker_knows_what_watch_promises() {
    let watch = Operation {
        call: Call::Watch(vec![0]),
        ..operation(0, Command::Get(0), Value::Status(b"OK".to_vec()), [0, 1])
    };
    let exec = |reply| Operation {
        call: Call::Exec(vec![Command::Incr(0)]),
        ..operation(0, Command::Get(0), reply, [5, 6])
    };
    let done = || exec(Value::Array(vec![Value::Integer(2)]));
    let between = || set(1, "1", [2, 3]);
    assert!(is_linearizable(&[watch.clone(), between(), exec(Value::Null)]));
    assert!(!is_linearizable(&[watch.clone(), between(), done()]));
    assert!(!is_linearizable(&[watch, exec(Value::Null)]), "nothing had changed");
}
