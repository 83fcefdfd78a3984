// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker's part in snapshots: it begins one while it holds all shards, and hands out a part of
//! its own shard's image in every turn. See [`crate::persistence::Snapshots`].

use std::time::{Duration, Instant};

use freeport_kv_journal::Entries;
use freeport_kv_keyspace::ImageStep;

use super::{Core, Worker};
use crate::mail::Mailbox;
use crate::persistence::{PAIRS, Persistence, RECORDS, record};
use crate::replication::Replication;
use crate::statistics::sum;

/// Time of a turn for images.
const TURN: Duration = Duration::from_micros(200);
/// Chains of keys that are written between two looks at the clock.
const CHAINS: usize = 32;
/// Bytes of pairs that become an entry.
const ENTRY_BYTES: usize = 64 << 10;
/// Bytes of pairs that have changed above which the worker waits for the disk.
const PENDING_BYTES: usize = 64 << 20;
/// Time after which a disk that was busy is tried again.
const PAUSE: Duration = Duration::from_millis(1);

/// Time until the next snapshot after one that failed: while writes are refused until there is one,
/// and while the log has grown.
const REPAIR_PAUSE: Duration = Duration::from_millis(500);
const GROWTH_PAUSE: Duration = Duration::from_secs(10);

/// The image of the own shard that is being written.
#[derive(Default)]
pub(super) struct Imaging {
    /// Number of the snapshot; 0: none.
    number: u64,
    is_complete: bool,
    /// The disk took no more.
    is_paused: bool,
    bytes: Vec<u8>,
    entries: Entries,
}

impl Worker {
    /// Borrows all shards for a snapshot, if one is wanted, and continues with one that is being
    /// written.
    #[inline]
    pub(super) fn take_images(&mut self) {
        let Some(persistence) = &self.core.shared.persistence else { return };
        let snapshots = &persistence.snapshots;
        if snapshots.take_wanted() {
            self.borrow_for_snapshot();
        } else if snapshots.running() != self.imaging.number {
            self.follow_snapshot();
        } else if self.imaging.number != 0 && !self.imaging.is_complete {
            self.write_image();
        }
    }

    /// All shards are here: a snapshot begins.
    pub(super) fn begin_snapshot(&mut self) {
        self.core.flush_log();
        let shared = self.core.shared.clone();
        let Some(persistence) = &shared.persistence else { return };
        if shared.replication.as_ref().is_some_and(Replication::is_copying) {
            let reason = "the keys are not all here, because the server takes those of its primary";
            return persistence.snapshots.refuse(reason.into());
        }
        let changes = sum(shared.workers(), |worker| &worker.changes);
        if !persistence.snapshots.begin(&persistence.journal, shared.mailboxes.len(), changes) {
            return;
        }
        let number = persistence.snapshots.running();
        for shard in self.core.store.shards_mut() {
            shard.end_image();
            shard.begin_image();
        }
        // A change of functions after this is in the new segment of the log, and has a later
        // version.
        if let Some((version, dump)) = shared.library.functions_since(0) {
            let mut entry = vec![RECORDS];
            record::write_functions(&mut entry, version, &dump);
            let mut entries = Entries::new();
            entries.push(&entry);
            persistence.snapshots.write(number, &mut entries);
        }
        shared.mailboxes.iter().for_each(Mailbox::rouse);
    }

    /// A snapshot has begun, ended or was cancelled.
    #[cold]
    fn follow_snapshot(&mut self) {
        let Some(persistence) = &self.core.shared.persistence else { return };
        let number = persistence.snapshots.running();
        if number == 0 {
            // A shard on loan does so when it is back.
            if !self.core.store.has(self.core.number) {
                return;
            }
            self.core.store.shard_mut(self.core.number).end_image();
        }
        self.imaging = Imaging { number, ..Imaging::default() };
    }

    fn write_image(&mut self) {
        let shared = self.core.shared.clone();
        let Some(persistence) = &shared.persistence else { return };
        if !self.core.store.has(self.core.number) {
            return;
        }
        let shard = self.core.store.shard_mut(self.core.number);
        self.imaging.is_paused =
            persistence.snapshots.is_full() && shard.pending_image_bytes() < PENDING_BYTES;
        let begun = Instant::now();
        while !self.imaging.is_paused && !self.imaging.is_complete && begun.elapsed() < TURN {
            self.write_some(persistence);
        }
    }

    fn write_some(&mut self, persistence: &Persistence) {
        let Imaging { number, is_complete, is_paused, bytes, entries } = &mut self.imaging;
        if bytes.is_empty() {
            bytes.push(PAIRS);
        }
        let step = self.core.store.shard_mut(self.core.number).image_some(CHAINS, bytes);
        match step {
            ImageStep::Broken => {
                persistence.snapshots.restart(*number);
                *is_paused = true;
                return;
            }
            ImageStep::More if bytes.len() < ENTRY_BYTES => return,
            ImageStep::More | ImageStep::Done => {}
        }
        if bytes.len() > 1 {
            entries.push(bytes);
            persistence.snapshots.write(*number, entries);
        }
        // The memory is given back as well: a large value may have needed much.
        *bytes = vec![];
        *is_paused = persistence.snapshots.is_full();
        if step == ImageStep::Done {
            *is_complete = true;
            let mailboxes = self.core.shared.mailboxes.clone();
            let wake = move || mailboxes.iter().for_each(Mailbox::log_has_advanced);
            persistence.snapshots.complete(*number, wake);
        }
    }

    /// Time until the next part of an image is written; none: there is none.
    pub(super) fn image_time(&self) -> Option<Duration> {
        let is_due = self.imaging.number != 0 && !self.imaging.is_complete;
        let is_here = self.core.store.has(self.core.number);
        (is_due && is_here).then_some(if self.imaging.is_paused { PAUSE } else { Duration::ZERO })
    }
}

impl Core {
    /// Wants a snapshot if the log has grown enough, or can be trusted again only by one.
    pub(super) fn look_at_log(&self) {
        let Some(persistence) = &self.shared.persistence else { return };
        let (least, percent) = self.settings.rewrite;
        let has_grown = || {
            let status = persistence.journal.status();
            let growth = u128::from(status.log_bytes) * 100;
            percent > 0
                && status.bytes >= least
                && growth >= u128::from(status.snapshot_bytes.max(1)) * u128::from(percent)
        };
        if persistence.journal.wants_snapshot() {
            persistence.snapshots.want_automatically(REPAIR_PAUSE);
        } else if has_grown() {
            persistence.snapshots.want_automatically(GROWTH_PAUSE);
        }
    }
}
