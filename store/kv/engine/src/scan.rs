// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scans of all pairs, one chain at a time, while the store changes between the steps. A pair that
//! is there during the whole scan is visited at least once.
//!
//! A growing index divides buckets between two steps. So the cursor counts through the numbers of
//! buckets with their bits reversed: those that a bucket is divided into follow one another, and
//! are visited in one step if they exist already.

use crate::bucket::BUCKET_BYTES;
use crate::engine::{Engine, Value};
use crate::meter::Meter;

impl<M: Meter> Engine<M> {
    /// Visits the pairs of the next chain, and returns the next cursor. A scan begins with cursor
    /// 0, and is over when 0 is returned.
    pub fn scan(&self, cursor: u64, mut visit: impl FnMut(&[u8], Value<'_>)) -> u64 {
        let index = &self.table.index;
        let Some(mask) = index.round() else {
            let buckets = index.buckets() as u64;
            if cursor < buckets {
                self.visit_chain(cursor as usize, &mut visit);
            }
            let next = cursor.saturating_add(1);
            return if next < buckets { next } else { 0 };
        };
        let near = cursor as usize & mask;
        self.visit_chain(near, &mut visit);
        let far = near + mask + 1;
        if far < index.buckets() {
            self.visit_chain(far, &mut visit);
        }
        let above = cursor | !(mask as u64);
        above.reverse_bits().wrapping_add(1).reverse_bits()
    }

    /// The cursor at a chain that a random number of 64 bits chooses, each chain with about the
    /// same probability.
    pub fn cursor_from(&self, random: u64) -> u64 {
        let index = &self.table.index;
        match index.round() {
            Some(mask) => random & mask as u64,
            None => ((u128::from(random) * index.buckets() as u128) >> u64::BITS) as u64,
        }
    }

    /// Number of buckets of the index, without chained ones. It only grows, until the engine is
    /// cleared: bucket `n` of a growing index takes its pairs from the bucket whose number is `n`
    /// without its highest bit.
    pub fn buckets(&self) -> usize {
        self.table.index.buckets()
    }

    /// Number of the bucket in whose chain a key lies, or would lie.
    pub fn bucket_of(&self, key: &[u8]) -> usize {
        self.table.index.number(self.hash(key))
    }

    /// Visits the pairs of the chain of a bucket.
    ///
    /// # Panics
    /// There is no bucket of that number.
    pub fn visit_chain(&self, bucket: usize, visit: &mut impl FnMut(&[u8], Value<'_>)) {
        assert!(bucket < self.buckets(), "bucket {bucket} of {}", self.buckets());
        for found in self.table.chain(bucket * BUCKET_BYTES) {
            let (at, length) = found.value();
            let memory = &self.table.memory;
            let value = Value { bytes: memory.bytes(at, length), is_tagged: found.pair.is_tagged };
            visit(memory.bytes(found.pair.at, found.pair.key_bytes), value);
        }
    }
}
