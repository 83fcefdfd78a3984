// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The item of a sample that is evicted: one that has expired, or the one that was not used for the
//! longest time.

use crate::item::{self, FETCHED, Header};
use crate::now::Now;

/// The idlest item of a sample.
#[derive(Debug, Default)]
pub(crate) struct Victim {
    pub key: Vec<u8>,
    used_s: u32,
    pub bytes: usize,
    pub has_expired: bool,
    pub was_fetched: bool,
}

impl Victim {
    /// Takes the place of the victim if it is idler, or the first.
    pub fn consider(&mut self, key: &[u8], stored: &[u8], is_first: bool, now: Now) {
        let has_expired = item::has_expired(stored, now);
        let (header, _) = Header::read(stored);
        let used_s = if has_expired { 0 } else { header.used_s };
        if !is_first && used_s >= self.used_s {
            return;
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        (self.used_s, self.has_expired) = (used_s, has_expired);
        self.bytes = key.len() + stored.len();
        self.was_fetched = header.is(FETCHED);
    }
}
