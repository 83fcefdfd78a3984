// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaces the contents of a folder by the state of another server.
use crate::error::SnapshotError;
use crate::frame::Items;
use crate::journal::Journal;
use crate::lineage::Lineage;
use crate::snapshot::Completed;
use crate::status::Position;

/// A new state that is being written. Until it is finished, the old one stays; dropping it leaves
/// the old one. Nothing may be appended meanwhile.
pub struct Installer;

impl Installer {
    /// Adds entries.
    ///
    /// # Errors
    /// The disk has failed; drop the installer, and try again later.
    pub fn entries(&mut self, _entries: Items<'_>) -> Result<(), SnapshotError> {
        unimplemented!()
    }

    /// Makes the entries the state of the folder, and the log an empty one that continues at
    /// `position`, with this lineage.
    ///
    /// # Errors
    /// The disk has failed, and the old contents stay; or it is not known whether they do: then the
    /// journal fails until it is known.
    pub fn finish(
        self,
        _position: Position,
        _lineage: &Lineage,
    ) -> Result<Completed, SnapshotError> {
        unimplemented!()
    }
}

impl Journal {
    /// Begins to replace all contents. A snapshot that is being written is cancelled.
    ///
    /// # Errors
    /// As [`Journal::begin_snapshot`].
    pub fn install(&self) -> Result<Installer, SnapshotError> {
        unimplemented!()
    }
}
