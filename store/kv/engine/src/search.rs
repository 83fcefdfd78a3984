// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Search in one bucket: which slot has an inline pair with the key, and which slots point to
//! blocks whose secondary hash is the key's. All ten slots are compared at once where the processor
//! can gather them from the line.

use crate::bucket::{Bucket, INLINE_KEY_BYTES, SLOT_BYTES, SLOTS, UNIT_BITS, code};
use crate::hash::Hash;

/// Comparison of all slots of a bucket with one word. Bit `i` of a result stands for slot `i`.
pub trait Compare: Copy {
    /// Slots among `among` whose eight bytes from their start on equal `word` in the bits of
    /// `mask`.
    fn words(bucket: &Bucket, word: u64, mask: u64, among: u32) -> u32;

    /// Slots in which an inline pair may begin whose key has `key_bytes` bytes, of which the first
    /// eight are `head`. The caller looks at their codes.
    fn heads(bucket: &Bucket, head: u64, key_bytes: usize) -> u32;
}

/// All slots, a bit each.
const ALL: u32 = (1 << SLOTS) - 1;

/// One slot after the other, on every processor.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Compare for Portable {
    #[inline(always)]
    fn words(bucket: &Bucket, word: u64, mask: u64, among: u32) -> u32 {
        let mut equal = 0;
        let mut rest = among;
        while rest != 0 {
            let slot = rest.trailing_zeros() as usize;
            equal |= u32::from((bucket.word(slot) ^ word) & mask == 0) << slot;
            rest &= rest - 1;
        }
        equal
    }

    #[inline(always)]
    fn heads(bucket: &Bucket, head: u64, key_bytes: usize) -> u32 {
        let first = code::INLINE | key_bytes as u8;
        let starts = bucket.codes_equal(code::INLINE | code::KEY_LENGTH, first);
        let mask = if key_bytes < 8 { (1 << (8 * key_bytes)) - 1 } else { u64::MAX };
        Self::words(bucket, head, mask, starts)
    }
}

/// By the byte permutations of AVX-512 VBMI: two of them gather all slots.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Vbmi;

#[cfg(target_arch = "x86_64")]
impl Vbmi {
    /// The processor has the instructions.
    pub fn is_available() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("bmi2")
    }
}

/// For each slot, the numbers of the eight bytes from its start on.
#[cfg(target_arch = "x86_64")]
#[repr(align(64))]
struct Bytes([u8; 128]);

#[cfg(target_arch = "x86_64")]
static BYTES_OF_SLOTS: Bytes = {
    let mut bytes = [0; 128];
    let mut at = 0;
    while at < 8 * SLOTS {
        bytes[at] = (at / 8 * SLOT_BYTES + at % 8) as u8;
        at += 1;
    }
    Bytes(bytes)
};

#[cfg(target_arch = "x86_64")]
impl Compare for Vbmi {
    #[inline(always)]
    fn words(bucket: &Bucket, word: u64, mask: u64, among: u32) -> u32 {
        // SAFETY: `Vbmi` is used only where `is_available` returned true.
        among & unsafe { words_by_permutations(bucket, word, mask) }
    }

    #[inline(always)]
    fn heads(bucket: &Bucket, head: u64, key_bytes: usize) -> u32 {
        // Equal words nearly always begin the pair, so codes are not compared before.
        // SAFETY: as above.
        ALL & unsafe { words_by_permutations(bucket, head, mask_of(key_bytes)) }
    }
}

/// The bits of the first `key_bytes` bytes of a word, at most 31.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "bmi2")]
fn mask_of(key_bytes: usize) -> u64 {
    std::arch::x86_64::_bzhi_u64(u64::MAX, 8 * key_bytes as u32)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
fn words_by_permutations(bucket: &Bucket, word: u64, mask: u64) -> u32 {
    use std::arch::x86_64::{
        __m512i, _mm512_load_si512, _mm512_permutexvar_epi8, _mm512_set1_epi64,
        _mm512_testn_epi64_mask, _mm512_xor_si512,
    };
    // SAFETY: a bucket is one line, aligned to 64 bytes.
    let line = unsafe { _mm512_load_si512(bucket.bytes.as_ptr().cast::<__m512i>()) };
    let table = BYTES_OF_SLOTS.0.as_ptr().cast::<__m512i>();
    // SAFETY: the table is aligned to 64 bytes and has two lines.
    let first = unsafe { _mm512_load_si512(table) };
    // SAFETY: the table has two lines.
    let second = unsafe { table.add(1) };
    // SAFETY: as above.
    let second = unsafe { _mm512_load_si512(second) };
    let (word, mask) = (_mm512_set1_epi64(word as i64), _mm512_set1_epi64(mask as i64));
    let equal = |bytes: __m512i| {
        let words = _mm512_permutexvar_epi8(bytes, line);
        u32::from(_mm512_testn_epi64_mask(_mm512_xor_si512(words, word), mask))
    };
    equal(first) | equal(second) << 8
}

impl Bucket {
    /// First slot of the inline pair with the key.
    #[inline(always)]
    pub fn find_inline<C: Compare>(&self, key: &[u8], hash: Hash) -> Option<usize> {
        if key.len() > INLINE_KEY_BYTES {
            return None;
        }
        let first = code::INLINE | key.len() as u8;
        let mut equal = C::heads(self, hash.head, key.len());
        while equal != 0 {
            let slot = equal.trailing_zeros() as usize;
            let is_start = self.code(slot) & (code::INLINE | code::KEY_LENGTH) == first;
            let has_tail =
                || key.len() <= 8 || self.bytes[slot * SLOT_BYTES..][..key.len()][8..] == key[8..];
            if is_start && has_tail() {
                return Some(slot);
            }
            equal &= equal - 1;
        }
        None
    }

    /// Slots that point to blocks, and whose secondary hash is that of the key.
    #[inline(always)]
    pub fn candidates<C: Compare>(&self, hash: Hash) -> u32 {
        let pointers = self.pointers();
        if pointers == 0 {
            return 0;
        }
        C::words(self, hash.secondary() << UNIT_BITS, 0x1FF << UNIT_BITS, pointers)
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_slab::Class;

    use super::*;
    use crate::bucket::Pointer;
    use crate::hash::Hasher;

    fn filled(random: &mut fastrand::Rng) -> (Bucket, Vec<Vec<u8>>) {
        let mut bucket = Bucket::EMPTY;
        let mut keys = Vec::new();
        loop {
            let key: Vec<u8> = (0..random.usize(0..14)).map(|_| random.u8(0..3)).collect();
            let value = vec![1; random.usize(0..9)];
            if keys.contains(&key) {
                continue;
            }
            let span = crate::bucket::span_of(key.len() + value.len());
            let Some(slot) = bucket.room(span) else { return (bucket, keys) };
            if random.u8(0..3) == 0 {
                let class = Class::from_code(random.u8(1..120)).expect("a class");
                let secondary = random.u64(0..512);
                bucket
                    .set_pointer(slot, Pointer { unit: random.u32(1..1 << 31), secondary, class });
            } else {
                bucket.set_inline(slot, &key, &value, random.bool());
                keys.push(key);
            }
        }
    }

    fn agrees<C: Compare>(seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let hasher = Hasher::new(seed);
        for _ in 0..2_000 {
            let (bucket, keys) = filled(&mut random);
            for (number, key) in keys.iter().enumerate() {
                let slot = bucket.find_inline::<C>(key, hasher.hash(key)).expect("key is in it");
                let inline = bucket.inline(slot);
                assert_eq!(inline.key_bytes, key.len(), "seed {seed}, key {number}");
                assert_eq!(&bucket.bytes[slot * SLOT_BYTES..][..key.len()], key);
            }
            let other: Vec<u8> = (0..random.usize(0..14)).map(|_| random.u8(0..3)).collect();
            let found = bucket.find_inline::<C>(&other, hasher.hash(&other)).is_some();
            assert_eq!(found, keys.contains(&other), "seed {seed}: {other:?}");
            let wanted = Hash { bits: random.u64(..), head: 0 };
            let expected: u32 = (0..SLOTS)
                .filter(|&slot| bucket.pointers() >> slot & 1 == 1)
                .filter(|&slot| bucket.pointer(slot).secondary == wanted.secondary())
                .map(|slot| 1 << slot)
                .sum();
            assert_eq!(bucket.candidates::<C>(wanted), expected, "seed {seed}");
        }
    }

    #[test]
    fn the_portable_search_finds_exactly_what_is_there() {
        agrees::<Portable>(1);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_search_by_permutations_finds_the_same() {
        if !Vbmi::is_available() {
            return freeport_testbed::skip("the processor has no AVX-512 VBMI");
        }
        agrees::<Vbmi>(2);
    }
}
