// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Eviction: keys are removed to make room for others. A policy says which.
//!
//! As in Redis, a few keys are looked at for each victim, and the best of those that were seen
//! lately wait in a pool of 16. So the victims are much better than the best of one small sample.

use freeport_kv_keyspace::{Keyspace, Order, Sampling, Tracking};

use crate::effects::{Class, Effects};
use crate::shard::Shard;

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
    options: EvictionOptions,
    /// Best candidates, the best one last.
    pool: Vec<Candidate>,
    /// Somebody has asked for the last use of a key, which no policy needs.
    is_asked: bool,
    /// The database whose keys are evicted next.
    next_database: u16,
    /// A time not long ago.
    now_ms: u64,
}

#[derive(Debug)]
struct Candidate {
    value: u64,
    database: u16,
    key: Vec<u8>,
}

impl Evictor {
    fn tracking(&self) -> Tracking {
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
    fn offer(&mut self, value: u64, database: u16, key: &[u8]) {
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

impl Shard {
    /// Parameters of eviction.
    pub fn eviction(&self) -> &EvictionOptions {
        &self.evictor.options
    }

    /// Sets the parameters of eviction. A policy that needs to know the uses of keys counts all of
    /// them as just used.
    pub fn set_eviction(&mut self, options: EvictionOptions, now_ms: u64) {
        self.evictor.pool.clear();
        (self.evictor.options, self.evictor.now_ms) = (options, now_ms);
        self.track(now_ms);
    }

    /// The last uses of keys are tracked from now on, also if no policy needs them.
    pub fn ask_for_uses(&mut self, now_ms: u64) {
        if !std::mem::replace(&mut self.evictor.is_asked, true) {
            self.track(now_ms);
        }
    }

    fn track(&mut self, now_ms: u64) {
        let tracking = self.evictor.tracking();
        self.databases_mut().for_each(|(_, database)| database.track(tracking, now_ms));
    }

    /// Uses of keys are tracked.
    pub fn tracks_uses(&self) -> bool {
        self.evictor.tracking() != Tracking::Off
    }

    /// Keeps what is known of the uses of keys right. To be called about ten times a second.
    pub fn tend_uses(&mut self, now_ms: u64) {
        self.evictor.now_ms = now_ms;
        if self.tracks_uses() {
            self.databases_mut().for_each(|(_, database)| database.tend_uses(now_ms));
        }
    }

    /// Bytes that keys and values need; see [`Keyspace::occupied_bytes`].
    pub fn occupied_bytes(&self) -> usize {
        self.databases().map(|(_, database)| database.occupied_bytes()).sum()
    }

    /// Evicts one key, as the policy says. Those that watch it, wait for it or listen to events are
    /// told.
    pub fn evict(&mut self, now_ms: u64, effects: &mut Effects) -> Evicted {
        let Some(policy) = self.evictor.options.policy else { return Evicted::NoneLeft };
        let sampling = Sampling {
            order: match policy.ranking {
                Ranking::Recency | Ranking::Frequency => Order::Use,
                Ranking::Expiry => Order::Expiry,
                Ranking::Random => Order::Random,
            },
            only_expiring: policy.only_expiring,
            samples: self.evictor.options.samples,
        };
        let numbers: Vec<u16> = self
            .databases()
            .filter(|(_, database)| database.evictable(sampling) > 0)
            .map(|(number, _)| number)
            .collect();
        if numbers.is_empty() {
            return Evicted::NoneLeft;
        }
        match policy.ranking {
            Ranking::Random => self.sample_random(&numbers, sampling, now_ms),
            _ => numbers.iter().for_each(|number| self.sample(*number, sampling, now_ms)),
        }
        while let Some(Candidate { value, database, key }) = self.evictor.pool.pop() {
            let now = self
                .database(database)
                .and_then(|keyspace| keyspace.victim_value_of(&key, sampling, now_ms));
            // One that was used since it was seen is no good victim any more.
            if now.is_some_and(|now| now >= value) {
                self.remove_victim((database, &key), now_ms, effects);
                return Evicted::One;
            }
        }
        Evicted::NotYet
    }

    /// Offers some keys of a database to the pool.
    fn sample(&mut self, number: u16, sampling: Sampling, now_ms: u64) {
        let Some(keyspace) = self.databases[usize::from(number)].as_deref_mut() else { return };
        let evictor = &mut self.evictor;
        keyspace.sample_victims(sampling, (now_ms, fastrand::u64(..)), |key, value| {
            evictor.offer(value, number, key);
        });
    }

    /// Fills the pool with one random key, of the databases in turn.
    fn sample_random(&mut self, numbers: &[u16], sampling: Sampling, now_ms: u64) {
        let next = self.evictor.next_database;
        let number = numbers.iter().find(|number| **number >= next).unwrap_or(&numbers[0]);
        self.evictor.next_database = number + 1;
        self.evictor.pool.clear();
        self.sample(*number, sampling, now_ms);
        let count = self.evictor.pool.len();
        if count > 1 {
            self.evictor.pool.swap(0, fastrand::usize(0..count));
            self.evictor.pool.truncate(1);
        }
    }

    fn remove_victim(&mut self, (number, key): (u16, &[u8]), now_ms: u64, effects: &mut Effects) {
        let Some(keyspace) = self.database_mut(number) else { return };
        keyspace.remove(key, now_ms);
        // It may have been time anyway.
        if keyspace.take_lapsed() {
            return self.note_expired(number, key, effects);
        }
        effects.evicted += 1;
        effects.note_removed(number, key);
        if self.changed(number, key) {
            effects.has_ready_keys = true;
        }
        effects.note(Class::Evicted, "evicted", number, key);
    }
}
