// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects: what an ELF file with eBPF programs holds, linked and free of ELF.
//!
//! A [`Program`] is complete in itself: the functions it calls follow it in its instructions, and
//! its wide loads name maps by their number in [`Object::maps`]. Variables are maps too, as the
//! kernel has them: one array of one value for each section of data.

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
    /// Programs in the order of sections, and in a section that of their places.
    pub programs: Vec<Program>,
    /// Maps: those that are defined, then those of data.
    pub maps: Vec<MapDefinition>,
    /// What section `license` says; empty if there is none.
    pub license: String,
    /// What section `version` says: the kernel version that some kinds of old programs name.
    pub version: Option<u32>,
}

/// A program that can be started.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The name of its function.
    pub name: String,
    /// The section it is in.
    pub section: String,
    /// What starts it.
    pub kind: ProgramKind,
    /// Its slots, then those of all functions it needs; entry is slot 0. Wide loads of maps have
    /// source [`PSEUDO_MAP`] or [`PSEUDO_MAP_VALUE`] and the map's number in [`Object::maps`] as
    /// immediate.
    pub instructions: Vec<Instruction>,
    /// What the slots belong to, in order; the first is the program itself.
    pub functions: Vec<Function>,
    /// Where the slots come from, in order, as far as the object says.
    pub lines: Vec<Line>,
    /// Why it could not be read: it calls a function of the kernel, for example, which the kernel
    /// target may run all the same. Then it has no instructions here.
    pub refusal: Option<Error>,
}

/// What starts a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ProgramKind {
    /// A packet that an interface receives.
    #[default]
    Xdp,
    /// A packet that leaves through an entry of a devmap.
    XdpDevmap,
    /// A packet that arrives at the processor of an entry of a cpumap.
    XdpCpumap,
    /// Something else, by the name of its section.
    Other(String),
}

/// A function in a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its first slot.
    pub slot: usize,
}

/// A place in a source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The first slot that comes from there; it holds until the next entry's.
    pub slot: usize,
    /// The file as the compiler was given it.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1; 0 if it is not known.
    pub column: u32,
    /// The line itself.
    pub text: String,
}

impl Program {
    /// The function that a slot belongs to.
    pub fn function(&self, slot: usize) -> Option<&Function> {
        let end = self.functions.partition_point(|function| function.slot <= slot);
        self.functions.get(end.checked_sub(1)?)
    }

    /// Where a slot comes from. What is known of another function does not count.
    pub fn line(&self, slot: usize) -> Option<&Line> {
        let end = self.lines.partition_point(|line| line.slot <= slot);
        let line = self.lines.get(end.checked_sub(1)?)?;
        (line.slot >= self.function(slot)?.slot).then_some(line)
    }

    /// Slots that name a map, or a place in its only value, with the map's number in the object.
    pub fn maps_used(&self) -> impl Iterator<Item = (usize, usize)> {
        let names_map = |slot: &Instruction| {
            slot.is_wide() && matches!(slot.source, PSEUDO_MAP | PSEUDO_MAP_VALUE)
        };
        let slots = self.instructions.iter().enumerate().filter(move |(_, slot)| names_map(slot));
        slots.filter_map(|(at, slot)| Some((at, usize::try_from(slot.immediate).ok()?)))
    }
}
