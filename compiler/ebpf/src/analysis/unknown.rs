// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why something is not known: never a guess, always with the instruction that it began at.

use std::fmt;
use thiserror::Error;

/// What is not known, since which instruction, and why.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[error("instruction {slot}, {place}: {why}")]
pub struct Unknown {
    /// The instruction's slot.
    pub slot: usize,
    /// Where the value was.
    pub place: Place,
    /// Why it is not known.
    pub why: Why,
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// In a register.
    Register(u8),
    /// In the stack: bytes from the frame pointer of a function, by how many calls it is away from
    /// the program's start.
    Stack {
        /// Calls.
        depth: u8,
        /// Bytes.
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

/// Why a value is not known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum Why {
    /// It is read without having been set on every path.
    #[error("it was not set on every path to here")]
    NeverSet,
    /// Paths meet that have different kinds of values there.
    #[error("it is not the same kind of value on all paths to here")]
    PathsDiffer,
    /// A helper moved an end of the packet, after which old addresses mean nothing.
    #[error("it is an address in the packet, which is moved here")]
    PacketMoved,
    /// An operation on an address that gives none.
    #[error("this makes no address and no number of an address")]
    NoAddress,
    /// An address far from what it belongs to.
    #[error("it is too far from where the address points to")]
    TooFar,
    /// An offset is added to what may be no address.
    #[error("it may be 0 and no address, but an offset is added")]
    MayBeNull,
    /// Bytes of the stack that may be part of an address, or written by who knows.
    #[error("these bytes of the stack may be part of an address")]
    PartOfAddress,
    /// A record of a ring buffer that was given away.
    #[error("the record of the ring buffer is given away here")]
    RecordGone,
    /// Memory of a function that has returned.
    #[error("its memory is gone with the function that returns here")]
    FunctionGone,
    /// No field of the context.
    #[error("this is no field of the context")]
    NoField,
    /// What a helper gives that is not known or was given a map that is not known.
    #[error("this call is of nothing known, or of a map that is not known")]
    UnknownCall,
    /// A number, or what is not known itself, is taken for an address.
    #[error("a number is taken for an address")]
    Number,
    /// What this kind of program is started with.
    #[error("only the context of XDP programs is known")]
    OtherKind,
    /// Something of the kernel that cannot be had here.
    #[error("it belongs to the kernel")]
    OfTheKernel,
    /// The program is too large or its calls too many.
    #[error("the program is too large to be followed to its end")]
    TooLarge,
}
