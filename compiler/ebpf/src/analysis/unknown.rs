// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons for unknown values: never a guess, always with the instruction where they originated.

use std::fmt;
use thiserror::Error;

/// An unknown value: where it originated, and why.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[error("instruction {slot}, {place}: {why}")]
pub struct Unknown {
    /// Slot of the instruction.
    pub slot: usize,
    /// Place of the value.
    pub place: Place,
    /// Reason.
    pub why: Why,
}

/// Place of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// A register.
    Register(u8),
    /// A stack slot: byte offset from the frame pointer of a function, with the call depth of that
    /// function.
    Stack {
        /// Call depth.
        depth: u8,
        /// Offset in bytes.
        offset: i16,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(register) => write!(formatter, "register {register}"),
            Self::Stack { depth, offset } => {
                write!(formatter, "the stack at {offset} of frame {depth}")
            }
        }
    }
}

/// Reason for which a value is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum Why {
    /// It is read without being set on every path.
    #[error("it was not set on every path to here")]
    NeverSet,
    /// Paths with different kinds of values meet.
    #[error("it is not the same kind of value on all paths to here")]
    PathsDiffer,
    /// A helper moved an end of the packet, which invalidates old addresses.
    #[error("it is an address in the packet, which is moved here")]
    PacketMoved,
    /// The result of an operation on an address is neither an address nor a known number.
    #[error("this makes no address and no number of an address")]
    NoAddress,
    /// The address is too far from its memory.
    #[error("it is too far from where the address points to")]
    TooFar,
    /// An offset is added to a value that may be 0 instead of an address.
    #[error("it may be 0 and no address, but an offset is added")]
    MayBeNull,
    /// Bytes of the stack that may be part of an address, or that were written at an unknown place.
    #[error("these bytes of the stack may be part of an address")]
    PartOfAddress,
    /// A ring-buffer record that was given up.
    #[error("the record of the ring buffer is given away here")]
    RecordGone,
    /// Memory of a function that has returned.
    #[error("its memory is gone with the function that returns here")]
    FunctionGone,
    /// The offset is not that of a context field.
    #[error("this is no field of the context")]
    NoField,
    /// The result of an unknown helper, or of a helper on an unknown map.
    #[error("this call is of nothing known, or of a map that is not known")]
    UnknownCall,
    /// A number, or an unknown value, is used as an address.
    #[error("a number is taken for an address")]
    Number,
    /// The argument of a program of another type.
    #[error("only the context of XDP programs is known")]
    OtherKind,
    /// A kernel object that is not available here.
    #[error("it belongs to the kernel")]
    OfTheKernel,
    /// The program is too large, or has too many calls.
    #[error("the program is too large to be followed to its end")]
    TooLarge,
}
