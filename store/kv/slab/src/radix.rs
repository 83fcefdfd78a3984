// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Radix sort of the addresses of free blocks (KV-Direct, slab allocator).
//!
//! The first pass, by the highest bits, distributes all blocks over [`PARTS`] parts of the address
//! range. Inside a part, address and class fit 32 bits, and a bitmap of its units fits a cache: the
//! second pass sets the bits of each block, and finds them in order, and joined. If a part has few
//! blocks, they are sorted by comparison. Threads share the first pass by lines, and the second by
//! parts, so that no two of them write to the same memory.

use crate::bitmap::Bitmap;
use crate::class::Class;
use crate::entry::{Entry, Line};
use crate::extent::Extent;

/// Parts of the address range.
pub(crate) const PARTS: usize = 512;
/// Bits of a key that hold the class. The rest is the offset in the part.
const CLASS_BITS: u32 = 7;
/// A part with fewer blocks than this share of the words in its bitmap has few.
const FEW_SHARE: usize = 8;

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
        for line in lines.clone() {
            line.units().iter().for_each(|&unit| places[part_of(unit, bits)] += 1);
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
    #[inline]
    pub fn part(&self, part: usize) -> &[u32] {
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        &self.keys[start..self.ends[part]]
    }
}

/// Memory that the second pass uses again for each part.
#[derive(Default)]
pub(crate) struct Scratch {
    bitmap: Bitmap,
    keys: Vec<u32>,
}

impl Scratch {
    /// Calls `found` with the blocks of a part, ascending, some of them joined.
    pub fn sort(
        &mut self,
        distributed: &[Distributed],
        part: usize,
        bits: u32,
        mut found: impl FnMut(Extent),
    ) {
        let keys = distributed.iter().map(|distributed| distributed.part(part));
        let blocks: usize = keys.clone().map(<[u32]>::len).sum();
        let (start, units) = ((part as u32) << bits, 1 << bits);
        if blocks < Bitmap::words(units) / FEW_SHARE {
            self.keys.clear();
            keys.for_each(|keys| self.keys.extend_from_slice(keys));
            self.keys.sort_unstable();
            for &key in &self.keys {
                let offset = key >> CLASS_BITS;
                let end = start + offset + class(key).units();
                found(Extent { start: start + offset, end });
            }
            return;
        }
        self.bitmap.reset(units);
        let mut beyond = None;
        for keys in keys {
            for &key in keys {
                let offset = (key >> CLASS_BITS) as usize;
                let end = offset + class(key).units() as usize;
                self.bitmap.set(offset..end.min(units));
                if end > units {
                    beyond = Some(end);
                }
            }
        }
        for run in self.bitmap.runs() {
            // Blocks are disjoint, so at most one leaves the part, and it belongs to the last run.
            let end = if run.end == units { beyond.unwrap_or(units) } else { run.end };
            found(Extent { start: start + run.start as u32, end: start + end as u32 });
        }
    }
}

fn class(key: u32) -> Class {
    Class::from_code((key % (1 << CLASS_BITS)) as u8).expect("the key of a class")
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

    /// Disjoint blocks up to `last`, with gaps of up to `gap` units, in random order.
    fn blocks(last: u32, gap: u32) -> Vec<Entry> {
        let mut random = fastrand::Rng::with_seed(u64::from(last ^ gap));
        let (mut blocks, mut unit) = (Vec::new(), random.u32(..=gap));
        while unit <= last {
            // A few blocks reach over several parts.
            let most = if random.u32(..50) == 0 { last / 100 + 1 } else { 12 };
            let class = Class::holding_units(random.u32(1..=most)).expect("a class");
            blocks.push(Entry { unit, class });
            unit += class.units() + random.u32(..=gap);
        }
        random.shuffle(&mut blocks);
        blocks
    }

    fn lines(blocks: &[Entry]) -> Vec<Line> {
        let line = |blocks: &[Entry]| {
            let mut line = Line::EMPTY;
            assert!(blocks.iter().all(|&entry| line.push(entry)));
            line
        };
        blocks.chunks(12).map(line).collect()
    }

    #[test]
    fn blocks_are_found_in_order() {
        let ranges = [(1, 0), (511, 1), (512, 3), (60_000, 0), (60_000, 7), (70_000, 2_000)];
        for (last, gap) in ranges.into_iter().chain([((1 << 31) - 1, 1 << 20)]) {
            let (blocks, bits) = (blocks(last, gap), offset_bits(last));
            let (one, two) = blocks.split_at(blocks.len() / 3);
            let distributed = [one, two].map(|blocks| Distributed::new(lines(blocks).iter(), bits));
            let (mut scratch, mut found) = (Scratch::default(), Vec::new());
            for part in 0..PARTS {
                scratch.sort(&distributed, part, bits, |extent| {
                    found.extend(extent.start..extent.end.min(extent.start + 5_000));
                    assert_eq!(part_of(extent.start, bits), part);
                });
            }
            assert!(found.is_sorted_by(|one, next| one < next), "up to {last}");
            let mut expected: Vec<u32> = Vec::new();
            for entry in blocks {
                expected.extend(entry.unit..entry.unit + entry.class.units().min(5_000));
            }
            expected.sort_unstable();
            if last < 100_000 {
                assert_eq!(found, expected, "up to {last}");
            }
        }
    }
}
