// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hash table: chains of buckets in the memory of an engine (KV-Direct 5.4). It finds, inserts
//! and removes pairs; what an operation means is the engine's.

use std::num::NonZero;

use freeport_kv_slab::{Class, Options, Slabs};

use crate::block::{self, Pair};
use crate::bucket::{BUCKET_BYTES, Bucket, Pointer, SLOT_BYTES, SLOTS, UNIT_BITS, span_of};
use crate::hash::Hash;
use crate::index::Index;
use crate::memory::Memory;
use crate::meter::{Cause, Meter};
use crate::options::OutOfMemory;
use crate::search::Compare;

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
    /// Changes whenever a pair moves or leaves, so that remembered places are known to be stale.
    pub(crate) layout: u64,
    pub(crate) meter: M,
}

/// Blocks of at least this many bytes give their pages back to the system when they are freed.
const DISCARDED_BYTES: usize = 2 << 20;

/// A slot in which a pair begins: the offset of its bucket with the number of the slot in the low
/// bits, so that a place, or none, is one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(NonZero<usize>);

impl Place {
    /// Keeps the word from being zero.
    const MARK: usize = 0x20;

    /// A slot of the bucket at an offset.
    #[inline(always)]
    pub fn new(bucket: usize, slot: usize) -> Self {
        debug_assert!(slot < SLOTS, "a slot of a bucket");
        Self(NonZero::new(bucket | slot | Self::MARK).expect("the mark is not zero"))
    }

    /// Offset of the bucket.
    #[inline(always)]
    pub fn bucket(self) -> usize {
        self.0.get() & !(BUCKET_BYTES - 1)
    }

    /// Number of the slot in it.
    #[inline(always)]
    pub fn slot(self) -> usize {
        let slot = self.0.get() & 0xF;
        // SAFETY: places are made of slots of a bucket alone.
        unsafe { std::hint::assert_unchecked(slot < SLOTS) };
        slot
    }
}

/// A pair, and the slots that lead to it.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Offset of the bucket.
    pub bucket: usize,
    /// First slot in it.
    pub slot: usize,
    /// Number of slots.
    pub span: usize,
    /// Place and lengths.
    pub pair: Pair,
    /// The block; none for a pair that is kept inline.
    pub block: Option<(u32, Class)>,
}

/// What is to be stored where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In so many slots of a bucket.
    Inline(usize),
    /// In a block.
    Block(Class),
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
            layout: 0,
            meter,
        }
    }

    /// Removes all pairs, and gives their memory back to the system.
    pub fn clear(&mut self) {
        self.memory.discard_all();
        self.index = self.first_index;
        self.slabs = slabs_for(self.all_block_bytes, self.unit_shift);
        (self.slots, self.chained, self.block_bytes) = (0, 0, 0);
        self.layout += 1;
    }

    /// Looks a key up.
    #[inline(always)]
    pub fn find<C: Compare>(&self, key: &[u8], hash: Hash) -> Option<Place> {
        let mut offset = self.index.offset(hash);
        self.meter.read(Cause::Bucket);
        loop {
            let bucket = self.memory.bucket(offset);
            if let Some(slot) = bucket.find_inline::<C>(key, hash) {
                return Some(Place::new(offset, slot));
            }
            let candidates = bucket.candidates::<C>(hash);
            if candidates != 0
                && let Some(slot) = self.find_block(offset, candidates, key)
            {
                return Some(Place::new(offset, slot));
            }
            match bucket.next() {
                0 => return None,
                unit => offset = self.memory.offset_of(unit),
            }
            self.meter.read(Cause::Chain);
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

    /// Stores a pair, in place of `old` if the key was found.
    ///
    /// # Errors
    /// No memory is left. Nothing has changed.
    pub fn store(
        &mut self,
        (key, hash): (&[u8], Hash),
        value: &[u8],
        is_tagged: bool,
        (old, form): (Option<Found>, Form),
    ) -> Result<Place, OutOfMemory> {
        match form {
            Form::Inline(span) => {
                let place = self.make_room(hash, span, old)?;
                let bucket = self.memory.bucket_mut(place.bucket());
                bucket.set_inline(place.slot(), key, value, is_tagged);
                Ok(place)
            }
            Form::Block(class) => {
                let unit = self.allocate(class)?;
                let slot = match self.make_room(hash, 1, old) {
                    Ok(place) => place,
                    Err(error) => {
                        self.free(unit, class);
                        return Err(error);
                    }
                };
                let place = (self.memory.offset_of(unit), class);
                block::write(&mut self.memory, place, (key, value), is_tagged, self.unit_shift);
                self.meter.write(Cause::Data);
                let pointer = Pointer { unit, secondary: hash.secondary(), class };
                self.memory.bucket_mut(slot.bucket()).set_pointer(slot.slot(), pointer);
                Ok(slot)
            }
        }
    }

    /// Overwrites a value with one of the same length and tag. False: they differ, and nothing has
    /// changed.
    #[inline(always)]
    pub fn replace_value(&mut self, place: Place, value: &[u8], is_tagged: bool) -> bool {
        let found = self.found_at(place);
        let (at, length) = found.value();
        if length != value.len() || found.pair.is_tagged != is_tagged {
            return false;
        }
        copy(self.memory.bytes_mut(at, length), value);
        self.meter.write(found.cause(self.memory.index_bytes()));
        true
    }

    /// Overwrites a value whose pair keeps its slots or its block.
    #[inline]
    pub fn overwrite(&mut self, found: &Found, key: &[u8], value: &[u8], is_tagged: bool) {
        match found.block {
            None => {
                let bucket = self.memory.bucket_mut(found.bucket);
                bucket.set_inline(found.slot, key, value, is_tagged);
                self.meter.write(self.cause(found.bucket));
            }
            Some((unit, class)) => {
                let place = (self.memory.offset_of(unit), class);
                block::write(&mut self.memory, place, (key, value), is_tagged, self.unit_shift);
                self.meter.write(Cause::Data);
            }
        }
    }

    /// Removes a pair that was found.
    pub fn remove(&mut self, hash: Hash, found: &Found) {
        self.memory.bucket_mut(found.bucket).clear(found.slot, found.span);
        self.slots -= found.span;
        self.layout += 1;
        self.meter.write(self.cause(found.bucket));
        if let Some((unit, class)) = found.block {
            self.free(unit, class);
        }
        if self.memory.bucket(found.bucket).empty_slots() == SLOTS {
            self.unchain(self.index.offset(hash), found.bucket);
        }
    }

    /// `span` consecutive empty slots in the chain of a hash, taken into the count of slots. The
    /// slots of `old`, and its block, are given up.
    fn make_room(
        &mut self,
        hash: Hash,
        span: usize,
        old: Option<Found>,
    ) -> Result<Place, OutOfMemory> {
        let before = old.map(|old| (old, *self.memory.bucket(old.bucket)));
        if let Some(old) = &old {
            self.memory.bucket_mut(old.bucket).clear(old.slot, old.span);
        }
        let head = self.index.offset(hash);
        let found = match self.room_in_chain(head, span) {
            Ok(place) => place,
            Err(last) => match self.append_bucket(last) {
                Ok(bucket) => Place::new(bucket, 0),
                Err(error) => {
                    if let Some((old, bucket)) = before {
                        *self.memory.bucket_mut(old.bucket) = bucket;
                    }
                    return Err(error);
                }
            },
        };
        self.slots += span;
        self.meter.write(self.cause(found.bucket()));
        if let Some(old) = old {
            self.slots -= old.span;
            self.layout += 1;
            if old.bucket != found.bucket() {
                self.meter.write(self.cause(old.bucket));
            }
            if let Some((unit, class)) = old.block {
                self.free(unit, class);
            }
            let is_left_empty = old.bucket != found.bucket()
                && self.memory.bucket(old.bucket).empty_slots() == SLOTS;
            if is_left_empty {
                self.unchain(head, old.bucket);
            }
        }
        Ok(found)
    }

    /// Room in a chain, by compacting a bucket if need be; else the last bucket of the chain.
    fn room_in_chain(&mut self, head: usize, span: usize) -> Result<Place, usize> {
        let mut offset = head;
        loop {
            let bucket = self.memory.bucket(offset);
            if let Some(slot) = bucket.room(span) {
                return Ok(Place::new(offset, slot));
            }
            if span > 1 && bucket.empty_slots() >= span {
                let bucket = self.memory.bucket_mut(offset);
                bucket.compact();
                let slot = bucket.room(span).expect("compacted slots are consecutive");
                self.layout += 1;
                return Ok(Place::new(offset, slot));
            }
            match bucket.next() {
                0 => return Err(offset),
                unit => offset = self.memory.offset_of(unit),
            }
            self.meter.read(Cause::Chain);
        }
    }

    fn append_bucket(&mut self, last: usize) -> Result<usize, OutOfMemory> {
        let unit = self.allocate_bucket()?;
        self.memory.bucket_mut(last).set_next(unit);
        self.meter.write(self.cause(last));
        Ok(self.memory.offset_of(unit))
    }

    /// Takes an empty bucket out of its chain and gives its memory back.
    fn unchain(&mut self, head: usize, empty: usize) {
        if head == empty {
            return;
        }
        let mut before = head;
        loop {
            let unit = self.memory.bucket(before).next();
            let offset = self.memory.offset_of(unit);
            if offset == empty {
                let next = self.memory.bucket(empty).next();
                self.memory.bucket_mut(before).set_next(next);
                self.meter.write(self.cause(before));
                self.free_bucket(unit);
                return;
            }
            before = offset;
        }
    }

    /// A chained bucket, empty and not linked yet.
    pub(crate) fn allocate_bucket(&mut self) -> Result<u32, OutOfMemory> {
        let class = self.bucket_class();
        self.check_limit(class)?;
        let align = (BUCKET_BYTES >> self.unit_shift) as u32;
        let unit = self.slabs.allocate_aligned(class, align).ok_or(OutOfMemory)?;
        self.chained += 1;
        self.block_bytes += BUCKET_BYTES;
        *self.memory.bucket_mut(self.memory.offset_of(unit)) = Bucket::EMPTY;
        Ok(unit)
    }

    pub(crate) fn free_bucket(&mut self, unit: u32) {
        self.chained -= 1;
        self.block_bytes -= BUCKET_BYTES;
        self.slabs.free(unit, self.bucket_class());
    }

    fn bucket_class(&self) -> Class {
        let units = (BUCKET_BYTES >> self.unit_shift) as u32;
        Class::holding_units(units).expect("a unit is at most a bucket")
    }

    fn allocate(&mut self, class: Class) -> Result<u32, OutOfMemory> {
        self.check_limit(class)?;
        let unit = self.slabs.allocate(class).ok_or(OutOfMemory)?;
        self.block_bytes += self.bytes_of(class);
        Ok(unit)
    }

    fn check_limit(&self, class: Class) -> Result<(), OutOfMemory> {
        if self.used_bytes() + self.bytes_of(class) > self.limit_bytes {
            Err(OutOfMemory)
        } else {
            Ok(())
        }
    }

    fn free(&mut self, unit: u32, class: Class) {
        let bytes = self.bytes_of(class);
        self.block_bytes -= bytes;
        if bytes >= DISCARDED_BYTES {
            let start = self.memory.offset_of(unit);
            self.memory.discard(start..start + bytes);
        }
        self.slabs.free(unit, class);
    }

    /// Bytes of index and blocks that are in use.
    pub fn used_bytes(&self) -> usize {
        self.index.bytes() + self.block_bytes
    }

    #[inline(always)]
    fn bytes_of(&self, class: Class) -> usize {
        (class.units() as usize) << self.unit_shift
    }

    /// The cause of an access to a bucket.
    fn cause(&self, bucket: usize) -> Cause {
        if bucket < self.memory.index_bytes() { Cause::Bucket } else { Cause::Chain }
    }

    /// The form of a pair; none if it is too large for any.
    #[inline(always)]
    pub fn form(&self, key: &[u8], value_bytes: usize, inline_threshold: usize) -> Option<Form> {
        let bytes = key.len() + value_bytes;
        if bytes <= inline_threshold && key.len() <= crate::bucket::INLINE_KEY_BYTES {
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

impl Found {
    /// The pair has this form.
    #[inline(always)]
    pub fn has(&self, form: Form) -> bool {
        match (form, self.block) {
            (Form::Inline(span), None) => span == self.span,
            (Form::Block(class), Some((_, own))) => class == own,
            _ => false,
        }
    }

    /// The cause of an access to the value.
    #[inline(always)]
    pub fn cause(&self, index_bytes: usize) -> Cause {
        match self.block {
            Some(_) => Cause::Data,
            None if self.bucket < index_bytes => Cause::Bucket,
            None => Cause::Chain,
        }
    }

    /// Offset and length of the value.
    #[inline(always)]
    pub fn value(&self) -> (usize, usize) {
        (self.pair.at + self.pair.key_bytes, self.pair.value_bytes)
    }
}

/// Copies a byte string over another of equal length: short ones by two words that may overlap,
/// since calls, and stores under a mask, take longer than the rest of an operation.
#[inline(always)]
fn copy(target: &mut [u8], source: &[u8]) {
    #[inline(always)]
    fn ends<const WORD: usize>(target: &mut [u8], source: &[u8]) {
        let (mut first, mut last) = ([0; WORD], [0; WORD]);
        first.copy_from_slice(&source[..WORD]);
        last.copy_from_slice(&source[source.len() - WORD..]);
        let end = target.len() - WORD;
        target[..WORD].copy_from_slice(&first);
        target[end..].copy_from_slice(&last);
    }
    match source.len() {
        8..=16 => ends::<8>(target, source),
        4..8 => ends::<4>(target, source),
        2..4 => ends::<2>(target, source),
        1 => target[0] = source[0],
        _ => target.copy_from_slice(source),
    }
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Comparison of two byte strings of equal length, without a call for short ones.
#[inline(always)]
fn is_same(left: &[u8], right: &[u8]) -> bool {
    let length = right.len();
    if !(8..=32).contains(&length) {
        return left == right;
    }
    let differs = |at: usize| word(left, at) ^ word(right, at);
    let mut difference = differs(0) | differs(length - 8);
    if length > 16 {
        difference |= differs(8) | differs(length - 16);
    }
    difference == 0
}
