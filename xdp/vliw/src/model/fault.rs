// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an image does that it may not, found while it runs.

use thiserror::Error;

/// Where an image breaks a rule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("image of program {program}, row {row}: {hazard}")]
pub struct Fault {
    /// Which program of the object.
    pub program: usize,
    /// Its row.
    pub row: usize,
    /// Which rule, and how.
    pub hazard: Hazard,
}

/// A rule that is broken.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Hazard {
    /// Results are forwarded within their lane only.
    #[error(
        "lane {lane} reads register {register}, which lane {writer} of row {writer_row} before it \
         writes"
    )]
    NotForwarded {
        /// Who reads.
        lane: usize,
        /// What.
        register: u8,
        /// The row that was executed just before.
        writer_row: usize,
        /// Who writes it there.
        writer: usize,
    },
    /// Two lanes write a register, or one reads what another writes.
    #[error("lanes {first} and {second} conflict in register {register}")]
    Registers {
        /// A lane that writes.
        first: usize,
        /// The other.
        second: usize,
        /// What both use.
        register: u8,
    },
    /// Two lanes touch the same bytes, and not both read.
    #[error("lanes {first} and {second} conflict in memory at {address:#x}")]
    Memory {
        /// A lane that writes.
        first: usize,
        /// The other.
        second: usize,
        /// Where the first one writes.
        address: u64,
    },
    /// Stores are not there yet for loads of the next row.
    #[error(
        "lane {lane} reads memory at {address:#x}, which lane {writer} of row {writer_row} before \
         it stores"
    )]
    StoreThenLoad {
        /// Who reads.
        lane: usize,
        /// Where.
        address: u64,
        /// The row that was executed just before.
        writer_row: usize,
        /// Who stores there.
        writer: usize,
    },
    /// Where the packet is, is asked while it moves.
    #[error("lane {lane} asks where the packet begins or ends, which lane {call} moves")]
    Moves {
        /// Who asks.
        lane: usize,
        /// Who calls the helper.
        call: usize,
    },
    /// There is one unit for helpers.
    #[error("lanes {first} and {second} both call a helper")]
    Calls {
        /// One lane.
        first: usize,
        /// Another.
        second: usize,
    },
    /// Something stands where nothing is ever done, or where a long constant is.
    #[error("lane {lane} is behind what takes its place in lane {before}")]
    Behind {
        /// The lane that may not be used.
        lane: usize,
        /// What keeps it from being used.
        before: usize,
    },
    /// A function that is called has no verdict.
    #[error("a function that is called ends with a verdict")]
    Verdict,
    /// Control leaves its function.
    #[error("control goes on with row {next}, which is not of its function")]
    Beyond {
        /// Where it leads.
        next: usize,
    },
    /// A call leads to where no function begins.
    #[error("no function begins with row {row}, which is called")]
    NotAFunction {
        /// The row.
        row: usize,
    },
    /// An operation that there is not.
    #[error("lane {lane} has an operation that there is not: {reason}")]
    Malformed {
        /// The lane.
        lane: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
}
