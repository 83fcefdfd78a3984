// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two stacks of a class (KV-Direct 5.3.2, figure of the slab allocator).
//!
//! The engine pops and pushes at the left end of the small one, [`Front`]. At its right end, it
//! exchanges lines of entries with the left end of the large one, [`Back`]. An exchange moves half
//! of the front, and happens when it is full or empty, so that at least 24 operations of the class
//! lie between two exchanges: two lines of 64 bytes in 24 operations are 0.083 lines in one (KV-31
//! allows 0.1).

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
        let from = back.lines.len().saturating_sub(EXCHANGED_LINES);
        for line in &back.lines[from..] {
            // Whole lines are copied, also the places without entries: the size is constant then.
            let at = self.len()..self.len() + LINE_ENTRIES;
            self.units[at.clone()].copy_from_slice(line.all_units());
            self.classes[at].copy_from_slice(line.all_classes());
            self.len += line.len() as u32;
        }
        let moved = back.lines.len() - from;
        back.lines.truncate(from);
        back.entries -= self.len();
        moved
    }
}

/// The large stack of a class.
#[derive(Default)]
pub(crate) struct Back {
    /// Only the last line, and lines below full ones that a front spilled, have room.
    lines: Vec<Line>,
    entries: usize,
}

impl Back {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Appends an entry.
    pub fn push(&mut self, entry: Entry) {
        self.entries += 1;
        if self.lines.last_mut().is_some_and(|line| line.push(entry)) {
            return;
        }
        let mut line = Line::EMPTY;
        line.push(entry);
        self.lines.push(line);
    }

    /// Removes the last entry.
    pub fn pop(&mut self) -> Option<Entry> {
        let line = self.lines.last_mut()?;
        let entry = line.pop();
        if line.len() == 0 {
            self.lines.pop();
        }
        self.entries -= 1;
        debug_assert!(entry.is_some(), "lines of a stack are not empty");
        entry
    }

    /// Removes an entry of which `is_wanted` is true, among the newest `lines` lines. The newest
    /// entry of the stack takes its place, so that full lines stay full.
    pub fn pop_where(&mut self, lines: usize, is_wanted: impl Fn(Entry) -> bool) -> Option<Entry> {
        let from = self.lines.len().saturating_sub(lines);
        let places = self.lines.iter().enumerate().skip(from).rev();
        let (line, at) = places
            .filter_map(|(line, entries)| Some((line, entries.entries().position(&is_wanted)?)))
            .next()?;
        let newest = self.pop()?;
        match self.lines.get_mut(line) {
            Some(line) if at < line.len() => Some(line.replace(at, newest)),
            _ => Some(newest),
        }
    }

    /// Adds the entries of another stack, in time proportional to the smaller one.
    pub fn add(&mut self, mut other: Back) {
        if other.lines.len() > self.lines.len() {
            std::mem::swap(self, &mut other);
        }
        self.lines.append(&mut other.lines);
        self.entries += other.entries;
    }

    /// Removes all entries but the newest `kept` lines.
    pub fn take_below(&mut self, kept: usize) -> Back {
        let lines = self.lines.split_off(self.lines.len().saturating_sub(kept));
        let entries = lines.iter().map(Line::len).sum();
        let taken = Back {
            lines: std::mem::replace(&mut self.lines, lines),
            entries: self.entries - entries,
        };
        self.entries = entries;
        taken
    }

    /// Moves the newest lines of another stack to this one. Returns the number of entries.
    pub fn take_lines(&mut self, other: &mut Back, lines: usize) -> usize {
        let from = other.lines.len().saturating_sub(lines);
        let moved = other.lines[from..].iter().map(Line::len).sum();
        self.lines.extend_from_slice(&other.lines[from..]);
        other.lines.truncate(from);
        self.entries += moved;
        other.entries -= moved;
        moved
    }

    fn push_line(&mut self, line: Line) {
        self.entries += line.len();
        self.lines.push(line);
    }
}

/// The large stacks of all classes.
pub(crate) struct Stock(Vec<Back>);

impl Default for Stock {
    fn default() -> Stock {
        Stock(std::iter::repeat_with(Back::default).take(Class::COUNT + 1).collect())
    }
}

impl Stock {
    /// The stack of this class.
    pub fn of(&self, class: Class) -> &Back {
        &self.0[usize::from(class.code())]
    }

    /// The stack of this class.
    pub fn of_mut(&mut self, class: Class) -> &mut Back {
        &mut self.0[usize::from(class.code())]
    }

    /// The stacks of two classes.
    pub fn two(&mut self, one: Class, other: Class) -> (&mut Back, &mut Back) {
        let indices = [one, other].map(|class| usize::from(class.code()));
        let [one, other] = self.0.get_disjoint_mut(indices).expect("two classes");
        (one, other)
    }

    /// Puts a free block into the stack of its own class.
    pub fn push(&mut self, entry: Entry) {
        self.of_mut(entry.class).push(entry);
    }

    /// Puts the units of an extent into the stacks of the largest classes that fit.
    pub fn push_cut(&mut self, extent: Extent) {
        Entry::cut(extent.start, extent.end).for_each(|entry| self.push(entry));
    }

    /// Adds the entries of other stacks to those of the same classes.
    pub fn add(&mut self, other: Stock) {
        for (stack, other) in self.0.iter_mut().zip(other.0) {
            stack.add(other);
        }
    }

    /// Number of entries in all stacks.
    pub fn len(&self) -> usize {
        self.0.iter().map(Back::len).sum()
    }

    /// Stacks of all classes, the smallest first.
    pub fn stacks(&self) -> &[Back] {
        &self.0
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
        assert_eq!((back.len(), back.lines().len()), (0, 0));
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

    #[test]
    fn stacks_are_divided_and_joined() {
        let mut back = Back::default();
        (0..40).for_each(|unit| back.push(entry(unit)));
        let below = back.take_below(2);
        assert_eq!((below.len(), back.len()), (24, 16));
        let is_wanted = |entry: Entry| entry.unit.is_multiple_of(16);
        assert_eq!(back.pop_where(1, is_wanted), None);
        assert_eq!(back.pop_where(2, is_wanted), Some(entry(32)));
        back.add(below);
        let mut units: Vec<u32> = std::iter::from_fn(|| back.pop()).map(|e| e.unit).collect();
        units.sort_unstable();
        assert!(units.into_iter().eq((0..40).filter(|&unit| unit != 32)));
    }

    #[test]
    #[ignore = "long: measures only"]
    fn copying_speed() {
        let (mut one, mut two) = (Back::default(), Back::default());
        (0..1 << 20).for_each(|unit| one.push(entry(unit)));
        let (mut copied, start) = (0, std::time::Instant::now());
        for _ in 0..20 {
            while one.len() > 0 {
                copied += two.take_lines(&mut one, 64);
            }
            std::mem::swap(&mut one, &mut two);
        }
        let each = start.elapsed().as_nanos() as f64 / copied as f64;
        freeport_testbed::note(format!("an entry that a split copies: {each:.2} ns"));
    }
}
