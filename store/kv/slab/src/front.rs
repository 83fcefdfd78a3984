// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The small stack of a class, and its exchange with the large one (KV-Direct, slab allocator).
//!
//! The engine pops and pushes at the left end of the small one, [`Front`]. At its right end, it
//! exchanges lines of entries with the left end of the large one, [`Back`]. An exchange happens
//! when the front is full or empty, and leaves it half full, or fuller by a line than empty if the
//! next line is in another chunk. At least twelve operations of the class follow for each line that
//! was exchanged: 0.083 lines of 64 bytes in an operation (at most 0.1 in the publication).

use crate::back::Back;
use crate::class::Class;
use crate::entry::{Entry, LINE_ENTRIES, Line};
use crate::extent::Extent;

/// Lines that one exchange moves at most.
const EXCHANGED_LINES: usize = 2;
const EXCHANGED: usize = EXCHANGED_LINES * LINE_ENTRIES;
/// High watermark of the front, in entries. The low one is zero: the engine can wait for a copy.
const FRONT_ENTRIES: usize = 2 * EXCHANGED;

/// The small stack of a class, and what else its operations touch.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Front {
    units: [u32; FRONT_ENTRIES],
    classes: [Class; FRONT_ENTRIES],
    len: u32,
    /// Larger block that blocks of this class are carved from.
    pub extent: Extent,
    /// Number of blocks handed out so far.
    pub allocated: u64,
    /// Number of blocks taken back so far.
    pub freed: u64,
}

const _: () = assert!(size_of::<Front>() == 320);

impl Front {
    pub const EMPTY: Front = Front {
        units: [0; FRONT_ENTRIES],
        classes: [Class::SMALLEST; FRONT_ENTRIES],
        len: 0,
        extent: Extent { start: 0, end: 0 },
        allocated: 0,
        freed: 0,
    };

    /// Removes the last entry if its block is of this class.
    #[inline]
    pub fn pop_of(&mut self, class: Class) -> Option<u32> {
        let at = (self.len as usize).checked_sub(1)?;
        if *self.classes.get(at)? != class {
            return None;
        }
        self.len = at as u32;
        Some(self.units[at])
    }

    /// Removes the last entry.
    pub fn pop(&mut self) -> Option<Entry> {
        let at = (self.len as usize).checked_sub(1)?;
        self.len = at as u32;
        Some(Entry { unit: self.units[at], class: self.classes[at] })
    }

    /// Appends an entry, or returns false if the stack is full.
    #[inline]
    pub fn push(&mut self, entry: Entry) -> bool {
        let at = self.len as usize;
        let (Some(unit), Some(class)) = (self.units.get_mut(at), self.classes.get_mut(at)) else {
            return false;
        };
        (*unit, *class) = (entry.unit, entry.class);
        self.len += 1;
        true
    }

    /// Removes the newest entry of which `is_wanted` is true.
    pub fn pop_where(&mut self, is_wanted: impl Fn(Entry) -> bool) -> Option<Entry> {
        let entry = |at: usize| Entry { unit: self.units[at], class: self.classes[at] };
        let at = (0..self.len()).rev().find(|&at| is_wanted(entry(at)))?;
        let found = entry(at);
        let last = self.pop().expect("the entry that was found");
        (self.units[at], self.classes[at]) = (last.unit, last.class);
        Some(found)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Number of entries that can be pushed.
    pub fn room(&self) -> usize {
        FRONT_ENTRIES - self.len()
    }

    /// Number of blocks in use.
    pub fn handed_out(&self) -> u64 {
        self.allocated - self.freed
    }

    /// Moves the oldest half of a full front to the back. Returns the number of lines.
    pub fn spill(&mut self, back: &mut Back) -> usize {
        debug_assert_eq!(self.len(), FRONT_ENTRIES);
        let (units, classes) = (self.units.as_chunks().0, self.classes.as_chunks().0);
        for (&units, &classes) in units.iter().zip(classes).take(EXCHANGED_LINES) {
            back.push_line(Line::full(units, classes));
        }
        self.units.copy_within(EXCHANGED.., 0);
        self.classes.copy_within(EXCHANGED.., 0);
        self.len -= EXCHANGED as u32;
        EXCHANGED_LINES
    }

    /// Moves the newest lines of the back to an empty front. Returns the number of lines.
    pub fn refill(&mut self, back: &mut Back) -> usize {
        debug_assert_eq!(self.len, 0);
        back.take_lines(EXCHANGED_LINES, |line| {
            // Whole lines are copied, also the places without entries: the size is constant then.
            let at = self.len()..self.len() + LINE_ENTRIES;
            self.units[at.clone()].copy_from_slice(line.all_units());
            self.classes[at].copy_from_slice(line.all_classes());
            self.len += line.len() as u32;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: Class = Class::SMALLEST;

    fn entry(unit: u32) -> Entry {
        Entry { unit, class: CLASS }
    }

    #[test]
    fn the_pair_is_one_stack_whose_exchanges_keep_the_order() {
        let (mut front, mut back) = (Front::EMPTY, Back::default());
        let (mut lines, mut random) = (0, fastrand::Rng::with_seed(1));
        let mut model = Vec::new();
        for step in 1..20_000 {
            if random.usize(..1_000) < model.len() {
                if front.len() == 0 {
                    lines += front.refill(&mut back);
                }
                assert_eq!(front.pop_of(CLASS), model.pop(), "step {step}");
            } else {
                if !front.push(entry(step)) {
                    lines += front.spill(&mut back);
                    assert!(front.push(entry(step)));
                }
                model.push(step);
            }
            assert_eq!(front.len() + back.len(), model.len());
        }
        assert!(lines > 0 && lines * EXCHANGED <= 20_000 * EXCHANGED_LINES, "{lines} lines");
    }

    #[test]
    fn single_entries_and_lines_mix() {
        let (mut front, mut back) = (Front::EMPTY, Back::default());
        back.push(entry(1));
        (2..50).for_each(|unit| assert!(front.push(entry(unit))));
        assert_eq!(front.spill(&mut back), 2);
        back.push(entry(50));
        assert_eq!((front.len(), back.len()), (24, 26));
        let mut popped: Vec<u32> = std::iter::from_fn(|| back.pop()).map(|e| e.unit).collect();
        popped.sort_unstable();
        assert!(popped.into_iter().eq((1..26).chain([50])));
        assert_eq!((back.len(), back.chunks().count()), (0, 0));
    }

    #[test]
    fn a_block_of_another_class_is_not_popped_as_one_of_the_class() {
        let mut front = Front::EMPTY;
        let larger = Entry { unit: 8, class: Class::holding_units(2).expect("a class") };
        front.push(entry(4));
        front.push(larger);
        assert_eq!(front.pop_of(CLASS), None);
        assert_eq!(front.pop_where(|entry| entry.class == CLASS), Some(entry(4)));
        assert_eq!((front.pop(), front.len()), (Some(larger), 0));
    }
}
