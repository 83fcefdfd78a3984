// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sizes that `docs/protocols/kv-batch.md` promises, and those of KV-Direct's evaluation.

use freeport_kv_protocol::batch::{
    HEADER_BYTES, Operation, PacketLimits, PacketWriter, ReplyLimits, ReplyWriter, Status,
};

/// Bytes of Ethernet, IP and UDP or RDMA headers around a packet in KV-Direct's evaluation.
const NETWORK_BYTES: usize = 88;

fn request(operations: impl Iterator<Item = (bool, [u8; 8], [u8; 2])>) -> usize {
    let mut packet = Vec::new();
    let mut writer = PacketWriter::begin(&mut packet, PacketLimits::default(), 0, None);
    for (is_put, key, value) in operations {
        let get = Operation::get(&key);
        let operation = if is_put { Operation::put(&key, &value) } else { get };
        writer.push(&mut packet, &operation).expect("it fits");
    }
    writer.finish(&mut packet);
    packet.len()
}

fn replies(statuses: impl Iterator<Item = Option<[u8; 2]>>) -> usize {
    let mut packet = Vec::new();
    let mut writer = ReplyWriter::begin(&mut packet, 0, 0, ReplyLimits::default());
    for value in statuses {
        match value {
            Some(value) => writer.value(&mut packet, &value),
            None => writer.status(&mut packet, Status::Done),
        }
    }
    writer.finish(&mut packet);
    packet.len()
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn value(number: u64) -> [u8; 2] {
    [number as u8, 1]
}

#[test]
fn packets_have_the_sizes_of_their_page() {
    let gets = request((0..128).map(|number| (false, key(number), [0; 2])));
    assert_eq!(gets, HEADER_BYTES + 10 + 127 * 9);
    assert_eq!(gets, 1_169);
    assert_eq!(replies((0..128).map(|number| Some(value(number)))), 402);
    let puts = request((0..2).map(|number| (true, key(number), value(number))));
    assert_eq!(puts, HEADER_BYTES + 14 + 11);
    assert_eq!(replies([None; 3].into_iter()), HEADER_BYTES + 3);
}

/// KV-Direct, "network batching": 10 bytes of key and value, half of the operations puts. Both
/// ways together take less than 27.7 bytes for each operation, with a network's headers.
#[test]
fn batches_take_fewer_bytes_than_in_the_evaluation() {
    let count = 128;
    let pairs = || (0..count).map(|number| (number % 2 == 0, key(number), value(number)));
    let there = request(pairs());
    let back = replies(pairs().map(|(is_put, _, value)| (!is_put).then_some(value)));
    let bytes = (there + back + 2 * NETWORK_BYTES) as f64 / count as f64;
    assert!(bytes < 27.7, "{bytes} bytes for each operation");
}
