// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads, stores and atomic operations of every size, and the bounds of every window.

use super::words::{CORNERS, low, signed};
use crate::program;
use crate::program::{
    add, call, constant, copy, definition, exit, if_zero, load, machine, map, packet, reason, run,
    set, slot, store, store_constant, store_word, value,
};
use freeport_ebpf::instruction::Instruction;
use freeport_ebpf::object::MapKind;

/// Contents of memory after an atomic operation.
type Oracle = fn(u64, u64) -> u64;

/// Number of bits of each size, with the size's field in the opcode.
const SIZES: [(u32, u8); 4] = [(32, 0x00), (16, 0x08), (8, 0x10), (64, 0x18)];

#[test]
fn loads_and_stores_of_every_size_touch_just_their_bytes() {
    for a in CORNERS {
        for (bits, size) in SIZES {
            let stored = |instruction: Instruction| {
                let around = -1_i64 as u64;
                value(program![
                    constant(3, a),
                    constant(4, around),
                    store(10, -16, 4),
                    store(10, -8, 4),
                    instruction,
                    load(0, 10, -13),
                    exit(),
                ])
            };
            let expected = low((-1_i128 << bits) | i128::from(low(a.into(), bits)), 64);
            assert_eq!(stored(slot(0x63 | size, (10, 3), -13, 0)), expected, "stx {bits} {a:#x}");
            let immediate = low((-1_i128 << bits) | i128::from(low(signed(a, 32), bits)), 64);
            let instruction = slot(0x62 | size, (10, 0), -13, a as i32);
            assert_eq!(stored(instruction), immediate, "st {bits} {a:#x}");
            let loaded = |opcode: u8| {
                let read = slot(opcode | size, (0, 10), -8, 0);
                value(program![constant(3, a), store(10, -8, 3), set(0, -1), read, exit()])
            };
            assert_eq!(loaded(0x61), low(a.into(), bits), "ldx {bits} {a:#x}");
            if bits < 64 {
                assert_eq!(loaded(0x81), low(signed(a, bits), 64), "ldxs {bits} {a:#x}");
            }
        }
    }
}

#[test]
fn atomic_operations_change_memory_and_fetch_what_was_there() {
    let plain: [(i32, Oracle); 4] = [
        (0x00, |a, b| (i128::from(a) + i128::from(b)) as u64),
        (0x40, |a, b| a | b),
        (0x50, |a, b| a & b),
        (0xa0, |a, b| a ^ b),
    ];
    for (a, b) in CORNERS.iter().flat_map(|&a| CORNERS.map(|b| (a, b))) {
        for (bits, opcode) in [(64, 0xdb), (32, 0xc3)] {
            // Returns the contents of memory, and of the register that may be written.
            let after = |operation: i32, compared: u64| {
                let begin = program![constant(3, a), constant(4, b), store(10, -8, 3)];
                let first = program![
                    begin.clone(),
                    constant(0, compared),
                    slot(opcode, (10, 4), -8, operation),
                    load(0, 10, -8),
                    exit(),
                ];
                let register = if operation == 0xf1 { 0 } else { 4 };
                let second = program![
                    begin,
                    constant(0, compared),
                    slot(opcode, (10, 4), -8, operation),
                    copy(0, register),
                    exit(),
                ];
                (value(first), value(second))
            };
            let kept = a & !(low(-1, bits));
            let memory = |new: u64| kept | low(new.into(), bits);
            let old = low(a.into(), bits);
            for (operation, oracle) in plain {
                let expected = memory(oracle(a, b));
                assert_eq!(after(operation, 0), (expected, b), "{operation:#x} {a:#x} {b:#x}");
                assert_eq!(after(operation | 1, 0), (expected, old), "fetch {operation:#x}");
            }
            assert_eq!(after(0xe1, 0), (memory(b), old), "exchange {a:#x} {b:#x}");
            assert_eq!(after(0xf1, a), (memory(b), old), "compare and exchange, equal");
            assert_eq!(after(0xf1, a ^ 1), (a, old), "compare and exchange, different");
        }
    }
}

#[test]
fn a_frame_has_512_bytes() {
    assert_eq!(value(program![slot(0x72, (10, 0), -512, 7), load(0, 10, -512), exit()]), 7);
    let below = run(program![slot(0x72, (10, 0), -513, 7), exit()]);
    assert_eq!(
        reason(&below),
        "program 0, instruction 0: a write of 1 bytes at 0x20000000003ff is outside the stack (at \
         -513 from a frame pointer)"
    );
    let above = run(program![set(0, 0), slot(0x71, (0, 10), 0, 0), exit()]);
    assert!(reason(&above).contains("the stack (at 0 from a frame pointer)"));
    let across = run(program![slot(0x79, (0, 10), -7, 0), exit()]);
    assert!(reason(&across).contains("a read of 8 bytes"));
}

#[test]
fn nothing_is_reached_by_any_other_address() {
    for address in CORNERS {
        for instruction in [slot(0x71, (0, 3), 0, 0), slot(0x73, (3, 0), 0, 0)] {
            let outcome = run(program![constant(3, address), instruction, exit()]);
            assert!(reason(&outcome).contains("is outside"), "{address:#x}");
        }
    }
}

#[test]
fn packets_end_where_they_end() {
    // Loads the four bytes at 10, if the program's own comparison finds that they exist.
    let checked = program![
        slot(0x61, (2, 1), 0, 0),
        slot(0x61, (3, 1), 4, 0),
        set(0, 1),
        copy(4, 2),
        add(4, 14),
        slot(0x2d, (4, 3), 1, 0),
        slot(0x61, (0, 2), 10, 0),
        exit(),
    ];
    // The same without a comparison.
    let unchecked = program![slot(0x61, (2, 1), 0, 0), slot(0x61, (0, 2), 10, 0), exit()];
    let (mut checked, mut unchecked) = (machine(checked, vec![]), machine(unchecked, vec![]));
    for length in 0..64 {
        let outcome = checked.run(0, &mut packet(length));
        let expected = if length < 14 { 1 } else { 0x0d0c_0b0a };
        assert_eq!((outcome.value, outcome.aborted), (expected, None), "{length} bytes");
        let outcome = unchecked.run(0, &mut packet(length));
        match length {
            14.. => assert_eq!((outcome.value, outcome.aborted), (expected, None)),
            _ => assert!(reason(&outcome).ends_with(&format!("(at 10 of {length} bytes)"))),
        }
    }
    let (abort, count) = unchecked.aborts().next().expect("some were aborted");
    assert_eq!((abort.slot, *count), (1, 14));
}

#[test]
fn the_context_has_fields_of_four_bytes() {
    let field = |offset: i16| program![slot(0x61, (0, 1), offset, 0), exit()];
    let mut packet = packet(64);
    (packet.ingress_ifindex, packet.rx_queue_index, packet.egress_ifindex) = (5, 6, 7);
    for (offset, expected) in [(12, 5), (16, 6), (20, 7)] {
        assert_eq!(machine(field(offset), vec![]).run(0, &mut packet).value, expected);
    }
    let length = program![
        slot(0x61, (2, 1), 0, 0),
        slot(0x61, (0, 1), 4, 0),
        slot(0x1f, (0, 2), 0, 0),
        exit(),
    ];
    assert_eq!(value(length), 64);
    for instruction in [
        slot(0x61, (0, 1), 24, 0),
        slot(0x61, (0, 1), 2, 0),
        slot(0x69, (0, 1), 0, 0),
        slot(0x79, (0, 1), 0, 0),
        slot(0x63, (1, 0), 16, 0),
        slot(0xc3, (1, 0), 16, 0),
    ] {
        let outcome = run(program![instruction, exit()]);
        assert!(reason(&outcome).ends_with("the fields of the context"), "{instruction:?}");
    }
}

#[test]
fn a_value_of_a_map_ends_where_it_ends() {
    let at = |instruction: Instruction| {
        let lookup = program![
            store_word(10, -4, 1),
            map(1, 0),
            copy(2, 10),
            add(2, -4),
            call(1),
            if_zero(0, 1),
            instruction,
            exit(),
        ];
        machine(lookup, vec![definition(MapKind::Array, (4, 12), 3)]).run(0, &mut packet(64))
    };
    assert_eq!(at(slot(0x62, (0, 0), 8, 1)).aborted, None);
    for instruction in [slot(0x62, (0, 0), 9, 1), slot(0x72, (0, 0), -1, 1)] {
        assert!(reason(&at(instruction)).ends_with("what it may do with map `map`"));
    }
}

#[test]
fn nothing_is_left_for_the_next_packet() {
    // Returns the sum of registers, stack and head room, and then dirties all of them.
    let parts = program![
        set(0, 0),
        (2..10).map(|register| slot(0x4f, (0, register), 0, 0)).collect::<Vec<_>>(),
        (1..=64)
            .flat_map(|at| program![load(3, 10, -8 * at), slot(0x4f, (0, 3), 0, 0)])
            .collect::<Vec<_>>(),
        (1..=64).map(|at| store_constant(10, -8 * at, -1)).collect::<Vec<_>>(),
        copy(6, 0),
        set(2, -100),
        call(44),
        copy(0, 6),
        (2..10).map(|register| set(register, -1)).collect::<Vec<_>>(),
        exit(),
    ];
    let mut machine = machine(parts, vec![]);
    let mut packet = packet(64);
    for _ in 0..3 {
        let outcome = machine.run(0, &mut packet);
        assert_eq!((outcome.value, outcome.aborted), (0, None));
        packet.fill(&[1; 64]).expect("a short one");
        assert_eq!(packet.bytes(), [1; 64]);
    }
}
