// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs built from instructions, and machines that run them.

use freeport_ebpf::instruction::Instruction;
use freeport_ebpf::interpreter::{Environment, LoadError, Machine, Outcome, Packet};
use freeport_ebpf::object::{MapDefinition, MapKind, Object, Program, ProgramKind};

/// Creates an instruction from its fields.
pub fn slot(opcode: u8, registers: (u8, u8), offset: i16, immediate: i32) -> Instruction {
    let (destination, source) = registers;
    Instruction { opcode, destination, source, offset, immediate }
}

/// `destination = value`, in two slots.
pub fn constant(destination: u8, value: u64) -> [Instruction; 2] {
    let second = slot(0, (0, 0), 0, (value >> 32) as i32);
    [slot(0x18, (destination, 0), 0, value as i32), second]
}

/// `destination = map`, in two slots.
pub fn map(destination: u8, map: i32) -> [Instruction; 2] {
    [slot(0x18, (destination, 1), 0, map), slot(0, (0, 0), 0, 0)]
}

/// `destination = immediate`.
pub fn set(destination: u8, immediate: i32) -> Instruction {
    slot(0xb7, (destination, 0), 0, immediate)
}

/// `destination = source`.
pub fn copy(destination: u8, source: u8) -> Instruction {
    slot(0xbf, (destination, source), 0, 0)
}

/// `destination += immediate`.
pub fn add(destination: u8, immediate: i32) -> Instruction {
    slot(0x07, (destination, 0), 0, immediate)
}

/// `destination = 8 bytes at source + offset`.
pub fn load(destination: u8, source: u8, offset: i16) -> Instruction {
    slot(0x79, (destination, source), offset, 0)
}

/// `destination = 4 bytes at source + offset`.
pub fn load_word(destination: u8, source: u8, offset: i16) -> Instruction {
    slot(0x61, (destination, source), offset, 0)
}

/// `8 bytes at destination + offset = source`.
pub fn store(destination: u8, offset: i16, source: u8) -> Instruction {
    slot(0x7b, (destination, source), offset, 0)
}

/// `4 bytes at destination + offset = immediate`.
pub fn store_word(destination: u8, offset: i16, immediate: i32) -> Instruction {
    slot(0x62, (destination, 0), offset, immediate)
}

/// `8 bytes at destination + offset = immediate`.
pub fn store_constant(destination: u8, offset: i16, immediate: i32) -> Instruction {
    slot(0x7a, (destination, 0), offset, immediate)
}

/// Calls a helper.
pub fn call(helper: i32) -> Instruction {
    slot(0x85, (0, 0), 0, helper)
}

/// Calls the function `distance` slots after the next one.
pub fn call_function(distance: i32) -> Instruction {
    slot(0x85, (0, 1), 0, distance)
}

/// Jumps `distance` slots beyond the next one if `register` is 0.
pub fn if_zero(register: u8, distance: i16) -> Instruction {
    slot(0x15, (register, 0), distance, 0)
}

/// Returns from the function.
pub fn exit() -> Instruction {
    slot(0x95, (0, 0), 0, 0)
}

/// Concatenates instructions and groups of instructions.
#[macro_export]
macro_rules! program {
    ($($part:expr),* $(,)?) => {{
        let mut slots: Vec<freeport_ebpf::instruction::Instruction> = vec![];
        $(slots.extend($crate::program::Part::from($part).0);)*
        slots
    }};
}

/// Part of a program.
pub struct Part(pub Vec<Instruction>);

impl From<Instruction> for Part {
    fn from(instruction: Instruction) -> Self {
        Self(vec![instruction])
    }
}

impl<const COUNT: usize> From<[Instruction; COUNT]> for Part {
    fn from(instructions: [Instruction; COUNT]) -> Self {
        Self(instructions.to_vec())
    }
}

impl From<Vec<Instruction>> for Part {
    fn from(instructions: Vec<Instruction>) -> Self {
        Self(instructions)
    }
}

/// Creates the definition of a map.
pub fn definition(kind: MapKind, sizes: (u32, u32), max_entries: u32) -> MapDefinition {
    MapDefinition {
        name: "map".to_owned(),
        kind,
        key_size: sizes.0,
        value_size: sizes.1,
        max_entries,
        flags: if kind == MapKind::LpmTrie { 1 } else { 0 },
        ..MapDefinition::default()
    }
}

/// Creates an object of XDP programs and maps.
pub fn object(programs: Vec<Vec<Instruction>>, maps: Vec<MapDefinition>) -> Object {
    let program = |instructions| Program {
        name: "program".to_owned(),
        section: "xdp".to_owned(),
        kind: ProgramKind::Xdp,
        instructions,
        ..Program::default()
    };
    Object { programs: programs.into_iter().map(program).collect(), maps, ..Object::default() }
}

/// Creates a machine of one program and maps.
pub fn machine(instructions: Vec<Instruction>, maps: Vec<MapDefinition>) -> Machine {
    loaded(instructions, maps).unwrap_or_else(|error| panic!("{error}"))
}

/// As `machine`, with the reason if the object cannot be loaded.
pub fn loaded(
    instructions: Vec<Instruction>,
    maps: Vec<MapDefinition>,
) -> Result<Machine, LoadError> {
    Machine::load(&object(vec![instructions], maps), Environment::default())
}

/// Creates a packet of counting bytes.
pub fn packet(length: usize) -> Packet {
    let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
    Packet::new(&bytes).expect("a short one")
}

/// Runs one program without maps on a packet of 64 bytes.
pub fn run(instructions: Vec<Instruction>) -> Outcome {
    machine(instructions, vec![]).run(0, &mut packet(64))
}

/// Returns register 0 after a program that must not abort.
pub fn value(instructions: Vec<Instruction>) -> u64 {
    let outcome = run(instructions);
    assert_eq!(outcome.aborted, None);
    outcome.value
}

/// Returns `Outcome::aborted` as text.
pub fn reason(outcome: &Outcome) -> String {
    let abort = outcome.aborted.as_ref().expect("it is aborted");
    assert_eq!((outcome.verdict, outcome.value), (0, 0));
    abort.to_string()
}
