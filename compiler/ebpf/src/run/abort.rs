// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons for aborting a program: violations that the kernel's verifier would have rejected,
//! detected at run time.

use crate::object::MapKind;
use std::fmt;
use thiserror::Error;

/// The abort of a program.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("program {program}, instruction {slot}: {reason}")]
pub struct Abort {
    /// Number of the program in the object.
    pub program: usize,
    /// Slot of the instruction.
    pub slot: usize,
    /// Reason.
    pub reason: Reason,
}

/// Reason for an abort.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Reason {
    /// An out-of-bounds load, store, or memory argument of a helper.
    #[error("{access} of {size} bytes at {address:#x} is outside {window}")]
    OutOfBounds {
        /// Kind of the access.
        access: Access,
        /// Address of its first byte.
        address: u64,
        /// Number of bytes.
        size: u64,
        /// Memory nearest to the address.
        window: Window,
    },
    /// The program exceeded the environment's limit of instructions.
    #[error("more than {0} instructions were executed")]
    TooManyInstructions(u64),
    /// Calls are nested too deeply.
    #[error("calls are more than {0} functions deep")]
    TooManyFrames(usize),
    /// Execution continued past the last instruction.
    #[error("it ran past its last instruction")]
    PastTheEnd,
    /// The program cannot be run here.
    #[error("it is not an XDP program, or was refused")]
    NotRunnable,
    /// The engine that executes the program, other than the interpreter, failed.
    #[error("execution cannot continue: {0}")]
    Engine(String),
    /// A helper was passed something that is not a map.
    #[error("{helper} received {value:#x}, which is not a map")]
    NotAMap {
        /// Name of the helper.
        helper: &'static str,
        /// The argument.
        value: u64,
    },
    /// A helper was passed a map of an unsupported kind.
    #[error("{helper} does not take a map of kind {kind}")]
    WrongKind {
        /// Name of the helper.
        helper: &'static str,
        /// Kind of the map.
        kind: MapKind,
    },
    /// A helper was passed something that is not the program's context.
    #[error("{helper} received {value:#x}, which is not the context")]
    NotTheContext {
        /// Name of the helper.
        helper: &'static str,
        /// The argument.
        value: u64,
    },
    /// A helper was passed something that is not a function of the program.
    #[error("{helper} received {value:#x}, which is not a function")]
    NotAFunction {
        /// Name of the helper.
        helper: &'static str,
        /// The argument.
        value: u64,
    },
    /// A helper was passed an address that is not the start of a reserved ring-buffer record.
    #[error("{helper} received {value:#x}, which is not a reserved ring-buffer record")]
    NotARecord {
        /// Name of the helper.
        helper: &'static str,
        /// The argument.
        value: u64,
    },
    /// A ring-buffer record was neither submitted nor discarded.
    #[error("it ended with a record of ring buffer `{0}` reserved")]
    RecordLeft(String),
    /// A lock was taken twice, or released without being held.
    #[error("{0}, while the lock is {1}")]
    Lock(&'static str, &'static str),
    /// A lock was never released.
    #[error("it ended with a lock held")]
    LockLeft,
    /// A string is not terminated within its memory.
    #[error("the string at {0:#x} is not terminated")]
    EndlessString(u64),
    /// A helper that is not supported.
    #[error("helper {0} is not supported")]
    UnknownHelper(u32),
}

impl Reason {
    /// Creates the reason for a change of a map that is read-only for programs.
    pub(crate) fn read_only(address: u64, name: String) -> Self {
        Self::OutOfBounds { access: Access::Write, address, size: 0, window: Window::Map(name) }
    }
}

/// Kind of a memory access.
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

/// A region of a program's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Window {
    /// No region is near.
    Nothing,
    /// The context, `xdp_md`: fields of four bytes, which are read as a whole.
    Context,
    /// The stack, with the offset of the access from the nearest frame's frame pointer.
    Stack(i64),
    /// The packet, with the offset of the access from its start, and its length.
    Packet(i64, u64),
    /// A map's value, a ring-buffer record, or an access that a map does not allow to programs.
    Map(String),
    /// A map's key in the function that is called for each element.
    Key,
    /// The handle of a map or a function, which has no memory.
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
