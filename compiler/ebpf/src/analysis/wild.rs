// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wild programs: random instructions that a verifier would usually reject, chosen so that
//! addresses of all kinds are created, moved, spilled, compared and used. The facts about them must
//! hold on every execution.

use super::analysed::object;
use crate::analysis::{Analysis, Witness};
use crate::instruction::{Instruction, Operation, assemble, disassemble};
use crate::interpreter::{Clock, Environment, Machine, Packet};
use crate::object::{Object, Program};
use fastrand::Rng;
use freeport_testbed::{is_long, number, seed};
use std::fmt::Write;

/// Code that uses an address, with or without a check before.
const PIECES: &[&str] = &[
    "r{a} = *(u32 *)(r6 + 0)",
    "r{a} = *(u32 *)(r6 + 4)",
    "r{a} = *(u32 *)(r6 + 8)",
    "r{a} = *(u32 *)(r6 + 12)",
    "r{a} = r10\nr{a} += -{offset}",
    "r{a} = r{b}",
    "w{a} = w{b}",
    "r{a} = {number}",
    "r{a} += {small}",
    "r{a} -= {small}",
    "r{a} += r{b}",
    "r{a} -= r{b}",
    "w{a} -= w{b}",
    "r{a} &= {mask}",
    "w{a} &= {mask}",
    "r{a} |= {small}",
    "r{a} <<= 2",
    "r{a} >>= 3",
    "r{a} s>>= 1",
    "r{a} *= {small}",
    "r{a} %= {mask}",
    "r{a} /= 3",
    "r{a} ^= r{b}",
    "r{a} = -r{a}",
    "r{a} = (s8)r{b}",
    "r{a} = be16 r{a}",
    "r{a} = *(u8 *)(r{b} + {small})",
    "r{a} = *(u16 *)(r{b} + {small})",
    "r{a} = *(u64 *)(r{b} - 8)",
    "r{a} = *(u64 *)(r{b} + 0)",
    "r{a} = *(s8 *)(r{b} + 1)",
    "*(u8 *)(r{a} + {small}) = r{b}",
    "*(u64 *)(r{a} - 8) = r{b}",
    "*(u64 *)(r{a} + 0) = r{b}",
    "*(u32 *)(r{a} - 4) = {small}",
    "*(u64 *)(r10 - {slot}) = r{a}",
    "*(u32 *)(r10 - {slot}) = r{a}",
    "*(u64 *)(r10 - {slot}) = {number}",
    "r{a} = *(u64 *)(r10 - {slot})",
    "r{a} = *(u32 *)(r10 - {slot})",
    "lock *(u64 *)(r{a} - 8) += r{b}",
    "r{b} = atomic_fetch_add((u64 *)(r10 - {slot}), r{b})",
    "if r{a} == 0 goto {to}",
    "if r{a} != 0 goto {to}",
    "if r{a} > r{b} goto {to}",
    "if r{a} >= r{b} goto {to}",
    "if r{a} < r{b} goto {to}",
    "if r{a} <= r{b} goto {to}",
    "if r{a} == r{b} goto {to}",
    "if r{a} != r{b} goto {to}",
    "if r{a} > {small} goto {to}",
    "if w{a} < {mask} goto {to}",
    "if r{a} s> {small} goto {to}",
    "if w{a} s<= {small} goto {to}",
    "if r{a} & {mask} goto {to}",
    "if w{a} != {small} goto {to}",
    "goto {to}",
    "*(u32 *)(r10 - 4) = {index}\nr2 = r10\nr2 += -4\nr1 = map[0]\ncall 0x1\nr{a} = r0",
    "*(u32 *)(r10 - 4) = {index}\nr2 = r10\nr2 += -4\nr1 = map[3]\ncall 0x1\nr{a} = r0",
    "*(u32 *)(r10 - 4) = 0\nr2 = r10\nr2 += -4\nr1 = map[2]\ncall 0x1\nr{a} = r0",
    "*(u32 *)(r10 - 4) = 0\nr2 = r10\nr2 += -4\nr1 = r{a}\ncall 0x1\nr{a} = r0",
    "r1 = map[1]\nr2 = {mask}\nr3 = 0\ncall 0x83\nr{a} = r0",
    "r1 = r{a}\nr2 = 0\ncall 0x85",
    "r1 = r6\nr2 = {small}\ncall 0x2c",
    "r1 = r6\nr2 = -8\ncall 0x36",
    "r1 = r6\nr2 = -{small}\ncall 0x41",
    "r1 = r6\nr2 = {index}\nr3 = r{a}\nr4 = {index}\ncall 0xbd",
    "r1 = r{a}\nr2 = {index}\nr3 = 0\nr4 = r10\nr4 += -16\ncall 0x6a",
    "r1 = r{a}\nr2 = r{b}\ncall inner",
    "r1 = map[3]\nr2 = r10\nr2 += -{slot}\nr3 = r{a}\nr4 = 0\ncall 0x2",
    "r1 = {index}\nr2 = function callback\nr3 = r{a}\nr4 = 0\ncall 0xb5",
    "r1 = map[0]\nr2 = function callback\nr3 = r{a}\nr4 = 0\ncall 0xa4",
    "r{a} ^= 0",
    "r{a} *= 1",
    "r0 = r10\nr0 += -{slot}",
    "*(u64 *)(r1 + 0) = r10",
    "r{a} = 0",
    "r1 = r10\nr1 += -{slot}\nr2 = r{a}\ncall inner\nr{a} = r0",
    "exit",
];

/// Code with complete checks, so that the accesses after them are proven.
const CHECKED: &[&str] = &[
    "r{a} = *(u32 *)(r6 + 0)\nr{b} = *(u32 *)(r6 + 4)\nr{c} = r{a}\nr{c} += {small}\n\
     if r{c} > r{b} goto {to}\nr{b} = *(u8 *)(r{c} - 1)",
    "r{a} = *(u32 *)(r6 + 0)\nr{b} &= 0x1f\nr{a} += r{b}\nr{b} = *(u32 *)(r6 + 4)\nr{c} = r{a}\n\
     r{c} += 4\nif r{b} < r{c} goto {to}\nr{b} = *(u32 *)(r{a} + 0)",
    "*(u64 *)(r10 - 24) = r{a}\nr{c} = *(u64 *)(r10 - 24)\n*(u64 *)(r10 - {slot}) = r{c}",
    "r{a} = *(u32 *)(r6 + 0)\nr{b} = *(u32 *)(r6 + 4)\nr{c} = r{a}\nr{c} += {small}\n\
     if r{c} >= r{b} goto {to}\nr{b} = *(u8 *)(r{c} + 0)",
    "r{a} = *(u32 *)(r6 + 0)\nr{b} = *(u32 *)(r6 + 8)\nr{b} += 8\nif r{b} > r{a} goto {to}\n\
     r{c} = *(u32 *)(r{b} - 8)",
    "r1 = map[1]\nr2 = {mask}\nr3 = 0\ncall 0x83\nif r0 == 0 goto {to}\nr7 = r0\nr1 = r0\n\
     *(u8 *)(r0 + 0) = 1\nr2 = 0\ncall 0x84",
    "*(u64 *)(r10 - {slot}) = r{a}\nr{b} = r10\nr{b} += -{slot}\nr{b} ^= 0\n\
     *(u64 *)(r{b} + 0) = r{c}",
    "r{a} = 0\nif r{b} == 5 goto +1\nr{a} = r10\nr{c} = r{a}\nif r{c} == 0 goto {to}\n\
     *(u64 *)(r{a} - {slot}) = r{b}",
    "r{a} = *(u32 *)(r6 + 0)\nif r{b} == 5 goto +1\nr{a} += 6\nr{b} = r{a}\nr{b} += 8\n\
     r{c} = *(u32 *)(r6 + 4)\nif r{b} > r{c} goto {to}\nr{c} = *(u64 *)(r{a} + 0)",
    "r{a} &= 7\nr{b} = r10\nr{b} -= r{a}\n*(u8 *)(r{b} - 9) = r{c}\nr{c} = *(u8 *)(r{b} - 9)",
];

/// Sets all registers but the first argument and the context.
const SET: &str = "r0 = 0\nr2 = 1\nr3 = r10\nr3 += -16\nr4 = 8\nr5 = 3\nr7 = 7\nr8 = r10\n\
                   r8 += -8\nr9 = 9";
/// Sets the registers that a call leaves unset.
const SET_BEHIND_CALL: &str = "r1 = 1\nr2 = 2\nr3 = r10\nr3 += -24\nr4 = 4\nr5 = 5";

/// Generates a function of `pieces` pieces. Each of its instructions has a label, and its jumps
/// target some of them. With `is_all_set`, no unset register is read, unless a jump skips the code
/// that sets it.
fn function(random: &mut Rng, name: &str, pieces: usize, is_all_set: bool) -> String {
    let mut lines: Vec<String> = vec![];
    if is_all_set {
        lines.push(if name == "main" { "r6 = r1".into() } else { "r6 = 5".into() });
        lines.extend(SET.lines().map(str::to_owned));
    }
    for _ in 0..pieces {
        let from = if random.u8(0..4) == 0 { CHECKED } else { PIECES };
        let registers = [register(random), register(random), register(random)];
        let piece = random.choice(from).copied().unwrap_or_default();
        lines.extend(piece.lines().map(|line| filled(random, line, &registers)));
    }
    lines.push("exit".into());
    let mut text = format!("{name}:\n");
    for (at, line) in lines.iter().enumerate() {
        let near = (at + random.usize(0..12)).saturating_sub(3).min(lines.len() - 1);
        let line = line.replace("{to}", &format!("{name}{near}"));
        writeln!(text, "{name}{at}:\n{line}").expect("texts take anything");
        if is_all_set && line.starts_with("call") {
            writeln!(text, "{SET_BEHIND_CALL}").expect("texts take anything");
        }
    }
    text
}

/// Fills in registers and numbers in a line.
fn filled(random: &mut Rng, line: &str, registers: &[u8; 3]) -> String {
    let number = random.choice([0, 1, -1, 14, 511, 65_536, i32::MIN, i32::MAX]).unwrap_or(0);
    let mask = random.choice([1, 7, 15, 60, 255, 2_047]).unwrap_or(7);
    line.replace("{a}", &registers[0].to_string())
        .replace("{b}", &registers[1].to_string())
        .replace("{c}", &registers[2].to_string())
        .replace("{number}", &number.to_string())
        .replace("{mask}", &mask.to_string())
        .replace("{small}", &random.u8(0..40).to_string())
        .replace("{offset}", &random.u16(1..560).to_string())
        .replace("{slot}", &(8 * random.u8(1..6)).to_string())
        .replace("{index}", &random.u8(0..6).to_string())
}

/// Chooses a register other than the frame pointer and the context, which keep their values.
fn register(random: &mut Rng) -> u8 {
    [0, 1, 2, 3, 4, 5, 7, 8, 9][random.usize(0..9)]
}

fn wild(random: &mut Rng) -> Object {
    let (pieces, is_all_set) = (random.usize(3..30), random.bool());
    let mut text = format!("r6 = r1\n{}", function(random, "main", pieces, is_all_set));
    for name in ["inner", "callback"] {
        let pieces = random.usize(1..8);
        text.push_str(&function(random, name, pieces, is_all_set));
    }
    let instructions = assemble(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    object(Program { name: "wild".into(), instructions, ..Program::default() })
}

/// Generates wild programs, `usually` many by default, with their seeds.
pub(crate) fn programs(usually: u64) -> impl Iterator<Item = (u64, Object)> {
    let first = seed();
    let count = if is_long() { 100 * usually } else { usually };
    let count = number("FREEPORT_PROGRAMS").unwrap_or(count);
    (first..first + count).map(|seed| (seed, wild(&mut Rng::with_seed(seed))))
}

/// Returns whether the seeds were chosen by the user, so that no minimum number is expected.
pub(crate) fn are_chosen() -> bool {
    std::env::var_os("FREEPORT_PROGRAMS").is_some()
}

/// Creates the machine on which they run.
pub(crate) fn machine(object: &Object) -> Machine {
    let environment =
        Environment { clock: Clock::Set(5), instructions_max: 2_000, ..Environment::default() };
    let mut machine = Machine::load(object, environment).expect("it can be loaded");
    machine.set_inner(2, &[0; 4], 0).expect("it is as the definition says");
    machine.map_at_mut(3).expect("there is one").update(&[0; 4], &[7; 64], 0).expect("is new");
    machine
}

/// Generates packets of one long and some short lengths.
pub(crate) fn packets(seed: u64) -> impl Iterator<Item = Packet> {
    let mut random = Rng::with_seed(seed);
    let lengths = (0..8).map(move |at| if at == 0 { 300 } else { random.usize(0..60) });
    lengths.map(|length| Packet::new(&vec![0x45; length]).expect("a short one"))
}

#[test]
fn what_is_known_of_wild_programs_is_so_when_they_run() {
    let (mut proven, mut all) = (0, 0);
    for (seed, object) in programs(1_000) {
        let states = [16, 1, 2][seed as usize % 3];
        let analysis = Analysis::with_states(&object.programs[0], &object.maps, states);
        let analysis = analysis.expect("it has a graph");
        let slots = 0..analysis.graph().slots();
        let accesses = slots.flat_map(|slot| analysis.accesses(slot));
        accesses.for_each(|access| (proven, all) = (proven + u32::from(access.is_proven), all + 1));
        let analyses = [Some(analysis)];
        let mut witness = Witness::new(&object, &analyses);
        let mut machine = machine(&object);
        for mut packet in packets(seed) {
            let outcome = machine.run_observed(0, &mut packet, &mut witness);
            if let Some(failure) = witness.failure(&outcome) {
                let text = disassemble(&object.programs[0].instructions);
                panic!("FREEPORT_SEED={seed}, {} bytes: {failure}\n{text}", packet.len());
            }
        }
    }
    let is_enough = proven > all / 4 || are_chosen();
    assert!(is_enough, "{proven} of {all} accesses are proven");
}

/// The instruction `r0 = r0`.
const NOTHING: Instruction =
    Instruction { opcode: 0xbf, destination: 0, source: 0, offset: 0, immediate: 0 };

/// Replaces dead stores, and instructions that only set a dead register; returns the number of
/// each.
fn leave_out(program: &mut Program, analysis: &Analysis) -> [usize; 2] {
    let mut counts = [0; 2];
    for (slot, operation) in analysis.graph().operations(0..analysis.graph().slots()) {
        let is_dead = match operation {
            Operation::Alu { destination, .. }
            | Operation::Negate { destination, .. }
            | Operation::Swap { destination, .. } => {
                !analysis.liveness().is_register_live(slot + 1, destination)
            }
            _ => false,
        };
        let is_left_out = [analysis.is_dead_store(slot), is_dead];
        if is_left_out.contains(&true) {
            program.instructions[slot] = NOTHING;
        }
        counts = [0, 1].map(|at| counts[at] + usize::from(is_left_out[at]));
    }
    counts
}

#[test]
fn what_nobody_needs_can_be_left_out() {
    let (mut counts, mut programs_left) = ([0; 2], 0);
    for (seed, mut object) in programs(1_000) {
        let analysis = Analysis::of(&object.programs[0], &object.maps).expect("it has a graph");
        let mut slots = 0..analysis.graph().slots();
        let reads_unset = slots.any(|slot| analysis.reads_unset(slot).is_some());
        if reads_unset || analysis.given_up().is_some() {
            continue;
        }
        programs_left += 1;
        let mut whole = machine(&object);
        let left_out = leave_out(&mut object.programs[0], &analysis);
        counts = [0, 1].map(|at| counts[at] + left_out[at]);
        let mut rest = machine(&object);
        for (mut one, mut other) in packets(seed).zip(packets(seed)) {
            let (expected, found) = (whole.run(0, &mut one), rest.run(0, &mut other));
            let is_same = expected == found
                && (one.bytes(), one.metadata()) == (other.bytes(), other.metadata());
            let text = || disassemble(&object.programs[0].instructions);
            assert!(is_same, "FREEPORT_SEED={seed}: {expected:?} {found:?}\n{}", text());
        }
    }
    let is_enough = counts.iter().all(|count| *count > 100) || are_chosen();
    assert!(is_enough, "{counts:?} of {programs_left}");
}
