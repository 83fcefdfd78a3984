// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of which clients may keep copies: for each key, the clients that have read it since it
//! changed last (client-side caching of Redis 7.2, `tracking.c`, the default mode).
//!
//! A key is in the table once, whatever its database. When it changes, its entry is taken out, and
//! each of its readers gets one message. A client that has gone stays in the table until then, so
//! that the end of a client costs nothing. Two limits bound the memory: beyond one of them, random
//! keys are taken out as if they had changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Readers for each key that the limit allows, on average.
const READERS_PER_KEY: usize = 16;

/// A client that wants to know when a key changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader {
    /// Number of the client.
    pub client: u64,
    /// The worker that has its connection.
    pub worker: u16,
}

/// A key of which clients may keep copies has changed, or is treated as if it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalidation {
    /// The key.
    pub key: Arc<[u8]>,
    /// Clients that have read it, by their numbers.
    pub readers: Vec<Reader>,
    /// Clients want to know it that have not read it, but have named a prefix of it.
    pub is_broadcast: bool,
    /// A command has changed it. Otherwise its time has passed, it was evicted, or the table was
    /// full.
    pub is_by_command: bool,
}

/// Sizes of a table, which anyone may read at any time. The worker that has the shard writes them.
#[derive(Debug, Default)]
pub struct ReaderCounts {
    keys: AtomicU64,
    items: AtomicU64,
}

/// The table of a shard.
#[derive(Debug)]
pub(crate) struct Readers {
    /// Place of each key among the entries.
    places: HashMap<Arc<[u8]>, usize>,
    /// Keys with their readers in ascending order.
    entries: Vec<(Arc<[u8]>, Vec<Reader>)>,
    /// Number of readers of all keys.
    items: usize,
    /// Number of keys above which random ones are taken out.
    keys_max: usize,
    counts: Arc<ReaderCounts>,
}

impl ReaderCounts {
    /// Number of keys.
    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// Number of pairs of a key and a client.
    pub fn items(&self) -> u64 {
        self.items.load(Ordering::Relaxed)
    }
}

impl Default for Readers {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            entries: vec![],
            items: 0,
            keys_max: usize::MAX,
            counts: Arc::default(),
        }
    }
}

impl Readers {
    /// Number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Sets the number of keys above which random ones have to be taken out.
    pub fn set_keys_max(&mut self, keys_max: usize) {
        self.keys_max = keys_max;
    }

    /// Publishes the sizes in other counts from now on.
    pub fn set_counts(&mut self, counts: Arc<ReaderCounts>) {
        self.counts = counts;
        self.publish();
    }

    /// The table is larger than one of its limits allows.
    pub fn is_over_limit(&self) -> bool {
        let keys = self.entries.len();
        keys > self.keys_max || self.items > self.keys_max.saturating_mul(READERS_PER_KEY)
    }

    /// A client has read a key.
    pub fn add(&mut self, key: &[u8], reader: Reader) {
        let readers = match self.places.get(key) {
            Some(&at) => &mut self.entries[at].1,
            None => {
                let key: Arc<[u8]> = key.into();
                self.places.insert(key.clone(), self.entries.len());
                self.entries.push((key, vec![]));
                &mut self.entries.last_mut().expect("an entry was just added").1
            }
        };
        if let Err(at) = readers.binary_search(&reader) {
            readers.insert(at, reader);
            self.items += 1;
            self.publish();
        }
    }

    /// Takes a key out with its readers.
    pub fn take(&mut self, key: &[u8]) -> Option<(Arc<[u8]>, Vec<Reader>)> {
        let at = *self.places.get(key)?;
        Some(self.take_at(at))
    }

    /// Takes a random key out.
    pub fn take_random(&mut self) -> Option<(Arc<[u8]>, Vec<Reader>)> {
        let count = self.entries.len();
        (count > 0).then(|| self.take_at(fastrand::usize(..count)))
    }

    /// Forgets all keys, and gives the memory back.
    pub fn clear(&mut self) {
        (self.places, self.entries, self.items) = (HashMap::new(), vec![], 0);
        self.publish();
    }

    fn take_at(&mut self, at: usize) -> (Arc<[u8]>, Vec<Reader>) {
        let (key, readers) = self.entries.swap_remove(at);
        self.places.remove(&key);
        if let Some((moved, _)) = self.entries.get(at) {
            *self.places.get_mut(moved).expect("every entry has its place") = at;
        }
        self.items -= readers.len();
        self.publish();
        (key, readers)
    }

    fn publish(&self) {
        self.counts.keys.store(self.entries.len() as u64, Ordering::Relaxed);
        self.counts.items.store(self.items as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(client: u64) -> Reader {
        Reader { client, worker: 0 }
    }

    #[test]
    fn a_key_is_taken_out_with_its_readers() {
        let mut readers = Readers::default();
        for client in [3, 1, 3, 2] {
            readers.add(b"one", reader(client));
        }
        readers.add(b"other", reader(1));
        assert_eq!((readers.counts.keys(), readers.counts.items()), (2, 4));
        let (key, clients) = readers.take(b"one").expect("it was read");
        assert_eq!((&*key, clients), (&b"one"[..], [1, 2, 3].map(reader).to_vec()));
        assert!(readers.take(b"one").is_none());
        assert_eq!((readers.counts.keys(), readers.counts.items()), (1, 1));
        assert!(readers.take(b"other").is_some() && readers.len() == 0);
    }

    #[test]
    fn random_keys_are_all_taken_out_in_the_end() {
        let mut readers = Readers::default();
        for number in 0..100_u32 {
            readers.add(&number.to_le_bytes(), reader(1));
        }
        let mut keys: Vec<_> = std::iter::from_fn(|| readers.take_random()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!((keys.len(), readers.items, readers.places.len()), (100, 0, 0));
    }

    #[test]
    fn both_keys_and_readers_have_a_limit() {
        let mut readers = Readers::default();
        readers.set_keys_max(1);
        for client in 0..READERS_PER_KEY as u64 {
            readers.add(b"key", reader(client));
        }
        assert!(!readers.is_over_limit());
        readers.add(b"key", reader(99));
        assert!(readers.is_over_limit());
        readers.clear();
        readers.add(b"one", reader(1));
        assert!(!readers.is_over_limit());
        readers.add(b"other", reader(1));
        assert!(readers.is_over_limit());
    }
}
