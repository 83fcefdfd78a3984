// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of the hash table: pairs are stored, overwritten and removed, and chains grow and shrink
//! with them. A change that lacks memory changes nothing.

use freeport_kv_slab::Class;

use crate::block;
use crate::bucket::{BUCKET_BYTES, Bucket, Pointer, SLOTS};
use crate::hash::Hash;
use crate::meter::{Cause, Meter};
use crate::options::OutOfMemory;
use crate::place::{Form, Found, Place};
use crate::short::copy;
use crate::table::Table;

/// Blocks of at least this many bytes give their pages back to the system when they are freed.
const DISCARDED_BYTES: usize = 2 << 20;

impl<M: Meter> Table<M> {
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
                let unit = self.allocate(class, self.given_up(old))?;
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

    /// Appends zeros to a value whose block has room for them, up to `value_bytes` in all.
    pub fn lengthen(&mut self, found: &Found, (unit, class): (u32, Class), value_bytes: usize) {
        let place = (self.memory.offset_of(unit), class);
        let lengths = (found.pair.key_bytes, value_bytes);
        block::write_header(
            &mut self.memory,
            place,
            lengths,
            found.pair.is_tagged,
            self.unit_shift,
        );
        let (at, old_bytes) = found.value();
        self.memory.bytes_mut(at + old_bytes, value_bytes - old_bytes).fill(0);
        self.meter.write(Cause::Data);
    }

    /// Removes a pair that was found.
    pub fn remove(&mut self, hash: Hash, found: &Found) {
        self.memory.bucket_mut(found.bucket).clear(found.slot, found.span);
        self.slots -= found.span;
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
        let known = old.map(|old| old.bucket);
        let found = match self.room_in_chain(head, span, known) {
            Ok(place) => place,
            Err(last) => match self.append_bucket(last, self.given_up(old)) {
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

    /// Room in a chain, by compacting a bucket if need be; else the last bucket of the chain. The
    /// search for the key has read the chain already, to its end or up to bucket `known`.
    fn room_in_chain(
        &mut self,
        head: usize,
        span: usize,
        known: Option<usize>,
    ) -> Result<Place, usize> {
        let mut offset = head;
        let mut is_read_first = false;
        loop {
            let bucket = self.memory.bucket(offset);
            if let Some(slot) = bucket.room(span) {
                return Ok(Place::new(offset, slot));
            }
            if span > 1 && bucket.empty_slots() >= span {
                let bucket = self.memory.bucket_mut(offset);
                bucket.compact();
                let slot = bucket.room(span).expect("compacted slots are consecutive");
                return Ok(Place::new(offset, slot));
            }
            match bucket.next() {
                0 => return Err(offset),
                unit => {
                    is_read_first |= known == Some(offset);
                    offset = self.memory.offset_of(unit);
                }
            }
            if is_read_first {
                self.meter.read(Cause::Chain);
            }
        }
    }

    fn append_bucket(&mut self, last: usize, given_up: usize) -> Result<usize, OutOfMemory> {
        let unit = self.allocate_bucket(given_up)?;
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
    pub(crate) fn allocate_bucket(&mut self, given_up: usize) -> Result<u32, OutOfMemory> {
        let class = self.bucket_class();
        self.check_limit(class, given_up)?;
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

    fn allocate(&mut self, class: Class, given_up: usize) -> Result<u32, OutOfMemory> {
        self.check_limit(class, given_up)?;
        let unit = self.slabs.allocate(class).ok_or(OutOfMemory)?;
        self.block_bytes += self.bytes_of(class);
        Ok(unit)
    }

    /// Bytes of the block that a pair gives up when it is stored elsewhere.
    fn given_up(&self, old: Option<Found>) -> usize {
        old.and_then(|old| old.block).map_or(0, |(_, class)| self.bytes_of(class))
    }

    /// The limit holds once a block is given up, so that a full store can replace a pair by a
    /// smaller one, also if it is above its limit.
    fn check_limit(&self, class: Class, given_up: usize) -> Result<(), OutOfMemory> {
        let bytes = self.bytes_of(class);
        if bytes > given_up && self.used_bytes() + bytes - given_up > self.limit_bytes {
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
}
