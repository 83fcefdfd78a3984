// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Small programs with hand-written images.

use super::{Rule, check};
use crate::image::{Function, Image, Row, Slot};
use crate::machine::Machine;
use crate::operation::{Arithmetic, Constant, Operand, Operation, Width};
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::instruction::assemble;
use freeport_ebpf::object::{MapDefinition, MapKind, Program};

/// A row: lane, operation, and slots of origin for each operation.
pub type Written<'a> = &'a [(usize, Operation, &'a [usize])];

/// Assembles and analyses a program with one map, an array of values of 16 bytes.
pub fn program(text: &str) -> (Program, Analysis) {
    let instructions = assemble(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let program = Program { name: "main".into(), instructions, ..Program::default() };
    let map = MapDefinition {
        name: "map".into(),
        kind: MapKind::Array,
        key_size: 4,
        value_size: 16,
        max_entries: 4,
        ..MapDefinition::default()
    };
    let analysis = Analysis::of(&program, &[map]).expect("it has a graph");
    (program, analysis)
}

/// Creates an image of one function.
pub fn image(rows: &[Written]) -> Image {
    let rows = rows.iter().map(|written| {
        let mut lanes = vec![None; 4];
        for (lane, operation, origins) in *written {
            lanes[*lane] = Some(Slot { operation: *operation, origins: origins.to_vec() });
        }
        Row { lanes }
    });
    let functions = vec![Function { name: "main".into(), row: 0 }];
    Image { name: "main".into(), machine: Machine { lanes: 4 }, rows: rows.collect(), functions }
}

/// Returns the rules that an image violates, each once; its meaning is not checked.
pub fn broken(text: &str, image: &Image) -> Vec<Rule> {
    let (program, analysis) = program(text);
    let found = check(image, &program, &analysis).err().unwrap_or_default();
    let mut rules: Vec<_> = found.iter().map(|violation| violation.rule).collect();
    rules.retain(|rule| !matches!(rule, Rule::Meaning | Rule::MayMiss));
    rules.sort();
    rules.dedup();
    rules
}

/// Returns the rules about meaning that an image violates; it must obey all others.
pub fn differs(text: &str, image: &Image) -> Vec<Rule> {
    let (program, analysis) = program(text);
    let found = check(image, &program, &analysis).err().unwrap_or_default();
    for violation in &found {
        let is_meant = matches!(violation.rule, Rule::Meaning | Rule::MayMiss);
        assert!(is_meant, "{violation}\n{image}");
    }
    found.iter().map(|violation| violation.rule).collect()
}

/// Sets a register to a small constant.
pub fn set(destination: u8, constant: u64) -> Operation {
    Operation::Constant { destination, constant: Constant::Value(constant) }
}

/// Sets a register to the sum of two.
pub fn sum(destination: u8, left: u8, right: u8) -> Operation {
    let (width, operation) = (Width::Bits64, Arithmetic::Add);
    Operation::Alu { width, operation, destination, left, right: Operand::Register(right) }
}

/// Loads a register from an address.
pub fn load(bytes: u8, destination: u8, base: u8, offset: i16) -> Operation {
    let (is_signed, is_speculative) = (false, false);
    Operation::Load { bytes, is_signed, is_speculative, destination, base, offset }
}

/// Stores a constant at an address.
pub fn store(bytes: u8, base: u8, offset: i16, constant: i32) -> Operation {
    Operation::Store { bytes, base, offset, source: Operand::Immediate(constant) }
}
