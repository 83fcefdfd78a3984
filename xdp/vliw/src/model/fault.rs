// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Violations of rules by an image, detected during execution.

use thiserror::Error;

/// A violation of a rule by an image.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("image of program {program}, row {row}: {hazard}")]
pub struct Fault {
    /// Number of the program in the object.
    pub program: usize,
    /// Row of its image.
    pub row: usize,
    /// The rule, with details.
    pub hazard: Hazard,
}

/// A rule that is violated.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Hazard {
    /// A result is used in the next row by another lane: results are forwarded within their lane
    /// only.
    #[error(
        "lane {lane} reads register {register}, which lane {writer} of row {writer_row} before it \
         writes"
    )]
    NotForwarded {
        /// Lane that reads.
        lane: usize,
        /// Register.
        register: u8,
        /// The previously executed row.
        writer_row: usize,
        /// Lane that writes the register there.
        writer: usize,
    },
    /// Two lanes write a register, or one reads a register that another writes.
    #[error("lanes {first} and {second} conflict in register {register}")]
    Registers {
        /// Lane that writes.
        first: usize,
        /// The other lane.
        second: usize,
        /// Register that both use.
        register: u8,
    },
    /// Two lanes access the same bytes, and at least one writes.
    #[error("lanes {first} and {second} conflict in memory at {address:#x}")]
    Memory {
        /// Lane that writes.
        first: usize,
        /// The other lane.
        second: usize,
        /// Address at which the first lane writes.
        address: u64,
    },
    /// A load reads bytes that the previous row stores: they are not visible yet.
    #[error(
        "lane {lane} reads memory at {address:#x}, which lane {writer} of row {writer_row} before \
         it stores"
    )]
    StoreThenLoad {
        /// Lane that reads.
        lane: usize,
        /// Address.
        address: u64,
        /// The previously executed row.
        writer_row: usize,
        /// Lane that stores there.
        writer: usize,
    },
    /// The packet's position is read in a row that moves it.
    #[error("lane {lane} reads the packet's bounds, which lane {call} moves")]
    Moves {
        /// Lane that reads it.
        lane: usize,
        /// Lane that calls the helper.
        call: usize,
    },
    /// Two lanes call helpers, for which there is one unit.
    #[error("lanes {first} and {second} both call a helper")]
    Calls {
        /// One lane.
        first: usize,
        /// The other lane.
        second: usize,
    },
    /// An operation stands after one that always leaves, or in the second lane of a long constant.
    #[error("lane {lane} must be empty because of the operation in lane {before}")]
    Behind {
        /// Lane that must be empty.
        lane: usize,
        /// Lane with the operation for which it must be empty.
        before: usize,
    },
    /// A called function exits with a verdict.
    #[error("a function that is called ends with a verdict")]
    Verdict,
    /// Control leaves the function.
    #[error("control leaves the function, to row {next}")]
    Beyond {
        /// Row to which control goes.
        next: usize,
    },
    /// The target of a call is not the first row of a function.
    #[error("row {row} is called, but is not the first row of a function")]
    NotAFunction {
        /// The target.
        row: usize,
    },
    /// An invalid operation.
    #[error("lane {lane} has an invalid operation: {reason}")]
    Malformed {
        /// Lane of the operation.
        lane: usize,
        /// Reason.
        reason: &'static str,
    },
}
