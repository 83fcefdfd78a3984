// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All clients that track, of all workers, and the prefixes of those in broadcasting mode.
//!
//! The lock is held when a client begins or ends, when a database is emptied, and once in a turn of
//! a worker that has changed keys with such prefixes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use freeport_kv_commands::{Reader, ReaderCounts};

use super::Invalidated;

/// Keys that were changed, and the client that has changed each of them last, or 0.
pub type Changes = BTreeMap<Arc<[u8]>, u64>;

/// All clients that track.
#[derive(Debug)]
pub struct Trackers {
    tables: RwLock<Tables>,
    /// Changes with the prefixes; workers compare it.
    version: Arc<AtomicU64>,
    /// Sizes of the tables of all shards.
    counts: Vec<Arc<ReaderCounts>>,
}

#[derive(Debug, Default)]
struct Tables {
    /// Workers of the clients.
    clients: BTreeMap<u64, u16>,
    /// Clients in broadcasting mode by prefix.
    prefixes: BTreeMap<Vec<u8>, Vec<Reader>>,
}

impl Trackers {
    /// No clients, of a number of workers, which compare a version.
    pub fn new(workers: usize, version: Arc<AtomicU64>) -> Self {
        let counts = (0..workers).map(|_| Arc::default()).collect();
        Self { tables: RwLock::default(), version, counts }
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sizes of the table of a shard.
    pub fn counts_of(&self, shard: usize) -> Arc<ReaderCounts> {
        self.counts[shard].clone()
    }

    /// A client tracks, and gets all changes of keys with some prefixes.
    pub fn add<'p>(&self, reader: Reader, prefixes: impl Iterator<Item = &'p [u8]>) {
        let mut tables = self.write();
        tables.clients.insert(reader.client, reader.worker);
        let before = tables.prefixes.len();
        for prefix in prefixes {
            let readers = tables.prefixes.entry(prefix.to_vec()).or_default();
            if !readers.contains(&reader) {
                readers.push(reader);
            }
        }
        self.note_prefixes(&tables, before);
    }

    /// A client tracks no more.
    pub fn remove(&self, client: u64, prefixes: &BTreeSet<Vec<u8>>) {
        let mut tables = self.write();
        tables.clients.remove(&client);
        let before = tables.prefixes.len();
        for prefix in prefixes {
            if let Some(readers) = tables.prefixes.get_mut(prefix) {
                readers.retain(|reader| reader.client != client);
                if readers.is_empty() {
                    tables.prefixes.remove(prefix);
                }
            }
        }
        self.note_prefixes(&tables, before);
    }

    /// Makes the workers look at the prefixes, if their number has changed. The lock is held still:
    /// the next client that names the same prefix, which is not new for it, may rely on this.
    fn note_prefixes(&self, tables: &Tables, before: usize) {
        if tables.prefixes.len() != before {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// All prefixes.
    pub fn prefixes(&self) -> Vec<Vec<u8>> {
        self.read().prefixes.keys().cloned().collect()
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.read().clients.len()
    }

    /// Number of prefixes.
    pub fn prefix_count(&self) -> usize {
        self.read().prefixes.len()
    }

    /// Number of keys of which clients may keep copies.
    pub fn keys(&self) -> u64 {
        self.counts.iter().map(|counts| counts.keys()).sum()
    }

    /// Number of copies that clients may keep.
    pub fn items(&self) -> u64 {
        self.counts.iter().map(|counts| counts.items()).sum()
    }

    /// All clients, by worker.
    pub fn everyone(&self) -> BTreeMap<u16, Vec<u64>> {
        let clients = &self.read().clients;
        by_worker(clients.iter().map(|(&client, &worker)| Reader { client, worker }))
    }

    /// The changed keys of each prefix, with its clients of each worker.
    pub fn broadcast(&self, changes: &Changes) -> Vec<(u16, Arc<Invalidated>, Vec<u64>)> {
        let mut messages = vec![];
        for (prefix, readers) in &self.read().prefixes {
            let from = changes.range::<[u8], _>((Bound::Included(&prefix[..]), Bound::Unbounded));
            let keys: Vec<(Arc<[u8]>, u64)> = from
                .take_while(|(key, _)| key.starts_with(prefix))
                .map(|(key, client)| (key.clone(), *client))
                .collect();
            if keys.is_empty() {
                continue;
            }
            let invalidated = Arc::new(Invalidated::Keys(keys));
            for (worker, clients) in by_worker(readers.iter().copied()) {
                messages.push((worker, invalidated.clone(), clients));
            }
        }
        messages
    }
}

/// Clients by worker.
pub fn by_worker(readers: impl Iterator<Item = Reader>) -> BTreeMap<u16, Vec<u64>> {
    let mut workers: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    for Reader { client, worker } in readers {
        workers.entry(worker).or_default().push(client);
    }
    workers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the workers look at the prefixes again.
    fn add(trackers: &Trackers, client: u64, prefixes: &[&[u8]]) -> bool {
        let worker = (client % 2) as u16;
        changes(trackers, || trackers.add(Reader { client, worker }, prefixes.iter().copied()))
    }

    fn remove(trackers: &Trackers, client: u64, prefix: &[u8]) -> bool {
        changes(trackers, || trackers.remove(client, &[prefix.to_vec()].into()))
    }

    fn changes(trackers: &Trackers, act: impl FnOnce()) -> bool {
        let before = trackers.version.load(Ordering::Relaxed);
        act();
        trackers.version.load(Ordering::Relaxed) != before
    }

    #[test]
    fn each_prefix_has_its_clients() {
        let trackers = Trackers::new(2, Arc::default());
        assert!(!add(&trackers, 1, &[]) && add(&trackers, 2, &[b"a:", b"b:"]));
        assert!(add(&trackers, 3, &[b"a:", b""]) && !add(&trackers, 4, &[b"a:"]));
        let changes: Changes =
            [(b"a:1", 7), (b"a:2", 0), (b"c:1", 7)].map(|(key, by)| (key[..].into(), by)).into();
        let count = |invalidated: &Invalidated| match invalidated {
            Invalidated::Keys(keys) => keys.len(),
            Invalidated::All => 0,
        };
        let messages = trackers.broadcast(&changes).into_iter();
        let messages: Vec<_> = messages.map(|(worker, it, to)| (worker, count(&it), to)).collect();
        assert_eq!(messages, [(1, 3, vec![3]), (0, 2, vec![2, 4]), (1, 2, vec![3])]);
        assert_eq!(trackers.everyone(), [(0, vec![2, 4]), (1, vec![1, 3])].into());
        assert!(!remove(&trackers, 3, b"a:") && remove(&trackers, 3, b""));
        assert_eq!((trackers.clients(), trackers.prefix_count()), (3, 2));
    }
}
