// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far moves are, for reports.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freeport_kv_cluster::{Move, ShardId, SlotSet};

/// Side of a node in a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It gives slots away.
    Export,
    /// It gets slots.
    Import,
}

/// A step of a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The attempt has failed, and the next one begins soon.
    #[default]
    Waiting,
    /// The target removes old keys.
    Purge,
    /// Keys of the snapshot are sent.
    Snapshot,
    /// Changes are sent.
    Stream,
    /// Clients wait until the target has everything.
    Handover,
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Waiting => "waiting",
            Self::Purge => "purge",
            Self::Snapshot => "snapshot",
            Self::Stream => "stream",
            Self::Handover => "handover",
        })
    }
}

/// A move, as reports show it.
#[derive(Debug)]
struct Entry {
    direction: Direction,
    /// The other shard.
    peer: ShardId,
    slots: SlotSet,
    state: Mutex<(Stage, Option<String>)>,
    /// Bytes of the snapshot and the log that were looked at or received.
    bytes: AtomicU64,
    /// Bytes of the snapshot, and of the log until now.
    total_bytes: AtomicU64,
}

/// All moves of a node.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Vec<Arc<Entry>>>);

/// The progress of one move, which is shown as long as this value exists.
#[derive(Debug)]
pub struct Tracker<'a> {
    all: &'a Progress,
    entry: Arc<Entry>,
}

impl Progress {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a move.
    pub fn track(&self, direction: Direction, one: &Move) -> Tracker<'_> {
        let peer = match direction {
            Direction::Export => one.to,
            Direction::Import => one.from,
        };
        let entry = Arc::new(Entry {
            direction,
            peer,
            slots: one.slots.clone(),
            state: Mutex::default(),
            bytes: AtomicU64::new(0),
            total_bytes: AtomicU64::new(0),
        });
        self.list().push(entry.clone());
        Tracker { all: self, entry }
    }

    /// Lines of `INFO cluster`: names and values. Ranges of slots are joined by `+`, because fields
    /// are by commas.
    pub fn lines(&self) -> Vec<(String, String)> {
        let list = self.list();
        let of = |direction| list.iter().filter(move |entry| entry.direction == direction);
        let exports = (0..).zip(of(Direction::Export)).map(|(at, it)| it.line("move", "to", at));
        let imports =
            (0..).zip(of(Direction::Import)).map(|(at, it)| it.line("import", "from", at));
        exports.chain(imports).collect()
    }
}

impl Entry {
    fn line(&self, name: &str, peer: &str, number: u32) -> (String, String) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let total_bytes = self.total_bytes.load(Ordering::Relaxed).max(bytes);
        let (stage, failure) = &*self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = failure.as_deref().unwrap_or_default().replace([',', '\r', '\n'], ";");
        let slots = self.slots.to_string().replace(',', "+");
        let value = format!(
            "{peer}={},slots={slots},state={stage},bytes={bytes},total_bytes={total_bytes},\
             error={failure}",
            self.peer
        );
        (format!("cluster_{name}_{number}"), value)
    }
}

impl Tracker<'_> {
    /// The move has come to a step.
    pub fn set_stage(&self, stage: Stage) {
        self.entry.state.lock().unwrap_or_else(PoisonError::into_inner).0 = stage;
    }

    /// An attempt has failed.
    pub fn fail(&self, reason: String) {
        let mut state = self.entry.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = (Stage::Waiting, Some(reason));
    }

    /// Bytes that were sent or received since the begin of the attempt, and those that there are.
    pub fn set_bytes(&self, bytes: u64, total_bytes: u64) {
        self.entry.bytes.store(bytes, Ordering::Relaxed);
        self.entry.total_bytes.store(total_bytes, Ordering::Relaxed);
    }
}

impl Drop for Tracker<'_> {
    fn drop(&mut self) {
        self.all.list().retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_shown_as_long_as_they_last() {
        let progress = Progress::default();
        let one = Move {
            from: ShardId::random(),
            to: ShardId::random(),
            slots: "1-5,9".parse().expect("slots"),
        };
        let tracker = progress.track(Direction::Import, &one);
        tracker.set_bytes(10, 0);
        tracker.fail("gone, and away".into());
        let value = format!(
            "from={},slots=1-5+9,state=waiting,bytes=10,total_bytes=10,error=gone; and away",
            one.from
        );
        assert_eq!(progress.lines(), [("cluster_import_0".to_owned(), value)]);
        drop(tracker);
        assert_eq!(progress.lines(), []);
    }
}
