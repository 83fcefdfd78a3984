// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A copy of the registry's contents that a watch keeps up to date, so that waiting for a change
//! costs etcd nothing.
//!
//! A watch can be late or dead without notice. So the copy is compared with the contents if it
//! misses a change that is known from another call, and after every second of silence.

use std::time::{Duration, Instant};

use super::contents::Keys;
use super::messages::{Event, EventKind};
use super::watch::Watch;
use crate::registry::{RegistryError, State};

/// Time without a message after which the copy is compared.
const SILENCE: Duration = Duration::from_secs(1);
/// Time for a change to arrive that is known from another call.
const LATENESS: Duration = Duration::from_millis(100);

/// Contents at one revision of etcd.
pub(super) struct Snapshot {
    pub(super) state: State,
    pub(super) revision: u64,
}

/// A copy of the contents.
pub(super) struct Mirror {
    pub(super) state: State,
    watch: Watch,
    /// Changes up to this revision are in the state.
    applied: u64,
    /// Changes of this process up to this revision are in the state.
    reached: u64,
    /// The moment of the last message or comparison.
    heard: Instant,
}

/// The watch of a mirror cannot be used any longer.
pub(super) enum MirrorError {
    /// It has ended.
    Watch,
    /// It has reported contents that cannot be read.
    Contents(RegistryError),
}

impl Mirror {
    /// A copy of a snapshot, and a watch that has begun with the revision after it.
    pub(super) fn new(snapshot: Snapshot, watch: Watch, floor: u64) -> Self {
        let Snapshot { state, revision } = snapshot;
        let reached = floor.max(revision);
        Self { state, watch, applied: revision, reached, heard: Instant::now() }
    }

    /// The state has all changes up to a revision that another call has returned.
    pub(super) fn has_reached(&self, floor: u64) -> bool {
        self.reached >= floor
    }

    /// The moment at which the copy has to be compared if no message arrives before.
    pub(super) fn comparison(&self, floor: u64) -> Instant {
        self.heard + if self.has_reached(floor) { SILENCE } else { LATENESS }
    }

    /// Waits for a message until a deadline, and applies its changes.
    pub(super) fn advance(&mut self, keys: &Keys, deadline: Instant) -> Result<(), MirrorError> {
        let Some(events) = self.watch.next(deadline).map_err(|_| MirrorError::Watch)? else {
            return Ok(());
        };
        self.heard = Instant::now();
        for Event { r#type, kv } in events.iter().filter(|it| it.kv.mod_revision > self.applied) {
            match r#type {
                EventKind::Put => {
                    keys.insert(&mut self.state, kv).map_err(MirrorError::Contents)?;
                }
                EventKind::Delete => keys.remove(&mut self.state, &kv.key),
            }
        }
        // Only now: several events can have one revision.
        let last = events.iter().map(|event| event.kv.mod_revision).max().unwrap_or_default();
        self.applied = self.applied.max(last);
        self.reached = self.reached.max(self.applied);
        Ok(())
    }

    /// Takes over a snapshot that was read after `floor` was known. Returns false if the watch has
    /// missed something in it.
    pub(super) fn compare(&mut self, snapshot: Snapshot, floor: u64) -> bool {
        let is_complete = !snapshot.state.is_news(&self.state);
        self.state = snapshot.state;
        self.applied = snapshot.revision;
        self.reached = floor.max(snapshot.revision);
        self.heard = Instant::now();
        is_complete
    }
}
