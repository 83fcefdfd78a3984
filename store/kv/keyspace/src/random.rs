// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A random key. A chain of keys is chosen, and a number: the key with that number in the chain is
//! taken, and if there is none, the choice is repeated. So keys in short chains are as likely as
//! those in long ones.

use crate::header::Stored;
use crate::keyspace::Keyspace;

/// Keys of a chain that are equally likely; hardly any chain has more.
const CHAIN_KEYS: usize = 32;
/// Choices after which keys are known to be rare, and are searched for.
const CHOICES: usize = 256;

impl Keyspace {
    /// A random key whose time has not passed, nearly uniform; none: there is no key. `choose(n)`
    /// returns a random number below `n`.
    pub fn random_key(
        &self,
        now_ms: u64,
        choose: &mut impl FnMut(usize) -> usize,
    ) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        let mut cursor = 0;
        for _ in 0..CHOICES {
            cursor = self.engine.cursor_from(choose(usize::MAX) as u64);
            let number = choose(CHAIN_KEYS.max(self.living(cursor, now_ms).0));
            if let Some(key) = self.key_of_chain(cursor, number, now_ms) {
                return Some(key);
            }
        }
        self.search_from(cursor, now_ms, choose)
    }

    /// A random key of the first chain with keys, from a cursor on.
    fn search_from(
        &self,
        start: u64,
        now_ms: u64,
        choose: &mut impl FnMut(usize) -> usize,
    ) -> Option<Vec<u8>> {
        let mut cursor = start;
        loop {
            let (keys, next) = self.living(cursor, now_ms);
            if keys > 0 {
                return self.key_of_chain(cursor, choose(keys), now_ms);
            }
            cursor = next;
            if cursor == start {
                return None;
            }
        }
    }

    /// Number of keys in a chain whose time has not passed, and the next cursor.
    fn living(&self, cursor: u64, now_ms: u64) -> (usize, u64) {
        let mut keys = 0;
        let next = self.scan(cursor, now_ms, |_, _| keys += 1);
        (keys, next)
    }

    fn key_of_chain(&self, cursor: u64, number: usize, now_ms: u64) -> Option<Vec<u8>> {
        let (mut at, mut found) = (0, None);
        self.engine.scan(cursor, |key, value| {
            if !Stored::read(value).header.has_expired(now_ms) {
                if at == number {
                    found = Some(key.to_vec());
                }
                at += 1;
            }
        });
        found
    }
}
