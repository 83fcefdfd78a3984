// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Snapshots of all shards, which replace the log before them.
//!
//! Life of a snapshot:
//! 1. It is wanted: by a command, because the log has grown, or because the log needs a new start.
//! 2. A worker borrows all shards. It begins a snapshot of the journal, so that later changes are
//!    in a new segment of the log, and an image of every shard. Then the shards return.
//! 3. Each worker hands out a part of its shard's image in every turn.
//! 4. The last one that is done completes the snapshot, which the journal does in the background.
//!
//! A database that is cleared meanwhile breaks its image, and the snapshot is begun again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use freeport_kv_journal::{Entries, Journal, SnapshotError, SnapshotWriter};

use crate::shared::now_ms;

/// A reason to write a snapshot, by which `INFO` divides the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// `BGREWRITEAOF`, or the log has grown, or it needs a new start.
    #[default]
    Rewrite,
    /// `SAVE` or `BGSAVE`.
    Save,
}

/// Snapshots of a server.
#[derive(Default)]
pub struct Snapshots {
    /// Number of the snapshot whose images are being written; 0: none.
    running: AtomicU64,
    /// A snapshot is to be begun.
    is_wanted: AtomicBool,
    /// Number of snapshots that have ended, with success or not.
    ended: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reason: Reason,
    /// A snapshot is wanted, or being written.
    is_active: bool,
    /// Another one is wanted after that.
    next: Option<Reason>,
    writer: Option<Arc<SnapshotWriter>>,
    /// Number of the last snapshot that was begun.
    number: u64,
    /// Workers whose images are not complete.
    missing: usize,
    begun: Option<Instant>,
    report: Report,
    /// When the last one failed.
    failed: Option<Instant>,
}

/// The snapshots until now.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The snapshot that is wanted or being written, and since when it is being written.
    pub active: Option<(Reason, Option<Instant>)>,
    /// A `BGSAVE` or `BGREWRITEAOF` follows it.
    pub next: Option<Reason>,
    /// Why the last snapshot of each reason failed, if it did.
    pub failures: [Option<String>; 2],
    /// Time of the last one of each reason, if there was any.
    pub durations: [Option<Duration>; 2],
    /// Number of snapshots that were completed.
    pub completed: u64,
    /// When the last one was completed, in seconds since 1970.
    pub completed_s: Option<u64>,
    /// Number of changes in memory at the begin of the last one that was completed.
    pub changes: u64,
    changes_at_begin: u64,
}

impl Snapshots {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a snapshot. Returns the one that is there already, if there is one.
    pub fn want(&self, reason: Reason) -> Result<(), Reason> {
        let mut state = self.state();
        if state.is_active {
            return Err(state.reason);
        }
        state.activate(reason);
        self.is_wanted.store(true, Ordering::Release);
        Ok(())
    }

    /// Asks for a snapshot after the one that is there already.
    pub fn schedule(&self, reason: Reason) {
        self.state().next = Some(reason);
    }

    /// Asks for a snapshot that no client wants, unless there is one or it has failed a short time
    /// ago.
    pub fn want_automatically(&self, pause: Duration) {
        let is_recent = |failed: Instant| failed.elapsed() < pause;
        if !self.state().failed.is_some_and(is_recent) {
            // If there is one, it serves as well.
            let _ = self.want(Reason::Rewrite);
        }
    }

    /// The caller has to begin the snapshot that is wanted, if there is one.
    #[inline]
    pub fn take_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && self.is_wanted.swap(false, Ordering::AcqRel)
    }

    /// Number of the snapshot whose images are being written; 0: none.
    #[inline]
    pub fn running(&self) -> u64 {
        self.running.load(Ordering::Acquire)
    }

    /// Number of snapshots that have ended.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// The snapshots until now.
    pub fn report(&self) -> Report {
        let state = self.state();
        let active = state.is_active.then_some((state.reason, state.begun));
        Report { active, next: state.next, ..state.report.clone() }
    }

    /// The snapshot that is wanted fails before it begins: why.
    pub fn refuse(&self, reason: String) {
        self.end(self.state(), Err(reason));
    }

    /// Begins a snapshot, while no change is between execution and append. Returns false if the
    /// disk refuses it.
    pub fn begin(&self, journal: &Journal, workers: usize, changes: u64) -> bool {
        let mut state = self.state();
        match journal.begin_snapshot() {
            Ok(writer) => {
                state.writer = Some(Arc::new(writer));
                state.number += 1;
                state.missing = workers;
                state.begun = Some(Instant::now());
                state.report.changes_at_begin = changes;
                self.running.store(state.number, Ordering::Release);
                true
            }
            Err(error) => {
                self.end(state, Err(error.to_string()));
                false
            }
        }
    }

    /// Hands entries of a snapshot over, unless it was cancelled. Waits while the disk takes no
    /// more.
    pub fn write(&self, number: u64, entries: &mut Entries) {
        let Some(writer) = self.writer(number) else { return };
        if let Err(error) = writer.write(entries) {
            drop(writer);
            self.fail(number, &error);
        }
    }

    fn writer(&self, number: u64) -> Option<Arc<SnapshotWriter>> {
        self.state().writer.clone().filter(|_| self.running() == number)
    }

    fn fail(&self, number: u64, error: &SnapshotError) {
        let mut state = self.state();
        if self.running() == number {
            self.running.store(0, Ordering::Release);
            // Dropping it removes what was written.
            state.writer = None;
            self.end(state, Err(error.to_string()));
        }
    }

    /// The queue for the disk is full.
    pub fn is_full(&self) -> bool {
        self.state().writer.as_ref().is_some_and(|writer| writer.is_full())
    }

    /// The images of a worker are complete. The last one completes the snapshot; `wake` is called
    /// when the disk has it.
    pub fn complete(self: &Arc<Self>, number: u64, wake: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if self.running() != number {
            return;
        }
        state.missing -= 1;
        if state.missing > 0 {
            return;
        }
        self.running.store(0, Ordering::Release);
        let Some(writer) = state.writer.take() else { return };
        drop(state);
        let writer =
            Arc::into_inner(writer).expect("the other workers have completed their images");
        let snapshots = self.clone();
        writer.finish(Box::new(move |result| {
            let result = result.map(|_| ()).map_err(|error| error.to_string());
            snapshots.end(snapshots.state(), result);
            wake();
        }));
    }

    /// An image is broken: the snapshot is begun again. Nothing is done if the snapshot of that
    /// number is not being written any more.
    pub fn restart(&self, number: u64) {
        let mut state = self.state();
        if number != 0 && self.running() == number {
            self.running.store(0, Ordering::Release);
            // Dropping it removes what was written.
            state.writer = None;
            state.begun = None;
            self.is_wanted.store(true, Ordering::Release);
        }
    }

    fn end(&self, mut state: MutexGuard<'_, State>, result: Result<(), String>) {
        let reason = state.reason;
        let duration = state.begun.take().map(|begun| begun.elapsed());
        state.report.durations[reason as usize] = duration;
        state.is_active = false;
        match result {
            Ok(()) => {
                state.report.completed += 1;
                state.report.completed_s = Some(now_ms() / 1_000);
                state.report.changes = state.report.changes_at_begin;
                state.report.failures = [None, None];
                state.failed = None;
            }
            Err(error) => {
                state.report.failures[reason as usize] = Some(error);
                state.failed = Some(Instant::now());
            }
        }
        if let Some(next) = state.next.take() {
            state.activate(next);
            self.is_wanted.store(true, Ordering::Release);
        }
        self.ended.fetch_add(1, Ordering::AcqRel);
    }
}

impl State {
    fn activate(&mut self, reason: Reason) {
        self.reason = reason;
        self.is_active = true;
        self.begun = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_snapshot_is_begun_that_nobody_wants() {
        let snapshots = Snapshots::default();
        snapshots.restart(snapshots.running());
        assert!(!snapshots.take_wanted());
        assert_eq!(snapshots.want(Reason::Save), Ok(()));
        assert_eq!(snapshots.want(Reason::Rewrite), Err(Reason::Save));
        assert!(snapshots.take_wanted() && !snapshots.take_wanted());
    }
}
