// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program of untrusted eBPF instructions, loaded and run if possible. To make most programs
//! loadable, unused fields of instructions are cleared, and instructions that the loader still
//! refuses are replaced. The rest runs unverified, and the facts of an analysis must hold for it.

use freeport_ebpf::analysis::{Analysis, Witness};
use freeport_ebpf::instruction::{Field, Instruction, REGISTERS, decode};
use freeport_ebpf::interpreter::{
    Clock, Environment, LoadError, Machine, PACKET_MAX, Packet, verdict,
};
use freeport_ebpf::object::{MapDefinition, MapKind, Object, Program};

/// Maximum number of slots of a program.
const SLOTS_MAX: usize = 400;
/// Maximum number of instructions executed for a packet.
const INSTRUCTIONS_MAX: u64 = 5_000;
/// Replacement for instructions that cannot be loaded: `r0 = r0`.
const NOTHING: Instruction =
    Instruction { opcode: 0xbf, destination: 0, source: 0, offset: 0, immediate: 0 };
const EXIT: Instruction = Instruction { opcode: 0x95, ..NOTHING };

/// Lengths of the packets that a program is run on.
pub(super) const LENGTHS: [usize; 4] = [60, 0, 1_500, 60];

/// Interprets the bytes as slots of a program, and runs it.
pub fn bpf_program(bytes: &[u8]) {
    let Some((mut machine, _)) = load(instructions(bytes)) else { return };
    let mut packet = Packet::new(&[0; 60]).expect("a short one");
    for length in LENGTHS {
        packet.fill(&filled(length)).expect("a short one");
        let outcome = machine.run(0, &mut packet);
        assert!(outcome.instructions <= INSTRUCTIONS_MAX);
        assert!(packet.len() <= PACKET_MAX && packet.metadata().len() < 256);
        if let Some(abort) = outcome.aborted {
            assert_eq!((outcome.verdict, outcome.value), (verdict::ABORTED, 0));
            assert!(abort.slot <= SLOTS_MAX && !abort.to_string().is_empty());
        }
    }
}

/// Interprets the bytes as slots, and analyses the program before it runs: the analysis terminates,
/// with an error for a program that is too large, or with facts that hold.
pub fn bpf_analysis(bytes: &[u8]) {
    let Some((mut machine, object)) = load(instructions(bytes)) else { return };
    let analysis = match Analysis::of(&object.programs[0], &object.maps) {
        Ok(analysis) => analysis,
        Err(malformed) => return assert!(malformed.slot <= SLOTS_MAX),
    };
    for slot in 0..analysis.graph().slots() {
        let accesses = analysis.accesses(slot).iter();
        assert!(accesses.clone().all(|access| access.offset.0 <= access.offset.1));
    }
    let analyses = [Some(analysis)];
    let mut witness = Witness::new(&object, &analyses);
    let mut packet = Packet::new(&[0; 60]).expect("a short one");
    for length in LENGTHS {
        packet.fill(&filled(length)).expect("a short one");
        let outcome = machine.run_observed(0, &mut packet, &mut witness);
        assert_eq!(witness.failure(&outcome), None, "{length} bytes");
    }
}

/// Returns a packet of that length.
pub(super) fn filled(length: usize) -> Vec<u8> {
    vec![0x45; length]
}

/// Returns the slots of a program that ends with `exit`.
pub(super) fn instructions(bytes: &[u8]) -> Vec<Instruction> {
    let slots = bytes.chunks_exact(8).take(SLOTS_MAX);
    let slots = slots.map(|slot| Instruction::from_bytes(slot.try_into().expect("eight bytes")));
    let mut instructions: Vec<Instruction> = slots.collect();
    instructions.push(EXIT);
    (0..instructions.len()).for_each(|at| clear_unused(&mut instructions, at));
    instructions
}

/// Clears the invalid fields of a slot, one after the other.
fn clear_unused(instructions: &mut [Instruction], at: usize) {
    for _ in 0..4 {
        let Err(invalid) = decode(instructions, at) else { return };
        let slot = &mut instructions[at];
        match invalid.field {
            Field::Destination => slot.destination %= REGISTERS,
            Field::Source if slot.source >= REGISTERS => slot.source %= REGISTERS,
            Field::Source => slot.source = 0,
            Field::Offset => slot.offset = 0,
            Field::Immediate => slot.immediate = 0,
            Field::Opcode | Field::SecondSlot => *slot = NOTHING,
        }
    }
}

/// Loads the program into a machine with maps of all kinds, without the instructions that the
/// loader refuses; returns the machine and the resulting object.
pub(super) fn load(mut instructions: Vec<Instruction>) -> Option<(Machine, Object)> {
    let environment = Environment {
        clock: Clock::Set(7),
        instructions_max: INSTRUCTIONS_MAX,
        ..Environment::default()
    };
    for _ in 0..4 {
        let program = Program { instructions, ..Program::default() };
        let mut object = Object { programs: vec![program], maps: maps(), ..Object::default() };
        match Machine::load(&object, environment.clone()) {
            Ok(machine) => return Some((machine, object)),
            Err(LoadError::Unsupported(refused)) => {
                instructions = std::mem::take(&mut object.programs[0].instructions);
                refused.iter().for_each(|refused| instructions[refused.slot] = NOTHING);
            }
            Err(other) => panic!("the maps are good: {other}"),
        }
    }
    None
}

fn maps() -> Vec<MapDefinition> {
    use MapKind::*;
    let kinds = [
        (Array, 4, 8, 4, 0),
        (Hash, 4, 8, 4, 0),
        (LruHash, 4, 8, 4, 0),
        (LpmTrie, 8, 8, 4, 1),
        (RingBuffer, 0, 0, 4_096, 0),
        (Queue, 0, 8, 4, 0),
        (Devmap, 4, 4, 4, 0),
        (ProgramArray, 4, 4, 4, 0),
        (ArrayOfMaps, 4, 4, 4, 0),
        (BloomFilter, 0, 8, 4, 0),
        (PerfEventArray, 4, 4, 4, 0),
    ];
    let map = |&(kind, key_size, value_size, max_entries, flags)| MapDefinition {
        name: format!("{kind}"),
        kind,
        key_size,
        value_size,
        max_entries,
        flags,
        ..MapDefinition::default()
    };
    kinds.iter().map(map).collect()
}
