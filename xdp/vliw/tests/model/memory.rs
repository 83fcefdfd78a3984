// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads, stores, atomic operations, misses, and the packet's length.

use super::images::{
    Lane, NOTHING, add, alu, atomic, bound, call, constant, ended, exit, exit_with, image, load,
    load_if_there, load_signed, machine, number, register, run, run_on, set, store, value,
};
use crate::program::{definition, packet};
use freeport_ebpf::interpreter::{Access, Reason, Window};
use freeport_ebpf::object::MapKind;
use freeport_vliw::machine::PACKET;
use freeport_vliw::model::{Mode, Model};
use freeport_vliw::operation::{
    Arithmetic, AtomicOperation, Constant, Operand, Operation, Target, Width,
};

const ADJUST_HEAD: u32 = 44;
const VALUE: Constant = Constant::MapValue { map: 0, offset: 2 };

#[test]
fn accesses_of_six_bytes_are_in_the_packet_the_stack_and_maps() {
    let copied = image(&[
        &[load(2, 4, 1, 0), constant(3, VALUE)],
        &[],
        &[load(4, 6, 2, 6), load(5, 8, 2, 6)],
        &[],
        &[store(6, 3, 0, register(4)), store(6, 10, -6, register(5)), store(6, 2, 0, register(5))],
        &[],
        &[load(6, 6, 3, 0), load(7, 6, 10, -6), load(8, 8, 3, 0), load(9, 6, 2, 0)],
        &[],
        &[
            alu(Arithmetic::Subtract, 0, 6, register(7)),
            alu(Arithmetic::Subtract, 9, 9, register(8)),
        ],
        &[],
        &[alu(Arithmetic::Or, 0, 0, register(9))],
        &[exit()],
    ]);
    let mut machine = machine(1, vec![definition(MapKind::Array, (4, 16), 1)]);
    let mut arrived = packet(64);
    let ran = run_on(vec![copied], &mut machine, &mut arrived).expect("no rule is broken");
    assert_eq!(ended(ran.outcome), 0);
    assert_eq!(arrived.bytes()[..8], [6, 7, 8, 9, 10, 11, 6, 7]);
    let value = machine.map("map").expect("it is there").lookup(&[0; 4]).expect("it is an array");
    assert_eq!(value[..10], [0, 0, 6, 7, 8, 9, 10, 11, 0, 0]);
}

#[test]
fn loads_extend_zeros_or_signs() {
    let stored = store(8, 10, -8, number(-2));
    let cases = [
        (load(0, 1, 10, -8), 0xfe),
        (load(0, 6, 10, -8), 0xffff_ffff_fffe),
        (load_signed(0, 1, 10, -8), -2_i64 as u64),
        (load_signed(0, 2, 10, -8), -2_i64 as u64),
        (load_signed(0, 4, 10, -8), -2_i64 as u64),
    ];
    for (loaded, expected) in cases {
        assert_eq!(value(&[&[stored], &[], &[loaded], &[], &[exit()]]), expected, "{loaded:?}");
    }
}

#[test]
fn what_misses_gives_zero_if_it_may_and_else_ends_the_program() {
    let rows = |operation: Lane| {
        run(image(&[
            &[load(2, 4, 1, 0), store(8, 10, -8, number(5)), set(0, number(9))],
            &[],
            &[NOTHING, operation],
            &[],
            &[exit()],
        ]))
    };
    let places = [(2, 57), (2, -1), (10, 0), (10, -520), (3, 0)];
    for (base, offset) in places {
        assert_eq!(ended(rows(load_if_there(0, 8, base, offset)).outcome), 0);
        for other in [load(0, 8, base, offset), store(8, base, offset, number(1))] {
            let outcome = rows(other).outcome;
            let abort = outcome.aborted.expect("it is outside");
            assert!(matches!(abort.reason, Reason::OutOfBounds { size: 8, .. }), "{abort}");
            assert_eq!((abort.program, abort.slot, outcome.verdict), (0, 4 * 2 + 1, 0));
        }
    }
    assert_eq!(ended(rows(load_if_there(0, 8, 10, -8)).outcome), 5);
    assert_eq!(ended(rows(load_if_there(0, 8, 2, 56)).outcome), 0x3f3e_3d3c_3b3a_3938);
}

#[test]
fn a_row_that_ends_the_program_with_a_load_writes_nothing() {
    let mut arrived = packet(64);
    let rows = image(&[
        &[load(2, 4, 1, 0)],
        &[],
        &[store(1, 2, 0, number(7)), load(3, 1, 2, 64)],
        &[exit()],
    ]);
    let ran = run_on(vec![rows], &mut machine(1, vec![]), &mut arrived).expect("no rule is broken");
    let reason = ran.outcome.aborted.expect("it is outside").reason;
    let Reason::OutOfBounds { access, window, .. } = reason else { panic!("{reason}") };
    assert_eq!((access, window), (Access::Read, Window::Packet(64, 64)));
    assert_eq!(arrived.bytes()[0], 0);
}

#[test]
fn the_packet_is_as_long_as_it_is_now() {
    // Verdict 3 if it is too short without a base, 4 with one.
    let asked = |bytes: i32, behind: i32, moved: i32| {
        let rows = image(&[
            &[set(2, number(moved)), set(6, register(1))],
            &[NOTHING; 1],
            &[call(ADJUST_HEAD)],
            &[load(7, 4, 6, 0)],
            &[bound(None, bytes, Target::Exit(3))],
            &[bound(Some(7), behind, Target::Exit(4))],
            &[exit_with(2)],
        ]);
        run_on(vec![rows], &mut machine(1, vec![]), &mut packet(64)).map(|ran| ran.outcome.verdict)
    };
    assert_eq!(asked(64, 64, 0), Ok(2));
    assert_eq!(asked(65, 64, 0), Ok(3));
    assert_eq!(asked(64, 65, 0), Ok(4));
    assert_eq!(asked(44, 44, 20), Ok(2));
    assert_eq!(asked(45, 44, 20), Ok(3));
    assert_eq!(asked(44, 45, 20), Ok(4));
    assert_eq!(asked(84, 84, -20), Ok(2));
    assert_eq!(asked(85, 0, -20), Ok(3));
    assert_eq!(asked(-1, -1, 0), Ok(2));
}

#[test]
fn a_length_is_asked_before_its_row_moves_the_packet() {
    let rows = image(&[
        &[set(2, number(20))],
        &[],
        &[bound(None, 64, Target::Exit(3)), call(ADJUST_HEAD)],
        &[bound(None, 64, Target::Exit(4))],
        &[exit_with(2)],
    ]);
    // Strict models reject it.
    let model = Model::new(vec![Some(rows)], Mode::Plain);
    let ran = model.run(&mut machine(1, vec![]), 0, &mut packet(64));
    assert_eq!(ran.expect("nothing is looked for").outcome.verdict, 4);
}

#[test]
fn a_register_holds_where_the_packet_begins() {
    let rows = |moved: i32| {
        run(image(&[
            &[set(2, number(moved)), load(6, 1, PACKET, 30)],
            &[],
            &[call(ADJUST_HEAD)],
            &[NOTHING, NOTHING, load(7, 1, PACKET, 30), load(8, 4, 1, 0)],
            &[],
            &[
                alu(Arithmetic::Multiply, 6, 6, number(100)),
                alu(Arithmetic::Subtract, 8, 8, start()),
            ],
            &[],
            &[add(0, 6, register(7))],
            &[add(0, 0, register(8))],
            &[exit()],
        ]))
    };
    assert_eq!(ended(rows(20).outcome), 3_000 + 50);
    assert_eq!(ended(rows(0).outcome), 3_000 + 30);
    assert_eq!(ended(rows(-9).outcome), 3_000 + 21);
}

fn start() -> Operand {
    register(PACKET)
}

#[test]
fn atomic_operations_change_memory_and_give_what_was_there() {
    use AtomicOperation::*;
    let cases = [
        (Add, 12 + 10, 12),
        (Or, 12 | 10, 12),
        (And, 12 & 10, 12),
        (Xor, 12 ^ 10, 12),
        (Exchange, 10, 12),
    ];
    for (operation, new, old) in cases {
        let found = value(&[
            &[store(8, 10, -8, number(12)), set(2, number(10))],
            &[],
            &[atomic(operation, 10, -8, 2)],
            &[],
            &[load(0, 8, 10, -8), alu(Arithmetic::Multiply, 2, 2, number(1_000))],
            &[],
            &[add(0, 0, register(2))],
            &[exit()],
        ]);
        assert_eq!(found, old * 1_000 + new, "{operation:?}");
    }
}

#[test]
fn comparing_exchanges_compare_with_register_0() {
    for (expected, left, width) in
        [(12, 10, Width::Bits64), (13, 12, Width::Bits64), (12, 10, Width::Bits32)]
    {
        let operation = AtomicOperation::CompareExchange;
        let (base, offset, source) = (10, -8, 2);
        let exchange =
            Operation::Atomic { width, operation, is_fetching: true, base, offset, source };
        let found = value(&[
            &[store(8, 10, -8, number(12)), set(2, number(10)), set(0, number(expected))],
            &[],
            &[Some(exchange)],
            &[],
            &[load(3, 8, 10, -8), alu(Arithmetic::Multiply, 0, 0, number(1_000))],
            &[],
            &[add(0, 0, register(3))],
            &[exit()],
        ]);
        assert_eq!(found, 12_000 + left, "{expected}");
    }
}
