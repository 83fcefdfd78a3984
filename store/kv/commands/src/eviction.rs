// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Eviction: keys are removed to make room for others. A policy says which.
//!
//! As in Redis, a few keys are looked at for each victim, and the best of those that were seen
//! lately wait in a pool of 16. So the victims are much better than the best of one small sample.

use freeport_kv_keyspace::{Keyspace, Tracking};

/// Number of candidates that wait for their eviction.
const POOL: usize = 16;

/// Which keys are evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// Those whose last use was the longest time ago.
    Recency,
    /// Those that are used the least often.
    Frequency,
    /// Those that expire first.
    Expiry,
    /// Any.
    Random,
}

/// A policy of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which keys are evicted first.
    pub ranking: Ranking,
    /// Only keys with a time of expiry are evicted.
    pub only_expiring: bool,
}

impl Policy {
    /// All policies, by their names in Redis.
    pub const ALL: [(&'static str, Self); 7] = [
        ("volatile-lru", Self::new(Ranking::Recency, true)),
        ("volatile-lfu", Self::new(Ranking::Frequency, true)),
        ("volatile-random", Self::new(Ranking::Random, true)),
        ("volatile-ttl", Self::new(Ranking::Expiry, true)),
        ("allkeys-lru", Self::new(Ranking::Recency, false)),
        ("allkeys-lfu", Self::new(Ranking::Frequency, false)),
        ("allkeys-random", Self::new(Ranking::Random, false)),
    ];

    const fn new(ranking: Ranking, only_expiring: bool) -> Self {
        Self { ranking, only_expiring }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, policy)| *policy == self);
        // Only expiring keys can be ranked by their expiry, so every other pair of properties has
        // a name.
        named.map_or("volatile-ttl", |(name, _)| name)
    }

    /// The policy of a name; none for `noeviction` and other names.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(one, _)| *one == name).map(|(_, policy)| *policy)
    }
}

/// Parameters of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionOptions {
    /// The policy; none: nothing is evicted.
    pub policy: Option<Policy>,
    /// About how many keys are looked at for each victim.
    pub samples: usize,
    /// See [`Tracking::Frequency`].
    pub log_factor: u32,
    /// See [`Tracking::Frequency`].
    pub decay_minutes: u32,
}

impl Default for EvictionOptions {
    /// Those of Redis: nothing is evicted.
    fn default() -> Self {
        Self { policy: None, samples: 5, log_factor: 10, decay_minutes: 1 }
    }
}

/// Result of an attempt to evict a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evicted {
    /// A key was removed.
    One,
    /// No victim was found so far; another attempt continues the search.
    NotYet,
    /// There is no key that may be evicted.
    NoneLeft,
}

/// State of eviction in a shard.
#[derive(Debug, Default)]
pub(crate) struct Evictor {
    pub options: EvictionOptions,
    /// Best candidates, the best one last.
    pub pool: Vec<Candidate>,
    /// Somebody has asked for the last use of a key, which no policy needs.
    pub is_asked: bool,
    /// The database whose keys are evicted next.
    pub next_database: u16,
    /// A time not long ago.
    pub now_ms: u64,
}

/// A key that may be evicted.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The larger, the better it is as a victim.
    pub value: u64,
    /// Its database.
    pub database: u16,
    /// The key.
    pub key: Vec<u8>,
}

impl Evictor {
    /// The uses of keys that have to be tracked.
    pub fn tracking(&self) -> Tracking {
        let EvictionOptions { policy, log_factor, decay_minutes, .. } = self.options;
        match policy.map(|policy| policy.ranking) {
            Some(Ranking::Frequency) => Tracking::Frequency { log_factor, decay_minutes },
            Some(Ranking::Recency) => Tracking::Recency,
            _ if self.is_asked => Tracking::Recency,
            _ => Tracking::Off,
        }
    }

    /// A database that is made tracks the uses of its keys like the others.
    pub fn prepare(&self, keyspace: &mut Keyspace) {
        keyspace.track(self.tracking(), self.now_ms);
    }

    /// Puts a key into the pool if it is better than the worst there, or if there is room.
    pub fn offer(&mut self, value: u64, database: u16, key: &[u8]) {
        let at = self.pool.partition_point(|candidate| candidate.value < value);
        let is_known = |one: &Candidate| one.database == database && one.key == key;
        if (self.pool.len() == POOL && at == 0) || self.pool.iter().any(is_known) {
            return;
        }
        let candidate = Candidate { value, database, key: key.to_vec() };
        if self.pool.len() == POOL {
            self.pool.remove(0);
            self.pool.insert(at - 1, candidate);
        } else {
            self.pool.insert(at, candidate);
        }
    }
}
