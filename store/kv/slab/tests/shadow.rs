// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An allocator with a shadow bitmap, which detects blocks that overlap or leave the range, and
//! accounts that differ from the blocks in use.

use freeport_kv_slab::{Class, Options, Slabs};
use std::ops::Range;

/// The allocator under test, and the blocks in use.
pub struct Shadow {
    pub slabs: Slabs,
    range: Range<u32>,
    unit_bytes: u64,
    /// A bit for each unit of the range.
    used: Vec<u64>,
    used_units: u64,
    pub blocks: Vec<(u32, Class)>,
}

impl Shadow {
    pub fn new(range: Range<u32>, options: Options) -> Shadow {
        Shadow {
            slabs: Slabs::new(range.clone(), options),
            used: vec![0; range.end as usize / 64 + 1],
            range,
            unit_bytes: u64::from(options.unit_bytes),
            used_units: 0,
            blocks: Vec::new(),
        }
    }

    /// Allocates, and returns whether there was memory.
    pub fn allocate(&mut self, class: Class) -> bool {
        self.allocate_aligned(class, 1)
    }

    /// Allocates at a multiple of `align_units`, and returns whether there was memory.
    pub fn allocate_aligned(&mut self, class: Class, align_units: u32) -> bool {
        let allocated = match align_units {
            1 => self.slabs.allocate(class),
            _ => self.slabs.allocate_aligned(class, align_units),
        };
        if let Some(unit) = allocated {
            assert_eq!(unit % align_units, 0, "the alignment of {unit}");
            assert!(unit > 0 && unit >= self.range.start, "{unit} is in the range");
            assert!(class.units() <= self.range.end - unit, "{class:?} at {unit} is in the range");
            self.mark(unit, class, true);
            self.blocks.push((unit, class));
        }
        self.check();
        allocated.is_some()
    }

    /// Frees the block at this position of `blocks`.
    pub fn free(&mut self, at: usize) {
        let (unit, class) = self.blocks.swap_remove(at);
        self.mark(unit, class, false);
        self.slabs.free(unit, class);
        self.check();
    }

    pub fn free_all(&mut self) {
        while !self.blocks.is_empty() {
            self.free(self.blocks.len() - 1);
        }
    }

    /// Length of the longest run of units that are not in use.
    pub fn longest_run(&self) -> u32 {
        let (mut longest, mut run) = (0, 0);
        let mut unit = self.range.start.max(1);
        while unit < self.range.end {
            let word = self.used[unit as usize / 64];
            if unit.is_multiple_of(64) && unit + 64 <= self.range.end && (word == 0 || word == !0) {
                run = if word == 0 { run + 64 } else { 0 };
                unit += 64;
            } else {
                run = if word >> (unit % 64) & 1 == 0 { run + 1 } else { 0 };
                unit += 1;
            }
            longest = longest.max(run);
        }
        longest
    }

    /// Marks units as used or free. They have to be the opposite before.
    fn mark(&mut self, unit: u32, class: Class, is_used: bool) {
        let end = unit + class.units();
        let mut at = unit;
        while at < end {
            let bits = (end - at).min(64 - at % 64);
            let mask = u64::MAX >> (64 - bits) << (at % 64);
            let word = &mut self.used[at as usize / 64];
            let expected = if is_used { 0 } else { mask };
            assert_eq!(*word & mask, expected, "{class:?} at {unit}: used {is_used}");
            *word ^= mask;
            at += bits;
        }
        let units = u64::from(class.units());
        self.used_units = if is_used { self.used_units + units } else { self.used_units - units };
    }

    fn check(&self) {
        let all = u64::from(self.range.end - self.range.start.max(1));
        assert_eq!(self.slabs.used_bytes(), self.used_units * self.unit_bytes);
        assert_eq!(self.slabs.free_bytes(), (all - self.used_units) * self.unit_bytes);
    }
}
