// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of the stacks, and lines of them.
//!
//! An entry has five bytes: the first unit of a free block, and the block's own class (KV-Direct
//! 5.3.2). Since it carries its class, it can be in the stack of a smaller one: a split copies
//! entries without cutting their blocks.

use crate::class::Class;

/// Entries in a line of 64 bytes. Twelve entries of five bytes take 60.
pub(crate) const LINE_ENTRIES: usize = 12;

/// A free block.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) struct Entry {
    pub unit: u32,
    pub class: Class,
}

impl Entry {
    /// Blocks for the units from `start` to before `end`, the largest that fit first. At most
    /// fifteen or so, since each takes four fifths or more of what remains.
    pub fn cut(start: u32, end: u32) -> impl Iterator<Item = Entry> {
        let mut unit = start;
        std::iter::from_fn(move || {
            let entry = Entry { unit, class: Class::fitting_in(end - unit)? };
            unit += entry.class.units();
            Some(entry)
        })
    }
}

/// Up to twelve entries, in the form in which the stacks exchange them.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line {
    units: [u32; LINE_ENTRIES],
    classes: [Class; LINE_ENTRIES],
    len: u8,
}

const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    pub const EMPTY: Line =
        Line { units: [0; LINE_ENTRIES], classes: [Class::SMALLEST; LINE_ENTRIES], len: 0 };

    /// A full line.
    pub fn full(units: [u32; LINE_ENTRIES], classes: [Class; LINE_ENTRIES]) -> Line {
        Line { units, classes, len: LINE_ENTRIES as u8 }
    }

    /// Appends an entry, or returns false if the line is full.
    pub fn push(&mut self, entry: Entry) -> bool {
        let at = self.len();
        if at == LINE_ENTRIES {
            return false;
        }
        (self.units[at], self.classes[at]) = (entry.unit, entry.class);
        self.len += 1;
        true
    }

    /// Removes the last entry.
    pub fn pop(&mut self) -> Option<Entry> {
        let at = self.len().checked_sub(1)?;
        self.len = at as u8;
        Some(Entry { unit: self.units[at], class: self.classes[at] })
    }

    /// Puts an entry in the place of the one at this position, and returns that.
    pub fn replace(&mut self, at: usize, entry: Entry) -> Entry {
        debug_assert!(at < self.len(), "the position of an entry");
        let unit = std::mem::replace(&mut self.units[at], entry.unit);
        let class = std::mem::replace(&mut self.classes[at], entry.class);
        Entry { unit, class }
    }

    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub fn units(&self) -> &[u32] {
        &self.units[..self.len()]
    }

    pub fn classes(&self) -> &[Class] {
        &self.classes[..self.len()]
    }

    /// Units of all places, also of those without an entry.
    pub fn all_units(&self) -> &[u32; LINE_ENTRIES] {
        &self.units
    }

    /// Classes of all places, also of those without an entry.
    pub fn all_classes(&self) -> &[Class; LINE_ENTRIES] {
        &self.classes
    }

    /// Entries in the order in which they were pushed.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let pairs = self.units().iter().zip(self.classes());
        pairs.map(|(&unit, &class)| Entry { unit, class })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_covers_a_range_with_few_blocks() {
        for end in (1..3_000).chain([(1 << 31) - 1, 1 << 31]) {
            let (mut unit, mut blocks) = (1, 0);
            for entry in Entry::cut(1, end) {
                assert_eq!(entry.unit, unit, "the block after the last one, before {end}");
                (unit, blocks) = (unit + entry.class.units(), blocks + 1);
            }
            assert_eq!(unit, end);
            assert!(blocks <= 15, "{blocks} blocks before {end}");
        }
    }

    #[test]
    fn a_line_returns_what_was_pushed() {
        let entry = |unit| Entry { unit, class: Class::fitting_in(unit).expect("not zero") };
        let mut line = Line::EMPTY;
        assert!((1..=12).all(|unit| line.push(entry(unit))));
        assert!(!line.push(entry(13)));
        assert!(line.entries().eq((1..=12).map(entry)));
        assert_eq!(line.pop(), Some(entry(12)));
        assert_eq!(line.replace(1, entry(20)), entry(2));
        assert_eq!(line.units(), [1, 20, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }
}
