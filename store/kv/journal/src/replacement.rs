// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The repair after a failed sync.
//!
//! After a failing `fdatasync`, the kernel may drop the bytes and report success for the next one.
//! So a segment is not synced again. Bytes that are not durable have a copy in memory under
//! `Always`: a new segment begins at the durable position, gets these bytes, and is named by the
//! manifest once they are durable. Bytes of the old segment beyond that position are not part of
//! the log any longer. Under the other policies there is no copy. The state in memory is complete
//! then, so the server writes a snapshot, and the manifest names it instead of the old segments.
//!
//! Until then writes are refused, and replies to those already executed are held.

use crate::disk::write_all;
use crate::error::{Failure, FailureKind};
use crate::frame::{FILE_BYTES, Header};
use crate::manifest::Segment;
use crate::reserve::{carry_over, rebase};
use crate::shared::{Shared, Tail};
use std::io;
use std::sync::MutexGuard;

/// Replaces the segment by a new one with the bytes that are not durable. After an error the fault
/// stays, and the caller tries again. Returns whether replies can be sent.
pub(crate) fn replace_segment(shared: &Shared, mut tail: MutexGuard<'_, Tail>) -> bool {
    let number = tail.next_number;
    tail.next_number += 1;
    let path = shared.folder.log(number);
    if let Err(error) = try_replace(shared, &mut tail, number) {
        // A manifest that may name the file counts as one that does.
        if !tail.manifest.segments.iter().any(|segment| segment.number == number) {
            shared.folder.remove(&path);
            shared.fail(&mut tail, Failure::new(FailureKind::Sync, &path, &error));
        }
    }
    shared.publish(&tail)
}

fn try_replace(shared: &Shared, tail: &mut Tail, number: u64) -> io::Result<()> {
    let file = shared.folder.create_log(number, shared.salt)?;
    let position = tail.durable;
    carry_over(tail, &*file, position)?;
    write_all(&*file, &tail.unsynced, FILE_BYTES).1?;
    file.sync()?;

    let header = tail.unsynced.first_chunk().expect("a failed sync had bytes to sync");
    let header = Header::decode(header, shared.salt, position).expect("we have made it");
    let sequence = header.sequence;
    let segment = Segment { number, position, sequence };
    let mut manifest = tail.manifest.clone();
    let mut garbage = vec![];
    // A segment that begins here has no durable batch; its bytes are in the new one.
    while let Some(last) = manifest.segments.pop_if(|last| last.position == position) {
        garbage.push(shared.folder.log(last.number));
    }
    manifest.segments.push(segment);
    let old = (tail.file.clone(), tail.segment, tail.chain.clone());
    tail.chain.push(segment, file.clone(), tail.is_named);
    (tail.file, tail.segment) = (file, segment);
    let stored = shared.store_manifest(tail, manifest, garbage);
    match stored {
        Err(unstored) if !unstored.may_be_stored => {
            (tail.file, tail.segment, tail.chain) = old;
            return Err(unstored.error);
        }
        Err(_) => tail.faults.segment = None,
        Ok(()) => {
            tail.faults.segment = None;
            tail.durable = tail.written;
        }
    }
    rebase(shared, tail);
    tail.unsynced.clear();
    Ok(())
}
