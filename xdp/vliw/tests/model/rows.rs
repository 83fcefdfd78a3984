// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Semantics of a row: what its operations read, which one transfers control, what is skipped, and
//! how programs end.

use super::images::{
    Lane, NOTHING, add, alu, bound, constant, exit, exit_with, goto, if_equal, image, jump, load,
    number, register, run, set, store, value,
};
use crate::program::packet;
use freeport_ebpf::interpreter::Reason;
use freeport_vliw::model::{Mode, Model};
use freeport_vliw::operation::{
    Arithmetic, ByteOrder, Condition, Constant, Operation, Target, Width,
};

/// Runs rows that violate rules, and returns register 0.
fn plain_value(rows: &[&[Lane]]) -> u64 {
    let model = Model::new(vec![Some(image(rows))], Mode::Plain);
    let ran = model.run(&mut super::images::machine(1, vec![]), 0, &mut packet(64));
    super::images::ended(ran.expect("nothing is looked for").outcome)
}

#[test]
fn all_lanes_read_before_one_writes() {
    // An exchange of registers, which strict models reject.
    let exchanged = plain_value(&[
        &[set(2, number(20)), set(3, number(3))],
        &[set(2, register(3)), set(3, register(2)), store(8, 10, -8, register(2))],
        &[],
        &[alu(Arithmetic::Multiply, 0, 2, number(100)), load(4, 8, 10, -8)],
        &[add(0, 0, register(3))],
        &[add(0, 0, register(4))],
        &[exit()],
    ]);
    assert_eq!(exchanged, 300 + 20 + 20);
    let old = plain_value(&[
        &[store(8, 10, -8, number(5)), load(0, 8, 10, -8), set(2, number(9)), add(3, 2, number(1))],
        &[],
        &[add(0, 0, register(3))],
        &[exit()],
    ]);
    assert_eq!(old, 1, "memory and register 2 were zero");
}

#[test]
fn lanes_behind_a_jump_that_is_taken_are_skipped() {
    let rows: &[&[Lane]] = &[
        &[set(3, number(1)), if_equal(2, number(0), 1), set(4, number(1)), set(5, number(1))],
        &[],
        &[add(0, 3, register(4))],
        &[add(0, 0, register(5))],
        &[exit()],
    ];
    let ran = run(image(rows));
    assert_eq!(ran.outcome.value, 1, "a jump to the next row skips later lanes");
    let statistics = ran.statistics;
    assert_eq!((statistics.rows, statistics.operations, statistics.jumps), (5, 5, 1));
    let not_taken = value(&[
        &[set(3, number(1)), if_equal(2, number(7), 1), set(4, number(1)), set(5, number(1))],
        &[],
        &[add(0, 3, register(4))],
        &[add(0, 0, register(5))],
        &[exit()],
    ]);
    assert_eq!(not_taken, 3);
}

#[test]
fn skipped_operations_store_call_and_fault_nothing() {
    let ran = run(image(&[
        &[
            if_equal(2, number(0), 1),
            store(8, 10, -8, number(7)),
            load(4, 8, 2, 0),
            Some(Operation::call(7)),
        ],
        &[],
        &[load(0, 8, 10, -8)],
        &[exit()],
    ]));
    assert_eq!(ran.outcome.aborted, None);
    assert_eq!(ran.outcome.value, 0);
    assert!(ran.statistics.helpers.is_empty());
}

#[test]
fn the_first_jump_that_is_taken_decides() {
    let rows = |third: i32| {
        run(image(&[
            &[set(2, number(third))],
            &[],
            &[
                if_equal(2, number(1), 3),
                if_equal(2, number(2), 4),
                jump(Condition::GreaterOrEqual, 2, number(2), Target::Exit(3)),
                goto(5),
            ],
            &[exit_with(11)],
            &[exit_with(12)],
            &[exit_with(15)],
        ]))
    };
    let verdicts = [1, 2, 9, 0].map(|third| rows(third).outcome.verdict);
    assert_eq!(verdicts, [11, 12, 3, 15]);
}

#[test]
fn programs_end_with_a_verdict_or_with_register_0() {
    let ran = run(image(&[&[set(0, number(9)), exit_with(2), NOTHING]]));
    assert_eq!((ran.outcome.verdict, ran.outcome.value), (2, 2));
    let negative = run(image(&[&[set(0, number(-1))], &[], &[exit()]]));
    assert_eq!((negative.outcome.verdict, negative.outcome.value), (u32::MAX, u64::MAX));
    // The row that ends the program executes all earlier lanes.
    let mut arrived = packet(64);
    let rows: &[&[Lane]] = &[
        &[load(2, 4, 1, 0)],
        &[],
        &[store(6, 2, 1, number(-1)), bound(None, 65, Target::Exit(1)), store(1, 2, 0, number(7))],
        &[exit_with(2)],
    ];
    let model = Model::new(vec![Some(image(rows))], Mode::Strict);
    let ran = model.run(&mut super::images::machine(1, vec![]), 0, &mut arrived);
    assert_eq!(ran.expect("no rule is broken").outcome.verdict, 1);
    assert_eq!(arrived.bytes()[..8], [0, 255, 255, 255, 255, 255, 255, 7]);
}

#[test]
fn registers_and_stack_are_zero_at_the_beginning() {
    for own in [0, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15] {
        // An earlier packet has left a value there.
        let dirty = image(&[&[set(own, number(5)), store(8, 10, -512, number(5))], &[], &[exit()]]);
        let clean = image(&[
            &[set(0, register(own))],
            &[load(2, 8, 10, -512)],
            &[],
            &[add(0, 0, register(2))],
            &[exit()],
        ]);
        let model = Model::new(vec![Some(dirty), Some(clean)], Mode::Strict);
        let mut machine = super::images::machine(2, vec![]);
        model.run(&mut machine, 0, &mut packet(64)).expect("no rule is broken");
        let ran = model.run(&mut machine, 1, &mut packet(64)).expect("no rule is broken");
        assert_eq!(ran.outcome.value, 0, "register {own}");
    }
}

#[test]
fn results_are_forwarded_in_their_lane() {
    let counted = value(&[
        &[set(0, number(1)), set(2, number(10))],
        &[add(0, 0, number(1)), add(2, 2, number(10))],
        &[add(0, 0, number(1)), add(2, 2, number(10))],
        &[],
        &[add(0, 0, register(2))],
        &[exit()],
    ]);
    assert_eq!(counted, 33);
}

#[test]
fn operations_with_three_operands_leave_theirs_alone() {
    let swap =
        |order, bits, destination| Some(Operation::Swap { order, destination, source: 2, bits });
    let signed = |bits, width, destination| {
        Some(Operation::MoveSigned { width, destination, source: 2, bits })
    };
    let begin = constant(2, Constant::Value(0x1122_3344_5566_7788));
    let cases: [(Lane, u64); 9] = [
        (swap(ByteOrder::Big, 16, 0), 0x8877),
        (swap(ByteOrder::Reverse, 32, 0), 0x8877_6655),
        (swap(ByteOrder::Little, 32, 0), 0x5566_7788),
        (swap(ByteOrder::Big, 64, 0), 0x8877_6655_4433_2211),
        (signed(8, Width::Bits64, 0), 0xffff_ffff_ffff_ff88),
        (signed(8, Width::Bits32, 0), 0xffff_ff88),
        (signed(32, Width::Bits64, 0), 0x5566_7788),
        (Some(Operation::Negate { width: Width::Bits32, destination: 0, source: 2 }), 0xaa99_8878),
        (alu(Arithmetic::ShiftRight, 0, 2, number(32)), 0x1122_3344),
    ];
    for (operation, expected) in cases {
        let found = value(&[&[begin, NOTHING], &[], &[operation], &[], &[exit()]]);
        assert_eq!(found, expected, "{operation:?}");
    }
    let kept = value(&[
        &[begin],
        &[],
        &[swap(ByteOrder::Big, 16, 3)],
        &[],
        &[set(0, register(2))],
        &[exit()],
    ]);
    assert_eq!(kept, 0x1122_3344_5566_7788);
}

#[test]
fn rows_are_limited_as_instructions_are() {
    let mut machine = super::images::machine(1, vec![]);
    machine.environment_mut().instructions_max = 100;
    let model = Model::new(vec![Some(image(&[&[goto(0)]]))], Mode::Strict);
    let ran = model.run(&mut machine, 0, &mut packet(64)).expect("no rule is broken");
    let aborted = ran.outcome.aborted.expect("it would not end");
    assert_eq!(aborted.reason, Reason::TooManyInstructions(100));
    assert_eq!((ran.outcome.instructions, ran.statistics.rows), (100, 100));
    assert_eq!(machine.aborts().count(), 1);
}

#[test]
fn a_program_without_an_image_does_not_run() {
    let model = Model::new(vec![None], Mode::Strict);
    let ran = model.run(&mut super::images::machine(1, vec![]), 0, &mut packet(64));
    let aborted = ran.expect("no rule is broken").outcome.aborted;
    assert_eq!(aborted.expect("it is none").reason, Reason::NotRunnable);
}
