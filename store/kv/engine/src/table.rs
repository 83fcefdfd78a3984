// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hash table: chains of buckets in the memory of an engine (KV-Direct, hash table). It finds
//! pairs; `change` stores and removes them, and what an operation means is the engine's.

use freeport_kv_slab::{Class, Options, Slabs};

use crate::block::{self, Pair};
use crate::bucket::{INLINE_KEY_BYTES, Pointer, SLOT_BYTES, UNIT_BITS, span_of};
use crate::hash::Hash;
use crate::index::Index;
use crate::memory::Memory;
use crate::meter::{Cause, Meter};
use crate::place::{Form, Found, Place};
use crate::search::Compare;
use crate::short::is_same;

/// Index, blocks, and what is counted of them.
pub struct Table<M> {
    pub(crate) memory: Memory,
    pub(crate) index: Index,
    /// The index as it is without pairs.
    first_index: Index,
    pub(crate) slabs: Slabs,
    pub(crate) unit_shift: u32,
    /// Bytes that index and blocks may take together.
    pub(crate) limit_bytes: usize,
    /// Slots that pairs take, in all buckets.
    pub(crate) slots: usize,
    /// Chained buckets.
    pub(crate) chained: usize,
    /// Bytes of all blocks that are handed out, chained buckets among them.
    pub(crate) block_bytes: usize,
    /// Bytes for blocks altogether.
    all_block_bytes: usize,
    pub(crate) meter: M,
}

impl<M: Meter> Table<M> {
    /// A table without pairs. `block_bytes` of the memory are for blocks; `limit_bytes` are for
    /// index and blocks together.
    pub fn new(
        memory: Memory,
        index: Index,
        (block_bytes, unit_shift): (usize, u32),
        limit_bytes: usize,
        meter: M,
    ) -> Self {
        Self {
            memory,
            first_index: index,
            index,
            slabs: slabs_for(block_bytes, unit_shift),
            unit_shift,
            limit_bytes,
            slots: 0,
            chained: 0,
            block_bytes: 0,
            all_block_bytes: block_bytes,
            meter,
        }
    }

    /// Removes all pairs, and gives their memory back to the system.
    pub fn clear(&mut self) {
        self.memory.discard_all();
        self.index = self.first_index;
        self.slabs = slabs_for(self.all_block_bytes, self.unit_shift);
        (self.slots, self.chained, self.block_bytes) = (0, 0, 0);
    }

    /// Looks a key up.
    #[inline(always)]
    pub fn find<C: Compare>(&self, key: &[u8], hash: Hash) -> Option<Place> {
        self.find_from::<C>(self.index.offset(hash), key, hash)
    }

    /// Looks a key up whose hash belongs to the bucket at an offset.
    #[inline(always)]
    pub fn find_from<C: Compare>(&self, offset: usize, key: &[u8], hash: Hash) -> Option<Place> {
        self.meter.read(Cause::Bucket);
        // Chains are rare, and a loop here would keep vectors on the stack from one round to the
        // next, which costs more than the comparison.
        self.find_in::<C>(offset, key, hash).or_else(|| match self.memory.bucket(offset).next() {
            0 => None,
            unit => self.find_in_chain::<C>(unit, key, hash),
        })
    }

    #[inline(never)]
    fn find_in_chain<C: Compare>(&self, first: u32, key: &[u8], hash: Hash) -> Option<Place> {
        let mut unit = first;
        while unit != 0 {
            let offset = self.memory.offset_of(unit);
            self.meter.read(Cause::Chain);
            if let Some(place) = self.find_in::<C>(offset, key, hash) {
                return Some(place);
            }
            unit = self.memory.bucket(offset).next();
        }
        None
    }

    /// Looks a key up in one bucket, and in the blocks that it points to.
    #[inline(always)]
    fn find_in<C: Compare>(&self, offset: usize, key: &[u8], hash: Hash) -> Option<Place> {
        let bucket = self.memory.bucket(offset);
        if let Some(slot) = bucket.find_inline::<C>(key, hash) {
            return Some(Place::new(offset, slot));
        }
        match bucket.candidates::<C>(hash) {
            0 => None,
            candidates => Some(Place::new(offset, self.find_block(offset, candidates, key)?)),
        }
    }

    #[inline(always)]
    pub(crate) fn inline_at(&self, bucket: usize, slot: usize) -> Found {
        let inline = self.memory.bucket(bucket).inline(slot);
        let pair = Pair {
            at: bucket + slot * SLOT_BYTES,
            key_bytes: inline.key_bytes,
            value_bytes: inline.value_bytes,
            is_tagged: inline.is_tagged,
        };
        Found { bucket, slot, span: inline.span, pair, block: None }
    }

    #[inline(always)]
    pub(crate) fn block_at(&self, bucket: usize, slot: usize) -> Found {
        let Pointer { unit, class, .. } = self.memory.bucket(bucket).pointer(slot);
        let place = (self.memory.offset_of(unit), class);
        let pair = block::read(&self.memory, place, self.unit_shift);
        Found { bucket, slot, span: 1, pair, block: Some((unit, class)) }
    }

    /// The pair that begins at a place.
    #[inline(always)]
    pub(crate) fn found_at(&self, place: Place) -> Found {
        let (bucket, slot) = (place.bucket(), place.slot());
        match self.memory.bucket(bucket).is_inline(slot) {
            true => self.inline_at(bucket, slot),
            false => self.block_at(bucket, slot),
        }
    }

    #[inline]
    fn find_block(&self, bucket: usize, mut candidates: u32, key: &[u8]) -> Option<usize> {
        while candidates != 0 {
            let slot = candidates.trailing_zeros() as usize;
            let pair = self.block_at(bucket, slot).pair;
            self.meter.read(Cause::Data);
            if pair.key_bytes == key.len() && is_same(self.memory.bytes(pair.at, key.len()), key) {
                return Some(slot);
            }
            candidates &= candidates - 1;
        }
        None
    }

    /// Bytes of index and blocks that are in use.
    pub fn used_bytes(&self) -> usize {
        self.index.bytes() + self.block_bytes
    }

    #[inline(always)]
    pub(crate) fn bytes_of(&self, class: Class) -> usize {
        (class.units() as usize) << self.unit_shift
    }

    /// The cause of an access to a bucket.
    pub(crate) fn cause(&self, bucket: usize) -> Cause {
        if bucket < self.memory.index_bytes() { Cause::Bucket } else { Cause::Chain }
    }

    /// The form of a pair; none if it is too large for any.
    #[inline(always)]
    pub fn form(&self, key: &[u8], value_bytes: usize, inline_threshold: usize) -> Option<Form> {
        let bytes = key.len() + value_bytes;
        if bytes <= inline_threshold && key.len() <= INLINE_KEY_BYTES {
            return Some(Form::Inline(span_of(bytes)));
        }
        block::class_for(key.len(), value_bytes, self.unit_shift).map(Form::Block)
    }
}

/// An allocator for all units but the first, since unit 0 means none.
fn slabs_for(block_bytes: usize, unit_shift: u32) -> Slabs {
    let units = (block_bytes >> unit_shift).min((1 << UNIT_BITS) - 1) as u32;
    let options = Options { unit_bytes: 1 << unit_shift, ..Options::default() };
    Slabs::new(1..units, options)
}
