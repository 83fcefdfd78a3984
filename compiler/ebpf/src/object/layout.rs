// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What keys and values of maps are made of, by the types of the source, so that their bytes can be
//! told by the names of members.

mod datum;
mod encode;
mod part;
mod read;

pub use datum::Datum;
pub use part::Part;
pub(super) use read::{of_type, of_variables};

/// A type, with all that it is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Layout {
    /// A number.
    Integer {
        /// Bytes of it, at most 16.
        bytes: u32,
        /// Whether it may be below 0.
        is_signed: bool,
    },
    /// One of several numbers that have names.
    Enum {
        /// Bytes of it, at most 8.
        bytes: u32,
        /// Whether it may be below 0.
        is_signed: bool,
        /// The names, with their numbers as 64 bits.
        names: Vec<(String, u64)>,
    },
    /// A struct, or a union, whose members lie at the same place.
    Struct {
        /// Bytes of it.
        bytes: u32,
        /// In the order of the source.
        members: Vec<Member>,
    },
    /// Elements one behind the other.
    Array {
        /// What each is.
        element: Box<Layout>,
        /// How many there are.
        count: u32,
    },
    /// Bytes of which no more is known: pointers, and what is nested too deep.
    Opaque {
        /// How many.
        bytes: u32,
    },
}

/// A member of a struct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its name; empty if its own members stand for themselves.
    pub name: String,
    /// Where it begins, in bits from the start of the struct.
    pub bit_offset: u32,
    /// Bits of it if it is a bit field, else 0.
    pub field_bits: u32,
    /// What it is.
    pub layout: Layout,
}

impl Layout {
    /// Bytes of a value; the largest number if there are more.
    pub fn bytes(&self) -> u32 {
        match self {
            Self::Integer { bytes, .. }
            | Self::Enum { bytes, .. }
            | Self::Struct { bytes, .. }
            | Self::Opaque { bytes } => *bytes,
            Self::Array { element, count } => element.bytes().saturating_mul(*count),
        }
    }
}
