// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The journal's thread. It writes and syncs what workers hand over, and repairs faults.
//!
//! Under `Always` it takes all bytes that have gathered, writes and syncs them without the lock,
//! and publishes the position: a *group commit*. Under the other policies workers write, and the
//! thread syncs once a second or when somebody waits for it.

use crate::disk::write_all;
use crate::error::{Failure, FailureKind};
use crate::frame::{Header, Kind};
use crate::replacement;
use crate::shared::{Shared, Tail};
use crate::status::Policy;
use crate::units::Units;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let shared = shared.clone();
    thread::Builder::new().name("kv-journal".to_owned()).spawn(move || run(&shared))
}

/// Operations of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Write,
    Sync,
    ReplaceSegment,
    StoreManifest,
}

fn run(shared: &Shared) {
    let mut spare = Vec::new();
    loop {
        let mut tail = shared.tail();
        let work = loop {
            let now = Instant::now();
            match next(shared, &tail, now) {
                Ok(work) => break work,
                Err(_) if tail.is_closing => return close(shared, &mut tail),
                Err(wait) => tail = pause(shared, tail, wait),
            }
        };
        let was_failing = tail.faults.current().is_some();
        let has_advanced = match work {
            Work::Write => write(shared, tail, &mut spare),
            Work::Sync => sync(shared, tail),
            Work::ReplaceSegment => replacement::replace_segment(shared, tail),
            Work::StoreManifest => store_manifest(shared, tail),
        };
        let is_failing = shared.is_failing.load(Ordering::Acquire);
        if has_advanced || is_failing != was_failing {
            shared.call_wake();
        }
    }
}

/// Writes the manifest again. Returns whether replies can be sent.
fn store_manifest(shared: &Shared, mut tail: MutexGuard<'_, Tail>) -> bool {
    let manifest = tail.manifest.clone();
    // An error is noted as the fault that it is.
    let _ = shared.store_manifest(&mut tail, manifest, vec![]);
    shared.publish(&tail)
}

/// The next operation, or how long there is none (`None`: until somebody wakes).
fn next(shared: &Shared, tail: &Tail, now: Instant) -> Result<Work, Option<Duration>> {
    let until = |at: Instant| Err(Some(at.saturating_duration_since(now)));
    let (faults, may_retry) = (&tail.faults, now >= tail.retry_at);
    if faults.segment.is_some() && tail.can_replace_segment() {
        return if may_retry { Ok(Work::ReplaceSegment) } else { until(tail.retry_at) };
    }
    if faults.manifest.is_some() && may_retry {
        return Ok(Work::StoreManifest);
    }
    if !tail.unwritten.is_empty() {
        if faults.write.is_none() || may_retry {
            return Ok(Work::Write);
        }
        return until(tail.retry_at);
    }
    if faults.holds_replies() {
        // A segment that cannot be replaced waits for a snapshot.
        return if faults.manifest.is_some() { until(tail.retry_at) } else { Err(None) };
    }
    if tail.written == tail.durable {
        return Err(None);
    }
    if tail.policy == Policy::Always || tail.wanted > tail.durable || tail.is_closing {
        return Ok(Work::Sync);
    }
    match (tail.policy, tail.dirty_since) {
        (Policy::EverySecond, Some(since)) => {
            let due = since + shared.sync_interval;
            if now >= due { Ok(Work::Sync) } else { until(due) }
        }
        _ => Err(None),
    }
}

fn pause<'a>(
    shared: &Shared,
    mut tail: MutexGuard<'a, Tail>,
    wait: Option<Duration>,
) -> MutexGuard<'a, Tail> {
    match wait {
        None => {
            tail.is_idle = true;
            tail = shared.work.wait(tail).expect("no holder of the lock panics");
        }
        Some(wait) => {
            let waited = shared.work.wait_timeout(tail, wait);
            tail = waited.expect("no holder of the lock panics").0;
        }
    }
    tail.is_idle = false;
    tail
}

/// Writes what has gathered. Returns whether replies can be sent.
fn write(shared: &Shared, mut tail: MutexGuard<'_, Tail>, spare: &mut Vec<u8>) -> bool {
    let mut bytes = std::mem::replace(&mut tail.unwritten, std::mem::take(spare));
    let (file, offset) = (tail.file.clone(), tail.offset(tail.written));
    let path = shared.folder.log(tail.segment.number);
    tail.is_writing = true;
    drop(tail);

    let (written, result) = write_all(&*file, &bytes, offset);

    let mut tail = shared.tail();
    tail.is_writing = false;
    tail.written += written as u64;
    if tail.policy == Policy::Always {
        tail.unsynced.extend_from_slice(&bytes[..written]);
    } else {
        tail.unsynced.clear();
    }
    match result {
        Ok(()) => {
            tail.faults.write = None;
            bytes.clear();
            bytes.shrink_to(SPARE_BYTES);
            *spare = bytes;
        }
        Err(error) => {
            bytes.drain(..written);
            bytes.append(&mut tail.unwritten);
            tail.unwritten = bytes;
            shared.fail(&mut tail, Failure::new(FailureKind::Write, &path, &error));
        }
    }
    shared.publish(&tail)
}

/// The capacity of a buffer that is kept for the next batches, in bytes.
const SPARE_BYTES: usize = 4 << 20;

/// Makes what is written durable. Returns whether replies can be sent.
fn sync(shared: &Shared, mut tail: MutexGuard<'_, Tail>) -> bool {
    let (file, target, epoch) = (tail.file.clone(), tail.written, tail.epoch);
    let number = tail.segment.number;
    let path = shared.folder.log(number);
    tail.dirty_since = None;
    drop(tail);

    let start = Instant::now();
    let result = file.sync();
    shared.counts.syncs.fetch_add(1, Ordering::Relaxed);
    let took = start.elapsed();

    let mut tail = shared.tail();
    if tail.epoch != epoch {
        // Another state was installed, and these bytes are not part of it.
        return shared.publish(&tail);
    }
    if tail.policy == Policy::EverySecond && took > shared.sync_interval {
        shared.counts.delayed_syncs.fetch_add(1, Ordering::Relaxed);
    }
    match result {
        Ok(()) => {
            let durable = target.max(tail.durable);
            let kept = (tail.written - durable) as usize;
            let forgotten = tail.unsynced.len().saturating_sub(kept);
            tail.unsynced.drain(..forgotten);
            tail.durable = durable;
        }
        Err(error) => {
            tail.faults.segment_number = number;
            shared.fail(&mut tail, Failure::new(FailureKind::Sync, &path, &error));
        }
    }
    if tail.durable < tail.end && tail.dirty_since.is_none() {
        tail.dirty_since = Some(Instant::now());
    }
    shared.publish(&tail)
}

/// Ends the log: a batch without units says that everything before it is durable, so that damage
/// to the end is not taken for an interrupted write. The reserve is given back.
///
/// A log with a lineage has no such batch: its followers do not get it, and a follower that becomes
/// primary would not have it, so that this server could not continue from there.
fn close(shared: &Shared, tail: &mut Tail) {
    if tail.faults.current().is_some() {
        return;
    }
    let is_replicated = tail.is_follower || !shared.lineage().histories().is_empty();
    if shared.counts.batches.load(Ordering::Relaxed) > 0 && !is_replicated {
        let mut empty = Units::new();
        let header = Header {
            sequence: tail.sequence,
            mark: tail.durable,
            ..empty.frame().header(Kind::Batch)
        };
        let bytes = empty.frame().seal(&header, shared.salt, tail.end);
        // An incomplete one is cut off by the next start.
        let (_, written) = write_all(&*tail.file, bytes, tail.offset(tail.end));
        if written.and_then(|()| tail.file.sync()).is_err() {
            return;
        }
        tail.end += bytes.len() as u64;
    }
    let _ = tail.file.truncate(tail.offset(tail.end));
}
