// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search for values whose time has passed.

use crate::header::Stored;
use crate::keyspace::Keyspace;

/// Keys in one chain of buckets at most, on average a few.
const KEYS_OF_A_STEP: usize = 64;

impl Keyspace {
    /// Looks at the next chains of keys, about `steps` of them, and removes values whose time has
    /// passed. Calls `removed` with each key. Returns how many were removed, so that the caller
    /// looks more often while there are many.
    pub fn expire_some(
        &mut self,
        now_ms: u64,
        steps: usize,
        mut removed: impl FnMut(&[u8]),
    ) -> usize {
        if self.expiring == 0 {
            return 0;
        }
        let mut expired: Vec<Vec<u8>> = Vec::with_capacity(KEYS_OF_A_STEP);
        let mut count = 0;
        for _ in 0..steps {
            self.expiry_cursor = self.engine.scan(self.expiry_cursor, |key, value| {
                if Stored::read(value).header.has_expired(now_ms) {
                    expired.push(key.to_vec());
                }
            });
            for key in expired.drain(..) {
                self.discard(&key);
                self.forget_uses(&key, now_ms);
                removed(&key);
                count += 1;
            }
        }
        count
    }
}
