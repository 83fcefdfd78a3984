// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors, in the words of Redis where it has any.

use thiserror::Error;

/// Why an operation did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The key holds a value of another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// No memory is left.
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
}

impl From<freeport_kv_engine::OutOfMemory> for Error {
    fn from(_: freeport_kv_engine::OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}
