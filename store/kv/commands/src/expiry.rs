// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys whose time has passed: transactions, clients that wait, and listeners are told when the
//! value is removed.
//!
//! A value that nobody touches is found by [`Store::expire_some`], which a server calls from time
//! to time; a write to its key removes it at once. Reads only see that there is no such key.

use crate::effects::{Class, Effects};
use crate::invalidation::Cause;
use crate::shard::Shard;
use crate::store::Store;

impl Shard {
    /// A value was removed because its time had passed.
    pub(crate) fn note_expired(&mut self, database: u16, key: &[u8], effects: &mut Effects) {
        effects.expired += 1;
        effects.note_removed(database, key);
        self.follow_change((database, key), Cause::Removal, effects);
        effects.note(Class::Expired, "expired", database, key);
    }

    /// Databases that have keys with a time of expiry.
    fn expiring_databases(&self) -> Vec<u16> {
        if !self.expires() {
            return vec![];
        }
        let is_expiring =
            |number: &u16| self.database(*number).is_some_and(|database| database.expiring() > 0);
        (0..self.options().databases).filter(is_expiring).collect()
    }

    /// See [`Store::expire_some`], for one database.
    fn expire_some(
        &mut self,
        (database, now_ms): (u16, u64),
        steps: usize,
        effects: &mut Effects,
    ) -> usize {
        let Some(keyspace) = self.database_mut(database) else { return 0 };
        let mut keys: Vec<Vec<u8>> = vec![];
        keyspace.expire_some(now_ms, steps, |key| keys.push(key.to_vec()));
        keys.iter().for_each(|key| self.note_expired(database, key, effects));
        keys.len()
    }
}

impl Store {
    /// Looks at about `budget` chains of keys, divided among all shards that are here and their
    /// databases, and removes values whose time has passed. Each call continues where the last one
    /// ended. Returns how many values were removed: while that is a large part of the budget, many
    /// more have expired, and it is worth another call soon.
    pub fn expire_some(&mut self, now_ms: u64, budget: usize, effects: &mut Effects) -> usize {
        let places: usize = self.shards().map(|shard| shard.expiring_databases().len()).sum();
        if places == 0 {
            return 0;
        }
        let steps = budget.div_ceil(places);
        let mut removed = 0;
        for shard in self.shards_mut() {
            for database in shard.expiring_databases() {
                removed += shard.expire_some((database, now_ms), steps, effects);
            }
        }
        removed
    }
}
