// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Acknowledged operations are there after a restart.

use std::path::Path;

use freeport_kv_functions::Kind;
use freeport_kv_protocol::batch::{Opcode, Operation, Status};
use freeport_kv_server::{Options, PersistenceOptions, Policy};

use super::client::{Served, WAYS, served_with};
use crate::functions::{registry, step};

fn start(folder: &Path, workers: usize, policy: Policy) -> Served {
    let persistence = PersistenceOptions { policy, ..PersistenceOptions::new(folder.into()) };
    served_with(Options { workers, persistence: Some(persistence), ..Options::default() })
}

fn digest(served: &Served) -> String {
    served.resp().call("DEBUG DIGEST")
}

#[test]
fn acknowledged_operations_are_there_after_a_restart() {
    for (workers, policy) in [(1, Policy::Always), (3, Policy::EverySecond)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let served = start(folder.path(), workers, policy);
        let mut clients = WAYS.map(|way| served.client(way));
        let keys: Vec<String> = (0..100).map(|key| format!("key{key}")).collect();
        for (round, client) in clients.iter_mut().enumerate() {
            let values: Vec<[u8; 8]> =
                (0..100).map(|at| (at + 1_000 * round as u64).to_le_bytes()).collect();
            let puts: Vec<_> = keys
                .iter()
                .zip(&values)
                .map(|(key, value)| Operation::put(key.as_bytes(), value))
                .collect();
            assert!(client.run(&puts).iter().all(|(status, _)| *status == Status::Done));
        }
        let [first, _] = &mut clients;
        assert_eq!(first.one(Operation::delete(b"key5")), (Status::Done, None));
        assert_eq!(first.one(Operation::delete(b"none")), (Status::NotFound, None));
        let one = 1_u64.to_le_bytes();
        let add = Operation::call(Opcode::Update, b"key6", 3, 3, &one);
        assert_eq!(first.one(add).0, Status::Done);
        let vector = Operation::call(Opcode::UpdateVector, b"key7", 3, 3, &one);
        assert_eq!(first.one(vector).0, Status::Done);
        let before = digest(&served);
        served.server.stopper().stop();
        drop(served);
        let served = start(folder.path(), 2, policy);
        assert_eq!(digest(&served), before);
        let mut client = served.client(WAYS[1]);
        assert_eq!(client.get(b"key6"), Some(1_007_u64.to_le_bytes().to_vec()));
        assert_eq!(client.get(b"key5"), None);
    }
}

/// Packets call functions of a user: the log has results, so a server without the functions
/// recovers them.
#[test]
fn results_of_functions_are_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let persistence = Some(PersistenceOptions::new(folder.path().into()));
    let functions = registry();
    let step_id = functions.named(Kind::Update, "step").expect("it is registered").id;
    let served = served_with(Options { workers: 2, persistence, functions, ..Options::default() });
    let mut client = served.client(WAYS[0]);
    let start_values: Vec<u8> = [5_u64, 6, 7].iter().flat_map(|it| it.to_le_bytes()).collect();
    client.put(b"one", &start_values[..8]);
    client.put(b"vector", &start_values);
    let by = 9_u64.to_le_bytes();
    let scalar = Operation::call(Opcode::Update, b"one", step_id, 3, &by);
    let vector = Operation::call(Opcode::UpdateSame, b"vector", step_id, 3, &by);
    let replies = client.run(&[scalar, vector.without_return(), scalar]);
    assert!(replies.iter().all(|(status, _)| *status == Status::Done), "{replies:?}");
    let before = digest(&served);
    served.server.stopper().stop();
    drop(served);
    let served = start(folder.path(), 1, Policy::EverySecond);
    assert_eq!(digest(&served), before);
    let mut client = served.client(WAYS[1]);
    assert_eq!(client.get(b"one"), Some(step(step(5, 9), 9).to_le_bytes().to_vec()));
    let expected = [5, 6, 7].into_iter().flat_map(|it| step(it, 9).to_le_bytes());
    assert_eq!(client.get(b"vector"), Some(expected.collect()));
    assert_eq!(client.one(scalar).0, Status::Failed, "the function is not there");
}

/// A snapshot is written while packets change the keys.
#[test]
fn snapshots_have_the_keys_of_their_moment() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = start(folder.path(), 2, Policy::EverySecond);
    std::thread::scope(|scope| {
        for (way, prefix) in WAYS.into_iter().zip(["a", "b"]) {
            let mut client = served.client(way);
            scope.spawn(move || {
                for round in 0..100_u32 {
                    let keys: Vec<String> =
                        (0..100).map(|key| format!("{prefix}{}", key * 7 % 90)).collect();
                    let value = round.to_le_bytes();
                    let operations: Vec<_> = keys
                        .iter()
                        .enumerate()
                        .map(|(at, key)| match (at as u32 + round) % 5 {
                            0 => Operation::delete(key.as_bytes()),
                            _ => Operation::put(key.as_bytes(), &value),
                        })
                        .collect();
                    client.run(&operations);
                }
            });
        }
        let mut resp = served.resp();
        scope.spawn(move || {
            for _ in 0..5 {
                assert_eq!(resp.call("SAVE"), "OK");
            }
        });
    });
    let before = digest(&served);
    drop(served);
    assert_eq!(digest(&start(folder.path(), 3, Policy::EverySecond)), before);
}
