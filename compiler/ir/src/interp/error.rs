// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong with a run, as opposed to within the program: everything a program does has a
//! meaning, so these are broken assertions, wrong requests of the host, and records that do not
//! fit.

use crate::flit::Malformed;

/// Why the interpreter cannot do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// A writer broke the framing of a flit channel; the flit was left out.
    #[error("channel {channel}, item {item}: {malformed}")]
    Malformed {
        /// Its writer and reader, as `a.out -> b.in`.
        channel: String,
        /// Which item offered to the channel, from 0.
        item: u64,
        /// What is wrong.
        malformed: Malformed,
    },
    /// A replay cannot go on as recorded.
    #[error("the replay of {instance} cannot go on at firing {firing}: {reason}")]
    Replay {
        /// Whose record it is.
        instance: String,
        /// Firings that did something so far.
        firing: u64,
        /// What does not fit.
        reason: String,
    },
    /// The record of a lossy channel does not fit.
    #[error("the replay of channel {channel} cannot go on: no record of its item {item}")]
    ReplayChannel {
        /// Its writer and reader.
        channel: String,
        /// Which item offered to it, from 0.
        item: u64,
    },
    /// The oracles are those of another graph.
    #[error("the record has {recorded} {what}, the graph {there}")]
    ForeignRecord {
        /// Instances or channels.
        what: &'static str,
        /// How many the record has.
        recorded: usize,
        /// How many there are.
        there: usize,
    },
    /// In a replay only the record acts for the host.
    #[error("a replay takes host events from its record")]
    HostInReplay,
    /// No such thing, or the host may not touch it.
    #[error("{instance} has no {what}")]
    Unknown {
        /// Which instance.
        instance: String,
        /// What was asked for.
        what: String,
    },
    /// An item, argument or value of a wrong kind or width.
    #[error("{what} takes {wanted}, not {given}")]
    Mismatch {
        /// What it was given to.
        what: String,
        /// What it takes.
        wanted: String,
        /// What it was given.
        given: String,
    },
    /// Beyond what the interpreter holds.
    #[error("{what} is too large for the interpreter")]
    TooLarge {
        /// What is.
        what: String,
    },
}
