// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random packets have the results of a map.

use std::collections::HashMap;

use fastrand::Rng;
use freeport_kv_protocol::batch::{Opcode, Operation, Status};

use super::client::{BatchClient, Replied, Served, WAYS, Way, served};

/// An operation with bytes of its own.
#[derive(Clone, Debug)]
struct Owned {
    opcode: Opcode,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Owned {
    fn random(random: &mut Rng, prefix: u8) -> Self {
        let key = [&[prefix][..], random.u16(..300).to_string().as_bytes()].concat();
        let opcode = match random.u32(..8) {
            0..4 => Opcode::Get,
            4..7 => Opcode::Put,
            _ => Opcode::Delete,
        };
        let bytes = match random.u32(..20) {
            0 => random.usize(..3_000),
            _ => random.usize(..12),
        };
        let value = match opcode {
            Opcode::Put => (0..bytes).map(|_| random.u8(..)).collect(),
            _ => vec![],
        };
        Self { opcode, key, value }
    }

    fn operation(&self) -> Operation<'_> {
        match self.opcode {
            Opcode::Get => Operation::get(&self.key),
            Opcode::Put => Operation::put(&self.key, &self.value),
            _ => Operation::delete(&self.key),
        }
    }
}

/// The reply of a map to an operation.
fn expected(map: &mut HashMap<Vec<u8>, Vec<u8>>, operation: &Owned) -> Replied {
    match operation.opcode {
        Opcode::Get => match map.get(&operation.key) {
            Some(value) => (Status::Done, Some(value.clone())),
            None => (Status::NotFound, None),
        },
        Opcode::Put => {
            map.insert(operation.key.clone(), operation.value.clone());
            (Status::Done, None)
        }
        _ => match map.remove(&operation.key) {
            Some(_) => (Status::Done, None),
            None => (Status::NotFound, None),
        },
    }
}

/// A client with keys of its own sends packets, several at once, and checks all replies.
fn drive(client: &mut BatchClient, prefix: u8, packets: usize) {
    let mut random = Rng::with_seed(freeport_testbed::seed() + u64::from(prefix));
    let mut map = HashMap::new();
    let mut sent = 0;
    while sent < packets {
        let window: Vec<Vec<Owned>> = (0..random.usize(1..5))
            .map(|_| {
                let count = random.usize(..200);
                (0..count).map(|_| Owned::random(&mut random, prefix)).collect()
            })
            .collect();
        let batches: Vec<u32> = window
            .iter()
            .map(|packet| client.send(&packet.iter().map(Owned::operation).collect::<Vec<_>>()))
            .collect();
        for (packet, batch) in window.iter().zip(batches) {
            let replies = client.replies(batch);
            assert_eq!(replies.len(), packet.len());
            for (operation, reply) in packet.iter().zip(replies) {
                assert_eq!(reply, expected(&mut map, operation), "{operation:?}");
            }
        }
        sent += window.len();
    }
}

fn check(served: &Served, clients: u8, packets: usize) {
    std::thread::scope(|scope| {
        for prefix in 0..clients {
            let way = WAYS[usize::from(prefix) % 2];
            scope.spawn(move || drive(&mut served.client(way), b'a' + prefix, packets));
        }
    });
}

#[test]
fn packets_for_one_worker_have_the_results_of_a_map() {
    check(&served(1), 4, 150);
}

#[test]
fn packets_for_three_workers_have_the_results_of_a_map() {
    check(&served(3), 4, 150);
}

#[test]
fn one_client_of_each_way_is_served_alone() {
    for way in WAYS {
        let served = served(1);
        let mut client = served.client(way);
        client.put(b"key", b"value");
        assert_eq!(client.get(b"key"), Some(b"value".to_vec()));
        assert_eq!(client.get(b"none"), None);
        assert_eq!(client.run(&[]), []);
    }
}

/// Larger than any buffer on the way, in both directions.
#[test]
fn a_large_value_passes() {
    let value: Vec<u8> = (0..5_000_000_u32).map(|at| (at >> 3) as u8).collect();
    for way in WAYS {
        let served = served(2);
        let mut client = served.client(way);
        client.put(b"large", &value);
        assert!(client.get(b"large").as_ref() == Some(&value));
        client.put(b"small", b"1");
        let keys = [&b"large"[..], b"small", b"large"];
        let replies = client.run(&keys.map(Operation::get));
        assert_eq!(replies[1], (Status::Done, Some(b"1".to_vec())));
        assert!(replies[2].1.as_ref() == Some(&value));
    }
}

/// Most packets come in pieces that are shorter than their header.
#[test]
fn a_packet_may_come_byte_by_byte() {
    use std::io::Write;
    for way in [Way::Tcp, Way::Fabric] {
        let served = served(1);
        let mut client = served.client(way);
        let packet = super::client::packet(9, &[Operation::put(b"a", b"b"), Operation::get(b"a")]);
        for byte in packet {
            client.stream.write_all(&[byte]).expect("the server reads");
        }
        let expected = [(Status::Done, None), (Status::Done, Some(b"b".to_vec()))];
        assert_eq!(client.replies(9), expected);
    }
}
