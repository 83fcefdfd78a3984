// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each conditional jump on all pairs of corner values, unconditional jumps, calls of functions,
//! and programs that cannot be loaded.

use super::words::{CORNERS, signed, unsigned};
use crate::program;
use crate::program::{
    add, call, call_function, constant, copy, exit, load, reason, run, set, slot, value,
};

/// Whether a jump is taken, for two numbers of this many bits.
type Oracle = fn(u64, u64, u32) -> bool;

/// Name, opcode without class and source, and oracle.
const CONDITIONS: [(&str, u8, Oracle); 11] = [
    ("jeq", 0x10, |a, b, n| unsigned(a, n) - unsigned(b, n) == 0),
    ("jgt", 0x20, |a, b, n| unsigned(a, n) - unsigned(b, n) > 0),
    ("jge", 0x30, |a, b, n| unsigned(a, n) - unsigned(b, n) >= 0),
    ("jset", 0x40, |a, b, n| (0..n).any(|bit| a >> bit & 1 == 1 && b >> bit & 1 == 1)),
    ("jne", 0x50, |a, b, n| unsigned(a, n) - unsigned(b, n) != 0),
    ("jsgt", 0x60, |a, b, n| signed(a, n) - signed(b, n) > 0),
    ("jsge", 0x70, |a, b, n| signed(a, n) - signed(b, n) >= 0),
    ("jlt", 0xa0, |a, b, n| unsigned(a, n) - unsigned(b, n) < 0),
    ("jle", 0xb0, |a, b, n| unsigned(a, n) - unsigned(b, n) <= 0),
    ("jslt", 0xc0, |a, b, n| signed(a, n) - signed(b, n) < 0),
    ("jsle", 0xd0, |a, b, n| signed(a, n) - signed(b, n) <= 0),
];

#[test]
fn every_condition_agrees_with_wide_integers() {
    for (name, opcode, oracle) in CONDITIONS {
        for (class, bits) in [(0x05, 64), (0x06, 32)] {
            for (a, b) in CORNERS.iter().flat_map(|&a| CORNERS.map(|b| (a, b))) {
                let jump =
                    |first| program![constant(3, a), constant(4, b), first, set(0, 0), exit()];
                let mut with_register = jump(slot(opcode | class | 0x08, (3, 4), 2, 0));
                with_register.extend(program![set(0, 1), exit()]);
                let taken = value(with_register) == 1;
                assert_eq!(taken, oracle(a, b, bits), "{name}{bits} {a:#x}, {b:#x}");
                let mut with_constant = jump(slot(opcode | class, (3, 0), 2, b as i32));
                with_constant.extend(program![set(0, 1), exit()]);
                let taken = value(with_constant) == 1;
                let b = signed(b, 32) as u64;
                assert_eq!(taken, oracle(a, b, bits), "{name}{bits} {a:#x}, {b:#x} constant");
            }
        }
    }
}

#[test]
fn jumps_without_a_condition_go_both_ways() {
    let forward = program![set(0, 1), slot(0x05, (0, 0), 1, 0), set(0, 2), exit()];
    assert_eq!(value(forward), 1);
    let far = program![set(0, 1), slot(0x06, (0, 0), 0, 1), set(0, 2), exit()];
    assert_eq!(value(far), 1, "a distance of 32 bits");
    let back = program![set(0, 0), add(0, 1), slot(0x55, (0, 0), -2, 10), exit(),];
    assert_eq!(value(back), 10);
    let over_a_wide_constant =
        program![set(0, 3), slot(0x05, (0, 0), 2, 0), constant(0, 9), exit()];
    assert_eq!(value(over_a_wide_constant), 3);
}

#[test]
fn a_function_has_its_own_frame_and_keeps_registers() {
    let calls = program![
        set(6, 5),
        slot(0x7a, (10, 0), -8, 77),
        set(1, 30),
        call_function(4),
        slot(0x0f, (0, 6), 0, 0),
        load(3, 10, -8),
        slot(0x0f, (0, 3), 0, 0),
        exit(),
        // The function returns twice its argument, plus what its fresh frame holds.
        set(6, 1_000),
        load(0, 10, -8),
        slot(0x7a, (10, 0), -8, 1),
        slot(0x0f, (0, 1), 0, 0),
        slot(0x0f, (0, 1), 0, 0),
        exit(),
    ];
    assert_eq!(value(calls), 60 + 5 + 77);
}

#[test]
fn eight_frames_are_the_most() {
    let nested = |depth: i32| {
        program![
            set(0, 0),
            set(1, depth),
            call_function(1),
            exit(),
            add(0, 1),
            add(1, -1),
            slot(0x15, (1, 0), 1, 0),
            call_function(-4),
            exit(),
        ]
    };
    assert_eq!(value(nested(7)), 7);
    let outcome = run(nested(8));
    assert_eq!(reason(&outcome), "program 0, instruction 7: calls are more than 8 functions deep");
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    let outcome = run(program![slot(0x05, (0, 0), -1, 0), exit()]);
    assert_eq!(outcome.instructions, 1_000_000);
    assert_eq!(
        reason(&outcome),
        "program 0, instruction 0: more than 1000000 instructions were executed"
    );
    let past = run(program![copy(0, 1)]);
    assert_eq!(reason(&past), "program 0, instruction 1: it ran past its last instruction");
}

#[test]
fn what_cannot_run_is_said_at_load_with_its_instruction() {
    let unknown = program![call(9), set(10, 1), call(84), slot(0x05, (0, 0), 7, 0), exit()];
    let error = crate::program::loaded(unknown, vec![]).err().expect("it cannot be loaded");
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    for (line, expected) in lines.iter().zip([
        "program `program`, instruction 0: ",
        "program `program`, instruction 1: ",
        "program `program`, instruction 2: ",
        "program `program`, instruction 3: ",
    ]) {
        assert!(line.starts_with(expected), "{line}");
    }
    assert!(lines[0].contains("helper 9") && lines[2].contains("helper 84"), "{text}");
}
