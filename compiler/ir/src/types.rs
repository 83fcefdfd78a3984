// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of values, memory spaces, objects, tables and channel items.
//!
//! A value is a bit vector, a reference into a space, a table handle or a packet. Operations, not
//! types, define signedness. Structs exist only in the front end, as layouts over bits.

use crate::{Bits, TableId};

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// A bit vector of this width, at least 1.
    Bits(u32),
    /// A reference (space, base, offset) into one of these spaces, or null. Never an integer.
    Ref(Spaces),
    /// A handle of a table of the element.
    Handle(TableId),
    /// A whole frame, owned by the firing that took it.
    Packet,
}

impl Type {
    /// Returns the width of a bit vector; `None` for other types.
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
    /// Registers: every element of the object can be read and written in the same cycle.
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

    /// Returns the name in the text form.
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
    /// Returns the set of one space.
    pub fn of(space: Space) -> Self {
        Self(1 << space as u8)
    }

    /// Returns the union of both sets.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether `space` is in the set.
    pub fn contains(self, space: Space) -> bool {
        self.0 >> space as u8 & 1 == 1
    }

    /// Returns the spaces of the set, in the order of [`Space::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Space> {
        Space::ALL.into_iter().filter(move |space| self.contains(*space))
    }
}

/// How an object is indexed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addressing {
    /// By element: `load object[index]`, a constant range of its bits.
    Element,
    /// By byte: the object is `depth` elements of 8 bits, and an access covers consecutive bytes.
    Byte,
}

/// Lifetime of an object's contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lifetime {
    /// As long as the element instance.
    Instance,
    /// One firing, including suspensions; initialised to 0 at each firing.
    Firing,
}

/// A piece of memory: `depth` elements of `elem_bits` bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Variable name in the source.
    pub name: String,
    /// Memory space.
    pub space: Space,
    /// Width of one element.
    pub elem_bits: u32,
    /// Number of elements, at least 1.
    pub depth: u64,
    /// How accesses address it.
    pub addressing: Addressing,
    /// Lifetime of its contents.
    pub lifetime: Lifetime,
    /// Initial contents, element by element; missing elements are 0.
    pub init: Vec<Bits>,
    /// Whether the host may read and write it by name.
    pub host_visible: bool,
    /// Whether the programmer chose the space; passes then leave it unchanged.
    pub is_pinned: bool,
    /// Location of the declaration.
    pub loc: Loc,
}

/// How a table matches keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TableKind {
    /// Exact match.
    Hash,
    /// Exact match; evicts the least recently used entry when full.
    LruHash,
    /// The key is an index less than the capacity; every entry exists from the start.
    Array,
    /// Longest-prefix match: the key's low 32 bits are the prefix length, the rest the data.
    LongestPrefix,
}

impl TableKind {
    /// Returns the name in the text form.
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
    /// Name in the source.
    pub name: String,
    /// How keys match.
    pub kind: TableKind,
    /// Width of a key.
    pub key_bits: u32,
    /// Width of a value, a multiple of 8.
    pub value_bits: u32,
    /// Maximum number of entries.
    pub capacity: u64,
    /// Location of the declaration.
    pub loc: Loc,
}

/// Kind of item on a channel or port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Item {
    /// A flit ([`flit`](crate::flit)): [`FLIT_BITS`](crate::flit::FLIT_BITS) bits.
    Flit,
    /// A record of this width.
    Bits(u32),
    /// A whole packet, with a header window.
    Packet {
        /// Bytes guaranteed to be readable without waiting for the rest.
        window_bytes: u32,
    },
}

impl Item {
    /// Returns the type of the value that a take of the item gives.
    pub fn value_type(self) -> Type {
        match self {
            Item::Flit => Type::Bits(crate::flit::FLIT_BITS),
            Item::Bits(width) => Type::Bits(width),
            Item::Packet { .. } => Type::Packet,
        }
    }
}

/// A location in a source file; line 0 means "nowhere" (made by a pass).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct Loc {
    /// The file, an index into [`Program::files`](crate::Program::files).
    pub file: crate::FileId,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}
