// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measurements, for a release build:
//! `cargo test --release -p freeport-kv-protocol -- --ignored --nocapture batch::speed`.

use freeport_kv_protocol::batch::{
    HEADER_BYTES, Operation, Operations, PacketLimits, PacketWriter, ReplyLimits, ReplyReader,
    ReplyWriter,
};
use freeport_kv_protocol::slots::worker_of;
use std::hint::black_box;
use std::time::Instant;

/// Measurements of which the fastest counts.
const ROUNDS: usize = 20;
/// Packets in a round.
const PACKETS: usize = 1_000;
/// Operations in a packet.
const COUNT: u64 = 128;

fn report(name: &str, mut packet: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        (0..PACKETS).for_each(|_| packet());
        best = best.min(begin.elapsed().as_secs_f64());
    }
    let nanoseconds = best / (PACKETS as f64 * COUNT as f64) * 1e9;
    println!("{name:16} {nanoseconds:6.2} ns for each operation");
}

fn keys() -> impl Iterator<Item = [u8; 8]> {
    (0..COUNT).map(u64::to_le_bytes)
}

fn write(packet: &mut Vec<u8>, value: Option<&[u8]>) {
    packet.clear();
    let mut writer = PacketWriter::begin(packet, PacketLimits::default(), 0, None);
    for key in keys() {
        let operation = match value {
            Some(value) => Operation::put(&key, value),
            None => Operation::get(&key),
        };
        writer.push(packet, black_box(&operation)).expect("it fits");
    }
    writer.finish(packet);
}

fn reply(packet: &mut Vec<u8>, value: Option<&[u8]>) {
    packet.clear();
    let mut writer = ReplyWriter::begin(packet, 0, 0, ReplyLimits::default());
    for _ in 0..COUNT {
        match value {
            Some(value) => writer.value(packet, black_box(value)),
            None => writer.done(packet),
        }
    }
    writer.finish(packet);
}

#[test]
#[ignore = "measures"]
fn requests() {
    let mut packet = Vec::new();
    report("write gets", || write(&mut packet, None));
    report("write puts", || write(&mut packet, Some(&[1, 2])));
    let mut operations = Operations::default();
    for (name, value) in [("decode gets", None), ("decode puts", Some(&[1, 2][..]))] {
        write(&mut packet, value);
        let payload = &packet[HEADER_BYTES..];
        report(name, || {
            operations.decode(black_box(payload), COUNT as u16).expect("it is well formed");
        });
        report("and look at them", || {
            operations.decode(black_box(payload), COUNT as u16).expect("it is well formed");
            for number in 0..operations.len() {
                black_box(operations.get(payload, number));
            }
        });
    }
}

#[test]
#[ignore = "measures"]
fn replies() {
    let mut packet = Vec::new();
    for (name, value) in [("gets", Some(&[1, 2][..])), ("puts", None)] {
        report(&format!("reply to {name}"), || reply(&mut packet, value));
        let payload = &packet[HEADER_BYTES..];
        report(&format!("read {name}"), || {
            for reply in ReplyReader::new(black_box(payload), COUNT as u16) {
                black_box(reply.expect("it is well formed"));
            }
        });
    }
}

#[test]
#[ignore = "measures"]
fn slots() {
    let keys: Vec<[u8; 8]> = keys().collect();
    report("worker of a key", || {
        for key in &keys {
            black_box(worker_of(black_box(key), 3));
        }
    });
}
