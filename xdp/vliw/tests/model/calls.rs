// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers, functions, functions that helpers call, and tail calls.

use super::images::{
    Lane, NOTHING, add, alu, call, call_function, call_with, constant, ended, exit, exit_with,
    if_equal, image, image_with, load, machine, number, register, run, run_on, set, store,
};
use crate::program::{definition, packet};
use freeport_ebpf::interpreter::Reason;
use freeport_ebpf::maps::flags;
use freeport_ebpf::object::MapKind;
use freeport_vliw::model::{Mode, Model};
use freeport_vliw::operation::{Argument, Arithmetic, Condition, Constant, Target};

const LOOKUP: u32 = 1;
const UPDATE: u32 = 2;
const RANDOM: u32 = 7;
const TAIL_CALL: u32 = 12;
const ADJUST_HEAD: u32 = 44;
const FOR_EACH: u32 = 164;
const LOOP: u32 = 181;

fn map_to(register: u8) -> Lane {
    constant(register, Constant::Map(0))
}

#[test]
fn helpers_find_arguments_and_give_register_0() {
    let rows = image(&[
        &[map_to(1), add(2, 10, number(-4)), store(4, 10, -4, number(1)), set(6, number(30))],
        &[],
        &[set(7, number(4)), call(LOOKUP), NOTHING, alu(Arithmetic::Add, 6, 6, number(1))],
        &[NOTHING, load(8, 4, 0, 0)],
        &[],
        &[add(0, 8, register(7))],
        &[add(0, 0, register(6))],
        &[exit()],
    ]);
    let mut machine = machine(1, vec![definition(MapKind::Array, (4, 4), 2)]);
    let array = machine.map_mut("map").expect("it is there");
    array.update(&1_u32.to_ne_bytes(), &500_u32.to_ne_bytes(), flags::ANY).expect("it is inside");
    let ran = run_on(vec![rows], &mut machine, &mut packet(64)).expect("no rule is broken");
    assert_eq!(ended(ran.outcome), 500 + 4 + 31);
    assert_eq!(ran.statistics.helpers.into_iter().collect::<Vec<_>>(), [(LOOKUP, 1)]);
}

#[test]
fn calls_name_their_arguments_in_place_of_registers() {
    let mut machine = machine(1, vec![definition(MapKind::Array, (4, 8), 2)]);
    let rows = image(&[
        &[set(1, number(77)), set(2, number(78)), set(3, number(1)), set(4, number(79))],
        &[store(4, 10, -8, number(1)), store(8, 10, -16, number(1))],
        // The previous row writes registers that two of them do not read.
        &[set(2, number(80)), set(4, number(81))],
        &[NOTHING, NOTHING, call_with(UPDATE, &named(-16)), set(2, number(82))],
        &[],
        &[add(0, 0, register(1))],
        &[add(0, 0, register(2))],
        &[add(0, 0, register(4))],
        &[exit()],
    ]);
    let ran = run_on(vec![rows], &mut machine, &mut packet(64)).expect("no rule is broken");
    assert_eq!(ended(ran.outcome), 77 + 82 + 81, "registers stay as they were");
    let array = machine.map("map").expect("it is there");
    assert_eq!(array.lookup(&1_u32.to_ne_bytes()), Ok(&1_u64.to_ne_bytes()[..]));
    // The context is an explicit argument too: the packet begins three bytes later.
    let moves = image(&[
        &[set(1, number(0)), load(6, 1, 11, 0)],
        &[call_with(ADJUST_HEAD, &[Argument::Context, Argument::Number(3)])],
        &[load(0, 1, 11, 0)],
        &[exit()],
    ]);
    assert_eq!(ended(run(moves).outcome), 3);
}

/// Returns explicit arguments: map 0, a key at -8, a value, and no flags.
fn named(value: i16) -> [Argument; 4] {
    [Argument::Map(0), Argument::Stack(-8), Argument::Stack(value), Argument::Number(0)]
}

#[test]
fn a_helper_that_ends_the_program_is_named_by_its_lane() {
    let rows = image(&[&[set(6, number(1)), set(7, number(1)), call(LOOKUP)], &[exit()]]);
    let abort = run(rows).outcome.aborted.expect("it is given no map");
    assert_eq!(abort.slot, 2);
    assert!(matches!(abort.reason, Reason::NotAMap { .. }));
}

#[test]
fn functions_bring_back_what_belongs_to_their_callers() {
    let ran = run(image_with(
        &[7],
        &[
            &[set(6, number(1)), set(1, number(20)), store(8, 10, -8, number(300))],
            &[],
            &[NOTHING, call_function(7)],
            &[add(0, 0, register(6)), load(7, 8, 10, -8)],
            &[],
            &[add(0, 0, register(7))],
            &[exit()],
            // The function: its frame is zeroed.
            &[set(6, number(77)), load(0, 8, 10, -8), store(8, 10, -16, number(5))],
            &[],
            &[add(0, 0, register(1))],
            &[exit()],
        ],
    ));
    assert_eq!(ended(ran.outcome), 20 + 1 + 300);
    assert_eq!((ran.statistics.rows, ran.statistics.jumps), (11, 0));
}

#[test]
fn nothing_is_left_in_registers_that_hold_anything() {
    let through = |own: u8| {
        let rows = image_with(
            &[5],
            &[
                &[set(own, number(1))],
                &[],
                &[call_function(5)],
                &[set(0, register(own))],
                &[exit()],
                &[set(0, register(own))],
                &[exit()],
            ],
        );
        ended(run(rows).outcome)
    };
    assert_eq!([6, 7, 8, 9].map(through), [1; 4]);
    for own in [1, 2, 3, 4, 5, 12, 13, 14, 15] {
        assert_ne!(through(own), 1, "register {own}");
    }
    // A function finds only its arguments.
    let found = |own: u8| {
        let rows = image_with(
            &[5],
            &[
                &[set(own, number(1))],
                &[],
                &[call_function(5)],
                &[exit()],
                &[exit()],
                &[set(0, register(own))],
                &[exit()],
            ],
        );
        ended(run(rows).outcome)
    };
    assert_eq!([1, 2, 3, 4, 5].map(found), [1; 5]);
    for own in [0, 6, 7, 8, 9, 12, 13, 14, 15] {
        assert_ne!(found(own), 1, "register {own}");
    }
}

#[test]
fn functions_are_nested_as_deep_as_in_the_interpreter() {
    let rows = image_with(&[1], &[&[call_function(1)], &[call_function(1)], &[exit()]]);
    let abort = run(rows).outcome.aborted.expect("it never returns");
    assert_eq!(abort.reason, Reason::TooManyFrames(8));
}

#[test]
fn helpers_call_functions_by_their_rows() {
    let rows = image_with(
        &[9],
        &[
            &[set(1, number(5)), constant(2, Constant::Function(9)), add(3, 10, number(-8))],
            &[set(6, number(1_000)), store(8, 10, -8, number(0))],
            &[],
            &[NOTHING, NOTHING, NOTHING, call(LOOP)],
            &[NOTHING, load(7, 8, 10, -8), NOTHING, alu(Arithmetic::Multiply, 0, 0, number(100))],
            &[],
            &[add(0, 0, register(7))],
            &[add(0, 0, register(6))],
            &[exit()],
            // The function: adds its number at the address in register 2, and stops with 3.
            &[load(3, 8, 2, 0), set(0, number(0)), set(6, number(4))],
            &[],
            &[add(3, 3, register(1)), if_equal(1, number(3), 15)],
            &[store(8, 2, 0, register(3))],
            &[],
            &[exit()],
            &[store(8, 2, 0, register(3)), set(0, number(1))],
            &[NOTHING, exit()],
        ],
    );
    let ran = run(rows);
    assert_eq!(ended(ran.outcome), 4 * 100 + 6 + 1_000);
    assert_eq!(ran.statistics.helpers[&LOOP], 1);
    assert_eq!(ran.statistics.rows, 9 + 3 * 6 + 5);
}

#[test]
fn what_stands_for_no_row_is_no_function() {
    let loops = |row: usize| {
        let rows = image(&[
            &[set(1, number(5)), constant(2, Constant::Function(row))],
            &[],
            &[call(LOOP)],
            &[exit()],
        ]);
        run(rows).outcome.aborted.map(|abort| abort.reason)
    };
    assert!(matches!(loops(4), Some(Reason::NotAFunction { .. })));
    assert_eq!(loops(3), None);
}

#[test]
fn elements_of_a_map_are_given_to_a_function() {
    let rows = image_with(
        &[5],
        &[
            &[map_to(1), constant(2, Constant::Function(5)), add(3, 10, number(-8))],
            &[],
            &[call(FOR_EACH)],
            &[NOTHING, load(0, 8, 10, -8)],
            &[NOTHING, exit()],
            // The function: adds the element's key and value at the address in register 4.
            &[load(5, 4, 2, 0), load(6, 4, 3, 0), load(7, 8, 4, 0), set(0, number(0))],
            &[],
            &[NOTHING, add(5, 5, register(6))],
            &[NOTHING, add(7, 7, register(5))],
            &[NOTHING, store(8, 4, 0, register(7))],
            &[NOTHING, exit()],
        ],
    );
    let mut machine = machine(1, vec![definition(MapKind::Array, (4, 4), 3)]);
    for key in 0..3_u32 {
        let array = machine.map_mut("map").expect("it is there");
        let value = 100 * (key + 1);
        array.update(&key.to_ne_bytes(), &value.to_ne_bytes(), flags::ANY).expect("it is inside");
    }
    let ran = run_on(vec![rows], &mut machine, &mut packet(64)).expect("no rule is broken");
    assert_eq!(ended(ran.outcome), 603);
}

#[test]
fn tail_calls_go_on_with_the_image_of_another_program() {
    let first = image(&[
        &[map_to(2), set(3, number(0)), set(6, number(7)), store(8, 10, -8, number(9))],
        &[],
        &[call(TAIL_CALL), store(8, 10, -16, number(8)), set(7, number(5))],
        &[exit()],
    ]);
    let second = image(&[
        &[add(0, 6, number(40)), add(3, 7, register(2)), load(4, 8, 10, -8), load(5, 8, 10, -16)],
        &[],
        &[add(0, 0, register(3))],
        &[add(0, 0, register(4))],
        &[add(0, 0, register(5))],
        &[exit()],
    ]);
    let mut machine = machine(3, vec![definition(MapKind::ProgramArray, (4, 4), 2)]);
    let called = |target: u32, machine: &mut freeport_ebpf::interpreter::Machine| {
        let programs = machine.map_mut("map").expect("it is there");
        programs.update(&[0; 4], &target.to_ne_bytes(), flags::ANY).expect("it is inside");
        let images = vec![Some(first.clone()), Some(second.clone()), None];
        let model = Model::new(images, Mode::Strict);
        model.run(machine, 0, &mut packet(64)).expect("no rule is broken").outcome
    };
    assert_eq!(ended(called(1, &mut machine)), 40, "registers and stack are zero");
    // Without an image, execution cannot continue.
    let abort = called(2, &mut machine).aborted.expect("it cannot run");
    assert_eq!(abort.reason, Reason::NotRunnable);
    // A program that does not exist is not called: register 0 is then an error.
    assert_eq!(ended(called(9, &mut machine)), -2_i64 as u64);
    // A program that calls itself is stopped by the limit of tail calls, not by that of frames.
    let outcome = called(0, &mut machine);
    assert_eq!(ended(outcome.clone()), -2_i64 as u64);
    assert_eq!(outcome.instructions, 34 * 3 + 1);
}

#[test]
fn a_program_that_takes_the_place_of_a_function_returns_for_it() {
    let first = image_with(
        &[6],
        &[
            &[set(6, number(5))],
            &[call_function(6)],
            &[add(0, 0, register(6))],
            &[if_equal(0, number(8), 5)],
            &[exit_with(1)],
            &[exit()],
            &[NOTHING, map_to(2), set(3, number(0)), NOTHING],
            // Register 1 is the program's argument: the context.
            &[],
            &[call(TAIL_CALL)],
            &[exit()],
        ],
    );
    let second = image(&[&[exit_with(3)]]);
    let mut machine = machine(2, vec![definition(MapKind::ProgramArray, (4, 4), 2)]);
    let programs = machine.map_mut("map").expect("it is there");
    programs.update(&[0; 4], &1_u32.to_ne_bytes(), flags::ANY).expect("it is inside");
    let ran = run_on(vec![first, second], &mut machine, &mut packet(64));
    assert_eq!(ended(ran.expect("no rule is broken").outcome), 8);
}

#[test]
fn helpers_are_counted() {
    let ran = run(image(&[
        &[set(6, number(3))],
        &[],
        &[call(RANDOM), add(6, 6, number(-1))],
        &[],
        &[jump_unless_zero(6, 2)],
        &[exit_with(1)],
    ]));
    assert_eq!(ran.statistics.helpers[&RANDOM], 3);
}

fn jump_unless_zero(left: u8, row: usize) -> Lane {
    super::images::jump(Condition::NotEqual, left, number(0), Target::Row(row))
}
