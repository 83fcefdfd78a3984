// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests on the path of a machine.

use super::{KIB, Machine};
use std::fmt::{self, Display};
use std::str::FromStr;
use thiserror::Error;

/// Name of the only path of a machine: shared memory between two processes.
pub const PATH: &str = "shm";

/// An operation on the path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// One-sided read of the other process's memory.
    Read,
    /// One-sided write to the other process's memory.
    Write,
    /// A message that the other process answers with one of the same length.
    Send,
    /// An atomic operation on a word of the other process's memory.
    Atomic,
}

/// Requests of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The operation.
    pub operation: Operation,
    /// Payload in bytes.
    pub bytes: u64,
    /// Requests that are posted before their completions are polled.
    pub batch: u32,
    /// Range of addresses in bytes, over which requests are spread at random. Messages do not
    /// depend on it: their buffers are used in turn.
    pub range: u64,
    /// Threads that post requests, each to another process.
    pub threads: u32,
}

/// Requests that cannot be estimated.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RequestError {
    /// A number outside of what was measured.
    #[error("{name} has to be between {least} and {most}, and not {value}")]
    Range {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: u64,
        /// Smallest accepted value.
        least: u64,
        /// Largest accepted value.
        most: u64,
    },
    /// An atomic operation on anything but a word.
    #[error("an atomic operation has 8 bytes, and not {0}")]
    Word(u64),
}

impl Request {
    /// Checks whether the machine's profile covers the request.
    ///
    /// # Errors
    /// It does not.
    pub fn check(&self, machine: &Machine) -> Result<(), RequestError> {
        let Self { operation, bytes, batch, range, threads } = *self;
        if operation == Operation::Atomic && bytes != 8 {
            return Err(RequestError::Word(bytes));
        }
        let measured = &machine.measured;
        let most = (measured.range * KIB) as u64;
        let (payload, range) = match operation {
            Operation::Send => (measured.message, most),
            _ => (measured.payload, range),
        };
        for (name, value, least, most) in [
            ("the payload in bytes", bytes, 8, payload as u64),
            ("the batch", batch.into(), 1, measured.batch as u64),
            ("the range in bytes", range, bytes, most),
            ("the number of threads", threads.into(), 1, measured.threads as u64),
        ] {
            if !(least..=most).contains(&value) {
                return Err(RequestError::Range { name, value, least, most });
            }
        }
        Ok(())
    }
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Send, Self::Atomic];

    /// Returns the name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Send => "send",
            Self::Atomic => "atomic",
        }
    }
}

impl Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|operation| operation.name() == name);
        found
            .ok_or_else(|| format!("there is no operation {name}; use read, write, send or atomic"))
    }
}
