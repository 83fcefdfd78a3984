// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Making room: items that have expired, and those that were not used for long. A full memory
//! looks at a few items from a random place of the index on, and the idlest one of them goes, which
//! is close to the idlest of all when this happens often. There are no lists that each use would
//! have to change.

use freeport_kv_engine::OutOfMemory;

use crate::item;
use crate::items::Items;
use crate::now::Now;
use crate::victim::Victim;

/// Items that are looked at for one eviction.
const SAMPLED_ITEMS: usize = 5;
/// Chains that are looked at for one eviction, if they have any item.
const SAMPLED_CHAINS: usize = 20;
/// Chains that are searched for expired items if nothing else may be removed.
const SEARCHED_CHAINS: usize = 1_000;
/// Attempts to store an item. Before each one, twice as many bytes are evicted.
const ATTEMPTS: u32 = 5;

impl Items {
    /// Stores an item for which there was no memory.
    #[cold]
    pub(crate) fn put_and_evict(
        &mut self,
        key: &[u8],
        stored: &[u8],
        now: Now,
    ) -> Result<(), OutOfMemory> {
        let needed = key.len() + stored.len();
        let mut freed = 0;
        for attempt in 0..ATTEMPTS {
            // The freed bytes may lie in pieces, so that more of them are needed.
            let mut is_over = false;
            while freed < needed << attempt && !is_over {
                let bytes = self.evict(now);
                is_over = bytes.is_none();
                freed += bytes.unwrap_or(0);
            }
            if self.engine.put(key, stored).is_ok() {
                return Ok(());
            }
            if is_over {
                break;
            }
        }
        Err(OutOfMemory)
    }

    /// Evicts items until some more bytes are below the limit.
    pub(crate) fn shrink(&mut self, bytes: usize, now: Now) -> Result<(), OutOfMemory> {
        while self.engine.used_bytes() + bytes > self.limit_bytes {
            self.evict(now).ok_or(OutOfMemory)?;
        }
        Ok(())
    }

    /// Removes the idlest of a few items. Returns the bytes of its key and value; none if nothing
    /// may be removed.
    fn evict(&mut self, now: Now) -> Option<usize> {
        if self.engine.is_empty() {
            return None;
        }
        let mut victim = std::mem::take(&mut self.victim);
        self.sample(&mut victim, now);
        let bytes = if victim.has_expired {
            self.remove_expired(&victim.key, false);
            Some(victim.bytes)
        } else if self.options.is_eviction_allowed {
            self.engine.delete(&victim.key);
            self.counters.evictions += 1;
            self.counters.evicted_unfetched += u64::from(!victim.was_fetched);
            Some(victim.bytes)
        } else {
            // A few items may have none of the expired ones.
            let before = self.engine.used_bytes();
            let count = self.expire_some(now, SEARCHED_CHAINS);
            (count > 0).then(|| before.saturating_sub(self.engine.used_bytes()))
        };
        self.victim = victim;
        bytes
    }

    fn sample(&mut self, victim: &mut Victim, now: Now) {
        let (mut cursor, mut chains, mut seen) = (self.random.u64(..), 0, 0);
        while seen < SAMPLED_ITEMS && (seen == 0 || chains < SAMPLED_CHAINS) {
            cursor = self.engine.scan(cursor, |key, value| {
                victim.consider(key, value.bytes, seen == 0, now);
                seen += 1;
            });
            chains += 1;
        }
    }

    /// Looks at the next chains of items, about `steps` of them, and removes items that have
    /// expired. Returns how many were removed, so that the caller looks more often while there are
    /// many.
    pub fn expire_some(&mut self, now: Now, steps: usize) -> usize {
        self.advance(now);
        if !self.may_expire {
            return 0;
        }
        let mut expired: Vec<Vec<u8>> = vec![];
        for _ in 0..steps {
            self.expiry_cursor = self.engine.scan(self.expiry_cursor, |key, value| {
                if item::has_expired(value.bytes, now) {
                    expired.push(key.to_vec());
                }
            });
        }
        for key in &expired {
            self.remove_expired(key, false);
        }
        self.counters.crawler_reclaimed += expired.len() as u64;
        expired.len()
    }
}
