// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shards that a worker holds. It always holds its own, except while another worker executes a
//! command on it; it borrows others for a command whose keys they have.

use std::sync::Arc;

use freeport_kv_functions::Registry;
use freeport_kv_keyspace::Keyspace;
use freeport_kv_protocol::slots::worker_of;

use crate::eviction::EvictionOptions;
use crate::shard::Shard;

/// The shards of a server, of which some are here.
#[derive(Debug)]
pub struct Store {
    shards: Vec<Option<Box<Shard>>>,
    /// A shard that was here tracks the uses of keys.
    tracks_uses: bool,
    functions: Arc<Registry>,
}

impl Store {
    /// A store of `count` shards, none of them here.
    pub fn new(count: usize) -> Self {
        let functions = Arc::new(Registry::built_in());
        Self { shards: (0..count).map(|_| None).collect(), tracks_uses: false, functions }
    }

    /// A store that consists of one shard.
    pub fn of(shard: Shard) -> Self {
        let mut store = Self::new(1);
        store.insert(0, Box::new(shard));
        store
    }

    /// Functions that requests can name.
    pub fn functions(&self) -> &Arc<Registry> {
        &self.functions
    }

    /// Gives the store other functions: the built-in ones and those of a user. A server does so
    /// before its first request, and gives each worker a registry of its own.
    pub fn set_functions(&mut self, functions: Registry) {
        self.functions = Arc::new(functions);
    }

    /// Number of shards, here or elsewhere.
    pub fn count(&self) -> usize {
        self.shards.len()
    }

    /// Number of the shard that has a key.
    #[inline]
    pub fn shard_of(&self, key: &[u8]) -> usize {
        worker_of(key, self.shards.len())
    }

    /// The shard is here.
    pub fn has(&self, number: usize) -> bool {
        self.shards[number].is_some()
    }

    /// Takes a shard in.
    pub fn insert(&mut self, number: usize, shard: Box<Shard>) {
        debug_assert!(self.shards[number].is_none(), "a shard is in one place");
        self.tracks_uses |= shard.tracks_uses();
        self.shards[number] = Some(shard);
    }

    /// Uses of keys may be tracked in a shard that is here.
    #[inline]
    pub fn tracks_uses(&self) -> bool {
        self.tracks_uses
    }

    /// Sets the parameters of eviction of a shard that is here.
    pub fn set_eviction(&mut self, number: usize, options: EvictionOptions, now_ms: u64) {
        self.shard_mut(number).set_eviction(options, now_ms);
        let tracks_uses = self.shards().any(Shard::tracks_uses);
        self.tracks_uses = tracks_uses;
    }

    /// The last uses of keys of a shard that is here are tracked from now on.
    pub fn ask_for_uses(&mut self, number: usize, now_ms: u64) {
        self.shard_mut(number).ask_for_uses(now_ms);
        self.tracks_uses |= self.shard(number).tracks_uses();
    }

    /// Gives a shard away.
    pub fn take(&mut self, number: usize) -> Option<Box<Shard>> {
        self.shards[number].take()
    }

    /// A shard that is here.
    ///
    /// # Panics
    /// It is not. Before a command, its worker takes hold of the shards of all its keys.
    #[inline]
    pub fn shard(&self, number: usize) -> &Shard {
        self.shards[number].as_deref().expect("the shards of a command are held")
    }

    /// A shard that is here, to be changed.
    ///
    /// # Panics
    /// See [`Store::shard`].
    #[inline]
    pub fn shard_mut(&mut self, number: usize) -> &mut Shard {
        self.shards[number].as_deref_mut().expect("the shards of a command are held")
    }

    /// Two different databases, each of a shard, that are changed; they are made if necessary.
    ///
    /// # Panics
    /// See [`Store::shard`] and [`Shard::database_or_new`].
    pub fn two_keyspaces(&mut self, places: [(usize, u16); 2]) -> [&mut Keyspace; 2] {
        let [(one, first), (other, second)] = places;
        if one == other {
            return self.shard_mut(one).two_databases(first, second);
        }
        let shards = self.shards.get_disjoint_mut([one, other]);
        let shards = shards.expect("the numbers are different, and those of shards");
        let [one, other] =
            shards.map(|shard| shard.as_deref_mut().expect("the shards of a command are held"));
        [one.database_or_new(first), other.database_or_new(second)]
    }

    /// The shards that are here.
    pub fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().flatten().map(|shard| &**shard)
    }

    /// The shards that are here, to be changed.
    pub fn shards_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        self.shards.iter_mut().flatten().map(|shard| &mut **shard)
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_keyspace::{Expiry, Options};

    use super::*;
    use crate::shard::ShardOptions;

    #[test]
    fn slots_are_divided_among_shards() {
        let mut store = Store::new(3);
        let shards: Vec<usize> =
            (0..1_000).map(|number| store.shard_of(format!("{number}").as_bytes())).collect();
        for shard in 0..3 {
            let share = shards.iter().filter(|one| **one == shard).count();
            assert!((250..420).contains(&share), "{share}");
        }
        assert!(!store.has(1));
        let options = ShardOptions { databases: 1, keyspace: Options::default() };
        store.insert(1, Box::new(Shard::new(options)));
        assert!(store.has(1) && store.shards().count() == 1);
        assert!(store.take(1).is_some() && !store.has(1));
    }

    #[test]
    fn two_databases_are_changed_at_once() {
        let mut store = Store::new(2);
        for number in 0..2 {
            let options = ShardOptions { databases: 3, keyspace: Options::default() };
            store.insert(number, Box::new(Shard::new(options)));
        }
        for places in [[(0, 1), (1, 1)], [(1, 2), (0, 0)], [(1, 0), (1, 2)]] {
            let [one, other] = store.two_keyspaces(places);
            one.set_string(b"one", b"1", Expiry::Never, 0).expect("there is memory");
            other.set_string(b"other", b"2", Expiry::Never, 0).expect("there is memory");
            let kind = |(shard, number): (usize, u16), key| {
                let database = store.shard(shard).database(number);
                database.is_some_and(|database| database.kind(key, 0).is_some())
            };
            assert!(kind(places[0], b"one") && kind(places[1], b"other"));
        }
    }
}
