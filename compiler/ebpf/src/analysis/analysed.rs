// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Test programs in assembly with the maps that they use, and their analysis.

use super::{Access, Analysis, Fact};
use crate::instruction::assemble;
use crate::object::{MapDefinition, MapKind, Object, Program};

/// Returns the maps of all test programs: an array of four values of 8 bytes, a ring buffer, an
/// array of maps like the first one, and a hash of two values of 64 bytes with keys of 4.
pub fn maps() -> Vec<MapDefinition> {
    use MapKind::*;
    let map = |kind, key_size, value_size, max_entries| MapDefinition {
        name: format!("{kind}"),
        kind,
        key_size,
        value_size,
        max_entries,
        ..MapDefinition::default()
    };
    let inner = Some(Box::new(map(Array, 4, 8, 4)));
    vec![
        map(Array, 4, 8, 4),
        map(RingBuffer, 0, 0, 4_096),
        MapDefinition { inner, ..map(ArrayOfMaps, 4, 4, 4) },
        map(Hash, 4, 64, 2),
    ]
}

/// Makes an object of one program.
pub fn object(program: Program) -> Object {
    Object { programs: vec![program], maps: maps(), ..Object::default() }
}

/// Assembles a program.
pub fn program(text: &str) -> Program {
    let instructions = assemble(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    Program { name: "main".into(), instructions, ..Program::default() }
}

/// Analyses a program.
pub fn analysed(text: &str) -> Analysis {
    Analysis::of(&program(text), &maps()).expect("it has a graph")
}

/// Analyses a program with one state for each meeting of paths, so that states are joined.
pub fn joined(text: &str) -> Analysis {
    Analysis::with_states(&program(text), &maps(), 1).expect("it has a graph")
}

/// Returns the fact of a register before an instruction, as text.
pub fn before(analysis: &Analysis, slot: usize, register: usize) -> String {
    let facts: &[Fact; 11] = analysis.registers(slot).expect("control comes there");
    facts[register].to_string()
}

/// Returns the fact of a register before the exit, which is the last instruction.
pub fn at_end(text: &str, register: usize) -> String {
    let analysis = analysed(text);
    before(&analysis, analysis.graph().slots() - 1, register)
}

/// Returns the accesses of an instruction as text: kind, range of offsets, number of bytes, and
/// whether they are proven.
pub fn touched(analysis: &Analysis, slot: usize) -> Vec<String> {
    let words = |access: &Access| {
        let Access { kind, space, offset: (least, most), size, is_proven, .. } = access;
        let size = size.map_or("?".to_owned(), |size| size.to_string());
        let proven = if *is_proven { "" } else { ", not proven" };
        format!("{kind:?} {space} {least}..={most} for {size}{proven}")
    };
    analysis.accesses(slot).iter().map(words).collect()
}

/// Returns the accesses of the last instruction before the exit.
pub fn last_touched(text: &str) -> Vec<String> {
    let analysis = analysed(text);
    touched(&analysis, analysis.graph().slots() - 2)
}

/// Loads the packet's start into `r2` and its end into `r3`.
pub const PACKET: &str = "r2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\n";
/// Looks up the first key in the array, with the result in `r0`; the context is in `r6`.
pub const LOOKUP: &str =
    "r6 = r1\n*(u32 *)(r10 - 4) = 0\nr2 = r10\nr2 += -4\nr1 = map[0]\ncall 0x1\n";
