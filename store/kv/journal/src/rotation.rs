// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The beginning of a snapshot: later batches go to a new segment.
//!
//! 1. A new segment is made, durable and without batches. No manifest names it yet.
//! 2. The old segment is made durable. If it cannot be, it is not trusted: see step 4.
//! 3. A manifest names the new segment behind the old ones, and batches go there.
//! 4. If the old segment is not trusted, batches go to the new one without a manifest that names
//!    it. Their replies are held until the manifest with the snapshot is durable.

use crate::disk::File;
use crate::error::SnapshotError;
use crate::folder::offset_in;
use crate::manifest::Segment;
use crate::reserve::{carry_over, rebase};
use crate::shared::{Shared, Tail};
use crate::snapshot::{SnapshotWriter, start};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

/// Begins a snapshot; see [`crate::Journal::begin_snapshot`].
pub(crate) fn begin_snapshot(shared: &Arc<Shared>) -> Result<SnapshotWriter, SnapshotError> {
    if shared.snapshot_is_active.swap(true, Ordering::AcqRel) {
        return Err(SnapshotError::Busy);
    }
    let begun = rotate(shared).and_then(|first| start(shared, first));
    if begun.is_err() {
        shared.snapshot_is_active.store(false, Ordering::Release);
    }
    begun
}

/// Has later batches written to a segment that begins at the present end, and returns it.
fn rotate(shared: &Shared) -> Result<Segment, SnapshotError> {
    drop(wait_until_durable(shared)?);
    let number = shared.take_number();
    let path = shared.folder.log(number);
    let file = shared.folder.create_log(number, shared.salt);
    let file = file.map_err(SnapshotError::system("making", &path))?;
    let switched = wait_until_durable(shared).and_then(|mut tail| {
        let is_untrusted = tail.faults.segment.is_some() && tail.is_named;
        if tail.end == tail.segment.position && !is_untrusted {
            // The last segment has no batch yet.
            shared.folder.remove(&path);
            return Ok(tail.segment);
        }
        switch(shared, &mut tail, number, file)
    });
    if switched.is_err() && !shared.tail().manifest.segments.iter().any(|one| one.number == number)
    {
        shared.folder.remove(&path);
    }
    switched
}

fn switch(
    shared: &Shared,
    tail: &mut Tail,
    number: u64,
    file: Arc<dyn File>,
) -> Result<Segment, SnapshotError> {
    let path = shared.folder.log(number);
    let reserved = carry_over(tail, &*file, tail.end);
    reserved.map_err(SnapshotError::system("reserving space in", &path))?;
    let segment = Segment { number, position: tail.end, sequence: tail.sequence };
    let old = (tail.file.clone(), tail.segment, tail.chain.clone());
    tail.chain.push(segment, file.clone(), tail.is_named);
    (tail.file, tail.segment) = (file, segment);
    if tail.faults.segment.is_some() {
        if !tail.is_named {
            // A snapshot that was begun after the fault has not been completed.
            tail.garbage.push(shared.folder.log(old.1.number));
        }
        tail.is_named = false;
        tail.unsynced.clear();
        rebase(shared, tail);
        return Ok(segment);
    }
    let mut manifest = tail.manifest.clone();
    manifest.segments.push(segment);
    let stored = shared.store_manifest(tail, manifest, vec![]);
    match stored {
        Ok(()) => {
            rebase(shared, tail);
            // Gives back what is reserved beyond its end.
            let _ = old.0.truncate(offset_in(old.1.position, segment.position));
            Ok(segment)
        }
        Err(unstored) if !unstored.may_be_stored => {
            (tail.file, tail.segment, tail.chain) = old;
            tail.is_named = true;
            Err(SnapshotError::system("replacing the manifest of", &shared.folder.path)(
                unstored.error,
            ))
        }
        Err(_) => {
            rebase(shared, tail);
            Err(failing(tail))
        }
    }
}

/// Waits until the log is durable up to its end, or until everything is written to a segment that
/// cannot be made durable. Returns the lock.
fn wait_until_durable(shared: &Shared) -> Result<MutexGuard<'_, Tail>, SnapshotError> {
    loop {
        let synced = shared.sync();
        let tail = shared.tail();
        if synced.is_ok() {
            if tail.durable == tail.end && tail.faults.current().is_none() {
                return Ok(tail);
            }
            // Another thread has appended, or a fault has just begun.
            continue;
        }
        let is_untrusted = tail.faults.segment.is_some() && !tail.can_replace_segment();
        if is_untrusted && tail.faults.write.is_none() && tail.faults.manifest.is_none() {
            if tail.written == tail.end {
                return Ok(tail);
            }
            // The committer is writing.
            drop(shared.progress.wait(tail).expect("no holder of the lock panics"));
        } else if tail.faults.current().is_some() {
            return Err(failing(&tail));
        }
    }
}

fn failing(tail: &Tail) -> SnapshotError {
    let failure = tail.faults.current().expect("the caller has seen a fault");
    SnapshotError::Failing(failure.clone())
}

impl Shared {
    /// The number of a new file.
    pub(crate) fn take_number(&self) -> u64 {
        let mut tail = self.tail();
        tail.next_number += 1;
        tail.next_number - 1
    }
}
