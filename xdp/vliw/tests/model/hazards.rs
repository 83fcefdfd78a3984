// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Images that violate a rule: each violation is detected at its place, and a similar image without
//! a violation is accepted.

use super::images::{
    Lane, NOTHING, add, alu, atomic, bound, call, call_function, call_with, constant, exit,
    exit_with, fault, goto, if_equal, image, image_with, load, load_if_there, machine, number,
    register, run, run_on, set, store,
};
use crate::program::{definition, packet};
use freeport_ebpf::object::MapKind;
use freeport_vliw::machine::PACKET;
use freeport_vliw::model::{Hazard, Mode, Model};
use freeport_vliw::operation::{
    Argument, Arithmetic, AtomicOperation, Constant, Operation, Target,
};

const LOOKUP: u32 = 1;
const UPDATE: u32 = 2;
const PRINT: u32 = 6;
const RANDOM: u32 = 7;
const ADJUST_HEAD: u32 = 44;
const STRING_TO_NUMBER: u32 = 105;
const WRITE_TEXT: u32 = 165;
const LOOP: u32 = 181;
const COMPARE: u32 = 182;

/// Returns the violation in rows.
fn wrong(rows: &[&[Lane]]) -> (usize, Hazard) {
    fault(image(rows))
}

fn not_forwarded(lane: usize, register: u8, writer_row: usize, writer: usize) -> Hazard {
    Hazard::NotForwarded { lane, register, writer_row, writer }
}

fn conflict(first: usize, second: usize, register: u8) -> Hazard {
    Hazard::Registers { first, second, register }
}

#[test]
fn results_are_not_read_by_the_next_row_in_another_lane() {
    let rows = |readers: &[Lane]| wrong(&[&[NOTHING, set(2, number(1))], readers, &[exit_with(1)]]);
    assert_eq!(rows(&[add(3, 2, number(1))]), (1, not_forwarded(0, 2, 0, 1)));
    assert_eq!(rows(&[add(3, 4, register(2))]), (1, not_forwarded(0, 2, 0, 1)));
    assert_eq!(rows(&[store(8, 10, -8, register(2))]), (1, not_forwarded(0, 2, 0, 1)));
    assert_eq!(rows(&[store(8, 2, -8, number(1))]).0, 1);
    let jump = [NOTHING, NOTHING, if_equal(2, number(7), 2)];
    assert_eq!(rows(&jump), (1, not_forwarded(2, 2, 0, 1)));
    let given = wrong(&[&[NOTHING, set(5, number(1))], &[call(PRINT)], &[exit_with(1)]]);
    assert_eq!(given, (1, not_forwarded(0, 5, 0, 1)), "an argument of a helper");
    let gives = wrong(&[&[call(RANDOM)], &[NOTHING, exit()]]);
    assert_eq!(gives, (1, not_forwarded(1, 0, 0, 0)), "what a helper gives");
    let later: &[&[Lane]] =
        &[&[NOTHING, set(2, number(1))], &[NOTHING, add(3, 2, number(1))], &[exit_with(1)]];
    run(image(later));
}

#[test]
fn skipped_operations_count_for_registers() {
    let skipped_reader = wrong(&[
        &[NOTHING, set(2, number(1))],
        &[if_equal(3, number(0), 2), NOTHING, add(4, 2, number(1))],
        &[exit_with(1)],
    ]);
    assert_eq!(skipped_reader, (1, not_forwarded(2, 2, 0, 1)));
    let skipped_writer = wrong(&[
        &[if_equal(3, number(0), 1), set(2, number(1))],
        &[add(4, 2, number(1))],
        &[exit_with(1)],
    ]);
    assert_eq!(skipped_writer, (1, not_forwarded(0, 2, 0, 1)));
    let skipped_conflict = wrong(&[
        &[if_equal(3, number(0), 1), set(2, number(1)), set(4, register(2))],
        &[exit_with(1)],
    ]);
    assert_eq!(skipped_conflict, (0, conflict(1, 2, 2)));
}

#[test]
fn results_are_late_for_the_row_behind_and_no_other() {
    let skipped =
        wrong(&[&[set(2, number(1)), goto(1)], &[NOTHING, add(3, 2, number(1))], &[exit_with(1)]]);
    assert_eq!(skipped, (1, not_forwarded(1, 2, 0, 0)));
    // A taken branch to another row leaves time.
    run(image(&[
        &[goto(2)],
        &[exit_with(2)],
        &[set(2, number(1)), goto(4)],
        &[exit_with(2)],
        &[NOTHING, add(3, 2, number(1))],
        &[exit_with(1)],
    ]));
    // So do calls and returns.
    run(image_with(
        &[4],
        &[
            &[],
            &[set(6, number(1)), call_function(4)],
            &[add(0, 0, number(1))],
            &[exit()],
            &[NOTHING, add(0, 6, number(1))],
            &[NOTHING, exit()],
        ],
    ));
    let from_helper = image_with(
        &[4],
        &[
            &[set(1, number(1)), constant(2, Constant::Function(4))],
            &[],
            &[NOTHING, call(LOOP), set(6, number(1))],
            &[add(7, 6, number(1))],
            &[exit()],
        ],
    );
    assert_eq!(fault(from_helper), (3, not_forwarded(0, 6, 2, 2)));
}

#[test]
fn operations_of_a_row_share_no_register_that_one_writes() {
    let two = |first: Lane, second: Lane| wrong(&[&[first, second], &[exit_with(1)]]);
    assert_eq!(two(set(2, number(1)), set(2, number(2))), (0, conflict(0, 1, 2)));
    assert_eq!(two(set(2, number(1)), add(3, 2, number(2))), (0, conflict(0, 1, 2)));
    assert_eq!(two(add(3, 2, number(2)), set(2, number(1))), (0, conflict(1, 0, 2)));
    assert_eq!(two(set(0, number(1)), call(RANDOM)), (0, conflict(0, 1, 0)));
    assert_eq!(two(set(2, number(1)), call(ADJUST_HEAD)), (0, conflict(0, 1, 2)));
    assert_eq!(two(set(0, number(1)), exit()), (0, conflict(0, 1, 0)));
    assert_eq!(two(set(3, number(1)), call_function(0)), (0, conflict(0, 1, 3)));
    let exchange = atomic(AtomicOperation::CompareExchange, 10, -8, 2);
    assert_eq!(two(exchange, add(3, 0, number(1))), (0, conflict(0, 1, 0)));
    // An operation that reads and writes the same register does not conflict with itself.
    run(image(&[&[add(2, 2, number(1)), add(3, 3, register(3))], &[exit_with(1)]]));
    // A helper only reads the arguments that it takes.
    run(image(&[&[set(3, number(1)), call(ADJUST_HEAD)], &[exit_with(1)]]));
}

#[test]
fn accesses_of_a_row_to_the_same_bytes_only_read() {
    let two = |first: Lane, second: Lane| wrong(&[&[first, second], &[exit_with(1)]]);
    let store_at = |offset| store(8, 10, offset, number(1));
    let found = two(store_at(-8), store_at(-15));
    assert!(matches!(found, (0, Hazard::Memory { first: 0, second: 1, .. })), "{found:?}");
    let found = two(load(2, 1, 10, -1), store_at(-8));
    assert!(matches!(found, (0, Hazard::Memory { first: 1, second: 0, .. })), "{found:?}");
    let found = two(load_if_there(2, 6, 10, -6), atomic(AtomicOperation::Add, 10, -8, 3));
    assert!(matches!(found, (0, Hazard::Memory { first: 1, second: 0, .. })), "{found:?}");
    run(image(&[&[store_at(-8), store_at(-16), load(2, 8, 10, -24)], &[exit_with(1)]]));
    run(image(&[&[load(3, 8, 10, -8), load(2, 8, 10, -8)], &[exit_with(1)]]));
    // A skipped operation does not access its address.
    run(image(&[&[exit_if_zero(2), store_at(-8), store_at(-8)], &[exit_with(1)]]));
}

fn exit_if_zero(register: u8) -> Lane {
    if_equal(register, number(0), 1)
}

#[test]
fn helpers_count_for_memory() {
    let updates = |lane: Lane| {
        let rows = image(&[
            &[constant(1, Constant::Map(0)), add(2, 10, number(-4)), add(3, 10, number(-16))],
            &[set(4, number(0)), constant(6, Constant::MapValue { map: 0, offset: 0 })],
            &[],
            &[lane, call(UPDATE)],
            &[exit_with(1)],
        ]);
        let mut machine = machine(1, vec![definition(MapKind::Array, (4, 8), 1)]);
        run_on(vec![rows], &mut machine, &mut packet(64)).map_err(|fault| fault.hazard)
    };
    let is_conflict = |lane: Lane| {
        matches!(updates(lane), Err(Hazard::Memory { first: 0, second: 1, .. }))
            || matches!(updates(lane), Err(Hazard::Memory { first: 1, second: 0, .. }))
    };
    assert!(is_conflict(store(4, 10, -4, number(0))), "the key");
    assert!(is_conflict(store(1, 10, -9, number(0))), "the value");
    assert!(is_conflict(load(7, 8, 6, 0)), "what is in the map");
    assert_eq!(updates(store(4, 10, -8, number(0))).err(), None);
    assert_eq!(updates(load(7, 8, 10, -16)).err(), None);
    let moves = |lane: Lane| {
        let rows = image(&[&[load(6, 4, 1, 0)], &[], &[lane, call(ADJUST_HEAD)], &[exit_with(1)]]);
        run_on(vec![rows], &mut machine(1, vec![]), &mut packet(64)).map_err(|it| it.hazard)
    };
    assert!(matches!(moves(load(7, 1, 6, 30)), Err(Hazard::Memory { .. })));
    assert!(matches!(moves(load(7, 4, 1, 0)), Err(Hazard::Memory { .. })), "where it begins");
    assert_eq!(moves(load(7, 1, 10, -1)).err(), None);
}

#[test]
fn what_a_row_stores_is_not_read_by_the_next_one() {
    let begin = store(8, 10, -8, number(1));
    let rows = |reader: Lane| wrong(&[&[NOTHING, begin], &[reader], &[exit_with(1)]]);
    let is_found = |found: (usize, Hazard)| {
        matches!(found, (1, Hazard::StoreThenLoad { lane: 0, writer_row: 0, writer: 1, .. }))
    };
    assert!(is_found(rows(load(2, 1, 10, -1))));
    assert!(is_found(rows(load_if_there(2, 8, 10, -15))));
    assert!(is_found(rows(atomic(AtomicOperation::Add, 10, -8, 3))));
    let changed = wrong(&[
        &[NOTHING, atomic(AtomicOperation::Add, 10, -8, 3)],
        &[load(2, 8, 10, -8)],
        &[exit_with(1)],
    ]);
    assert!(is_found(changed));
    let row = |reader: Lane| run(image(&[&[begin], &[reader], &[exit_with(1)]]));
    assert_eq!(row(load(2, 8, 10, -16)).outcome.verdict, 1);
    assert_eq!(row(store(8, 10, -8, number(2))).outcome.verdict, 1);
    run(image(&[&[begin], &[], &[load(2, 8, 10, -8)], &[exit_with(1)]]));
}

#[test]
fn what_a_row_stores_is_not_given_to_a_helper_by_the_next_one() {
    let given = |helper: u32, stored: Lane| {
        let rows = image(&[
            &[
                add(1, 10, number(-8)),
                set(2, number(4)),
                set(3, number(10)),
                add(4, 10, number(-16)),
            ],
            &[],
            &[NOTHING, stored],
            &[call(helper)],
            &[exit_with(1)],
        ]);
        let found = run_on(vec![rows], &mut machine(1, vec![]), &mut packet(64));
        found.err().map(|fault| (fault.row, fault.hazard))
    };
    let is_found = |found: Option<(usize, Hazard)>| {
        matches!(found, Some((3, Hazard::StoreThenLoad { lane: 0, writer: 1, .. })))
    };
    assert!(is_found(given(STRING_TO_NUMBER, store(1, 10, -5, number(0)))));
    assert!(!is_found(given(STRING_TO_NUMBER, store(1, 10, -4, number(0)))), "behind its end");
    assert!(!is_found(given(STRING_TO_NUMBER, store(8, 10, -16, number(0)))), "it writes there");
    // A string ends with its zero.
    let text = |stored: Lane| {
        let rows = image(&[
            &[add(1, 10, number(-8)), set(2, number(1)), add(3, 10, number(-16))],
            &[store(2, 10, -16, number(0x4141))],
            &[],
            &[NOTHING, stored],
            &[call(COMPARE)],
            &[exit_with(1)],
        ]);
        run_on(vec![rows], &mut machine(1, vec![]), &mut packet(64)).is_ok()
    };
    assert!(!text(store(1, 10, -15, number(0x42))) && !text(store(1, 10, -14, number(0))));
    assert!(text(store(1, 10, -13, number(1))));
}

#[test]
fn texts_are_found_where_their_addresses_are() {
    let printed = |place: i16| {
        let rows = image(&[
            // `%s` at -8, and a string at -32.
            &[add(1, 10, number(-8)), set(2, number(3)), add(3, 10, number(-32))],
            &[store(4, 10, -8, number(0x7325)), store(2, 10, -32, number(0x41))],
            &[NOTHING, store(1, 10, place, number(0x41))],
            &[call(PRINT)],
            &[exit_with(1)],
        ]);
        run_on(vec![rows], &mut machine(1, vec![]), &mut packet(64)).is_ok()
    };
    assert!(!printed(-32) && !printed(-8));
    assert!(printed(-29) && printed(-4));
    // The same with the address of the string in memory, at -24.
    let written = |place: i16| {
        let rows = image(&[
            &[add(1, 10, number(-64)), set(2, number(4)), add(3, 10, number(-8))],
            &[add(4, 10, number(-24)), set(5, number(8)), NOTHING, add(6, 10, number(-32))],
            &[store(4, 10, -8, number(0x7325)), store(2, 10, -32, number(0x41))],
            &[store(8, 10, -24, register(6))],
            &[NOTHING, store(1, 10, place, number(0x41))],
            &[call(WRITE_TEXT)],
            &[exit_with(1)],
        ]);
        run_on(vec![rows], &mut machine(1, vec![]), &mut packet(64)).is_ok()
    };
    assert!(!written(-32) && !written(-8) && !written(-24));
    assert!(written(-29) && written(-4) && written(-64));
}

#[test]
fn functions_that_helpers_call_leave_time_for_stores() {
    run(image_with(
        &[5],
        &[
            &[set(1, number(1)), constant(2, Constant::Function(5)), add(3, 10, number(-8))],
            &[],
            &[call(LOOP), store(8, 10, -16, number(1))],
            &[NOTHING, load(6, 8, 10, -8)],
            &[exit_with(1)],
            &[store(8, 2, 0, number(1)), load(3, 8, 2, -8)],
            &[exit()],
        ],
    ));
}

#[test]
fn nobody_asks_where_the_packet_is_while_it_moves() {
    let two = |lane: Lane| wrong(&[&[call(ADJUST_HEAD), lane], &[exit_with(1)]]);
    let moves = (0, Hazard::Moves { lane: 1, call: 0 });
    assert_eq!(two(bound(None, 14, Target::Exit(1))), moves);
    assert_eq!(two(add(3, PACKET, number(1))), moves);
    run(image(&[&[call(RANDOM), add(3, PACKET, number(1))], &[exit_with(1)]]));
}

#[test]
fn named_arguments_are_no_registers_but_still_memory() {
    let rows = |stored: i16| {
        let named = [Argument::Register, Argument::Stack(-8)];
        let rows = image(&[
            &[constant(1, Constant::Map(0))],
            &[NOTHING, set(2, number(1)), store(1, 10, stored, number(0))],
            &[call_with(LOOKUP, &named), set(2, number(5))],
            &[exit_with(1)],
        ]);
        let maps = vec![definition(MapKind::Array, (4, 8), 1)];
        run_on(vec![rows], &mut machine(1, maps), &mut packet(64)).err().map(|it| it.hazard)
    };
    assert_eq!(rows(-4), None);
    assert!(matches!(rows(-5), Some(Hazard::StoreThenLoad { lane: 0, writer: 2, .. })));
}

#[test]
fn a_row_calls_one_helper() {
    let found = wrong(&[&[call(RANDOM), NOTHING, call(RANDOM)], &[exit_with(1)]]);
    assert_eq!(found, (0, Hazard::Calls { first: 0, second: 2 }));
}

#[test]
fn nothing_is_where_nothing_can_be() {
    let behind = |lane, before| Hazard::Behind { lane, before };
    let long = constant(2, Constant::Value(1 << 40));
    assert_eq!(wrong(&[&[long, set(3, number(1))], &[exit_with(1)]]), (0, behind(1, 0)));
    let last = wrong(&[&[NOTHING, NOTHING, NOTHING, long], &[exit_with(1)]]);
    assert_eq!(last, (0, behind(4, 3)));
    run(image(&[&[long, NOTHING, set(3, number(1))], &[exit_with(1)]]));
    assert_eq!(wrong(&[&[exit_with(1), set(3, number(1))]]), (0, behind(1, 0)));
    assert_eq!(wrong(&[&[exit(), NOTHING, set(3, number(1))]]), (0, behind(2, 0)));
    let called = image_with(&[1], &[&[call_function(1), set(3, number(1))], &[exit()]]);
    assert_eq!(fault(called), (0, behind(1, 0)));
}

#[test]
fn control_stays_in_its_function() {
    assert_eq!(wrong(&[&[set(0, number(1))]]), (0, Hazard::Beyond { next: 1 }));
    let jumps = image_with(&[1], &[&[goto(1)], &[exit()]]);
    assert_eq!(fault(jumps), (0, Hazard::Beyond { next: 1 }));
    let falls = image_with(&[1], &[&[], &[exit()]]);
    assert_eq!(fault(falls), (0, Hazard::Beyond { next: 1 }));
    let inside = image_with(&[2], &[&[call_function(3)], &[exit()], &[], &[exit()]]);
    assert_eq!(fault(inside), (0, Hazard::NotAFunction { row: 3 }));
    let verdict = image_with(&[2], &[&[call_function(2)], &[exit()], &[exit_with(1)]]);
    assert_eq!(fault(verdict), (2, Hazard::Verdict));
}

#[test]
fn operations_that_there_are_not_are_faults_in_both_modes() {
    let reversed = |bits| {
        let order = freeport_vliw::operation::ByteOrder::Big;
        Some(Operation::Swap { order, destination: 2, source: 2, bits })
    };
    let lanes = [
        set(10, number(1)),
        set(16, number(1)),
        add(2, 200, number(1)),
        load(2, 3, 10, -8),
        store(9, 10, -16, number(1)),
        reversed(65),
        constant(2, Constant::Map(0)),
        alu(Arithmetic::Add, 2, 16, number(1)),
    ];
    for lane in lanes {
        for mode in [Mode::Plain, Mode::Strict] {
            let rows = image(&[&[NOTHING, lane], &[exit_with(1)]]);
            let model = Model::new(vec![Some(rows)], mode);
            let found = model.run(&mut machine(1, vec![]), 0, &mut packet(64));
            let hazard = found.expect_err("there is no such operation").hazard;
            assert!(matches!(hazard, Hazard::Malformed { lane: 1, .. }), "{lane:?}: {hazard}");
        }
    }
}
