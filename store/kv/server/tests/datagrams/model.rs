// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random packets beside a map.

use std::collections::BTreeMap;

use freeport_kv_protocol::batch::{Opcode, Operation};
use freeport_testbed::usual_or_long;

use super::peer::{Answer, DONE, NOT_FOUND, Peer, value};
use super::server;
use crate::client::Client;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What an operation returns, and does to the map.
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
