// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slots move between the shards of a cluster while they are used.
//!
//! The registry's topology names a move: from, to, slots. The primary of the target follows the log
//! of the source's primary, like a replica, but only what concerns the slots, and records it as its
//! own. When it is close behind, the source stops the slots for a moment, waits until the target
//! has everything, and replaces the topology. So every slot has one owner at any time, which has
//! all its keys, and no client sees a slot of which a part has moved.
//!
//! An attempt, which may end at any step:
//! 1. Target: replaces the topology by one that differs in nothing but its epoch. A replacement by
//!    the source that is still under way from an earlier attempt fails from now on.
//! 2. Target: removes all keys of the slots that it has ([`purges`]), and follows the source
//!    ([`import`]).
//! 3. Source: sends the part of its snapshot and its log ([`export`], [`division`]).
//! 4. Source: hands over ([`handover`]), and then removes its keys of the slots.
//!
//! While an attempt fails, the source serves the slots as before. The target begins the next one.

mod division;
mod export;
mod handover;
mod import;
mod manager;
mod progress;
mod purges;

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

use freeport_kv_cluster::{Move, SlotSet};

use crate::cluster::{Cluster, View};
use crate::shared::Shared;
pub use division::{DATABASE, Divider};
pub use export::serve;
pub use progress::{Direction, Progress, Stage, Tracker};
pub use purges::{Order, Purges};

/// Moves of slots from and to a node.
#[derive(Debug)]
pub struct Moving {
    /// Removal of keys whose slots belong to others.
    pub purges: Purges,
    /// Progress of all moves, for reports.
    pub progress: Progress,
    imports: Mutex<Vec<Held>>,
    /// Held by the exporter that hands over.
    handing_over: Mutex<()>,
    /// Number of imports that have keys.
    importing: AtomicUsize,
    /// Number of times that clients have removed all keys.
    clears: AtomicU64,
    threads: Mutex<Vec<Thread>>,
}

/// A thread that has to end with the server.
#[derive(Debug)]
struct Thread {
    /// The connection that it waits for.
    socket: Option<TcpStream>,
    handle: JoinHandle<()>,
}

/// Slots of an import, which are not purged as those of other shards are.
#[derive(Debug)]
struct Held {
    slots: SlotSet,
    /// They are purged before the import.
    is_purged: bool,
}

impl Moving {
    /// No moves so far, for a number of workers.
    pub fn new(workers: usize) -> Self {
        Self {
            purges: Purges::new(workers),
            progress: Progress::default(),
            imports: Mutex::default(),
            handing_over: Mutex::default(),
            importing: AtomicUsize::new(0),
            clears: AtomicU64::new(0),
            threads: Mutex::default(),
        }
    }

    /// Begins to follow the topology, if the server is a node of a cluster.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(shared: &Arc<Shared>) -> io::Result<()> {
        let Some(moving) = &shared.moving else { return Ok(()) };
        moving.keep(None, manager::start(shared)?);
        Ok(())
    }

    /// Waits until all threads have ended. The server stops, and its workers have ended.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *self.threads());
        for Thread { socket, handle } in threads {
            if let Some(socket) = socket {
                // The other side may have done so before.
                let _ = socket.shutdown(Shutdown::Both);
            }
            // A panic was reported by its thread.
            let _ = handle.join();
        }
    }

    /// A thread ends with the server at the latest. Those that have ended are forgotten.
    fn keep(&self, socket: Option<TcpStream>, handle: JoinHandle<()>) {
        let mut threads = self.threads();
        threads.retain(|thread| !thread.handle.is_finished());
        threads.push(Thread { socket, handle });
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Slots are being imported, so keys do not expire by themselves.
    #[inline]
    pub fn is_importing(&self) -> bool {
        self.importing.load(Ordering::Acquire) > 0
    }

    /// A client has removed all keys, and those of an import with them.
    pub fn note_clear(&self) {
        self.clears.fetch_add(1, Ordering::AcqRel);
    }

    fn clears(&self) -> u64 {
        self.clears.load(Ordering::Acquire)
    }

    fn imports(&self) -> MutexGuard<'_, Vec<Held>> {
        self.imports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders the purge that follows from the present view.
    fn order_purge(&self, cluster: &Cluster) {
        self.order(cluster, &self.imports());
    }

    /// The view is read under the lock of the imports: a purge by an older one might concern slots
    /// that the node has got since.
    fn order(&self, cluster: &Cluster, imports: &[Held]) {
        // A node without a lease may be wrong about what belongs to others.
        self.purges.set(match cluster.fence.is_valid() {
            true => foreign(&cluster.view(), imports),
            false => SlotSet::default(),
        });
    }

    /// Begins a hand-over, which lasts as long as the guard; `None`: another one has not ended. Two
    /// exporters may have the same slots after a link was lost, and the end of one hand-over would
    /// let clients continue while the other relies on their wait.
    fn begin_handover(&self) -> Option<MutexGuard<'_, ()>> {
        match self.handing_over.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Slots of an import are purged now, or are left alone from now on; `None`: the import has
    /// ended.
    fn hold(&self, slots: &SlotSet, is_purged: Option<bool>, cluster: &Cluster) {
        let mut imports = self.imports();
        imports.retain(|held| held.slots != *slots);
        if let Some(is_purged) = is_purged {
            imports.push(Held { slots: slots.clone(), is_purged });
        }
        let filled = imports.iter().filter(|held| !held.is_purged).count();
        self.importing.store(filled, Ordering::Release);
        self.order(cluster, &imports);
    }
}

/// Slots whose keys a node removes: those of other shards, but not those that are on their way to
/// it. A node that is not the primary of a shard removes nothing by itself, and nobody removes keys
/// of slots that have no owner.
fn foreign(view: &View, imports: &[Held]) -> SlotSet {
    let Some(own) = view.shard().filter(|shard| shard.primary == view.me) else {
        return SlotSet::default();
    };
    let others = view.topology.shards.iter().filter(|shard| shard.id != own.id);
    let mut slots = others.fold(SlotSet::default(), |all, shard| all.union(&shard.slots));
    for coming in view.topology.moves.iter().filter(|one| one.to == own.id) {
        slots = slots.without(&coming.slots);
    }
    for held in imports {
        slots = match held.is_purged {
            // The view may be newer than the import.
            true => slots.union(&held.slots.without(&own.slots)),
            false => slots.without(&held.slots),
        };
    }
    slots
}

/// The move is still wanted, from or to the shard of which the node is the primary.
fn is_present(view: &View, wanted: &Move, direction: Direction) -> bool {
    let end = match direction {
        Direction::Export => wanted.from,
        Direction::Import => wanted.to,
    };
    let is_mine = view.is_primary() && view.shard().is_some_and(|own| own.id == end);
    is_mine && view.topology.moves.contains(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hand_over_begins_at_a_time() {
        let moving = Moving::new(1);
        let first = moving.begin_handover();
        assert!(first.is_some() && moving.begin_handover().is_none());
        drop(first);
        assert!(moving.begin_handover().is_some());
    }
}
