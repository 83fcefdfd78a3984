// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaces the contents of a folder by the state of another server.
//!
//! 1. Entries are written as a snapshot that no manifest names.
//! 2. The snapshot is completed, and a segment without batches is made. Both are durable.
//! 3. The lineage is emptied, so that it is never taken for that of the other log.
//! 4. A manifest names the new snapshot and the new segment, and nothing else. The old files are
//!    removed. Positions continue at the one of the other server, which may be lower.
//! 5. The new lineage is stored.
//!
//! A crash before step 4 leaves the old contents, and one after it the new ones. Between steps 3
//! and 5 they have no lineage: the folder can be opened, but it has to get the whole state again.

use crate::chain::Chain;
use crate::disk::File;
use crate::error::SnapshotError;
use crate::folder::Unstored;
use crate::frame::Items;
use crate::journal::Journal;
use crate::lineage::Lineage;
use crate::manifest::{MAX_NUMBER, Manifest, Segment, log_name};
use crate::reserve;
use crate::shared::{Shared, Tail};
use crate::snapshot_file::{Completed, SnapshotFile};
use crate::status::Position;
use crate::units::Frame;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A new state that is being written. Until it is finished, the old one stays; dropping it leaves
/// the old one. Nothing may be appended meanwhile.
pub struct Installer<'a> {
    /// The journal cannot be closed meanwhile.
    shared: &'a Shared,
    file: SnapshotFile,
}

impl Journal {
    /// Begins to replace all contents. A snapshot that is being written is cancelled.
    ///
    /// # Errors
    ///
    /// As [`Journal::begin_snapshot`].
    pub fn install(&self) -> Result<Installer<'_>, SnapshotError> {
        let shared = &self.shared;
        shared.end_snapshot();
        if shared.snapshot_is_active.swap(true, Ordering::AcqRel) {
            return Err(SnapshotError::Busy);
        }
        let begun = Installer::begin(shared);
        if begun.is_err() {
            shared.snapshot_is_active.store(false, Ordering::Release);
        }
        begun
    }
}

impl<'a> Installer<'a> {
    fn begin(shared: &'a Shared) -> Result<Installer<'a>, SnapshotError> {
        let number = shared.take_number();
        let file = SnapshotFile::create(&shared.folder, shared.salt, number)?;
        let mut installer = Installer { shared, file };
        installer.file.begin()?;
        Ok(installer)
    }

    /// Adds entries.
    ///
    /// # Errors
    ///
    /// The disk has failed. The caller drops the installer, and may try again later.
    pub fn entries(&mut self, entries: &Items<'_>) -> Result<(), SnapshotError> {
        let mut block = Frame::default();
        block.fill(entries);
        self.file.block(block)
    }

    /// Makes the entries the state of the folder, and the log an empty one that continues at
    /// `position`, with this lineage. [`Journal::end`] and [`Journal::released`] are `position`
    /// then, and followers of the old log end.
    ///
    /// # Errors
    ///
    /// The disk has failed. The folder has the old contents, or the new ones, or it is not known
    /// which: then the journal fails until it is. The lineage may be empty. The caller has to
    /// install the whole state again.
    pub fn finish(
        mut self,
        position: Position,
        lineage: &Lineage,
    ) -> Result<Completed, SnapshotError> {
        let shared = self.shared;
        let folder = &shared.folder;
        if position.0 > MAX_NUMBER {
            let reason = format!("the position {} is larger than a log has", position.0);
            let file = folder.path.clone();
            return Err(SnapshotError::System { action: "installing in", file, reason });
        }
        let completed = self.file.complete()?;
        let number = shared.take_number();
        let log = folder.create_log(number, shared.salt);
        let log = log.map_err(SnapshotError::system("making", &folder.log(number)))?;
        let replaced = self.forget_lineage();
        let replaced = replaced.and_then(|()| self.replace(number, log, position.0, completed));
        if let Err(error) = replaced {
            let is_named = shared.tail().manifest.names(&log_name(number));
            if !is_named {
                folder.remove(&folder.log(number));
            }
            return Err(error);
        }
        shared.replace_lineage(&mut shared.lineage_writer(), lineage.clone())?;
        Ok(completed)
    }

    fn forget_lineage(&self) -> Result<(), SnapshotError> {
        let shared = self.shared;
        Ok(shared.replace_lineage(&mut shared.lineage_writer(), Lineage::default())?)
    }

    /// Has the manifest name the new files, and continues with them.
    fn replace(
        &self,
        number: u64,
        log: Arc<dyn File>,
        position: u64,
        completed: Completed,
    ) -> Result<(), SnapshotError> {
        let shared = self.shared;
        let mut tail = shared.tail();
        while tail.is_writing {
            tail = shared.progress.wait(tail).expect("no holder of the lock panics");
        }
        let reserved = reserve::carry_over(&tail, &*log, tail.end);
        let path = shared.folder.log(number);
        reserved.map_err(SnapshotError::system("reserving space in", &path))?;

        let old = tail.manifest.clone();
        let unnamed = (!tail.is_named).then_some(tail.segment);
        let segments = old.segments.iter().chain(&unnamed);
        let mut garbage: Vec<_> = segments.map(|one| shared.folder.log(one.number)).collect();
        garbage.extend(old.snapshot.map(|number| shared.folder.snapshot(number)));
        let segment = Segment { number, position, sequence: tail.sequence };
        let snapshot = Some(self.file.number);
        let manifest = Manifest { snapshot, segments: vec![segment], ..old };

        let before = (tail.file.clone(), tail.segment, tail.chain.clone());
        tail.chain = Chain::with_file(segment, log.clone());
        (tail.file, tail.segment) = (log, segment);
        let stored = shared.store_manifest(&mut tail, manifest, garbage);
        if let Err(Unstored { error, may_be_stored: false }) = stored {
            (tail.file, tail.segment, tail.chain) = before;
            let path = &shared.folder.path;
            return Err(SnapshotError::system("replacing the manifest of", path)(error));
        }
        tail.snapshot_bytes = completed.bytes;
        restart(shared, &mut tail, stored.is_ok());
        let failure = tail.faults.manifest.clone();
        drop(tail);
        shared.work.notify_one();
        shared.more.notify_all();
        shared.call_wake();
        failure.map_or(Ok(()), |failure| Err(SnapshotError::Failing(failure)))
    }
}

/// Continues at the beginning of the new segment. Bytes of the old log that were not written or not
/// durable do not matter any longer.
fn restart(shared: &Shared, tail: &mut Tail, is_stored: bool) {
    let position = tail.segment.position;
    reserve::restart(shared, tail, position);
    tail.epoch += 1;
    (tail.end, tail.written, tail.durable) = (position, position, position);
    (tail.unwritten, tail.unsynced) = (vec![], vec![]);
    tail.dirty_since = None;
    tail.wanted = 0;
    (tail.faults.write, tail.faults.segment) = (None, None);
    // Nothing is released before it is known which manifest is on the disk.
    shared.released.store(if is_stored { position } else { 0 }, Ordering::Release);
    shared.publish(tail);
}

impl Drop for Installer<'_> {
    fn drop(&mut self) {
        self.file.remove_unless_named(&self.shared.tail().manifest);
        self.shared.snapshot_is_active.store(false, Ordering::Release);
    }
}
