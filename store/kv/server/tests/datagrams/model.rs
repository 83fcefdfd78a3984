// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random packets beside a map.

use std::collections::BTreeMap;

use freeport_kv_protocol::batch::{Opcode, Operation};
use freeport_testbed::usual_or_long;

use super::peer::{Answer, DONE, NOT_FOUND, Peer, value};
use super::server;
use crate::client::Client;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The reply to an operation, after it has changed the map.
fn expected(model: &mut Model, operation: &Operation<'_>) -> Answer {
    match operation.opcode {
        Opcode::Put => {
            model.insert(operation.key.to_vec(), operation.value.to_vec());
            DONE
        }
        Opcode::Delete => model.remove(operation.key).map_or(NOT_FOUND, |_| DONE),
        _ => model.get(operation.key).map_or(NOT_FOUND, value),
    }
}

/// Each client has keys of its own. Packets that change something are sent once, in one piece with
/// their reads; those that only read are repeated until all of their replies have come.
#[test]
fn random_packets_do_what_a_map_does() {
    for workers in [1, 3] {
        let (server, address) = server(workers);
        let mut random = fastrand::Rng::with_seed(workers as u64);
        let mut clients: Vec<_> =
            (0..5).map(|_| (Peer::connected(address, 0), Model::new())).collect();
        for _ in 0..usual_or_long(300, 30_000) {
            let number = random.usize(..clients.len());
            let (peer, model) = &mut clients[number];
            let count = random.usize(1..60);
            let keys: Vec<_> =
                (0..count).map(|_| format!("{number}:{}", random.u8(..40)).into_bytes()).collect();
            let bytes = vec![random.u8(..); random.usize(..300)];
            let changes = random.bool();
            let operations: Vec<_> = keys
                .iter()
                .map(|key| match random.u8(..4) {
                    0 if changes => Operation::delete(key),
                    1 if changes => Operation::put(key, &bytes[..random.usize(..=bytes.len())]),
                    _ => Operation::get(key),
                })
                .collect();
            let wanted: Vec<_> = operations.iter().map(|one| expected(model, one)).collect();
            let replies = match changes {
                true => peer.run(&operations).replies(),
                false => peer.insist(&operations),
            };
            assert_eq!(replies, wanted);
        }
        let keys: usize = clients.iter().map(|(_, model)| model.len()).sum();
        Client::new(&server).check("DBSIZE", &format!(":{keys}\r\n"));
    }
}

/// Clients add to the same counters, of all workers. Each addition returns another value.
#[test]
fn additions_of_many_clients_are_atomic() {
    const COUNTERS: [&[u8]; 4] = [b"one", b"two", b"three", b"four"];
    const ROUNDS: usize = 50;
    /// `add`, and the type of the elements.
    const ADD: u8 = 3;
    const U64: u8 = 3;
    for workers in [1, 3] {
        let (server, address) = server(workers);
        let mut control = Client::new(&server);
        for counter in COUNTERS {
            let zero = [0; 8];
            control.send_arguments(&[b"SET", counter, &zero]);
            assert_eq!(control.raw(), "+OK\r\n");
        }
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let mut peer = Peer::connected(address, 0);
                std::thread::spawn(move || {
                    let one = 1_u64.to_le_bytes();
                    let add = |key| Operation::call(Opcode::Update, key, ADD, U64, &one);
                    let additions: Vec<_> = COUNTERS.map(add).repeat(2);
                    (0..ROUNDS).flat_map(|_| peer.run(&additions).replies()).collect::<Vec<_>>()
                })
            })
            .collect();
        let mut found = vec![vec![]; COUNTERS.len()];
        for client in clients {
            let replies = client.join().expect("no client panics");
            for (number, (status, value)) in replies.into_iter().enumerate() {
                let value = value.and_then(|value| value.try_into().ok());
                let value = value.unwrap_or_else(|| panic!("{status:?}"));
                found[number % COUNTERS.len()].push(u64::from_le_bytes(value));
            }
        }
        for mut values in found {
            values.sort_unstable();
            assert_eq!(values, (0..4 * 2 * ROUNDS as u64).collect::<Vec<_>>());
        }
    }
}
