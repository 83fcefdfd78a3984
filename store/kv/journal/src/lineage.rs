// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lineage of a log: the histories that it consists of, in the file `lineage`.
//!
//! A *history* is what one primary has appended from its start on. Two logs that have the same
//! history are equal from its beginning up to the first end of it in either of them.
use crate::error::Failure;
use crate::journal::Journal;
use crate::status::Position;

/// The most histories that a lineage has. Older ones are dropped.
pub const MAX_HISTORIES: usize = 64;

/// A part of a log that one primary has appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// A random number.
    pub id: u64,
    /// The term of the primary.
    pub term: u64,
    /// The position at which it begins.
    pub start: Position,
}

/// The histories of a log, newest last. Its [`Display`](std::fmt::Display) form is the text of the
/// file, and what is sent to other servers; [`str::parse`] reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    histories: Vec<History>,
}

impl Lineage {
    /// All histories, newest last.
    pub fn histories(&self) -> &[History] {
        &self.histories
    }

    /// The newest history.
    pub fn current(&self) -> Option<History> {
        self.histories.last().copied()
    }

    /// The newest history that begins at or before a position: the one that a follower with this
    /// end names to its primary.
    pub fn at(&self, end: Position) -> Option<History> {
        self.histories.iter().rev().find(|history| history.start <= end).copied()
    }

    /// Whether a log that has this history up to `position` is the beginning of a log with this
    /// lineage, as far as this one reaches.
    pub fn covers(&self, history: u64, position: Position) -> bool {
        let Some(at) = self.histories.iter().position(|one| one.id == history) else {
            return false;
        };
        let next = self.histories.get(at + 1);
        self.histories[at].start <= position && next.is_none_or(|next| position <= next.start)
    }

    /// Begins a history. The oldest is dropped if there are too many.
    pub fn begin(&mut self, _term: u64, _start: Position) -> History {
        unimplemented!()
    }

    /// Drops histories that begin beyond the end of the log.
    pub fn fit(&mut self, end: Position) {
        self.histories.retain(|history| history.start <= end);
    }
}

impl std::fmt::Display for Lineage {
    fn fmt(&self, _formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        unimplemented!()
    }
}

impl std::str::FromStr for Lineage {
    type Err = String;

    fn from_str(_text: &str) -> Result<Lineage, String> {
        unimplemented!()
    }
}

impl Journal {
    /// The lineage of this log.
    pub fn lineage(&self) -> Lineage {
        unimplemented!()
    }

    /// Begins a history at the end of the log, durably. A server does this whenever it becomes
    /// primary, and at every start as primary, before it appends.
    ///
    /// # Errors
    /// The disk has failed; the lineage is as before, or has the new history already.
    pub fn begin_history(&self, _term: u64) -> Result<History, Failure> {
        unimplemented!()
    }

    /// Makes this the lineage, durably: that of the primary, before one of its batches is appended.
    ///
    /// # Errors
    /// As [`Journal::begin_history`].
    pub fn adopt_lineage(&self, _lineage: &Lineage) -> Result<(), Failure> {
        unimplemented!()
    }
}
