// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of values, memory spaces, objects, tables and channel items.
//!
//! A value is a bit vector, a reference into a space, a table handle or a packet. Signedness is in
//! the operations; a struct is only a layout over bits, known to the front end.

use crate::{Bits, TableId};

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// A bit vector of that many bits, at least 1.
    Bits(u32),
    /// A reference (space, base, offset) into one of these spaces, or none. Never an integer.
    Ref(Spaces),
    /// A table of the element.
    Handle(TableId),
    /// A whole frame, owned by the firing that took it.
    Packet,
}

impl Type {
    /// The width of a bit vector; none for the other types.
    pub fn bits(self) -> Option<u32> {
        match self {
            Type::Bits(width) => Some(width),
            _ => None,
        }
    }
}

/// Where an object lives, or what a reference points into.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Space {
    /// Registers: every element of the object readable and writable in the same cycle.
    Register,
    /// On-chip memory (ClickNP 2.7 `local`).
    Local,
    /// Board memory (ClickNP 2.7 `global`).
    Global,
    /// The stack of an XDP program.
    Stack,
    /// The context of an XDP program.
    Context,
    /// Bytes of a packet.
    Packet,
    /// The value of a table entry.
    TableValue,
}

impl Space {
    /// Every space, in the order of their bits in [`Spaces`].
    pub const ALL: [Space; 7] = [
        Space::Register,
        Space::Local,
        Space::Global,
        Space::Stack,
        Space::Context,
        Space::Packet,
        Space::TableValue,
    ];

    /// The name used in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Space::Register => "reg",
            Space::Local => "local",
            Space::Global => "global",
            Space::Stack => "stack",
            Space::Context => "ctx",
            Space::Packet => "packet",
            Space::TableValue => "table",
        }
    }
}

/// A set of spaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Spaces(u8);

impl Spaces {
    /// The set of one space.
    pub fn of(space: Space) -> Self {
        Self(1 << space as u8)
    }

    /// The set that has the spaces of both.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `space` is in the set.
    pub fn contains(self, space: Space) -> bool {
        self.0 >> space as u8 & 1 == 1
    }

    /// The spaces of the set, in the order of [`Space::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Space> {
        Space::ALL.into_iter().filter(move |space| self.contains(*space))
    }
}

/// How an object is indexed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addressing {
    /// By element: `load object[index]`, a static bit range of it.
    Element,
    /// By byte: the object is `depth` elements of 8 bits, and an access covers consecutive bytes.
    Byte,
}

/// How long an object keeps its contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lifetime {
    /// As long as the element instance.
    Instance,
    /// One firing (suspensions included); it starts as 0 at each firing.
    Firing,
}

/// A piece of memory: `depth` elements of `elem_bits` bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// The variable's name in the source.
    pub name: String,
    /// Where it lives.
    pub space: Space,
    /// Bits of one element.
    pub elem_bits: u32,
    /// Number of elements, at least 1.
    pub depth: u64,
    /// How it is indexed.
    pub addressing: Addressing,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// Contents at the start, element by element; what is missing is 0.
    pub init: Vec<Bits>,
    /// Whether the host may read and write it by name.
    pub host_visible: bool,
    /// Whether the programmer chose the space; passes then leave the object there.
    pub is_pinned: bool,
    /// Where it was declared.
    pub loc: Loc,
}

/// What kind of match a table does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TableKind {
    /// Exact match.
    Hash,
    /// Exact match; the least recently used entry makes room.
    LruHash,
    /// The key is an index below the capacity; every entry exists from the start.
    Array,
    /// Longest prefix: the key's low 32 bits are the prefix length, the rest the data.
    LongestPrefix,
}

impl TableKind {
    /// The name used in the text form.
    pub fn name(self) -> &'static str {
        match self {
            TableKind::Hash => "hash",
            TableKind::LruHash => "lru",
            TableKind::Array => "array",
            TableKind::LongestPrefix => "lpm",
        }
    }
}

/// A keyed table of an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name in the source.
    pub name: String,
    /// How keys match.
    pub kind: TableKind,
    /// Bits of a key.
    pub key_bits: u32,
    /// Bits of a value, a multiple of 8.
    pub value_bits: u32,
    /// Most entries it holds.
    pub capacity: u64,
    /// Where it was declared.
    pub loc: Loc,
}

/// What travels on a channel or through a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Item {
    /// A flit ([`flit`](crate::flit)): [`FLIT_BITS`](crate::flit::FLIT_BITS) bits.
    Flit,
    /// A record of that many bits.
    Bits(u32),
    /// A whole packet, with that many bytes of header window.
    Packet {
        /// Bytes guaranteed to be readable without waiting for the rest.
        window_bytes: u32,
    },
}

impl Item {
    /// The type of the value that a take gives.
    pub fn value_type(self) -> Type {
        match self {
            Item::Flit => Type::Bits(crate::flit::FLIT_BITS),
            Item::Bits(width) => Type::Bits(width),
            Item::Packet { .. } => Type::Packet,
        }
    }
}

/// A place in a source file; line 0 means "nowhere" (made by a pass).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct Loc {
    /// The file, an index into [`Program::files`](crate::Program::files).
    pub file: crate::FileId,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}
