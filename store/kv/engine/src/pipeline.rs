// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches: many operations, one after the other in their order, while the memory that later ones
//! need is fetched (KV-Direct, batching).
//!
//! Each operation passes three stages, and several operations lie between one stage and the next:
//!
//! 1. *Admit*: its key is hashed, and its bucket prefetched. The reservation station notes
//!    whether an earlier operation of the batch has the same key.
//! 2. *Scout*: if the bucket points to a block that may have the key, or to a chained bucket, that
//!    is prefetched. A table without blocks and chains skips this stage.
//! 3. *Execute*: in the order of the batch, so results are those of one operation at a time.
//!
//! An operation whose key an earlier one of the batch has takes the place that the earlier one
//! left in the station, without a search.

use std::ops::ControlFlow;

use crate::bucket::{BUCKET_BYTES, Bucket};
use crate::engine::Engine;
use crate::entry::Entry;
use crate::hash::Hash;
use crate::meter::{Meter, Silent};
use crate::search::{Compare, Portable};
use crate::station::Station;

/// The keys of a batch.
pub trait Keys {
    /// Number of operations.
    fn count(&self) -> usize;
    /// Key of an operation, whose number is below [`Keys::count`].
    fn key(&self, number: usize) -> &[u8];
}

/// The operations of a batch.
pub trait Execute<M = Silent> {
    /// Executes an operation on the entry of its key. After a break, those that follow are not
    /// executed.
    fn execute(&mut self, number: usize, entry: &mut Entry<'_, M>) -> ControlFlow<()>;
}

/// Operations between two stages.
const DISTANCE: usize = 12;
/// Operations between the first stage and the last.
pub(crate) const IN_FLIGHT: usize = 2 * DISTANCE;

/// Bytes of a block that are fetched before its operation.
const SCOUTED_BYTES: usize = 1280;

impl<M: Meter> Engine<M> {
    /// Executes operations in their order. Returns the number of those that were executed, which
    /// is less than all after a break.
    pub fn run_each<K: Keys, X: Execute<M>>(&mut self, keys: &K, executor: &mut X) -> usize {
        #[cfg(target_arch = "x86_64")]
        if crate::search::Vbmi::is_available() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.run_by_permutations(keys, executor) };
        }
        self.run_as::<Portable, K, X>(keys, executor)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    fn run_by_permutations<K: Keys, X: Execute<M>>(&mut self, keys: &K, executor: &mut X) -> usize {
        self.run_as::<crate::search::Vbmi, K, X>(keys, executor)
    }

    #[inline(always)]
    pub(crate) fn run_as<C: Compare, K: Keys, X: Execute<M>>(
        &mut self,
        keys: &K,
        executor: &mut X,
    ) -> usize {
        let count = keys.count();
        let mut station = Station::<IN_FLIGHT>::new();
        for number in 0..count.min(IN_FLIGHT) {
            self.admit(&mut station, number, keys.key(number));
        }
        for number in 0..count {
            if number + IN_FLIGHT < count {
                self.admit(&mut station, number + IN_FLIGHT, keys.key(number + IN_FLIGHT));
            }
            if number + DISTANCE < count {
                self.scout::<C>(&station, number + DISTANCE);
            }
            if self.execute::<C, K, X>(&mut station, number, keys, executor).is_break() {
                return number + 1;
            }
        }
        count
    }

    #[inline(always)]
    fn admit(&self, station: &mut Station<IN_FLIGHT>, number: usize, key: &[u8]) {
        let hash = self.hash(key);
        let bucket = self.table.index.offset(hash);
        self.table.memory.prefetch(bucket);
        station.admit(number, hash, bucket);
    }

    #[inline(always)]
    fn scout<C: Compare>(&self, station: &Station<IN_FLIGHT>, number: usize) {
        let memory = &self.table.memory;
        let bucket = memory.bucket(station.bucket(number));
        if bucket.pointers() != 0 {
            self.scout_block::<C>(bucket, station.hash(number));
        } else if bucket.next() != 0 {
            memory.prefetch(memory.offset_of(bucket.next()));
        }
    }

    #[inline(always)]
    fn scout_block<C: Compare>(&self, bucket: &Bucket, hash: Hash) {
        let memory = &self.table.memory;
        let candidates = bucket.candidates::<C>(hash);
        if candidates == 0 {
            if bucket.next() != 0 {
                memory.prefetch(memory.offset_of(bucket.next()));
            }
            return;
        }
        let pointer = bucket.pointer(candidates.trailing_zeros() as usize);
        let block = memory.offset_of(pointer.unit);
        let bytes = (pointer.class.units() as usize) << self.table.unit_shift;
        // In a longer block the processor sees by itself that lines follow one another.
        for line in (0..bytes.min(SCOUTED_BYTES)).step_by(BUCKET_BYTES) {
            memory.prefetch(block + line);
        }
    }

    #[inline(always)]
    fn execute<C: Compare, K: Keys, X: Execute<M>>(
        &mut self,
        station: &mut Station<IN_FLIGHT>,
        number: usize,
        keys: &K,
        executor: &mut X,
    ) -> ControlFlow<()> {
        let (key, hash) = (keys.key(number), station.hash(number));
        let place = match station.earlier(number, self.table.layout) {
            Some((earlier, place)) if keys.key(earlier) == key => place,
            _ => self.table.find::<C>(key, hash),
        };
        let mut entry = Entry { engine: self, key, hash, place };
        let flow = executor.execute(number, &mut entry);
        let place = entry.place;
        station.leave(number, place, self.table.layout);
        flow
    }
}
