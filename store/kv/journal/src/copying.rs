// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A log that is a copy of another: it has the same batches at the same positions.
use crate::error::Refusal;
use crate::following::Batch;
use crate::journal::Journal;
use crate::status::Position;
use crate::units::Units;

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
    /// journal does not add anything by itself when it is closed.
    pub fn set_follower(&self, _is_follower: bool) {
        unimplemented!()
    }

    /// Checks that a batch continues the log, and reserves room for it, before its units are
    /// executed. It is then in `units`, which were empty.
    ///
    /// # Errors
    /// [`CopyError`]; `units` are empty then, and nothing has happened.
    pub fn prepare_copy(&self, _units: &mut Units, _batch: &Batch<'_>) -> Result<(), CopyError> {
        unimplemented!()
    }

    /// Appends the batch that was prepared, also one without units, and clears `units`. Returns the
    /// position behind it.
    pub fn append_copy(&self, _units: &mut Units) -> Position {
        unimplemented!()
    }
}
