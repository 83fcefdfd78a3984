// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lifting preserves the meaning: wild programs in the interpreter of this crate and, lifted, in
//! the reference interpreter of the representation. Programs that cannot be lifted are refused with
//! a reason.

use super::{NotLiftable, Ports, lift};
use crate::analysis::Analysis;
use crate::analysis::wild::{are_chosen, machine, packets, programs};
use crate::instruction::{assemble, disassemble};
use crate::object::{MapDefinition, MapKind, Object, Program};
use freeport_ir::interp::{Interpreter, Options};
use freeport_ir::{Bits, EndpointId, InstanceId, Op, Program as IrProgram, verify};

/// Firings that one packet takes, at most.
const FIRINGS: u64 = 16;

#[test]
fn wild_programs_mean_the_same_when_they_are_lifted() {
    let (mut lifted, mut compared, mut all) = (0, 0, 0);
    for (seed, object) in programs(6_000) {
        all += 1;
        let program = &object.programs[0];
        let Ok(made) = lift(&object, program, &Ports::Verdicts) else { continue };
        lifted += 1;
        let text = || disassemble(&program.instructions);
        verify(&made.program).unwrap_or_else(|errors| {
            panic!("FREEPORT_SEED={seed}: {errors:?}\n{}", text());
        });
        let analysis = Analysis::of(program, &object.maps).expect("it was lifted");
        let mut slots = 0..analysis.graph().slots();
        if slots.any(|slot| analysis.reads_unset(slot).is_some()) || moves_often(&made.program) {
            continue;
        }
        let mut other = Interpreter::new(&made.program, &Options::default()).expect("is sound");
        fill(&mut other, &object);
        let mut machine = machine(&object);
        for mut packet in packets(seed) {
            let given = packet.bytes().to_vec();
            let expected = machine.run(0, &mut packet);
            if expected.aborted.is_some() {
                break;
            }
            other.feed_packet(EndpointId(0), &given).expect("it takes packets");
            other.run(FIRINGS).expect("it runs");
            let bytes = other.take_packets(EndpointId(1)).expect("they come out there");
            let verdicts = other.take_items(EndpointId(2)).expect("they come out there");
            let found: Vec<u32> = verdicts.iter().map(|it| it.to_u64() as u32).collect();
            let is_same = found == [expected.verdict] && bytes == [packet.bytes()];
            assert!(
                is_same,
                "FREEPORT_SEED={seed}: {found:?} {bytes:02x?}\nand not {expected:?} {:02x?}\n{}",
                packet.bytes(),
                text()
            );
            compared += 1;
        }
    }
    // Most of them use values that are not known to be addresses.
    let is_enough = lifted > all / 100 && compared > all / 30;
    assert!(is_enough || are_chosen(), "of {all} {lifted} are lifted; {compared} packets");
}

/// Returns whether an end of the packet is moved in several places. The two interpreters then
/// differ in the bytes beyond a former end.
fn moves_often(program: &IrProgram) -> bool {
    let blocks = program.functions.iter().flat_map(|function| &function.blocks);
    let moves = blocks.flat_map(|block| &block.insts).filter(|inst| {
        matches!(inst.op, Op::PacketAdjustHead { .. } | Op::PacketAdjustTail { .. })
    });
    moves.count() > 1
}

/// Fills the maps of the machine for wild programs.
fn fill(interpreter: &mut Interpreter<'_>, object: &Object) {
    let name = &object.maps[3].name;
    let (key, value) = (Bits::zero(32), Bits::from_le_bytes(512, &[7; 64]));
    let set = interpreter.table_update(InstanceId(0), name, key, value);
    assert!(set.expect("there is such a table"), "there is room");
}

/// Makes an object of one program with a hash and a queue.
fn object(text: &str) -> Object {
    let instructions = assemble(text).expect("the text is right");
    let map = |kind, value_size, name: &str| MapDefinition {
        name: name.into(),
        kind,
        key_size: if kind == MapKind::Queue { 0 } else { 4 },
        value_size,
        max_entries: 4,
        ..MapDefinition::default()
    };
    let maps = vec![map(MapKind::Hash, 8, "hash"), map(MapKind::Queue, 8, "queue")];
    let program = Program { instructions, ..Program::default() };
    Object { programs: vec![program], maps, ..Object::default() }
}

fn refused(text: &str) -> NotLiftable {
    let object = object(text);
    let refusal = lift(&object, &object.programs[0], &Ports::ByVerdict);
    refusal.expect_err("it has no counterpart")
}

/// Returns the verdict of a lifted program for a packet.
fn verdict(text: &str) -> u64 {
    let object = object(text);
    let lifted = lift(&object, &object.programs[0], &Ports::Verdicts).expect("it is lifted");
    verify(&lifted.program).expect("it is sound");
    let mut interpreter = Interpreter::new(&lifted.program, &Options::default()).expect("sound");
    interpreter.feed_packet(EndpointId(0), &[7; 60]).expect("it takes packets");
    interpreter.run(FIRINGS).expect("it runs");
    interpreter.take_items(EndpointId(2)).expect("they come out there")[0].to_u64() & 0xffff_ffff
}

#[test]
fn a_frame_reaches_as_far_as_anybody_who_is_given_its_address() {
    let text = "r1 = r10\nr1 += -8\ncall inner\nr1 = r10\nr1 += -8\ncall look\nexit\n\
                inner:\n*(u64 *)(r1 - 16) = 7\n*(u64 *)(r10 - 8) = 9\nr0 = 0\nexit\n\
                look:\nr0 = *(u64 *)(r1 - 16)\nr2 = *(u64 *)(r10 - 8)\nr0 += r2\nexit";
    assert_eq!(verdict(text), 7, "and frames begin with zeros");
}

#[test]
fn a_reference_in_a_frame_is_gone_when_a_function_has_overwritten_it() {
    let looked_up = "*(u32 *)(r10 - 12) = 0\n*(u64 *)(r10 - 24) = 3\nr1 = map[0]\nr2 = r10\n\
                     r2 += -12\nr3 = r10\nr3 += -24\nr4 = 0\ncall 0x2\nr1 = map[0]\nr2 = r10\n\
                     r2 += -12\ncall 0x1\nif r0 == 0 goto none\n*(u64 *)(r10 - 8) = r0\n";
    let none = "none:\nr0 = 1\nexit\n";
    let kept = format!(
        "{looked_up}r1 = r10\nr1 += -8\ncall inner\nr3 = *(u64 *)(r10 - 8)\n\
         r0 = *(u64 *)(r3 + 0)\nexit\n{none}inner:\nr2 = *(u64 *)(r1 + 0)\n\
         *(u64 *)(r2 + 0) = 8\nr0 = 0\nexit"
    );
    assert_eq!(verdict(&kept), 8);
    let overwritten = format!(
        "{looked_up}r1 = r10\nr1 += -8\ncall inner\nr0 = *(u64 *)(r10 - 8)\nexit\n{none}\
         inner:\n*(u64 *)(r1 + 0) = 5\nr0 = 0\nexit"
    );
    assert_eq!(verdict(&overwritten), 5);
}

/// Returns the outputs by which packets leave, with inputs for the devices 4, 5 and 7, each given a
/// packet in that order.
fn outputs(text: &str, inputs: &[u32]) -> Vec<String> {
    let object = object(text);
    let ports = Ports::Devices(vec![4, 5, 7]);
    let program = lift(&object, &object.programs[0], &ports).expect("it is lifted").program;
    verify(&program).expect("it is sound");
    let mut interpreter = Interpreter::new(&program, &Options::default()).expect("sound");
    let ends = &program.graph.endpoints;
    let of = |name: &str| ends.iter().position(|end| end.name == name).map(EndpointId::new);
    let mut left = vec![];
    for input in inputs {
        let input = of(&format!("in_{input}")).expect("there is one for each device");
        interpreter.feed_packet(input, &[7; 60]).expect("it takes packets");
        interpreter.run(FIRINGS).expect("it runs");
        for name in ["out_4", "out_5", "out_7", "pass", "redirect"] {
            let end = of(name).expect("it is there");
            let packets = interpreter.take_packets(end).expect("they come out there");
            left.extend(packets.iter().map(|_| name.to_owned()));
        }
    }
    left
}

#[test]
fn packets_leave_by_the_port_of_the_device_that_they_are_for() {
    let inputs = [7, 4, 5];
    let next = "r1 = *(u32 *)(r1 + 12)\nr1 += 1\nr2 = 0\ncall 0x17\nexit";
    assert_eq!(outputs(next, &inputs), ["redirect", "out_5", "redirect"]);
    assert_eq!(outputs("r0 = 3\nexit", &inputs), ["out_7", "out_4", "out_5"]);
    assert_eq!(outputs("r0 = 2\nexit", &inputs), ["pass", "pass", "pass"]);
    for dropped in [0, 1, 9] {
        assert_eq!(outputs(&format!("r0 = {dropped}\nexit"), &inputs), [""; 0]);
    }
}

#[test]
fn no_input_waits_for_another_one() {
    let object = object("r0 = 3\nexit");
    let ports = Ports::Devices(vec![1, 2, 3]);
    let program = lift(&object, &object.programs[0], &ports).expect("it is lifted").program;
    let mut interpreter = Interpreter::new(&program, &Options::default()).expect("sound");
    for _ in 0..4 {
        for input in [0, 1, 2] {
            interpreter.feed_packet(EndpointId(input), &[7; 60]).expect("it takes packets");
        }
    }
    // One firing at a time, until all packets have left.
    let mut left = [0; 3];
    while left.iter().sum::<usize>() < 6 {
        interpreter.run(1).expect("it runs");
        for (at, count) in left.iter_mut().enumerate() {
            let end = EndpointId::new(3 + at);
            *count += interpreter.take_packets(end).expect("they come out there").len();
        }
    }
    assert_eq!(left, [2, 2, 2]);
}

#[test]
fn what_is_not_lifted_has_its_instruction_and_a_reason() {
    let end = "r0 = 2\nexit";
    for (text, slot, reason) in [
        ("r2 = *(u32 *)(r1 + 0)\nr2 *= 3", 1, "it computes with an address"),
        ("r2 = *(u32 *)(r1 + 8)", 0, "lifted programs have no metadata"),
        ("r2 = r10\n*(u32 *)(r10 - 4) = r2", 1, "it stores part of an address"),
        ("r0 = 1\nr3 = r10\nr1 += r3", 2, "it computes with an address"),
        ("call 0x14", 0, "it calls no helper that is known, which is not there"),
        ("r1 = map[1]\nr2 = r10\nr2 += -8\ncall 0x58", 4, "it calls bpf_map_pop_elem"),
        (
            "*(u32 *)(r10 - 4) = 0\nr2 = r10\nr2 += -4\nr1 = map[1]\ncall 0x1",
            5,
            "map queue is of kind queue, which cannot become a table",
        ),
        (
            "r4 = *(u32 *)(r1 + 12)\n*(u32 *)(r10 - 4) = 0\n*(u64 *)(r10 - 16) = 1\n\
             r2 = r10\nr2 += -4\nr3 = r10\nr3 += -16\nr1 = map[0]\ncall 0x2",
            9,
            "its flags are not constant",
        ),
        (
            "r3 = *(u32 *)(r1 + 12)\nr4 = *(u32 *)(r1 + 16)\nif r3 == 1 goto +1\nr4 += 1\n\
             r4 += 2\nif r4 != 9 goto -3",
            3,
            "it jumps into the middle of a loop",
        ),
    ] {
        let refusal = refused(&format!("{text}\n{end}"));
        assert!(refusal.reason.contains(reason), "{text}: {refusal}");
        assert_eq!(refusal.slot, slot, "{text}: {refusal}");
    }
}
