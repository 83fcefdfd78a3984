// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows that no compiler emits: a program that loops, leaves its rows, has invalid operations or
//! accesses memory that does not exist is stopped and counted, and does not affect the next packet.

use freeport_card::{Nic, address, control};
use freeport_xdp::Arrival;

/// Encodes a slot of 64 bits.
fn slot(opcode: u8, registers: u8, offset: i16, immediate: i32) -> u64 {
    let (offset, immediate) = (offset as u16, immediate as u32);
    u64::from(opcode)
        | u64::from(registers) << 8
        | u64::from(offset) << 16
        | u64::from(immediate) << 32
}

const NOTHING: u64 = 0;
const CYCLES_MAX: u64 = 200;

/// Creates a card with these rows; after them is one that a packet must not reach.
fn card(rows: &[[u64; 4]]) -> Nic {
    let mut nic = Nic::new().expect("there is a card");
    let beyond = [slot(0x9d, 0, 0, 4), NOTHING, NOTHING, NOTHING];
    let words: Vec<u64> = rows.iter().chain([&beyond]).flatten().copied().collect();
    nic.host_write(address::ROWS, &words).expect("it answers");
    nic.host_write(address::ENTRY, &[(rows.len() as u64) << 16]).expect("it answers");
    nic.host_write(address::WATCHDOG, &[CYCLES_MAX]).expect("it answers");
    nic.host_write(address::CONTROL, &[control::RUN | control::EMIT_ALL]).expect("it answers");
    nic
}

/// Returns rows, the reason for which a packet is stopped there, and its counter.
fn cases() -> Vec<(&'static str, Vec<[u64; 4]>, u32, &'static str)> {
    let alone = |slot: u64| [slot, NOTHING, NOTHING, NOTHING];
    let end = alone(slot(0x9d, 0, 0, 2));
    vec![
        ("a loop", vec![alone(slot(0x05, 0, -1, 0))], 2, "stopped_watchdog"),
        (
            "a loop that counts",
            vec![[slot(0x07, 0x06, 0, 1), slot(0x05, 0, -1, 0), NOTHING, NOTHING]],
            2,
            "stopped_watchdog",
        ),
        ("a jump beyond the program", vec![alone(slot(0x05, 0, 300, 0)), end], 3, "stopped_row"),
        ("no exit", vec![alone(slot(0xb7, 0x00, 0, 2))], 3, "stopped_row"),
        ("a jump before the program", vec![alone(slot(0x05, 0, -7, 0)), end], 3, "stopped_row"),
        ("no operation", vec![alone(slot(0xff, 0, 0, 0)), end], 4, "stopped_instruction"),
        ("no helper", vec![alone(slot(0x85, 0, 0, 200)), end], 5, "stopped_helper"),
        (
            "address 0",
            vec![alone(slot(0x79, 0x21, 0, 0)), alone(slot(0x79, 0x33, 0, 0)), end],
            1,
            "stopped_memory",
        ),
        ("behind the packet", vec![alone(slot(0x79, 0xb1, 60, 0)), end], 1, "stopped_memory"),
        ("a store behind it", vec![alone(slot(0x7b, 0x0b, 57, 0)), end], 1, "stopped_memory"),
        ("a store to the context", vec![alone(slot(0x63, 0x01, 0, 0)), end], 1, "stopped_memory"),
        ("below the stack", vec![alone(slot(0x7b, 0x0a, -520, 0)), end], 1, "stopped_memory"),
        ("above the stack", vec![alone(slot(0x79, 0xa1, 0, 0)), end], 1, "stopped_memory"),
        // A function that calls itself.
        ("too many calls", vec![alone(slot(0x85, 0x10, 0, 0)), end], 6, "stopped_depth"),
    ]
}

#[test]
fn whatever_means_nothing_is_stopped_and_counted() {
    let bytes: Vec<u8> = (0..64).collect();
    for (what, rows, reason, counter) in cases() {
        let mut nic = card(&rows);
        for round in 1..=3 {
            nic.send(&Arrival { bytes: &bytes, ingress_ifindex: 5, rx_queue_index: 1 });
            let mut left = vec![];
            let tags = nic.receive(2_000, &mut left).unwrap_or_else(|| panic!("{what}: it leaves"));
            assert_eq!((tags.verdict, tags.stop), (0, reason), "{what}");
            assert_eq!(left, bytes, "{what}: nothing is stored");
            assert_eq!(nic.counter(counter), Ok(round), "{what}");
            assert_eq!(nic.counter("aborted"), Ok(round), "{what}");
        }
    }
}

#[test]
fn the_last_bytes_of_packet_and_stack_are_there() {
    let bytes: Vec<u8> = (0..64).collect();
    // r6 = the packet's last word, stored to the stack's first word, loaded again, and returned.
    let rows = [
        [slot(0x79, 0xb6, 56, 0), NOTHING, NOTHING, NOTHING],
        [slot(0x7b, 0x6a, -512, 0), NOTHING, NOTHING, NOTHING],
        [NOTHING; 4],
        [slot(0x79, 0xa0, -512, 0), NOTHING, NOTHING, NOTHING],
        [slot(0x95, 0, 0, 0), NOTHING, NOTHING, NOTHING],
    ];
    let mut nic = card(&rows);
    nic.send(&Arrival { bytes: &bytes, ingress_ifindex: 5, rx_queue_index: 1 });
    let tags = nic.receive(2_000, &mut vec![]).expect("it leaves");
    assert_eq!((tags.verdict, tags.stop), (0x3b3a_3938, 0));
}
