// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A log that is a copy of another: it has the same batches at the same positions.
//!
//! Frames are sealed again, with this folder's salt and sequence, and the position up to which
//! *this* log was durable. Their sizes are the same, so positions are the same. Nothing else may
//! become part of the log: no units of this server, and no batch at a clean end.

use crate::error::Refusal;
use crate::following::Batch;
use crate::journal::Journal;
use crate::reserve;
use crate::status::Position;
use crate::units::Units;
use std::sync::atomic::Ordering;

/// Reasons why a batch of another log is not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The batch does not continue this log.
    #[error("the batch is for position {}, and this log ends at {}", .position.0, .end.0)]
    Gap {
        /// Position of the batch.
        position: Position,
        /// End of this log.
        end: Position,
    },
    /// The disk has no room, or fails. The same batch may be tried again later.
    #[error("{0}")]
    Refused(#[from] Refusal),
}

impl Journal {
    /// Whether the log is a copy of another. Then only [`Journal::append_copy`] may append, and the
    /// journal adds nothing when it is closed.
    pub fn set_follower(&self, is_follower: bool) {
        self.shared.tail().is_follower = is_follower;
    }

    /// Checks that a batch continues the log, and reserves room for it, before its units are
    /// executed. The batch is then in `units`, whose former contents are dropped.
    ///
    /// # Errors
    ///
    /// All of [`CopyError`]. Nothing has happened then.
    pub fn prepare_copy(&self, units: &mut Units, batch: &Batch<'_>) -> Result<(), CopyError> {
        let (position, end) = (batch.position, self.end());
        if position != end {
            return Err(CopyError::Gap { position, end });
        }
        let shared = &*self.shared;
        units.frame().fill(&batch.units);
        let needed = units.bytes();
        let is_admitted = units.allowance >= needed && !shared.is_failing.load(Ordering::Relaxed);
        if !is_admitted && let Err(refusal) = reserve::reserve(shared, units, needed) {
            units.clear();
            return Err(refusal.into());
        }
        units.place = Some(position.0);
        Ok(())
    }

    /// Appends the batch that was prepared, also one without units, and clears `units`. Returns the
    /// position behind it. Otherwise it is like [`Journal::append`].
    ///
    /// # Panics
    ///
    /// If no batch was prepared, or something else was appended since.
    pub fn append_copy(&self, units: &mut Units) -> Position {
        let place = units.place.take().expect("a batch was prepared");
        assert_eq!(place, self.end().0, "only copies are appended to a copy");
        self.append_frame(units)
    }
}
