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
    #[error("it is an address in the packet, and this instruction moves the packet")]
    PacketMoved,
    /// The result of an operation on an address is neither an address nor a known number.
    #[error("the result of this operation on an address is neither an address nor a known number")]
    NoAddress,
    /// The address is too far from its memory.
    #[error("the address is too far from its memory")]
    TooFar,
    /// An offset is added to a value that may be 0 instead of an address.
    #[error("an offset is added to it, although it may be 0 instead of an address")]
    MayBeNull,
    /// Bytes of the stack that may be part of an address, or that were written at an unknown place.
    #[error("these bytes of the stack may be part of an address")]
    PartOfAddress,
    /// A ring-buffer record that was given up.
    #[error("the ring-buffer record is submitted or discarded here")]
    RecordGone,
    /// Memory of a function that has returned.
    #[error("its memory is freed when the function returns here")]
    FunctionGone,
    /// The offset is not that of a context field.
    #[error("this is not a field of the context")]
    NoField,
    /// The result of an unknown helper, or of a helper on an unknown map.
    #[error("this calls an unknown helper, or a helper on an unknown map")]
    UnknownCall,
    /// A number, or an unknown value, is used as an address.
    #[error("a number is used as an address")]
    Number,
    /// The argument of a program of another type.
    #[error("only the context of XDP programs is known")]
    OtherKind,
    /// A kernel object that is not available here.
    #[error("it is a kernel object, which is not available here")]
    OfTheKernel,
    /// The program is too large, or has too many calls.
    #[error("the program is too large to be analysed completely")]
    TooLarge,
}
