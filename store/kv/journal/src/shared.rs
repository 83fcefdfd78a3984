// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of a journal that workers, the committer and the writer of a snapshot share.
//!
//! One lock protects the [`Tail`]. These positions never decrease, except when another
//! state is installed:
//! `durable ≤ written ≤ end`, and `released` is `durable` or `written`, as the policy says.
//!
//! | bytes between | are in |
//! |---|---|
//! | `durable` and `written` | the file, and in `unsynced` as far as a copy is kept |
//! | `written` and `end` | `unwritten`, or with the committer while it writes them |

use crate::chain::Chain;
use crate::disk::File;
use crate::error::{Failure, FailureKind};
use crate::folder::{Folder, Unstored, offset_in};
use crate::lineage::Lineage;
use crate::manifest::{Manifest, Segment};
use crate::snapshot::Active;
use crate::status::Policy;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A function that is called after more replies may be sent.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Shared {
    pub folder: Folder,
    pub salt: u64,
    pub preallocate_bytes: u64,
    pub backlog_bytes: u64,
    pub sync_interval: Duration,
    pub retry_interval: Duration,
    pub tail: Mutex<Tail>,
    /// Wakes the committer.
    pub work: Condvar,
    /// Wakes threads that wait in `sync`.
    pub progress: Condvar,
    /// Wakes followers.
    pub more: Condvar,
    pub end: AtomicU64,
    pub released: AtomicU64,
    /// Position of the first segment that the manifest names.
    pub named_from: AtomicU64,
    pub is_failing: AtomicBool,
    /// The last attempt to reserve space on the disk was in vain.
    pub is_short: AtomicBool,
    /// Reserved bytes of disk that no worker has. Negative for a moment while workers compete.
    pub free: AtomicI64,
    pub snapshot_is_active: AtomicBool,
    /// The snapshot that is being written, and its thread.
    pub snapshot: Mutex<Option<Active>>,
    pub wake: Mutex<Option<Wake>>,
    pub lineage: Mutex<Lineage>,
    /// It is held while the file of the lineage is replaced, which takes long: readers of the
    /// lineage do not wait for that. True: the file has this lineage, durably.
    pub lineage_writer: Mutex<bool>,
    pub counts: Counts,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub batches: AtomicU64,
    pub units: AtomicU64,
    pub syncs: AtomicU64,
    pub delayed_syncs: AtomicU64,
    pub faults: AtomicU64,
}

pub(crate) struct Tail {
    pub policy: Policy,
    /// The manifest, as it should be on the disk. Its last segment is the one appended to, unless
    /// `is_named` is false.
    pub manifest: Manifest,
    /// The segment that is appended to.
    pub segment: Segment,
    pub file: Arc<dyn File>,
    /// The segments that can be read.
    pub chain: Chain,
    /// Followers that wait for more.
    pub waiting_followers: usize,
    /// Number of states that were installed; see [`crate::installing`].
    pub epoch: u64,
    /// Whether the log is a copy of another; see [`crate::copying`].
    pub is_follower: bool,
    /// Whether the manifest names the segment.
    pub is_named: bool,
    /// The next number of a file.
    pub next_number: u64,
    /// Files that are removed once a manifest is durable that does not name them.
    pub garbage: Vec<PathBuf>,
    /// The length of the snapshot, and of segments before the last one.
    pub snapshot_bytes: u64,

    pub end: u64,
    pub written: u64,
    pub durable: u64,
    /// Sequence number of the next batch.
    pub sequence: u64,
    /// Bytes from `written` on, unless the committer is writing.
    pub unwritten: Vec<u8>,
    /// The bytes before `written`, as far back as they are kept; see [`crate::replacement`].
    pub unsynced: Vec<u8>,
    /// Whether the committer writes without the lock. Others then add to `unwritten`.
    pub is_writing: bool,
    /// Whether the committer waits without a limit, so that new bytes have to wake it.
    pub is_idle: bool,
    /// When the bytes behind `durable` began to wait for a sync.
    pub dirty_since: Option<Instant>,
    /// Position up to which a thread waits for durability.
    pub wanted: u64,
    pub is_closing: bool,

    /// Position up to which disk space is reserved.
    pub reserved: u64,
    /// Whether the filesystem can reserve.
    pub can_reserve: bool,
    pub refusal: Option<(Instant, String)>,

    pub faults: Faults,
    pub last_failure: Option<Failure>,
    /// When failed operations are tried again.
    pub retry_at: Instant,
}

/// Faults that last. See [`FailureKind`].
#[derive(Default)]
pub(crate) struct Faults {
    pub write: Option<Failure>,
    pub segment: Option<Failure>,
    /// Number of the segment that `segment` is about.
    pub segment_number: u64,
    pub manifest: Option<Failure>,
}

impl Faults {
    pub fn current(&self) -> Option<&Failure> {
        self.segment.as_ref().or(self.manifest.as_ref()).or(self.write.as_ref())
    }

    /// Whether written bytes may be lost even though the process stays alive.
    pub fn holds_replies(&self) -> bool {
        self.segment.is_some() || self.manifest.is_some()
    }
}

impl Tail {
    /// Offset in the segment's file of a position.
    pub fn offset(&self, position: u64) -> u64 {
        offset_in(self.segment.position, position)
    }

    /// Whether all bytes that are not durable are in memory, so that the segment can be replaced.
    pub fn can_replace_segment(&self) -> bool {
        self.durable + self.unsynced.len() as u64 == self.written
    }
}

impl Shared {
    pub fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().expect("no holder of the lock panics")
    }

    /// Notes a fault, and refuses writes from now on.
    pub fn fail(&self, tail: &mut Tail, failure: Failure) {
        self.counts.faults.fetch_add(1, Ordering::Relaxed);
        tail.retry_at = Instant::now() + self.retry_interval;
        tail.last_failure = Some(failure.clone());
        let place = match failure.kind {
            FailureKind::Write => &mut tail.faults.write,
            FailureKind::Sync => &mut tail.faults.segment,
            FailureKind::Manifest => &mut tail.faults.manifest,
        };
        *place = Some(failure);
        self.is_failing.store(true, Ordering::Release);
        // It waits until the next attempt.
        self.work.notify_one();
        self.progress.notify_all();
    }

    /// Publishes the positions and whether the journal fails, after a change of either. Returns
    /// whether replies can be sent that could not be before.
    pub fn publish(&self, tail: &Tail) -> bool {
        let was_failing = self.is_failing.load(Ordering::Relaxed);
        let is_failing = tail.faults.current().is_some();
        self.end.store(tail.end, Ordering::Release);
        let mut has_advanced = false;
        if !tail.faults.holds_replies() {
            let position = match tail.policy {
                Policy::Always => tail.durable,
                Policy::EverySecond | Policy::Never => tail.written,
            };
            has_advanced = self.released.fetch_max(position, Ordering::AcqRel) < position;
        }
        self.is_failing.store(is_failing, Ordering::Release);
        self.progress.notify_all();
        self.wake_followers(tail);
        has_advanced || (was_failing && !is_failing)
    }

    /// Wakes followers after bytes were written.
    #[inline]
    pub fn wake_followers(&self, tail: &Tail) {
        if tail.waiting_followers > 0 {
            self.more.notify_all();
        }
    }

    /// Calls the function of [`crate::Journal::on_release`]. The caller does not hold the lock.
    pub fn call_wake(&self) {
        let wake = self.wake.lock().expect("no holder of the lock panics").clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Wakes the committer for new bytes. If it waits for a time, it finds them then.
    pub fn rouse(&self, tail: &mut Tail) {
        if tail.is_idle {
            tail.is_idle = false;
            self.work.notify_one();
        }
    }

    /// Makes this the manifest, and removes what no manifest names then. On an error the manifest
    /// is the old one, or it is not known which: then it is the new one with a lasting fault.
    pub fn store_manifest(
        &self,
        tail: &mut Tail,
        mut manifest: Manifest,
        garbage: Vec<PathBuf>,
    ) -> Result<(), Unstored> {
        manifest.generation = tail.manifest.generation + 1;
        let stored = self.folder.store(&manifest);
        match &stored {
            Err(Unstored { error, may_be_stored }) => {
                // While it is not known which manifest is on the disk, each attempt counts.
                if *may_be_stored || tail.faults.manifest.is_some() {
                    let failure = Failure::new(FailureKind::Manifest, &self.folder.path, error);
                    self.fail(tail, failure);
                }
                if !may_be_stored {
                    return stored;
                }
            }
            Ok(()) => tail.faults.manifest = None,
        }
        tail.manifest = manifest;
        tail.is_named = tail.manifest.last() == tail.segment;
        tail.garbage.extend(garbage);
        if stored.is_ok() {
            self.named_from.store(tail.manifest.segments[0].position, Ordering::Relaxed);
            tail.chain.trim(&self.folder, &tail.manifest, self.backlog_bytes);
            for path in tail.garbage.drain(..) {
                self.folder.remove(&path);
            }
        }
        stored
    }
}
