// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hash table: chains of buckets in the memory of an engine (KV-Direct 5.4). It finds, inserts
//! and removes pairs; what an operation means is the engine's.

use std::num::NonZero;

use freeport_kv_slab::{Class, Slabs};

use crate::block::{self, Pair};
use crate::bucket::{BUCKET_BYTES, Bucket, Pointer, SLOT_BYTES, SLOTS, span_of};
use crate::hash::Hash;
use crate::index::Index;
use crate::memory::Memory;
use crate::meter::{Cause, Meter};
use crate::options::OutOfMemory;
use crate::search::Compare;

/// Index, blocks, and what is counted of them.
#[derive(Debug)]
pub struct Table<M> {
    pub(crate) memory: Memory,
    pub(crate) index: Index,
    pub(crate) slabs: Slabs,
    pub(crate) unit_shift: u32,
    /// Bytes that index and blocks may take together.
    pub(crate) limit_bytes: usize,
    /// Slots that pairs take, in all buckets.
    pub(crate) slots: usize,
    /// Chained buckets.
    pub(crate) chained: usize,
    /// Changes whenever a pair moves or leaves, so that remembered places are known to be stale.
    pub(crate) layout: u64,
    pub(crate) meter: M,
}

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
                        self.slabs.free(unit, class);
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
        *self.memory.bucket_mut(self.memory.offset_of(unit)) = Bucket::EMPTY;
        Ok(unit)
    }

    pub(crate) fn free_bucket(&mut self, unit: u32) {
        self.chained -= 1;
        self.slabs.free(unit, self.bucket_class());
    }

    fn bucket_class(&self) -> Class {
        let units = (BUCKET_BYTES >> self.unit_shift) as u32;
        Class::holding_units(units).expect("a unit is at most a bucket")
    }

    fn allocate(&mut self, class: Class) -> Result<u32, OutOfMemory> {
        self.check_limit(class)?;
        self.slabs.allocate(class).ok_or(OutOfMemory)
    }

    fn check_limit(&self, class: Class) -> Result<(), OutOfMemory> {
        let more = (class.units() as usize) << self.unit_shift;
        if self.used_bytes() + more > self.limit_bytes { Err(OutOfMemory) } else { Ok(()) }
    }

    fn free(&mut self, unit: u32, class: Class) {
        self.slabs.free(unit, class);
    }

    /// Bytes of index and blocks that are in use.
    pub fn used_bytes(&self) -> usize {
        self.index.bytes() + self.slabs.used_bytes()
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

/// Copies a byte string over another of equal length, without a call for short ones.
#[inline(always)]
fn copy(target: &mut [u8], source: &[u8]) {
    match source.len() {
        length @ 8..=16 => {
            let (first, last) = (word(source, 0), word(source, length - 8));
            target[..8].copy_from_slice(&first.to_le_bytes());
            target[length - 8..].copy_from_slice(&last.to_le_bytes());
        }
        length @ 1..8 => {
            for at in 0..length {
                target[at] = source[at];
            }
        }
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
