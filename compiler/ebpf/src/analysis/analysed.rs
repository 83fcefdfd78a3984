// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs in assembly with the maps that they use, and what is known of them.

use super::{Access, Analysis, Fact};
use crate::instruction::assemble;
use crate::object::{MapDefinition, MapKind, Object, Program};

/// The maps of all programs here: an array of four values of 8 bytes, a ring buffer, an array of
/// maps that are as the first one, a hash of two values of 64 bytes by keys of 4.
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

/// An object of one program.
pub fn object(program: Program) -> Object {
    Object { programs: vec![program], maps: maps(), ..Object::default() }
}

/// A program by its text.
pub fn program(text: &str) -> Program {
    let instructions = assemble(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    Program { name: "main".into(), instructions, ..Program::default() }
}

/// What is known of a program.
pub fn analysed(text: &str) -> Analysis {
    Analysis::of(&program(text), &maps()).expect("it has a graph")
}

/// The same with one state where paths meet, so that they are joined.
pub fn joined(text: &str) -> Analysis {
    Analysis::with_states(&program(text), &maps(), 1).expect("it has a graph")
}

/// What a register holds before an instruction, in words.
pub fn before(analysis: &Analysis, slot: usize, register: usize) -> String {
    let facts: &[Fact; 11] = analysis.registers(slot).expect("control comes there");
    facts[register].to_string()
}

/// The same before the program's exit, which is the last instruction.
pub fn at_end(text: &str, register: usize) -> String {
    let analysis = analysed(text);
    before(&analysis, analysis.graph().slots() - 1, register)
}

/// What an instruction touches, in words: what for, where from and to, how many bytes, and whether
/// that is proven.
pub fn touched(analysis: &Analysis, slot: usize) -> Vec<String> {
    let words = |access: &Access| {
        let Access { kind, space, offset: (least, most), size, is_proven, .. } = access;
        let size = size.map_or("?".to_owned(), |size| size.to_string());
        let proven = if *is_proven { "" } else { ", not proven" };
        format!("{kind:?} {space} {least}..={most} for {size}{proven}")
    };
    analysis.accesses(slot).iter().map(words).collect()
}

/// The same of the last instruction before the exit.
pub fn last_touched(text: &str) -> Vec<String> {
    let analysis = analysed(text);
    touched(&analysis, analysis.graph().slots() - 2)
}

/// `r2` and `r3` are the packet's start and its end.
pub const PACKET: &str = "r2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\n";
/// `r0` is what is found in the array for the first key; the context is in `r6`.
pub const LOOKUP: &str =
    "r6 = r1\n*(u32 *)(r10 - 4) = 0\nr2 = r10\nr2 += -4\nr1 = map[0]\ncall 0x1\n";
