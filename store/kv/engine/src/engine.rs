// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The engine: one at a time, what each operation means. Batches of operations are in `batch`.

use crate::bucket::{BUCKET_BYTES, INLINE_BYTES};
use crate::hash::{Hash, Hasher};
use crate::index::Index as BucketIndex;
use crate::memory::Memory;
use crate::meter::{Meter, Silent};
use crate::options::{Index, Options, OptionsError, OutOfMemory};
use crate::place::{Found, Place};
use crate::search::{Compare, Portable};
use crate::table::Table;

/// A key-value store in the memory of one core. Operations take effect one after the other.
pub struct Engine<M = Silent> {
    pub(crate) table: Table<M>,
    pub(crate) hasher: Hasher,
    inline_threshold: usize,
    /// Share of the slots above which the index grows; none: it does not.
    fill: Option<f64>,
    /// Slots above which the index grows next.
    pub(crate) slots_limit: usize,
    pairs: usize,
    pair_bytes: usize,
    options: Options,
}

/// A stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The tag that it was stored with.
    pub is_tagged: bool,
}

/// A stored value that can be changed in place.
#[derive(Debug, PartialEq, Eq)]
pub struct ValueMut<'a> {
    /// Its bytes.
    pub bytes: &'a mut [u8],
    /// The tag that it was stored with.
    pub is_tagged: bool,
}

/// Effect of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The key is new.
    Created,
    /// The key had a value, which is gone.
    Replaced,
}

/// Smallest and largest memory of an engine.
const MEMORY_BYTES: std::ops::RangeInclusive<usize> = 1 << 20..=128 << 30;
/// Bits of the unit that a pointer names.
const UNIT_BITS: u32 = 31;
/// Part of the memory by which blocks have more address space than the limit lets them use.
const SPARE: usize = 8;
/// Buckets that a growing index begins with.
const FIRST_BUCKETS: usize = 64;

impl Engine<Silent> {
    /// An engine that counts nothing.
    ///
    /// # Errors
    /// See [`OptionsError`].
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        Self::with_meter(options, Silent)
    }
}

impl<M: Meter> Engine<M> {
    /// An engine that reports its memory accesses.
    ///
    /// # Errors
    /// See [`OptionsError`].
    pub fn with_meter(options: Options, meter: M) -> Result<Self, OptionsError> {
        let memory_bytes = options.memory_bytes;
        if !MEMORY_BYTES.contains(&memory_bytes) {
            return Err(OptionsError::Memory(memory_bytes));
        }
        if options.inline_threshold > INLINE_BYTES {
            return Err(OptionsError::InlineThreshold(options.inline_threshold));
        }
        let (index, index_bytes, fill) = index_for(&options)?;
        // 31 bits address every unit (KV-Direct, hash table): 32 GiB at 16 bytes.
        let unit_shift = match memory_bytes >> 20 {
            0..=32_768 => 4,
            32_769..=65_536 => 5,
            _ => 6,
        };
        let block_bytes = match options.index {
            Index::Fixed { .. } => memory_bytes - index_bytes,
            Index::Growing { .. } => {
                (memory_bytes + memory_bytes / SPARE).min(1 << (UNIT_BITS + unit_shift))
            }
        };
        let memory =
            Memory::reserve(index_bytes, block_bytes, unit_shift).map_err(OptionsError::Reserve)?;
        let table = Table::new(memory, index, (block_bytes, unit_shift), memory_bytes, meter);
        let mut engine = Self {
            table,
            hasher: Hasher::new(options.seed),
            inline_threshold: options.inline_threshold,
            fill,
            slots_limit: usize::MAX,
            pairs: 0,
            pair_bytes: 0,
            options,
        };
        engine.limit_slots();
        Ok(engine)
    }

    /// Options that the engine was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The meter of the engine.
    pub fn meter(&self) -> &M {
        &self.table.meter
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// There are no pairs.
    pub fn is_empty(&self) -> bool {
        self.pairs == 0
    }

    /// Bytes of all keys and values.
    pub fn pair_bytes(&self) -> usize {
        self.pair_bytes
    }

    /// Bytes of index and blocks.
    #[inline]
    pub fn used_bytes(&self) -> usize {
        self.table.used_bytes()
    }

    /// Sets the bytes of index and blocks above which nothing is stored, at first
    /// [`Options::memory_bytes`]. Beyond that, a pair is refused when there is no address space for
    /// it: with an index that grows, blocks have an eighth more than the options say.
    pub fn set_limit_bytes(&mut self, limit_bytes: usize) {
        self.table.limit_bytes = limit_bytes;
    }

    /// Removes all pairs, and gives their memory back to the system.
    pub fn clear(&mut self) {
        self.table.clear();
        self.pairs = 0;
        self.pair_bytes = 0;
        self.limit_slots();
    }

    /// Hash of a key, for the calls that take one.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> Hash {
        self.hasher.hash(key)
    }

    /// Fetches the bucket in which a key is searched, while the caller works on others.
    #[inline]
    pub fn prefetch(&self, key: &[u8]) {
        self.table.memory.prefetch(self.table.index.offset(self.hash(key)));
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Value<'_>> {
        self.get_as::<Portable>(key, self.hash(key))
    }

    #[inline(always)]
    pub(crate) fn get_as<C: Compare>(&self, key: &[u8], hash: Hash) -> Option<Value<'_>> {
        self.table.find::<C>(key, hash).map(|place| self.value_at(place))
    }

    #[inline(always)]
    pub(crate) fn value_at(&self, place: Place) -> Value<'_> {
        let found = self.table.found_at(place);
        let (at, length) = found.value();
        Value { bytes: self.table.memory.bytes(at, length), is_tagged: found.pair.is_tagged }
    }

    /// Stores a plain value.
    ///
    /// # Errors
    /// No memory is left. Nothing has changed.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Stored, OutOfMemory> {
        self.put_tagged(key, value, false)
    }

    /// Stores a value with the user's tag.
    ///
    /// # Errors
    /// No memory is left. Nothing has changed.
    pub fn put_tagged(
        &mut self,
        key: &[u8],
        value: &[u8],
        is_tagged: bool,
    ) -> Result<Stored, OutOfMemory> {
        let hash = self.hash(key);
        let old = self.table.find::<Portable>(key, hash);
        self.put_at((key, hash), value, is_tagged, old).map(|(stored, _)| stored)
    }

    #[inline(always)]
    pub(crate) fn put_at(
        &mut self,
        (key, hash): (&[u8], Hash),
        value: &[u8],
        is_tagged: bool,
        old: Option<Place>,
    ) -> Result<(Stored, Place), OutOfMemory> {
        if let Some(place) = old
            && self.table.replace_value(place, value, is_tagged)
        {
            return Ok((Stored::Replaced, place));
        }
        self.put_slowly(key, hash.bits, value, is_tagged, old)
    }

    // The hash is passed as a number, so that the caller can keep it in a register.
    #[inline(never)]
    fn put_slowly(
        &mut self,
        key: &[u8],
        hash_bits: u64,
        value: &[u8],
        is_tagged: bool,
        old: Option<Place>,
    ) -> Result<(Stored, Place), OutOfMemory> {
        let hash = Hash { bits: hash_bits, head: 0 };
        let old = old.map(|place| self.table.found_at(place));
        let form = self.table.form(key, value.len(), self.inline_threshold).ok_or(OutOfMemory)?;
        if let Some(found) = &old
            && found.has(form)
        {
            self.pair_bytes = self.pair_bytes - found.pair.value_bytes + value.len();
            self.table.overwrite(found, key, value, is_tagged);
            return Ok((Stored::Replaced, Place::new(found.bucket, found.slot)));
        }
        let place = self.table.store((key, hash), value, is_tagged, (old, form))?;
        let stored = match &old {
            Some(found) => {
                self.pair_bytes = self.pair_bytes - found.pair.value_bytes + value.len();
                Stored::Replaced
            }
            None => {
                self.pairs += 1;
                self.pair_bytes += key.len() + value.len();
                Stored::Created
            }
        };
        if self.table.slots > self.slots_limit {
            self.grow();
            // The pair may have moved.
            let moved = self.table.find::<Portable>(key, self.hash(key));
            return Ok((stored, moved.expect("growth keeps all pairs")));
        }
        Ok((stored, place))
    }

    /// Removes a key; returns whether it had a value.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        let place = self.table.find::<Portable>(key, hash);
        self.delete_at(hash, place)
    }

    #[inline]
    pub(crate) fn delete_at(&mut self, hash: Hash, place: Option<Place>) -> bool {
        let Some(place) = place else { return false };
        let found = self.table.found_at(place);
        self.pairs -= 1;
        self.pair_bytes -= found.pair.key_bytes + found.pair.value_bytes;
        self.table.remove(hash, &found);
        true
    }

    /// Calls a function with the value of a key, to change it in place.
    pub fn update<R>(&mut self, key: &[u8], change: impl FnOnce(ValueMut<'_>) -> R) -> Option<R> {
        let place = self.table.find::<Portable>(key, self.hash(key))?;
        Some(change(self.change_at(place)))
    }

    /// Appends zeros to a value, up to `value_bytes` in all, if its block has room for them. Then
    /// nothing of the value is moved or copied. Returns whether it was done.
    pub fn lengthen(&mut self, key: &[u8], value_bytes: usize) -> bool {
        let Some(place) = self.table.find::<Portable>(key, self.hash(key)) else { return false };
        let found = self.table.found_at(place);
        let old_bytes = found.pair.value_bytes;
        let form = self.table.form(key, value_bytes, self.inline_threshold);
        match (found.block, form) {
            (Some(block), Some(form)) if value_bytes >= old_bytes && found.has(form) => {
                self.pair_bytes += value_bytes - old_bytes;
                self.table.lengthen(&found, block, value_bytes);
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    pub(crate) fn change_at(&mut self, place: Place) -> ValueMut<'_> {
        let found = self.table.found_at(place);
        self.table.meter.write(found.cause(self.table.memory.index_bytes()));
        let (at, length) = found.value();
        let bytes = self.table.memory.bytes_mut(at, length);
        ValueMut { bytes, is_tagged: found.pair.is_tagged }
    }

    /// Grows the index until enough of its slots are empty, or memory is short.
    #[cold]
    fn grow(&mut self) {
        while self.table.slots > self.slots_limit && self.split_bucket() {
            self.limit_slots();
        }
    }

    fn limit_slots(&mut self) {
        if let Some(fill) = self.fill {
            let slots = self.table.index.buckets() * crate::bucket::SLOTS;
            self.slots_limit = (slots as f64 * fill) as usize;
        }
    }

    /// Hash of the key of a pair that was found.
    pub(crate) fn hash_of(&self, found: &Found) -> Hash {
        let pair = &found.pair;
        self.hash(self.table.memory.bytes(pair.at, pair.key_bytes))
    }
}

/// The index, the bytes that are reserved for it, and its fill.
fn index_for(options: &Options) -> Result<(BucketIndex, usize, Option<f64>), OptionsError> {
    let is_share = |ratio: f64| ratio > 0.0 && ratio < 1.0;
    match options.index {
        Index::Fixed { ratio } => {
            let buckets = (options.memory_bytes as f64 * ratio) as usize / BUCKET_BYTES;
            if !is_share(ratio) || buckets == 0 {
                return Err(OptionsError::Ratio(ratio));
            }
            Ok((BucketIndex::fixed(buckets), buckets * BUCKET_BYTES, None))
        }
        Index::Growing { fill } => {
            if !is_share(fill) {
                return Err(OptionsError::Ratio(fill));
            }
            // The limit of both together is what stops the index; this is address space alone.
            let bytes = options.memory_bytes.next_multiple_of(BUCKET_BYTES);
            Ok((BucketIndex::growing(FIRST_BUCKETS), bytes, Some(fill)))
        }
    }
}
