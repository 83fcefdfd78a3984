// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Layouts of keys and values of maps, from the types of the source, so that their bytes can be
//! shown with the names of members.

mod datum;
mod encode;
mod part;
mod read;

pub use datum::Datum;
pub use part::Part;
pub(super) use read::{of_type, of_variables};

/// A type with all its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Layout {
    /// A number.
    Integer {
        /// Size in bytes, at most 16.
        bytes: u32,
        /// Whether it is signed.
        is_signed: bool,
    },
    /// An enum.
    Enum {
        /// Size in bytes, at most 8.
        bytes: u32,
        /// Whether it is signed.
        is_signed: bool,
        /// Names with their values as 64 bits.
        names: Vec<(String, u64)>,
    },
    /// A struct, or a union, whose members all begin at offset 0.
    Struct {
        /// Size in bytes.
        bytes: u32,
        /// Members in the order of the source.
        members: Vec<Member>,
    },
    /// An array.
    Array {
        /// Layout of an element.
        element: Box<Layout>,
        /// Number of elements.
        count: u32,
    },
    /// Bytes of unknown structure: pointers, and types that are nested too deeply.
    Opaque {
        /// Number of bytes.
        bytes: u32,
    },
}

/// A member of a struct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Name; empty for an anonymous member, whose own members are accessed directly.
    pub name: String,
    /// Offset in bits from the start of the struct.
    pub bit_offset: u32,
    /// Number of bits of a bit field, else 0.
    pub field_bits: u32,
    /// Layout of the member.
    pub layout: Layout,
}

impl Layout {
    /// Returns the size of a value in bytes; saturates.
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
