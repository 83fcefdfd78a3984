// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a batch is executed with, and what it leaves.

use std::ops::Range;

use freeport_kv_protocol::batch::{Operation, Operations, ReplyWriter};

/// Conditions of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Number of the selected database.
    pub database: u16,
    /// The time in milliseconds since 1970.
    pub now_ms: u64,
    /// Operations count as uses of their keys.
    pub touches: bool,
    /// The batch ends before an operation for which no memory is left, so that the caller can
    /// evict keys and continue. Otherwise the operation is answered by an error.
    pub stops_when_full: bool,
}

/// Some of the operations of a packet.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    /// All operations of the packet.
    pub operations: &'a Operations,
    /// The payload that they were decoded from.
    pub payload: &'a [u8],
    /// Numbers of those to execute.
    pub range: Range<usize>,
}

/// Place for the replies.
#[derive(Debug)]
pub struct Replies<'a> {
    /// The packet of replies.
    pub writer: &'a mut ReplyWriter,
    /// The bytes that end with the packet.
    pub output: &'a mut Vec<u8>,
}

/// Result of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of operations that were executed and have a reply. It is less than that of the batch
    /// only if no memory was left ([`Conditions::stops_when_full`]).
    pub executed: usize,
    /// Number of those whose reply is an error.
    pub failed: usize,
}

impl<'a> Batch<'a> {
    /// The operations in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Operation<'a>> + use<'_, 'a> {
        self.range.clone().map(|number| self.operations.get(self.payload, number))
    }
}
