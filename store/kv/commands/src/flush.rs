// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of whole databases in all shards.

use std::ops::Range;

use crate::database::Database;

impl Database<'_> {
    /// Removes all keys of some databases, of those that there are. Returns the number of keys.
    pub fn flush(&mut self, numbers: Range<u16>) -> usize {
        let (mut removed, now_ms) = (0, self.now_ms());
        for shard in self.store.shards_mut() {
            for number in numbers.start..numbers.end.min(shard.options().databases) {
                self.effects.has_ready_keys |= shard.change_all(number, None, now_ms);
                if let Some(database) = shard.database_mut(number) {
                    removed += database.len();
                    database.clear();
                }
            }
        }
        self.store.invalidate_all(self.effects);
        self.effects.changes += removed as u64;
        self.effects.has_cleared = true;
        removed
    }

    /// Exchanges two databases.
    pub fn swap(&mut self, one: u16, other: u16) {
        let now_ms = self.now_ms();
        if one == other {
            return;
        }
        for shard in self.store.shards_mut() {
            self.effects.has_ready_keys |= shard.change_all(one, Some(other), now_ms);
            self.effects.has_ready_keys |= shard.change_all(other, Some(one), now_ms);
            shard.swap_databases(one, other);
        }
        self.store.invalidate_all(self.effects);
        self.effects.changes += 1;
    }
}
