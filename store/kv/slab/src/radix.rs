// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Radix sort of the addresses of free blocks (KV-Direct 5.3.3).
//!
//! The first pass, by the highest bits, distributes all blocks over [`PARTS`] parts of the address
//! range. Each part is small enough for a cache, so that the passes inside it, from the lowest
//! digit up, do not wait for memory. Inside a part, address and class fit 32 bits. Threads share
//! the work of the first pass by lines, and the rest by parts.

use crate::class::Class;
use crate::entry::{Entry, Line};

/// Parts of the address range.
pub(crate) const PARTS: usize = 512;
/// Bits of a key that hold the class. The rest is the offset in the part.
const CLASS_BITS: u32 = 7;
/// Largest digit of a pass inside a part, whose counters stay in the first-level cache.
const DIGIT_BITS: u32 = 11;
/// Up to this length, sorting by comparison is faster.
const SHORT: usize = 256;

/// Number of address bits inside a part, if no address is above `last`.
pub(crate) fn offset_bits(last: u32) -> u32 {
    (u32::BITS - last.leading_zeros()).saturating_sub(PARTS.ilog2())
}

/// Keys of blocks, distributed over the parts of the address range.
pub(crate) struct Distributed {
    keys: Vec<u32>,
    /// End of each part in `keys`, where the next one begins.
    ends: Vec<usize>,
}

impl Distributed {
    /// Distributes the entries of these lines. They are read twice: first to count.
    pub fn new<'a>(lines: impl Iterator<Item = &'a Line> + Clone, bits: u32) -> Distributed {
        let mut places = vec![0; PARTS];
        for &unit in lines.clone().flat_map(Line::units) {
            places[part_of(unit, bits)] += 1;
        }
        let mut total = 0;
        for place in &mut places {
            (*place, total) = (total, total + *place);
        }
        let mut keys = vec![0; total];
        for line in lines {
            for entry in line.entries() {
                let place = &mut places[part_of(entry.unit, bits)];
                keys[*place] = key(entry, bits);
                *place += 1;
            }
        }
        Distributed { keys, ends: places }
    }

    /// Keys of a part, in the order of their lines.
    pub fn part(&self, part: usize) -> &[u32] {
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        &self.keys[start..self.ends[part]]
    }
}

/// Sorts keys of a part. `scratch` is memory that many calls can share.
pub(crate) fn sort(keys: &mut Vec<u32>, scratch: &mut Vec<u32>, bits: u32) {
    if keys.len() <= SHORT {
        keys.sort_unstable();
        return;
    }
    scratch.resize(keys.len(), 0);
    let passes = bits.div_ceil(DIGIT_BITS);
    let digit_bits = bits.div_ceil(passes.max(1));
    for pass in 0..passes {
        let shift = CLASS_BITS + pass * digit_bits;
        let digit = |key: u32| (key >> shift) as usize % (1 << DIGIT_BITS) % (1 << digit_bits);
        let mut places = [0_u32; 1 << DIGIT_BITS];
        for &key in keys.iter() {
            places[digit(key)] += 1;
        }
        let mut before = 0;
        for place in &mut places[..1 << digit_bits] {
            (*place, before) = (before, before + *place);
        }
        for &key in keys.iter() {
            let place = &mut places[digit(key)];
            scratch[*place as usize] = key;
            *place += 1;
        }
        std::mem::swap(keys, scratch);
    }
}

/// The block of a key in this part.
pub(crate) fn entry(key: u32, part: usize, bits: u32) -> Entry {
    let class = Class::from_code((key % (1 << CLASS_BITS)) as u8).expect("the key of a class");
    Entry { unit: ((part as u32) << bits) + (key >> CLASS_BITS), class }
}

fn key(entry: Entry, bits: u32) -> u32 {
    let offset = entry.unit & ((1 << bits) - 1);
    offset << CLASS_BITS | u32::from(entry.class.code())
}

fn part_of(unit: u32, bits: u32) -> usize {
    (unit >> bits) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_and_width_are_sorted() {
        let mut scratch = Vec::new();
        for bits in [0, 1, 5, 10, 11, 12, 17, 22, 23] {
            for length in [0, 1, 2, SHORT, SHORT + 1, 20_000] {
                let mut random = fastrand::Rng::with_seed(u64::from(bits));
                let mut keys: Vec<u32> = (0..length)
                    .map(|_| random.u32(..1 << bits) << CLASS_BITS | random.u32(1..120))
                    .collect();
                let mut expected = keys.clone();
                sort(&mut keys, &mut scratch, bits);
                assert!(keys.is_sorted_by_key(|key| key >> CLASS_BITS), "{length} of {bits} bits");
                expected.sort_unstable();
                keys.sort_unstable();
                assert_eq!(keys, expected, "the same keys: {length} of {bits} bits");
            }
        }
    }

    #[test]
    fn entries_are_found_in_their_part() {
        for last in [1, 511, 512, 1_000_000, (1 << 31) - 1] {
            let bits = offset_bits(last);
            let mut random = fastrand::Rng::with_seed(u64::from(last));
            let mut expected: Vec<Entry> = (0..1_000)
                .map(|_| Entry {
                    unit: random.u32(1..=last),
                    class: Class::from_code(random.u8(1..120)).expect("a class"),
                })
                .collect();
            let mut lines = vec![Line::EMPTY];
            for &entry in &expected {
                if !lines.last_mut().is_some_and(|line| line.push(entry)) {
                    lines.push(Line::EMPTY);
                    assert!(lines.last_mut().is_some_and(|line| line.push(entry)));
                }
            }
            let distributed = Distributed::new(lines.iter(), bits);
            let mut found: Vec<Entry> = (0..PARTS)
                .flat_map(|part| {
                    distributed.part(part).iter().map(move |&key| entry(key, part, bits))
                })
                .collect();
            let parts = found.iter().map(|entry| part_of(entry.unit, bits));
            assert!(parts.is_sorted());
            found.sort_unstable_by_key(|entry| (entry.unit, entry.class));
            expected.sort_unstable_by_key(|entry| (entry.unit, entry.class));
            assert_eq!(found, expected, "up to {last}");
        }
    }
}
