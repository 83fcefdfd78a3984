// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects: the contents of an ELF file with eBPF programs, linked and independent of ELF.
//!
//! A [`Program`] is self-contained: the functions it calls follow it in its instructions, and its
//! wide loads name maps by their index in [`Object::maps`]. Variables are maps too, as in the
//! kernel: an array of one value for each data section.

mod btf;
pub(crate) mod check;
mod code;
mod collect;
mod core;
mod display;
mod elf;
mod error;
mod kind;
mod layout;
mod legacy_map;
mod link;
mod load;
mod map;
mod typed_map;

pub use error::{Error, Place};
pub use layout::{Datum, Layout, Member, Part};
pub use map::{MapDefinition, MapKind, SlotTarget};

use crate::instruction::{Instruction, PSEUDO_MAP, PSEUDO_MAP_VALUE};

/// A loaded object.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// Programs in the order of sections, and within a section in the order of offsets.
    pub programs: Vec<Program>,
    /// Maps: those that are defined, then those of data sections.
    pub maps: Vec<MapDefinition>,
    /// Contents of section `license`; empty if there is none.
    pub license: String,
    /// Contents of section `version`: the kernel version that some old program types require.
    pub version: Option<u32>,
}

/// A program that can be attached.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Name of its function.
    pub name: String,
    /// Section that contains it.
    pub section: String,
    /// Event that runs it.
    pub kind: ProgramKind,
    /// Slots of the program, followed by those of all functions that it needs; the entry is slot 0.
    /// Wide loads of maps have source [`PSEUDO_MAP`] or [`PSEUDO_MAP_VALUE`] and the map's index in
    /// [`Object::maps`] as the immediate.
    pub instructions: Vec<Instruction>,
    /// Functions to which the slots belong, in order; the first is the program itself.
    pub functions: Vec<Function>,
    /// Source lines of the slots, in order, as far as the object has line information.
    pub lines: Vec<Line>,
    /// Reason for which the program could not be loaded here: for example, it calls a kernel
    /// function. The kernel target may still run it. The program then has no instructions here.
    pub refusal: Option<Error>,
}

/// Event that runs a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ProgramKind {
    /// A packet that an interface receives.
    #[default]
    Xdp,
    /// A packet that leaves through an entry of a devmap.
    XdpDevmap,
    /// A packet that arrives at the processor of an entry of a cpumap.
    XdpCpumap,
    /// Another type, by the name of its section.
    Other(String),
}

/// A function in a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// First slot of the function.
    pub slot: usize,
}

/// A place in a source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// First slot of the line; it applies up to the next entry's.
    pub slot: usize,
    /// File name as passed to the compiler.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// Column number, from 1; 0 if unknown.
    pub column: u32,
    /// Text of the line.
    pub text: String,
}

impl Program {
    /// Returns the function to which a slot belongs.
    pub fn function(&self, slot: usize) -> Option<&Function> {
        let end = self.functions.partition_point(|function| function.slot <= slot);
        self.functions.get(end.checked_sub(1)?)
    }

    /// Returns the source line of a slot. Lines of other functions do not count.
    pub fn line(&self, slot: usize) -> Option<&Line> {
        let end = self.lines.partition_point(|line| line.slot <= slot);
        let line = self.lines.get(end.checked_sub(1)?)?;
        (line.slot >= self.function(slot)?.slot).then_some(line)
    }

    /// Returns the slots that refer to a map, or to a place in its only value, with the map's
    /// index.
    pub fn maps_used(&self) -> impl Iterator<Item = (usize, usize)> {
        let names_map = |slot: &Instruction| {
            slot.is_wide() && matches!(slot.source, PSEUDO_MAP | PSEUDO_MAP_VALUE)
        };
        let slots = self.instructions.iter().enumerate().filter(move |(_, slot)| names_map(slot));
        slots.filter_map(|(at, slot)| Some((at, usize::try_from(slot.immediate).ok()?)))
    }
}
