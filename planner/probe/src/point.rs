// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Points of measurement: each has a value in each dimension.

use freeport_plan_model::local::{Operation, Request};

/// Longest batch, in requests.
pub const BATCH_MAX: u32 = 64;

/// An operation of the fabric.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A read of the other side's memory.
    Read,
    /// A write to the other side's memory.
    Write,
    /// A write with data, which the other side answers with one of the same length.
    Send,
    /// An addition to a word of the other side's memory.
    FetchAdd,
    /// An exchange of a word of the other side's memory.
    CompareSwap,
}

/// How requests follow each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// One at a time: the address of a read depends on the data of the one before.
    Latency,
    /// As fast as possible.
    Rate,
}

/// A point of measurement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Point {
    /// The operation.
    pub kind: Kind,
    /// How requests follow each other.
    pub mode: Mode,
    /// Payload in bytes, a multiple of 8.
    pub bytes: u64,
    /// Requests that are posted before their completions are polled.
    pub batch: u32,
    /// Range of addresses in bytes, over which requests are spread at random.
    pub range: u64,
    /// Threads, each with an endpoint of its own.
    pub threads: u32,
}

impl Kind {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Send => "send",
            Self::FetchAdd => "fetch_add",
            Self::CompareSwap => "compare_swap",
        }
    }

    /// Returns the operation whose parameters describe it.
    pub fn operation(self) -> Operation {
        match self {
            Self::Read => Operation::Read,
            Self::Write => Operation::Write,
            Self::Send => Operation::Send,
            Self::FetchAdd | Self::CompareSwap => Operation::Atomic,
        }
    }
}

impl Mode {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Rate => "rate",
        }
    }
}

impl Point {
    /// Returns why the point cannot be measured; none if it can.
    pub fn fault(&self) -> Option<&'static str> {
        let Self { kind, mode, bytes, batch, range, threads } = *self;
        let is_message = kind == Kind::Send;
        match () {
            () if bytes == 0 || bytes % 8 != 0 => Some("its payload is no multiple of 8 bytes"),
            () if range < bytes || range % 8 != 0 => {
                Some("its range is too small or no multiple of 8")
            }
            () if batch == 0 || threads == 0 => Some("it has no requests"),
            () if is_message && batch > BATCH_MAX => Some("a batch has at most 64 messages"),
            () if is_message && range < bytes * u64::from(batch) => {
                Some("the messages of a batch are longer than its range")
            }
            () if mode == Mode::Latency && batch != 1 => Some("single requests have no batches"),
            () => None,
        }
    }

    /// Returns the requests of the model.
    pub fn request(&self) -> Request {
        let Self { kind, bytes, batch, range, threads, .. } = *self;
        Request { operation: kind.operation(), bytes, batch, range, threads }
    }
}
