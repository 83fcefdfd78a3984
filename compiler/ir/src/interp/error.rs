// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of a run, as opposed to errors within the program: everything a program does has a
//! meaning, so these are violated assertions, invalid requests of the host, and records that do not
//! fit.

use crate::flit::Malformed;

/// Why the interpreter cannot continue or serve a request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// A writer broke the framing of a flit channel; the flit was discarded.
    #[error("channel {channel}, item {item}: {malformed}")]
    Malformed {
        /// Writer and reader, as `a.out -> b.in`.
        channel: String,
        /// Index of the item offered to the channel, from 0.
        item: u64,
        /// The framing error.
        malformed: Malformed,
    },
    /// A replay cannot continue as recorded.
    #[error("the replay of {instance} cannot continue at firing {firing}: {reason}")]
    Replay {
        /// Name of the instance.
        instance: String,
        /// Number of firings so far that did something.
        firing: u64,
        /// The difference from the record.
        reason: String,
    },
    /// The record of a lossy channel does not match.
    #[error("the replay of channel {channel} cannot continue: no record of its item {item}")]
    ReplayChannel {
        /// Writer and reader, as `a.out -> b.in`.
        channel: String,
        /// Index of the item offered to the channel, from 0.
        item: u64,
    },
    /// The oracles belong to another graph.
    #[error("the record has {recorded} {what}, the graph {there}")]
    ForeignRecord {
        /// "instances" or "channels".
        what: &'static str,
        /// Number in the record.
        recorded: usize,
        /// Number in the graph.
        there: usize,
    },
    /// In a replay, host actions come only from the record.
    #[error("a replay takes host events from its record")]
    HostInReplay,
    /// The requested object does not exist, or the host may not access it.
    #[error("{instance} has no {what}")]
    Unknown {
        /// Name of the instance.
        instance: String,
        /// Requested object.
        what: String,
    },
    /// An item, argument or value of the wrong kind or width.
    #[error("{what} takes {wanted}, not {given}")]
    Mismatch {
        /// Receiver of the value.
        what: String,
        /// Kind that it accepts.
        wanted: String,
        /// Kind that was given.
        given: String,
    },
    /// An object exceeds the capacity of the interpreter.
    #[error("{what} is too large for the interpreter")]
    TooLarge {
        /// The object.
        what: String,
    },
}
