// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Eviction of the keys of a shard.

use freeport_kv_keyspace::{Order, Sampling, Tracking};

use crate::effects::{Class, Effects};
use crate::eviction::{Candidate, Evicted, EvictionOptions, Ranking};
use crate::invalidation::Cause;
use crate::shard::Shard;

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

    /// Takes the keys of another shard in place of its own. Clients that watch or wait for keys
    /// stay.
    pub fn take_databases(&mut self, other: Self, now_ms: u64) {
        self.databases = other.databases;
        self.evictor.pool.clear();
        self.track(now_ms);
        let limits = self.options().keyspace.limits.clone();
        self.set_limits(&limits);
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

    /// Bytes that keys and values need; see [`freeport_kv_keyspace::Keyspace::occupied_bytes`].
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
        self.follow_change((number, key), Cause::Removal, effects);
        effects.note(Class::Evicted, "evicted", number, key);
    }
}
