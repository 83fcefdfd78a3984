// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The large stack of a class, of any length.
//!
//! Lines are in chunks, and a chunk never moves. A single growing array would be copied when it is
//! full, and the free that fills it would take milliseconds.

use crate::class::Class;
use crate::entry::{Entry, Line};
use crate::extent::Extent;

/// Lines in a chunk of 16 KiB.
const CHUNK_LINES: usize = 256;

/// The large stack of a class.
#[derive(Default)]
pub(crate) struct Back {
    /// No chunk is empty, and no line in them. Only the newest line has room, and lines that
    /// `push_line` and `add` put others on.
    chunks: Vec<Vec<Line>>,
    /// An empty chunk, so that a stack at the edge of a chunk does not allocate.
    spare: Option<Vec<Line>>,
    entries: usize,
}

impl Back {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// The lines, in slices.
    pub fn chunks(&self) -> impl Iterator<Item = &[Line]> + Clone {
        self.chunks.iter().map(Vec::as_slice)
    }

    /// Appends an entry.
    pub fn push(&mut self, entry: Entry) {
        let newest = self.chunks.last_mut().and_then(|chunk| chunk.last_mut());
        if newest.is_some_and(|line| line.push(entry)) {
            self.entries += 1;
            return;
        }
        let mut line = Line::EMPTY;
        line.push(entry);
        self.push_line(line);
    }

    /// Appends a line that is not empty.
    pub fn push_line(&mut self, line: Line) {
        self.entries += line.len();
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < chunk.capacity() => chunk.push(line),
            _ => {
                let spare = self.spare.take();
                let mut chunk = spare.unwrap_or_else(|| Vec::with_capacity(CHUNK_LINES));
                chunk.push(line);
                self.chunks.push(chunk);
            }
        }
    }

    /// Removes the last entry.
    pub fn pop(&mut self) -> Option<Entry> {
        let chunk = self.chunks.last_mut()?;
        let line = chunk.last_mut()?;
        let entry = line.pop();
        if line.len() == 0 {
            chunk.pop();
            self.drop_if_empty();
        }
        self.entries -= 1;
        debug_assert!(entry.is_some(), "lines of a stack are not empty");
        entry
    }

    /// Removes up to `lines` of the newest lines, at least one unless the stack is empty. Calls
    /// `take` with each, the oldest first. Returns their number.
    pub fn take_lines(&mut self, lines: usize, take: impl FnMut(&Line)) -> usize {
        let Some(chunk) = self.chunks.last_mut() else { return 0 };
        let from = chunk.len().saturating_sub(lines);
        let taken = &chunk[from..];
        let count = taken.len();
        self.entries -= taken.iter().map(Line::len).sum::<usize>();
        taken.iter().for_each(take);
        chunk.truncate(from);
        self.drop_if_empty();
        count
    }

    /// Removes an entry of which `is_wanted` is true, among the newest `lines` lines. The newest
    /// entry of the stack takes its place, so that full lines stay full.
    pub fn pop_where(&mut self, lines: usize, is_wanted: impl Fn(Entry) -> bool) -> Option<Entry> {
        let chunks = self.chunks.iter().enumerate().rev();
        let places = chunks.flat_map(|(at, chunk)| (0..chunk.len()).rev().map(move |it| (at, it)));
        let (chunk, line, at) = places.take(lines).find_map(|(chunk, line)| {
            let at = self.chunks[chunk][line].entries().position(&is_wanted)?;
            Some((chunk, line, at))
        })?;
        let newest = self.pop()?;
        match self.chunks.get_mut(chunk).and_then(|chunk| chunk.get_mut(line)) {
            Some(line) if at < line.len() => Some(line.replace(at, newest)),
            _ => Some(newest),
        }
    }

    /// Adds the entries of another stack, in time proportional to the chunks of the smaller one.
    pub fn add(&mut self, mut other: Back) {
        if other.chunks.len() > self.chunks.len() {
            std::mem::swap(self, &mut other);
        }
        self.chunks.append(&mut other.chunks);
        self.entries += other.entries;
    }

    /// Removes all entries but the newest `kept` lines.
    pub fn take_below(&mut self, kept: usize) -> Back {
        let (mut lines, mut at) = (0, self.chunks.len());
        while at > 0 && lines < kept {
            at -= 1;
            lines += self.chunks[at].len();
        }
        let mut chunks = self.chunks.split_off(at);
        if lines > kept {
            // The oldest of the kept chunks is divided.
            let newest = chunks[0].split_off(lines - kept);
            self.chunks.push(std::mem::replace(&mut chunks[0], newest));
        }
        let entries = chunks.iter().flatten().map(Line::len).sum();
        let chunks = std::mem::replace(&mut self.chunks, chunks);
        let taken = Back { chunks, spare: None, entries: self.entries - entries };
        self.entries = entries;
        taken
    }

    /// Drops the newest chunk if it is empty, or keeps it as the spare one.
    fn drop_if_empty(&mut self) {
        if self.chunks.last().is_some_and(Vec::is_empty) {
            self.spare = self.chunks.pop();
        }
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
    use crate::entry::LINE_ENTRIES;

    const CHUNK: u32 = (CHUNK_LINES * LINE_ENTRIES) as u32;

    fn entry(unit: u32) -> Entry {
        Entry { unit, class: Class::SMALLEST }
    }

    fn stack(units: std::ops::Range<u32>) -> Back {
        let mut back = Back::default();
        units.for_each(|unit| back.push(entry(unit)));
        back
    }

    fn sorted(mut back: Back) -> Vec<u32> {
        let length = back.len();
        let mut units: Vec<u32> = std::iter::from_fn(|| back.pop()).map(|e| e.unit).collect();
        assert_eq!((units.len(), back.len(), back.chunks().count()), (length, 0, 0));
        units.sort_unstable();
        units
    }

    #[test]
    fn entries_return_in_reverse_order() {
        let mut back = stack(0..3 * CHUNK);
        assert_eq!((back.len() as u32, back.chunks().count()), (3 * CHUNK, 3));
        assert!((0..3 * CHUNK).rev().all(|unit| back.pop() == Some(entry(unit))));
        assert_eq!((back.pop(), back.chunks().count()), (None, 0));
    }

    #[test]
    fn lines_return_in_order_and_within_a_chunk() {
        let mut back = stack(0..CHUNK + 40);
        let mut taken = Vec::new();
        let mut take = |back: &mut Back| back.take_lines(3, |line| taken.extend(line.entries()));
        assert_eq!((take(&mut back), take(&mut back), take(&mut back)), (3, 1, 3));
        let expected = [CHUNK + 12..CHUNK + 40, CHUNK..CHUNK + 12, CHUNK - 36..CHUNK];
        assert!(taken.into_iter().eq(expected.into_iter().flatten().map(entry)));
        assert_eq!(back.len() as u32, CHUNK - 36);
        assert_eq!(Back::default().take_lines(3, |_| ()), 0);
    }

    #[test]
    fn stacks_are_divided_and_joined() {
        for (length, kept) in [(40, 2), (40, 4), (40, 9), (CHUNK + 20, 1), (3 * CHUNK, 300)] {
            let mut back = stack(0..length);
            let lines = length.div_ceil(LINE_ENTRIES as u32).min(kept);
            let below = back.take_below(kept as usize);
            assert_eq!(back.chunks().map(<[Line]>::len).sum::<usize>(), lines as usize);
            assert_eq!(below.len() + back.len(), length as usize);
            back.add(below);
            assert!(sorted(back).into_iter().eq(0..length), "{length}, {kept} kept");
        }
    }

    #[test]
    fn the_newest_entry_replaces_one_that_is_found() {
        let mut back = stack(0..CHUNK + 30);
        let is_wanted = |entry: Entry| entry.unit.is_multiple_of(CHUNK / 2);
        assert_eq!(back.pop_where(2, is_wanted), None);
        assert_eq!(back.pop_where(3, is_wanted), Some(entry(CHUNK)));
        assert_eq!(back.pop_where(CHUNK_LINES, is_wanted), Some(entry(CHUNK / 2)));
        assert_eq!(back.pop(), Some(entry(CHUNK + 27)));
        assert_eq!(back.pop_where(1, |found| found.unit == CHUNK + 26), Some(entry(CHUNK + 26)));
        let left = (0..CHUNK + 30).filter(|unit| {
            let removed = [CHUNK, CHUNK / 2, CHUNK + 27, CHUNK + 26];
            !removed.contains(unit)
        });
        assert!(sorted(back).into_iter().eq(left));
    }

    #[test]
    #[ignore = "long: measures only"]
    fn copying_speed() {
        let (mut one, mut two) = (stack(0..1 << 20), Back::default());
        let (mut copied, start) = (0, std::time::Instant::now());
        for _ in 0..20 {
            copied += one.len();
            while one.len() > 0 {
                one.take_lines(64, |line| two.push_line(*line));
            }
            std::mem::swap(&mut one, &mut two);
        }
        let each = start.elapsed().as_nanos() as f64 / copied as f64;
        freeport_testbed::note(format!("an entry that a split copies: {each:.2} ns"));
    }
}
