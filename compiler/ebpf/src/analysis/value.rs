// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Abstract values of registers and stack slots.

use super::scalar::Scalar;
use super::unknown::Unknown;
use std::fmt;

/// Largest offset of an address from its memory, in bytes; addresses beyond it are unknown.
pub(super) const FAR: i64 = 1 << 32;

/// Returns whether a range of offsets is within [`FAR`].
pub(super) fn is_near(range: (i64, i64)) -> bool {
    -FAR <= range.0 && range.1 <= FAR
}

/// The map to which an address or a handle belongs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MapName {
    /// One of the object's maps, by its number there.
    Map(u32),
    /// Some inner map of this map of the object.
    Inside(u32),
}

impl fmt::Display for MapName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map(map) => write!(formatter, "map {map}"),
            Self::Inside(outer) => write!(formatter, "a map inside map {outer}"),
        }
    }
}

/// An abstract value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value {
    pub kind: Kind,
    /// Whether it may also be 0.
    pub may_be_null: bool,
    /// Values with the same mark, other than 0, are equal.
    pub mark: u32,
}

/// Kind of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// No usable value: not set on every path, or not read again.
    Nothing,
    Number(Scalar),
    /// An address in the packet or its metadata: an offset from a base of the state.
    Packet {
        base: usize,
        offset: i64,
    },
    PacketEnd,
    /// The lower half of a packet address, or without a base that of the packet's end: compilers
    /// subtract such halves.
    Half {
        base: Option<usize>,
        offset: i64,
    },
    /// An address in other memory, within this range of offsets.
    Address {
        region: Region,
        offset: (i64, i64),
    },
    /// A reference to a map.
    Map(MapName),
    /// A reference to a function, by its slot.
    Function(usize),
    Unknown(Unknown),
}

/// Memory other than the packet, with a known size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Region {
    Context,
    /// The frame of the function at this call depth, relative to its frame pointer.
    Stack {
        depth: u8,
    },
    Value(MapName),
    /// A record of at least `size` bytes that the call in `slot` reserved in a ring buffer.
    Record {
        map: MapName,
        slot: usize,
        size: u64,
    },
    /// The key that a helper passes to the function at this call depth.
    Key {
        map: MapName,
        depth: u8,
    },
}

impl Value {
    /// Creates a value that is not known to equal any other.
    pub const fn new(kind: Kind) -> Self {
        Self { kind, may_be_null: false, mark: 0 }
    }

    pub const NOTHING: Self = Self::new(Kind::Nothing);
    pub const ANY_NUMBER: Self = Self::number(Scalar::ANY);

    pub const fn number(scalar: Scalar) -> Self {
        Self::new(Kind::Number(scalar))
    }

    pub const fn unknown(unknown: Unknown) -> Self {
        Self::new(Kind::Unknown(unknown))
    }

    /// Returns the address of the start of a region.
    pub fn start_of(region: Region) -> Self {
        Self::new(Kind::Address { region, offset: (0, 0) })
    }

    /// Returns the number, if the value is one.
    pub fn scalar(&self) -> Option<Scalar> {
        match self.kind {
            Kind::Number(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// Returns the number, if it is the only possible one.
    pub fn constant(&self) -> Option<u64> {
        self.scalar()?.value()
    }

    /// Returns whether it can be an address or a reference.
    pub fn is_pointer(&self) -> bool {
        let no_pointer = matches!(
            self.kind,
            Kind::Nothing | Kind::Number(_) | Kind::Half { .. } | Kind::Unknown(_)
        );
        !no_pointer
    }
}
