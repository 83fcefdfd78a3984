// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The error of every reader of stored bytes: snapshots come from disks and other machines, and
//! no length in them is trusted.

use thiserror::Error;

/// Bytes that are no value of the type which should have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("corrupt value: {reason} at byte {offset}")]
pub struct Corrupt {
    /// Offset of the first byte that cannot be right, from the start of the bytes given.
    pub offset: usize,
    /// The rule that the bytes violate.
    pub reason: &'static str,
}

impl Corrupt {
    /// Returns the error for a rule violated at `offset`.
    pub const fn at(offset: usize, reason: &'static str) -> Self {
        Self { offset, reason }
    }

    /// Returns the same error for bytes that begin `prefix` bytes earlier.
    #[must_use]
    pub const fn behind(self, prefix: usize) -> Self {
        Self { offset: self.offset + prefix, reason: self.reason }
    }
}
