// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys that may be evicted. Some keys are looked at, and the caller chooses among them.
//!
//! The keys of a random chain of buckets are a random sample: hashes put them there. If few keys
//! may be evicted, most chains have none, so a search that found too few continues where it ended
//! instead of starting at another random chain. One round finds every key.

use crate::header::{Header, Stored};
use crate::keyspace::Keyspace;
use crate::sampling::{Order, Sampling};

/// Chains that one call visits at most.
const CHAINS: usize = 4_096;

impl Keyspace {
    /// Bytes that keys and values need. The index does not become smaller when keys are removed:
    /// the part that waits for other keys is left out, unlike in [`Keyspace::memory_bytes`].
    pub fn occupied_bytes(&self) -> usize {
        self.engine.occupied_bytes() + self.large.memory_bytes() + self.access_bytes()
    }

    /// Number of keys that may be evicted.
    pub fn evictable(&self, sampling: Sampling) -> usize {
        if sampling.only_expiring { self.expiring } else { self.len() }
    }

    /// Looks at some keys that may be evicted. Calls `visit` with each, and with a number that is
    /// the larger, the better the key is as a victim. `random` is any number. Visits no key if
    /// there is none, or if they are so few that the search has to be continued by another call.
    pub fn sample_victims(
        &mut self,
        sampling: Sampling,
        (now_ms, random): (u64, u64),
        mut visit: impl FnMut(&[u8], u64),
    ) {
        let wanted = sampling.samples.min(self.evictable(sampling));
        if wanted == 0 {
            return;
        }
        if !self.victims.continues {
            self.victims.chain = self.engine.cursor_from(random);
        }
        let mut found = 0;
        for _ in 0..CHAINS {
            self.victims.chain = self.engine.scan(self.victims.chain, |key, value| {
                let header = Stored::read(value).header;
                if !sampling.only_expiring || header.expires_ms.is_some() {
                    found += 1;
                    visit(key, self.victim_value((key, header), sampling.order, now_ms));
                }
            });
            if found >= wanted {
                break;
            }
        }
        self.victims.continues = found < wanted;
    }

    /// The number that [`Keyspace::sample_victims`] gives a key now; none: it is no possible victim
    /// any more.
    pub fn victim_value_of(&self, key: &[u8], sampling: Sampling, now_ms: u64) -> Option<u64> {
        let (header, _) = self.stored_or_expired(key)?;
        let is_possible = !sampling.only_expiring || header.expires_ms.is_some();
        is_possible.then(|| self.victim_value((key, header), sampling.order, now_ms))
    }

    fn victim_value(&self, (key, header): (&[u8], Header), order: Order, now_ms: u64) -> u64 {
        match (order, &self.access) {
            (Order::Use, Some(access)) => access.idleness(self.engine.hash(key).bits, now_ms),
            (Order::Expiry, _) => u64::MAX - header.expires_ms.unwrap_or(u64::MAX),
            _ => 0,
        }
    }
}
