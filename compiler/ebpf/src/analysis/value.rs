// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a register or a place of the stack holds, while a program is followed.

use super::scalar::Scalar;
use super::unknown::Unknown;
use std::fmt;

/// Farther than this many bytes from what it belongs to no address is followed.
pub(super) const FAR: i64 = 1 << 32;

/// Whether a range of offsets is near enough.
pub(super) fn is_near(range: (i64, i64)) -> bool {
    -FAR <= range.0 && range.1 <= FAR
}

/// A map that an address or a handle belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MapName {
    /// One of the object's, by its number there.
    Map(u32),
    /// Some map inside that one of the object's.
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

/// What is known of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value {
    pub kind: Kind,
    /// Whether it may be 0 instead.
    pub may_be_null: bool,
    /// Values with the same mark, other than 0, are equal.
    pub mark: u32,
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Nothing that may be relied on: not set on every path, or not read any more.
    Nothing,
    Number(Scalar),
    /// In the packet or its metadata: bytes behind a base of the state.
    Packet {
        base: usize,
        offset: i64,
    },
    PacketEnd,
    /// The lower half of an address in the packet, or without a base of its end: compilers subtract
    /// those.
    Half {
        base: Option<usize>,
        offset: i64,
    },
    /// In other memory, from the first to the last of these offsets.
    Address {
        region: Region,
        offset: (i64, i64),
    },
    /// What stands for a map.
    Map(MapName),
    /// What stands for a function, by its slot.
    Function(usize),
    Unknown(Unknown),
}

/// Memory with a size, other than the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Region {
    Context,
    /// Of the function that is this many calls away from the program's start, behind its frame
    /// pointer.
    Stack {
        depth: u8,
    },
    Value(MapName),
    /// A record of at least `size` bytes that the call in `slot` has reserved in a ring buffer.
    Record {
        map: MapName,
        slot: usize,
        size: u64,
    },
    /// The key that a function of this depth is called with.
    Key {
        map: MapName,
        depth: u8,
    },
}

impl Value {
    /// A value that is what it is, and equal to no other for sure.
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

    /// An address where a region begins.
    pub fn start_of(region: Region) -> Self {
        Self::new(Kind::Address { region, offset: (0, 0) })
    }

    /// The number it is.
    pub fn scalar(&self) -> Option<Scalar> {
        match self.kind {
            Kind::Number(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The only number that it is.
    pub fn constant(&self) -> Option<u64> {
        self.scalar()?.value()
    }

    /// Whether it can be an address or what stands for something.
    pub fn is_pointer(&self) -> bool {
        let no_pointer = matches!(
            self.kind,
            Kind::Nothing | Kind::Number(_) | Kind::Half { .. } | Kind::Unknown(_)
        );
        !no_pointer
    }
}
