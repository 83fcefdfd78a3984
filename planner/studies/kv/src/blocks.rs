// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Blocks of the host's memory for items. A block is never split or joined, so that the address of
//! an old item is always the begin of another item, and readers do not take a part of a value for
//! an item.

use std::collections::BTreeMap;

/// Smallest block in bytes.
const LEAST: u64 = 32;

/// The blocks of a range of addresses, by size classes of which four double the size.
#[derive(Debug)]
pub struct Blocks {
    next: u64,
    end: u64,
    free: BTreeMap<u64, Vec<u64>>,
}

/// Returns the size of the block for a number of bytes.
fn class(bytes: u64) -> u64 {
    let bytes = bytes.max(LEAST);
    // The power of two below, of which the size is a multiple of a quarter.
    let below = 1 << (bytes - 1).ilog2();
    bytes.next_multiple_of(below / 4)
}

impl Blocks {
    /// Creates the blocks of a range, of which all is free.
    pub fn new(range: std::ops::Range<u64>) -> Self {
        Self { next: range.start, end: range.end, free: BTreeMap::new() }
    }

    /// Takes a block for a number of bytes; none if there is no memory for it.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let size = class(bytes);
        if let Some(block) = self.free.get_mut(&size).and_then(Vec::pop) {
            return Some(block);
        }
        let block = self.next;
        let next = block.checked_add(size).filter(|next| *next <= self.end)?;
        self.next = next;
        Some(block)
    }

    /// Gives the block at an address back, which was taken for this number of bytes.
    pub fn give(&mut self, block: u64, bytes: u64) {
        self.free.entry(class(bytes)).or_default().push(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_a_quarter_at_most() {
        assert_eq!([1, 32, 33, 40, 41, 312, 320].map(class), [32, 32, 40, 40, 48, 320, 320]);
        for bytes in 32..5000 {
            let size = class(bytes);
            assert!(
                size >= bytes && size * 4 < bytes * 5 + 32 && size.is_multiple_of(8),
                "{bytes}"
            );
            assert_eq!(class(size), size);
        }
    }

    #[test]
    fn blocks_do_not_overlap_and_are_used_again() {
        let mut blocks = Blocks::new(64..64 + 1000);
        let mut taken = vec![];
        while let Some(block) = blocks.take(100) {
            assert!(block + 100 <= 64 + 1000 && block.is_multiple_of(8));
            assert!(taken.last().is_none_or(|last| last + 100 <= block));
            taken.push(block);
        }
        assert_eq!(taken.len(), 8);
        blocks.give(taken[3], 100);
        assert_eq!(blocks.take(108), Some(taken[3]), "the same class");
        assert_eq!(blocks.take(100), None);
    }
}
