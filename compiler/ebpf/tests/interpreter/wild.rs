// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs that no verifier would accept.

use crate::program::{constant, definition, map, slot};
use fastrand::Rng;
use freeport_ebpf::instruction::Instruction;
use freeport_ebpf::object::{MapDefinition, MapKind};

/// Numbers of existing helpers, and some that do not exist.
const HELPERS: [i32; 44] = [
    1, 2, 3, 5, 6, 7, 8, 12, 23, 25, 28, 42, 44, 51, 54, 65, 69, 87, 88, 89, 93, 94, 105, 106, 118,
    125, 130, 131, 132, 133, 134, 160, 163, 164, 165, 177, 181, 182, 188, 189, 190, 195, 208, 1,
];

/// Creates maps for them, one of each kind that they use.
pub fn maps() -> Vec<MapDefinition> {
    use MapKind::*;
    let kinds = [
        (Array, (4, 8)),
        (Hash, (4, 8)),
        (LruHash, (4, 8)),
        (LpmTrie, (8, 8)),
        (RingBuffer, (0, 0)),
        (Queue, (0, 8)),
        (Devmap, (4, 4)),
        (ProgramArray, (4, 4)),
        (ArrayOfMaps, (4, 4)),
        (BloomFilter, (0, 8)),
        (PerfEventArray, (4, 4)),
    ];
    let entries = |kind| if kind == RingBuffer { 4_096 } else { 4 };
    kinds.iter().map(|&(kind, sizes)| definition(kind, sizes, entries(kind))).collect()
}

/// Creates an instruction with a register or a constant as the second operand, by its opcode.
fn with_operand(opcode: u8, registers: (u8, u8), offset: i16, immediate: i32) -> Instruction {
    match opcode & 8 {
        0 => slot(opcode, (registers.0, 0), offset, immediate),
        _ => slot(opcode, registers, offset, 0),
    }
}

/// Creates an instruction that can usually be loaded, and often has an effect.
fn instruction(random: &mut Rng, at: usize, length: usize) -> Vec<Instruction> {
    let register = |random: &mut Rng| random.u8(0..=10);
    let registers = |random: &mut Rng| (random.u8(0..10), register(random));
    let offset = |random: &mut Rng| {
        let near = if random.bool() { -8 } else { 1 };
        near * random.i16(0..70)
    };
    let immediate = |random: &mut Rng| match random.u8(0..4) {
        0 => random.i32(..),
        1 => -random.i32(0..512),
        _ => random.i32(0..64),
    };
    match random.u8(0..16) {
        0..=3 => {
            let operation = random.choice([0_u8, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12]).unwrap_or(0);
            let form = random.choice([0x04, 0x07, 0x0c, 0x0f]).unwrap_or(0x07);
            let registers = registers(random);
            let immediate = immediate(random);
            vec![with_operand(operation << 4 | form, registers, 0, immediate)]
        }
        4..=5 => {
            let opcode = random.choice([0x61, 0x69, 0x71, 0x79, 0x81, 0x89, 0x91]).unwrap_or(0x61);
            vec![slot(opcode, registers(random), offset(random), 0)]
        }
        6..=7 => {
            let to = if random.bool() { 10 } else { register(random) };
            let size = random.u8(0..4) << 3;
            match random.bool() {
                true => vec![slot(0x62 | size, (to, 0), offset(random), immediate(random))],
                false => vec![slot(0x63 | size, (to, register(random)), offset(random), 0)],
            }
        }
        8 => {
            let operation = random.choice([0, 1, 0x40, 0x51, 0xa0, 0xe1, 0xf1]).unwrap_or(0);
            let opcode = random.choice([0xc3, 0xdb]).unwrap_or(0xc3);
            vec![slot(opcode, (10, random.u8(0..10)), -8, operation)]
        }
        9..=10 => {
            let distance = random.usize(0..=length - at) as i16 - random.i16(0..4);
            let condition = random.choice([0_u8, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13]).unwrap_or(0);
            let form = random.choice([5, 6, 0xd, 0xe]).unwrap_or(5);
            let registers = (register(random), register(random));
            match (condition, form) {
                (0, 5 | 0xd) => vec![slot(0x05, (0, 0), distance, 0)],
                (0, _) => vec![slot(0x06, (0, 0), 0, distance.into())],
                _ => {
                    let immediate = immediate(random);
                    vec![with_operand(condition << 4 | form, registers, distance, immediate)]
                }
            }
        }
        11..=12 => {
            vec![slot(0x85, (0, 0), 0, random.choice(HELPERS).unwrap_or(1))]
        }
        13 => map(random.u8(1..5), random.i32(0..11)).to_vec(),
        14 => {
            // The address of a stack slot, for a helper.
            let to = random.u8(1..6);
            vec![slot(0xbf, (to, 10), 0, 0), slot(0x07, (to, 0), 0, -random.i32(1..64))]
        }
        _ => match random.u8(0..3) {
            0 => constant(random.u8(0..10), random.u64(..)).to_vec(),
            1 => vec![slot(0x85, (0, 1), 0, random.i32(-4..4))],
            _ => vec![slot(0x18, (2, 4), 0, random.i32(-4..6)), slot(0, (0, 0), 0, 0)],
        },
    }
}

/// Creates a program of a few dozen instructions.
pub fn program(random: &mut Rng) -> Vec<Instruction> {
    let length = random.usize(4..40);
    let mut program: Vec<Instruction> = vec![slot(0xbf, (6, 1), 0, 0)];
    while program.len() < length {
        let at = program.len();
        program.extend(instruction(random, at, length));
    }
    program.push(slot(0x95, (0, 0), 0, 0));
    program
}
