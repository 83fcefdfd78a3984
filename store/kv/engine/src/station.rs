// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of a batch that are under way, and the place of a pair that one forwards to the
//! next (KV-Direct, out-of-order execution).
//!
//! On a network card a reservation station remembers many keys, because a write takes a microsecond
//! to reach memory, and forwards values. Here an operation sees all writes of those before it,
//! and a second search of a line in the first-level cache takes about as long as a lookup in such a
//! station. So only neighbours are compared, which costs next to nothing and helps where
//! it counts: all operations of a batch work on one key.

use crate::hash::Hash;
use crate::place::Place;

/// Operations that are remembered; a power of two.
const WINDOW: usize = 32;

/// The operations in flight, at most `IN_FLIGHT` at a time.
pub(crate) struct Station<'k, const IN_FLIGHT: usize> {
    keys: [&'k [u8]; WINDOW],
    bits: [u64; WINDOW],
    heads: [u64; WINDOW],
    /// Offset of the bucket that each operation began with.
    buckets: [usize; WINDOW],
    /// Where the last executed operation left its pair.
    left: Option<Place>,
}

impl<'k, const IN_FLIGHT: usize> Station<'k, IN_FLIGHT> {
    /// A station whose first operation will have the hash `first`.
    #[inline(always)]
    pub fn new(first: Hash) -> Self {
        const { assert!(IN_FLIGHT < WINDOW - 1) };
        // The first operation differs from the one that never was.
        let bits = [!first.bits; WINDOW];
        Self { keys: [&[]; WINDOW], bits, heads: [0; WINDOW], buckets: [0; WINDOW], left: None }
    }

    /// Takes an operation in.
    #[inline(always)]
    pub fn admit(&mut self, number: usize, key: &'k [u8], hash: Hash, bucket: usize) {
        let cell = number % WINDOW;
        self.keys[cell] = key;
        self.bits[cell] = hash.bits;
        self.heads[cell] = hash.head;
        self.buckets[cell] = bucket;
    }

    /// Key of an operation in flight.
    #[inline(always)]
    pub fn key(&self, number: usize) -> &'k [u8] {
        self.keys[number % WINDOW]
    }

    /// Hash of an operation in flight.
    #[inline(always)]
    pub fn hash(&self, number: usize) -> Hash {
        Hash { bits: self.bits[number % WINDOW], head: self.heads[number % WINDOW] }
    }

    /// Offset of the bucket that an operation in flight began with. For an operation that is not in
    /// flight, that of some bucket.
    #[inline(always)]
    pub fn bucket(&self, number: usize) -> usize {
        self.buckets[number % WINDOW]
    }

    /// Where the operation before left the pair, if it has the same key.
    #[inline(always)]
    pub fn forwarded(&self, number: usize) -> Option<Option<Place>> {
        let (cell, before) = (number % WINDOW, number.wrapping_sub(1) % WINDOW);
        let is_same = self.bits[cell] == self.bits[before] && self.keys[cell] == self.keys[before];
        is_same.then_some(self.left)
    }

    /// Notes where an operation left its pair, for the next one.
    #[inline(always)]
    pub fn leave(&mut self, place: Option<Place>) {
        self.left = place;
    }
}
