// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Following a log: batches are read from its files while others append.
use crate::frame::Items;
use crate::journal::Journal;
use crate::status::Position;
use std::path::PathBuf;
use std::time::Duration;

/// A batch of a log.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    /// Its position.
    pub position: Position,
    /// Its units.
    pub units: Items<'a>,
}

impl Batch<'_> {
    /// The position behind it.
    pub fn end(&self) -> Position {
        Position(
            self.position.0 + crate::frame::FRAME_BYTES as u64 + self.units.bytes().len() as u64,
        )
    }
}

/// Reasons why a log cannot be followed (any longer) from a position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// The log does not have this position, or not any longer. The follower needs the whole state.
    #[error("position {} is not in the log, which begins at {} and ends at {}", .position.0, .first.0, .end.0)]
    Missing {
        /// The position.
        position: Position,
        /// The first position that can be followed.
        first: Position,
        /// The end of the log.
        end: Position,
    },
    /// The follower is further behind than its limit.
    #[error("the follower is {bytes} bytes behind, which is more than its limit")]
    Behind {
        /// Bytes between the follower and the end of the log.
        bytes: u64,
    },
    /// A file cannot be read as what was written to it.
    #[error("{} at offset {offset}: {reason}", .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The fault.
        reason: String,
    },
    /// The journal was closed, or its contents were replaced ([`Journal::install`]).
    #[error("the log is not open any longer")]
    Closed,
}

/// A reader of a log's batches. It keeps the files that it needs open, also when they are removed.
pub struct Follower;

impl Follower {
    /// The next batch. Waits for it, at most for a time; then the result is `None`.
    ///
    /// # Errors
    /// All of [`FollowError`]. The follower cannot be used after it.
    pub fn next(&mut self, _timeout: Duration) -> Result<Option<Batch<'_>>, FollowError> {
        unimplemented!()
    }

    /// The position of the next batch.
    pub fn position(&self) -> Position {
        unimplemented!()
    }

    /// Bytes between the next batch and the end of the log.
    pub fn behind(&self) -> u64 {
        unimplemented!()
    }
}

/// A reader of a snapshot's entries.
pub struct SnapshotReader;

impl SnapshotReader {
    /// Length of the file, in bytes; 0 without a snapshot.
    pub fn bytes(&self) -> u64 {
        unimplemented!()
    }

    /// The next block of entries; `None` at the end.
    ///
    /// # Errors
    /// [`FollowError::Damaged`].
    pub fn next(&mut self) -> Result<Option<Items<'_>>, FollowError> {
        unimplemented!()
    }
}

impl Journal {
    /// Follows the log from a position on. A follower that gets more than `limit` bytes behind the
    /// end fails.
    ///
    /// # Errors
    /// [`FollowError::Missing`] or [`FollowError::Damaged`]: the follower needs the whole state.
    pub fn follow(&self, _from: Position, _limit: u64) -> Result<Follower, FollowError> {
        unimplemented!()
    }

    /// The whole state: the entries of the newest snapshot (none without one), and a follower from
    /// its position on.
    ///
    /// # Errors
    /// As [`Journal::follow`].
    pub fn read_snapshot(&self, _limit: u64) -> Result<(SnapshotReader, Follower), FollowError> {
        unimplemented!()
    }
}
