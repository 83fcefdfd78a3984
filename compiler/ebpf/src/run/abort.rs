// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a program was ended before its exit: what the kernel's verifier would have refused, found
//! while it runs.

use crate::object::MapKind;
use std::fmt;
use thiserror::Error;

/// A program's end before its exit.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("program {program}, instruction {slot}: {reason}")]
pub struct Abort {
    /// Which program of the object.
    pub program: usize,
    /// The slot of its instruction.
    pub slot: usize,
    /// What was wrong.
    pub reason: Reason,
}

/// What was wrong.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Reason {
    /// A load, a store, or memory given to a helper.
    #[error("{access} of {size} bytes at {address:#x} is outside {window}")]
    OutOfBounds {
        /// What it wanted.
        access: Access,
        /// Where it would have begun.
        address: u64,
        /// How many bytes.
        size: u64,
        /// What the address is nearest to.
        window: Window,
    },
    /// More instructions than the environment allows.
    #[error("more than {0} instructions were executed")]
    TooManyInstructions(u64),
    /// Calls are nested too deep.
    #[error("more than {0} functions call each other")]
    TooManyFrames(usize),
    /// There is no instruction behind the last one.
    #[error("it ran past its last instruction")]
    PastTheEnd,
    /// The program cannot be run here.
    #[error("it is no XDP program, or was refused")]
    NotRunnable,
    /// What executes the program, which is not the interpreter, cannot go on.
    #[error("it cannot go on: {0}")]
    Engine(String),
    /// A helper was given something that is not a map.
    #[error("{helper} is given {value:#x}, which is no map")]
    NotAMap {
        /// The helper.
        helper: &'static str,
        /// The argument.
        value: u64,
    },
    /// A helper was given a map of a kind that it does not take.
    #[error("{helper} does not take a map of kind {kind}")]
    WrongKind {
        /// The helper.
        helper: &'static str,
        /// The map's.
        kind: MapKind,
    },
    /// A helper was given something that is not the program's context.
    #[error("{helper} is given {value:#x}, which is not the context")]
    NotTheContext {
        /// The helper.
        helper: &'static str,
        /// The argument.
        value: u64,
    },
    /// A helper was given something that is not a function of the program.
    #[error("{helper} is given {value:#x}, which is no function")]
    NotAFunction {
        /// The helper.
        helper: &'static str,
        /// The argument.
        value: u64,
    },
    /// A ring buffer's record was submitted that is not reserved, or not from its beginning.
    #[error("{helper} is given {value:#x}, where no record of a ring buffer is reserved")]
    NotARecord {
        /// The helper.
        helper: &'static str,
        /// The argument.
        value: u64,
    },
    /// A record of a ring buffer was neither submitted nor discarded.
    #[error("it ended with a record of ring buffer `{0}` reserved")]
    RecordLeft(String),
    /// A lock was taken twice, or released without being held.
    #[error("{0}, while the lock is {1}")]
    Lock(&'static str, &'static str),
    /// A lock was never released.
    #[error("it ended with a lock held")]
    LockLeft,
    /// A string has no end in its memory.
    #[error("the string at {0:#x} has no end")]
    EndlessString(u64),
    /// A helper that the loader does not know.
    #[error("helper {0} does not run here")]
    UnknownHelper(u32),
}

impl Reason {
    /// A change of a map that programs may only read.
    pub(crate) fn read_only(address: u64, name: String) -> Self {
        Self::OutOfBounds { access: Access::Write, address, size: 0, window: Window::Map(name) }
    }
}

/// What was wanted of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load, or memory that a helper reads.
    Read,
    /// A store, or memory that a helper writes.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Read => "a read",
            Self::Write => "a write",
        })
    }
}

/// A part of a program's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Window {
    /// Nothing is near.
    Nothing,
    /// `xdp_md`: fields of four bytes, which are read whole.
    Context,
    /// The stack, with where the access begins from the frame pointer of the frame in which it is.
    Stack(i64),
    /// The packet, with where the access begins from the packet's start, and the packet's length.
    Packet(i64, u64),
    /// A value of a map, a record of a ring buffer, or what programs may not do with a map.
    Map(String),
    /// A map's key in the function that is called for each element.
    Key,
    /// What stands for a map or a function has no bytes.
    Handle,
}

impl fmt::Display for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("all memory"),
            Self::Context => formatter.write_str("the fields of the context"),
            Self::Stack(at) => write!(formatter, "the stack (at {at} from a frame pointer)"),
            Self::Packet(at, length) => {
                write!(formatter, "the packet (at {at} of {length} bytes)")
            }
            Self::Map(name) => write!(formatter, "what it may do with map `{name}`"),
            Self::Key => formatter.write_str("the key of an element"),
            Self::Handle => formatter.write_str("all memory: a map or a function has no bytes"),
        }
    }
}
