// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bucket: one 64-byte line of ten slots (KV-Direct, hash table).
//!
//! ```text
//! bytes  0..50   ten slots of 5 bytes
//!       50..60   a code for each slot
//!       60..64   unit of the next bucket of the chain; 0: none
//! ```
//!
//! A slot that points to a block has the block's unit in 31 bits and the secondary hash in 9; its
//! code is the block's size class. A pair that is kept inline takes consecutive slots. The code
//! of the first has the length of the key; those of the others mark the continuation. The
//! publication leaves open where lengths of inline pairs are kept: here the length of the pair is
//! that of its slots, less a count in the last byte where the code says that the pair is padded.
//!
//! A pair is *tagged* or plain; the tag is the user's, and takes no space.

use freeport_kv_slab::Class;

/// Bytes of a bucket, and of a line.
pub const BUCKET_BYTES: usize = 64;
/// Slots of a bucket.
pub const SLOTS: usize = 10;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 5;
/// Most bytes that a pair kept inline has.
pub const INLINE_BYTES: usize = SLOTS * SLOT_BYTES;
/// Most bytes that the key of a pair kept inline has.
pub const INLINE_KEY_BYTES: usize = 31;
/// Bits of a unit in a slot.
pub const UNIT_BITS: u32 = 31;

/// Where the codes begin.
pub(crate) const CODES: usize = INLINE_BYTES;
const NEXT: usize = CODES + SLOTS;

/// Codes of slots. Between them lie the codes of size classes.
pub(crate) mod code {
    pub const EMPTY: u8 = 0;
    /// A later slot of an inline pair.
    pub const CONTINUED: u8 = 0x7F;
    /// The first slot of an inline pair; with the bits below, and the key's length.
    pub const INLINE: u8 = 0x80;
    pub const TAGGED: u8 = 0x40;
    pub const PADDED: u8 = 0x20;
    pub const KEY_LENGTH: u8 = 0x1F;
}

/// A bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Bucket {
    pub(crate) bytes: [u8; BUCKET_BYTES],
}

/// Contents of a slot that points to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// First unit of the block.
    pub unit: u32,
    /// Secondary hash of the key.
    pub secondary: u64,
    /// Size class of the block.
    pub class: Class,
}

/// Place and lengths of an inline pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline {
    /// Number of slots.
    pub span: usize,
    /// Bytes of the key.
    pub key_bytes: usize,
    /// Bytes of the value.
    pub value_bytes: usize,
    /// The user's tag.
    pub is_tagged: bool,
}

/// Slots that an inline pair of `bytes` takes.
#[inline(always)]
pub fn span_of(bytes: usize) -> usize {
    bytes.div_ceil(SLOT_BYTES).max(1)
}

impl Bucket {
    /// A bucket without pairs.
    pub const EMPTY: Self = Self { bytes: [0; BUCKET_BYTES] };

    /// The pointer in a slot that has one.
    #[inline(always)]
    pub fn pointer(&self, slot: usize) -> Pointer {
        let word = self.word(slot);
        Pointer {
            unit: (word & ((1 << UNIT_BITS) - 1)) as u32,
            secondary: word >> UNIT_BITS & 0x1FF,
            class: Class::from_code(self.code(slot)).expect("slots with a pointer have a class"),
        }
    }

    /// Place and lengths of the inline pair that begins at `slot`.
    #[inline(always)]
    pub fn inline(&self, slot: usize) -> Inline {
        let first = self.code(slot);
        let span = 1 + (self.continued() >> (slot + 1)).trailing_ones() as usize;
        let bytes = span * SLOT_BYTES;
        let end = (slot + span) * SLOT_BYTES;
        let padding = if first & code::PADDED == 0 { 0 } else { usize::from(self.bytes[end - 1]) };
        let key_bytes = usize::from(first & code::KEY_LENGTH);
        Inline {
            span,
            key_bytes,
            value_bytes: bytes - padding - key_bytes,
            is_tagged: first & code::TAGGED != 0,
        }
    }

    /// Puts a pointer into an empty slot.
    pub fn set_pointer(&mut self, slot: usize, pointer: Pointer) {
        let word = u64::from(pointer.unit) | pointer.secondary << UNIT_BITS;
        self.bytes[slot * SLOT_BYTES..][..SLOT_BYTES].copy_from_slice(&word.to_le_bytes()[..5]);
        self.bytes[CODES + slot] = pointer.class.code();
    }

    /// Puts a pair into `span` empty slots, or into the slots of a pair of the same span.
    #[inline]
    pub fn set_inline(&mut self, slot: usize, key: &[u8], value: &[u8], is_tagged: bool) {
        let bytes = key.len() + value.len();
        let span = span_of(bytes);
        let start = slot * SLOT_BYTES;
        self.bytes[start..][..key.len()].copy_from_slice(key);
        self.bytes[start + key.len()..][..value.len()].copy_from_slice(value);
        let padding = span * SLOT_BYTES - bytes;
        let mut first = code::INLINE | key.len() as u8;
        if is_tagged {
            first |= code::TAGGED;
        }
        if padding > 0 {
            first |= code::PADDED;
            self.bytes[start + span * SLOT_BYTES - 1] = padding as u8;
        }
        self.bytes[CODES + slot] = first;
        self.bytes[CODES + slot + 1..][..span - 1].fill(code::CONTINUED);
    }

    /// Empties slots.
    pub fn clear(&mut self, slot: usize, span: usize) {
        self.bytes[CODES + slot..][..span].fill(code::EMPTY);
    }

    /// First slot of `span` consecutive empty ones.
    #[inline]
    pub fn room(&self, span: usize) -> Option<usize> {
        let empty = self.empty();
        let mut starts = empty;
        for distance in 1..span {
            starts &= empty >> distance;
        }
        (starts != 0).then(|| starts.trailing_zeros() as usize)
    }

    /// Number of empty slots.
    pub fn empty_slots(&self) -> usize {
        self.empty().count_ones() as usize
    }

    /// Moves all pairs to the front, so that the empty slots are consecutive.
    pub fn compact(&mut self) {
        let old = *self;
        self.bytes[CODES..NEXT].fill(code::EMPTY);
        let mut to = 0;
        for (from, span) in old.pairs() {
            self.copy_pair(to, &old, from, span);
            to += span;
        }
    }

    /// Copies the pair at `from` of another bucket to empty slots.
    pub fn copy_pair(&mut self, to: usize, other: &Self, from: usize, span: usize) {
        self.bytes[to * SLOT_BYTES..][..span * SLOT_BYTES]
            .copy_from_slice(&other.bytes[from * SLOT_BYTES..][..span * SLOT_BYTES]);
        self.bytes[CODES + to..][..span].copy_from_slice(&other.bytes[CODES + from..][..span]);
    }

    /// First slot and number of slots of each pair.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let bucket = *self;
        let continued = bucket.continued();
        (0..SLOTS).filter_map(move |slot| match bucket.code(slot) {
            code::EMPTY | code::CONTINUED => None,
            _ => Some((slot, 1 + (continued >> (slot + 1)).trailing_ones() as usize)),
        })
    }

    /// Unit of the next bucket of the chain; 0: none.
    #[inline(always)]
    pub fn next(&self) -> u32 {
        let mut unit = [0; 4];
        unit.copy_from_slice(&self.bytes[NEXT..]);
        u32::from_le_bytes(unit)
    }

    /// Sets the next bucket of the chain.
    pub fn set_next(&mut self, unit: u32) {
        self.bytes[NEXT..].copy_from_slice(&unit.to_le_bytes());
    }

    /// The eight bytes that begin at a slot.
    #[inline(always)]
    pub(crate) fn word(&self, slot: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[slot * SLOT_BYTES..][..8]);
        u64::from_le_bytes(word)
    }

    /// An inline pair begins at `slot`.
    #[inline(always)]
    pub fn is_inline(&self, slot: usize) -> bool {
        self.code(slot) & code::INLINE != 0
    }

    /// Code of a slot.
    #[inline(always)]
    pub(crate) fn code(&self, slot: usize) -> u8 {
        self.bytes[CODES + slot]
    }

    /// Which slots are empty, a bit each.
    #[inline(always)]
    fn empty(&self) -> u32 {
        self.codes_equal(0xFF, code::EMPTY)
    }

    /// Which slots continue a pair, a bit each.
    #[inline(always)]
    fn continued(&self) -> u32 {
        self.codes_equal(0xFF, code::CONTINUED)
    }

    /// Some slot points to a block, or there is a next bucket.
    #[inline(always)]
    pub fn leads_elsewhere(&self) -> bool {
        codes::at_most(self, &MOST_THAT_LEAD) >> (CODES - LAST) != 0
    }

    /// Slots that point to blocks, a bit each: their codes lie between `EMPTY` and `CONTINUED`.
    #[inline(always)]
    pub fn pointers(&self) -> u32 {
        of_slots(codes::pointers(self))
    }

    /// Which codes are `wanted` in the bits of `mask`, a bit for each slot.
    #[inline(always)]
    pub(crate) fn codes_equal(&self, mask: u8, wanted: u8) -> u32 {
        of_slots(codes::equal(self, mask, wanted))
    }
}

/// Bits of the slots' codes among those of the last 16 bytes.
#[inline(always)]
fn of_slots(last: u32) -> u32 {
    last >> (CODES - LAST) & ((1 << SLOTS) - 1)
}

/// Where the last 16 bytes begin, which contain all codes.
const LAST: usize = BUCKET_BYTES - 16;

/// Of the last 16 bytes of a bucket, less one: a code up to this is that of a pointer, and every
/// byte of a unit that is not zero.
const MOST_THAT_LEAD: Last = {
    let mut most = [0; 16];
    let mut at = CODES - LAST;
    while at < 16 {
        most[at] = if at < NEXT - LAST { code::CONTINUED - 2 } else { 0xFE };
        at += 1;
    }
    Last(most)
};

/// Bytes that are compared with the last ones of a bucket.
#[repr(align(16))]
struct Last([u8; 16]);

/// Comparisons of the last 16 bytes of a bucket, a bit for each byte.
#[cfg(target_arch = "x86_64")]
mod codes {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_and_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_load_si128,
        _mm_min_epu8, _mm_movemask_epi8, _mm_set1_epi8,
    };

    use super::{Bucket, LAST, Last};

    /// Bytes that are at most those of `most`, all less one.
    #[inline(always)]
    pub fn at_most(bucket: &Bucket, most: &Last) -> u32 {
        // SAFETY: SSE2 belongs to every x86-64 processor.
        unsafe { at_most_by_sse2(last(bucket), most) }
    }

    #[inline(always)]
    pub fn equal(bucket: &Bucket, mask: u8, wanted: u8) -> u32 {
        // SAFETY: SSE2 belongs to every x86-64 processor.
        unsafe { equal_by_sse2(last(bucket), mask, wanted) }
    }

    #[inline(always)]
    pub fn pointers(bucket: &Bucket) -> u32 {
        // SAFETY: SSE2 belongs to every x86-64 processor.
        unsafe { pointers_by_sse2(last(bucket)) }
    }

    #[inline(always)]
    fn last(bucket: &Bucket) -> __m128i {
        // SAFETY: the last 16 bytes lie inside the bucket.
        let last = unsafe { bucket.bytes.as_ptr().add(LAST) };
        // SAFETY: as above; a bucket is aligned to 64 bytes.
        unsafe { _mm_load_si128(last.cast()) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn at_most_by_sse2(last: __m128i, most: &Last) -> u32 {
        // SAFETY: 16 bytes, aligned to 16.
        let most = unsafe { _mm_load_si128(most.0.as_ptr().cast()) };
        let less = _mm_add_epi8(last, _mm_set1_epi8(-1));
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(less, most), less)) as u32
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal_by_sse2(last: __m128i, mask: u8, wanted: u8) -> u32 {
        let masked = _mm_and_si128(last, _mm_set1_epi8(mask as i8));
        _mm_movemask_epi8(_mm_cmpeq_epi8(masked, _mm_set1_epi8(wanted as i8))) as u32
    }

    /// As signed numbers plus one, the codes of pointers are above one; that of continued slots
    /// wraps to the smallest number.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn pointers_by_sse2(last: __m128i) -> u32 {
        let one = _mm_set1_epi8(1);
        _mm_movemask_epi8(_mm_cmpgt_epi8(_mm_add_epi8(last, one), one)) as u32
    }
}

/// Comparisons of the last 16 bytes of a bucket, a bit for each byte.
#[cfg(not(target_arch = "x86_64"))]
mod codes {
    use super::{Bucket, LAST, Last, code};

    pub fn at_most(bucket: &Bucket, most: &Last) -> u32 {
        let last = bucket.bytes[LAST..].iter().zip(&most.0).enumerate();
        last.map(|(at, (byte, most))| u32::from(byte.wrapping_sub(1) <= *most) << at).sum()
    }

    pub fn equal(bucket: &Bucket, mask: u8, wanted: u8) -> u32 {
        bits(bucket, |code| code & mask == wanted)
    }

    pub fn pointers(bucket: &Bucket) -> u32 {
        bits(bucket, |code| (1..code::CONTINUED).contains(&code))
    }

    fn bits(bucket: &Bucket, is_so: impl Fn(u8) -> bool) -> u32 {
        let last = bucket.bytes[LAST..].iter().enumerate();
        last.map(|(byte, &code)| u32::from(is_so(code)) << byte).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(code: u8) -> Class {
        Class::from_code(code).expect("a class")
    }

    #[test]
    fn a_bucket_is_a_line() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (64, 64));
    }

    #[test]
    fn pointers_are_read_as_they_were_set() {
        let mut bucket = Bucket::EMPTY;
        let pointer = |slot: usize| Pointer {
            unit: (1 << 31) - 1 - slot as u32,
            secondary: 511 - slot as u64,
            class: class(1 + 12 * slot as u8),
        };
        (0..SLOTS).for_each(|slot| bucket.set_pointer(slot, pointer(slot)));
        bucket.set_next(0xFEDC_BA98);
        for slot in 0..SLOTS {
            assert_eq!(bucket.pointer(slot), pointer(slot));
        }
        assert_eq!((bucket.next(), bucket.empty_slots()), (0xFEDC_BA98, 0));
    }

    #[test]
    fn inline_pairs_have_the_lengths_they_were_set_with() {
        for key_bytes in 0..=INLINE_KEY_BYTES {
            for value_bytes in 0..=INLINE_BYTES - key_bytes {
                for is_tagged in [false, true] {
                    let span = span_of(key_bytes + value_bytes);
                    let slot = SLOTS - span;
                    let mut bucket = Bucket::EMPTY;
                    let (key, value) = (vec![7; key_bytes], vec![9; value_bytes]);
                    bucket.set_inline(slot, &key, &value, is_tagged);
                    let expected = Inline { span, key_bytes, value_bytes, is_tagged };
                    assert!(bucket.is_inline(slot));
                    assert_eq!(bucket.inline(slot), expected);
                    assert_eq!(bucket.pairs().collect::<Vec<_>>(), [(slot, span)]);
                }
            }
        }
    }

    #[test]
    fn room_is_the_first_run_of_empty_slots_and_compacting_joins_them() {
        let mut bucket = Bucket::EMPTY;
        bucket.set_inline(1, b"key", b"value", false);
        bucket.set_pointer(5, Pointer { unit: 3, secondary: 4, class: class(2) });
        assert_eq!(bucket.room(1), Some(0));
        assert_eq!(bucket.room(2), Some(3));
        assert_eq!(bucket.room(4), Some(6));
        assert_eq!(bucket.room(5), None);
        bucket.compact();
        assert_eq!(bucket.room(7), Some(3));
        assert_eq!(bucket.pairs().collect::<Vec<_>>(), [(0, 2), (2, 1)]);
        assert_eq!(&bucket.bytes[..8], b"keyvalue");
        assert_eq!(bucket.pointer(2).unit, 3);
    }
}
