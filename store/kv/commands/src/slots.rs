// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys by their hash slots, which move between the servers of a cluster.

use freeport_kv_protocol::slots::slot_of;

use crate::effects::Effects;
use crate::invalidation::Cause;
use crate::shard::Shard;

impl Shard {
    /// Visits the keys of some slots in about `chains` chains of a database from a cursor on, and
    /// returns the next cursor; 0 begins, and comes back at the end. A key that is there all the
    /// time is visited at least once. Values whose time has passed are included.
    pub fn keys_in_slots(
        &self,
        (database, mut cursor): (u16, u64),
        chains: usize,
        has: impl Fn(u16) -> bool,
        mut visit: impl FnMut(&[u8]),
    ) -> u64 {
        let Some(keyspace) = self.database(database) else { return 0 };
        for _ in 0..chains {
            cursor = keyspace.scan_all(cursor, 0, |key, _| {
                if has(slot_of(key)) {
                    visit(key);
                }
            });
            if cursor == 0 {
                break;
            }
        }
        cursor
    }

    /// Removes a key that belongs to another server now. It is no event of the key, but copies of
    /// clients become invalid, and transactions that watch it fail.
    pub fn purge(&mut self, (database, key): (u16, &[u8]), effects: &mut Effects) {
        let Some(keyspace) = self.database_mut(database) else { return };
        keyspace.remove(key, 0);
        effects.note_removed(database, key);
        self.follow_change((database, key), Cause::Removal, effects);
    }

    /// A key was loaded that belonged to another server before: copies of clients become invalid,
    /// and transactions that watch it fail.
    pub fn came(&mut self, place: (u16, &[u8]), effects: &mut Effects) {
        self.follow_change(place, Cause::Removal, effects);
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_keyspace::{Expiry, Options};

    use super::*;
    use crate::shard::ShardOptions;

    #[test]
    fn keys_of_some_slots_are_found_and_purged() {
        let mut shard = Shard::new(ShardOptions { databases: 1, keyspace: Options::default() });
        for number in 0..3_000_u32 {
            let key = number.to_string();
            let expiry = if number % 2 == 0 { Expiry::AtMs(1) } else { Expiry::Never };
            let keyspace = shard.database_or_new(0);
            keyspace.set_string(key.as_bytes(), b"value", expiry, 0).expect("memory");
        }
        let is_low = |slot| slot < 4_000;
        let found = |shard: &Shard, has: fn(u16) -> bool| {
            let (mut cursor, mut keys) = (0, vec![]);
            loop {
                cursor = shard.keys_in_slots((0, cursor), 7, has, |key| keys.push(key.to_vec()));
                if cursor == 0 {
                    break keys;
                }
            }
        };
        let expected = (0..3_000_u32).filter(|it| is_low(slot_of(it.to_string().as_bytes())));
        let low = found(&shard, is_low);
        assert_eq!(low.len(), expected.count());
        let mut effects = Effects { records: true, ..Effects::default() };
        low.iter().for_each(|key| shard.purge((0, key), &mut effects));
        assert_eq!(effects.removed.len(), low.len());
        assert!(found(&shard, is_low).is_empty());
        assert_eq!(found(&shard, |_| true).len(), 3_000 - low.len());
    }
}
