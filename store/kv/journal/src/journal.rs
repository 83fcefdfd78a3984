// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The journal as its users see it: appending, positions, and reports.

use crate::disk::{Disk, Lock, SystemDisk, write_all};
use crate::error::{Failure, FailureKind, OpenError, Refusal, SnapshotError};
use crate::folder::Folder;
use crate::frame::{Header, Kind};
use crate::shared::{Shared, Tail};
use crate::snapshot::SnapshotWriter;
use crate::status::{Policy, Position, Progress, Recovered, Status};
use crate::units::Units;
use crate::walk::Replay;
use crate::{committer, recovery, reserve, rotation};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where a journal is, and how it works.
#[derive(Clone)]
pub struct Options {
    /// The folder. It is made if it is missing.
    pub folder: PathBuf,
    /// When bytes become durable.
    pub policy: Policy,
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// Disk space that is reserved ahead of the end of the log, in bytes.
    pub preallocate_bytes: u64,
    /// Bytes of segments that a snapshot has freed, and which stay readable for followers that
    /// come back. Their files have no names.
    pub backlog_bytes: u64,
    /// Time between two syncs of `EverySecond`. Tests may make it shorter.
    pub sync_interval: Duration,
    /// Time between two attempts of an operation that failed.
    pub retry_interval: Duration,
}

impl Options {
    /// The usual options for a folder: `EverySecond`, the disk of the system, 4 MiB of reserve.
    pub fn new(folder: impl Into<PathBuf>) -> Options {
        Options {
            folder: folder.into(),
            policy: Policy::default(),
            disk: Arc::new(SystemDisk),
            preallocate_bytes: 4 << 20,
            backlog_bytes: 64 << 20,
            sync_interval: Duration::from_secs(1),
            retry_interval: Duration::from_millis(100),
        }
    }
}

/// A log of units and snapshots in a folder, open for appending. All workers share it.
///
/// Dropping it writes what is left, makes it durable, and ends its thread. [`Journal::sync`] does
/// the same before, and reports an error.
pub struct Journal {
    pub(crate) shared: Arc<Shared>,
    committer: Option<JoinHandle<()>>,
    _lock: Lock,
}

impl Journal {
    /// Opens the folder, or makes a new journal in it, and hands its state to `replay`: the entries
    /// of the snapshot, and then the units of the log. `progress` is called every few megabytes.
    ///
    /// The end of an interrupted write is cut off. Every other fault is an error, and leaves the
    /// files as they are.
    ///
    /// # Errors
    ///
    /// All of [`OpenError`].
    pub fn open(
        options: Options,
        replay: &mut dyn Replay,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Journal, Recovered), OpenError> {
        let folder = Folder { disk: options.disk.clone(), path: options.folder.clone() };
        let lock = recovery::lock(&folder)?;
        let (shared, recovered) = recovery::open(folder, &options, replay, progress)?;
        let shared = Arc::new(shared);
        let committer = committer::start(&shared);
        let committer =
            committer.map_err(OpenError::system("starting a thread for", &options.folder))?;
        Ok((Journal { shared, committer: Some(committer), _lock: lock }, recovered))
    }

    /// Reserves disk space, before a command is executed, so that its unit can be appended
    /// whatever happens. `bytes` is what the command may add to the units of this worker; a batch's
    /// header is counted by the journal.
    ///
    /// It usually compares two numbers; about every 64 KiB of units it takes from a shared counter.
    /// The reserve stays with `units` until [`Journal::append`] uses it, so a worker keeps its
    /// buffer for as long as the journal is open.
    ///
    /// # Errors
    ///
    /// The system has no space, the journal [is failing](Journal::failure), or the units would
    /// have more than 2 GiB. Nothing has happened then. The system is asked again at most once per
    /// `retry_interval`.
    #[inline]
    pub fn admit(&self, units: &mut Units, bytes: u64) -> Result<(), Refusal> {
        let needed = units.bytes().saturating_add(bytes).saturating_add(reserve::UNIT_BYTES);
        if units.allowance >= needed && !self.shared.is_failing.load(Ordering::Relaxed) {
            return Ok(());
        }
        reserve::admit(&self.shared, units, needed)
    }

    /// Appends the finished units as one batch, in this order, and clears them. Returns the
    /// position behind it: replies that depend on it may be sent when [`Journal::released`] has
    /// reached it. Without units it returns the end.
    ///
    /// Under `EverySecond` and `Never` the calling thread writes. Under `Always` the bytes are only
    /// handed over. It never waits for a sync, and never fails: bytes that cannot be written stay
    /// in memory, and the journal [is failing](Journal::failure) until they are written.
    ///
    /// # Panics
    ///
    /// If a unit is unfinished.
    pub fn append(&self, units: &mut Units) -> Position {
        assert!(!units.is_in_unit(), "a unit is appended when it is finished");
        if units.is_empty() {
            return self.end();
        }
        debug_assert!(!self.shared.tail().is_follower, "only copies are appended to a copy");
        self.append_frame(units)
    }

    /// Appends the finished units as one batch, also without any, and clears them.
    pub(crate) fn append_frame(&self, units: &mut Units) -> Position {
        // The check takes the most time, and is computed before the lock is taken.
        let header = units.frame().header(Kind::Batch);
        let shared = &*self.shared;
        let mut tail = shared.tail();
        let bytes = units.bytes();
        append_batch(shared, &mut tail, units, header);
        let end = tail.end;
        shared.publish_appended(&tail);
        drop(tail);
        shared.counts.batches.fetch_add(1, Ordering::Relaxed);
        shared.counts.units.fetch_add(u64::from(units.count()), Ordering::Relaxed);
        reserve::settle(shared, units, bytes);
        units.frame().clear();
        Position(end)
    }

    /// The position of all that was appended.
    pub fn end(&self) -> Position {
        Position(self.shared.end.load(Ordering::Acquire))
    }

    /// The position up to which replies may be sent: what is written (`EverySecond`, `Never`) or
    /// durable (`Always`).
    #[inline]
    pub fn released(&self) -> Position {
        Position(self.shared.released.load(Ordering::Acquire))
    }

    /// The position up to which the log is durable.
    pub fn durable(&self) -> Position {
        Position(self.shared.tail().durable)
    }

    /// Sets the function that the journal's threads call after [`Journal::released`] has advanced,
    /// and after a failure has begun or ended. It replaces an earlier one. The function must not
    /// block. It is not called for what `append` itself releases or finds.
    pub fn on_release(&self, wake: Box<dyn Fn() + Send + Sync>) {
        *self.shared.wake.lock().expect("no holder of the lock panics") = Some(Arc::from(wake));
    }

    /// The fault that lasts at this moment: writes are refused until it has ended.
    #[inline]
    pub fn failure(&self) -> Option<Failure> {
        if !self.shared.is_failing.load(Ordering::Relaxed) {
            return None;
        }
        self.shared.tail().faults.current().cloned()
    }

    /// Whether the last [`Journal::admit`] that asked the system was refused, or a fault lasts.
    /// Changes that can wait should not be made now.
    #[inline]
    pub fn refuses(&self) -> bool {
        let shared = &self.shared;
        shared.is_failing.load(Ordering::Relaxed) || shared.is_short.load(Ordering::Relaxed)
    }

    /// Whether the fault ends only with a snapshot: bytes of the log could not be made durable, and
    /// are not in memory any longer. The server should begin one, and begin another if that fails.
    pub fn wants_snapshot(&self) -> bool {
        if !self.shared.is_failing.load(Ordering::Relaxed) {
            return false;
        }
        let tail = self.shared.tail();
        tail.faults.segment.is_some() && !tail.can_replace_segment()
    }

    /// Changes the policy. Replies that were sent stay sent: after a change to `Always` the
    /// promise holds for what is appended from now on.
    pub fn set_policy(&self, policy: Policy) {
        let mut tail = self.shared.tail();
        tail.policy = policy;
        let has_advanced = self.shared.publish(&tail);
        drop(tail);
        self.shared.work.notify_one();
        if has_advanced {
            self.shared.call_wake();
        }
    }

    /// Waits until everything appended before is durable.
    ///
    /// # Errors
    ///
    /// The journal fails, so that this cannot happen now.
    pub fn sync(&self) -> Result<(), Failure> {
        self.shared.sync()
    }

    /// Begins a snapshot: batches that are appended later go to a new segment. The caller writes
    /// the state of this moment, while it may append already.
    ///
    /// The caller guarantees that no change is between its execution and its `append`. The call
    /// waits until the log is durable, and for a few operations of the disk.
    ///
    /// # Errors
    ///
    /// `Busy`, or an error of the system. The log is then as before, or it fails and is repaired.
    pub fn begin_snapshot(&self) -> Result<SnapshotWriter, SnapshotError> {
        rotation::begin_snapshot(&self.shared)
    }

    /// The state, for reports.
    pub fn status(&self) -> Status {
        let shared = &*self.shared;
        let tail = shared.tail();
        let first = tail.manifest.segments[0].position;
        let log_bytes = tail.written - first.min(tail.written);
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        Status {
            policy: tail.policy,
            generation: tail.manifest.generation,
            bytes: tail.snapshot_bytes + log_bytes,
            snapshot_bytes: tail.snapshot_bytes,
            log_bytes,
            segments: tail.manifest.segments.len(),
            end: Position(tail.end),
            written: Position(tail.written),
            durable: Position(tail.durable),
            unwritten_bytes: tail.end - tail.written,
            failure: tail.faults.current().cloned(),
            last_failure: tail.last_failure.clone(),
            last_refusal: tail.refusal.as_ref().map(|(_, reason)| reason.clone()),
            snapshot_is_active: shared.snapshot_is_active.load(Ordering::Relaxed),
            appended_batches: count(&shared.counts.batches),
            appended_units: count(&shared.counts.units),
            syncs: count(&shared.counts.syncs),
            delayed_syncs: count(&shared.counts.delayed_syncs),
            faults: count(&shared.counts.faults),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.shared.end_snapshot();
        let mut tail = self.shared.tail();
        tail.is_closing = true;
        drop(tail);
        self.shared.work.notify_one();
        self.shared.more.notify_all();
        if let Some(committer) = self.committer.take()
            && !is_current(&committer)
        {
            // A panic of the thread has been reported by its message.
            let _ = committer.join();
        }
    }
}

/// Whether this is the calling thread, which cannot wait for itself. It drops the journal if a
/// function that it calls has the last reference.
pub(crate) fn is_current(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == std::thread::current().id()
}

/// Gives the batch its place in the log, and writes it or hands it over.
fn append_batch(shared: &Shared, tail: &mut Tail, units: &mut Units, header: Header) {
    let header = Header { sequence: tail.sequence, mark: tail.durable, ..header };
    let position = tail.end;
    let bytes = units.frame().seal(&header, shared.salt, position);
    tail.sequence += 1;
    tail.end += bytes.len() as u64;
    let is_direct = tail.policy != Policy::Always && tail.unwritten.is_empty() && !tail.is_writing;
    if is_direct {
        let (written, result) = write_all(&*tail.file, bytes, tail.offset(position));
        tail.written += written as u64;
        // These bytes have no copy.
        tail.unsynced.clear();
        if let Err(error) = result {
            tail.unwritten.extend_from_slice(&bytes[written..]);
            let path = shared.folder.log(tail.segment.number);
            shared.fail(tail, Failure::new(FailureKind::Write, &path, &error));
        }
    } else {
        tail.unwritten.extend_from_slice(bytes);
    }
    if tail.dirty_since.is_none() {
        tail.dirty_since = Some(Instant::now());
    }
    let needs_committer = !tail.unwritten.is_empty() || tail.policy == Policy::EverySecond;
    if needs_committer {
        shared.rouse(tail);
    }
}

impl Shared {
    /// Publishes positions after an append.
    fn publish_appended(&self, tail: &Tail) {
        // This comes before the end, so that a thread that has seen the end need not be woken for
        // what `append` itself releases.
        if tail.policy != Policy::Always && !tail.faults.holds_replies() {
            self.released.fetch_max(tail.written, Ordering::AcqRel);
        }
        self.end.store(tail.end, Ordering::Release);
        self.wake_followers(tail);
    }

    /// Waits until everything appended before is durable, or the journal fails.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        let mut tail = self.tail();
        let (target, epoch) = (tail.end, tail.epoch);
        tail.wanted = tail.wanted.max(target);
        self.work.notify_one();
        loop {
            if let Some(failure) = tail.faults.current() {
                return Err(failure.clone());
            }
            // After a change of the epoch, all of it was replaced by a state that is durable.
            if tail.durable >= target || tail.epoch != epoch {
                return Ok(());
            }
            tail = self.progress.wait(tail).expect("no holder of the lock panics");
        }
    }
}
