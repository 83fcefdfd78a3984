// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where blocks come from if the front of their class has none: the back of the class, unused
//! memory, and larger blocks (KV-Direct, slab allocator).
//!
//! A larger block is not cut into entries. The class *opens* it, as its extent, and carves blocks
//! from the start of that when an allocation needs them, at most a line. If what remains is shorter
//! than a block, it becomes blocks of the largest classes that fit. This holds for every pair of
//! classes, also if one size is no multiple of the other.

use super::Slabs;
use crate::class::Class;
use crate::entry::{Entry, LINE_ENTRIES};
use crate::extent::Extent;

/// Up to this number of blocks in an entry, a split copies whole lines,
const FEW_BLOCKS: u32 = 2;
/// at most this number of them.
const SPLIT_LINES: usize = 64;
/// Lines of the back that are searched for an aligned block before memory is short.
const SEARCHED_LINES: usize = 8;

impl Slabs {
    /// A block for a class whose front has none. The caller counts it.
    #[cold]
    pub(super) fn supply(&mut self, class: Class) -> Option<u32> {
        self.collect_merged();
        loop {
            if let Some(unit) = self.take(class) {
                return Some(unit);
            }
            if !self.make_room(class) {
                return None;
            }
        }
    }

    /// As `supply`, of a block whose first unit is a multiple of `mask + 1`.
    #[cold]
    pub(super) fn supply_aligned(&mut self, class: Class, mask: u32) -> Option<u32> {
        self.collect_merged();
        let wide = Class::holding_units(class.units().checked_add(mask)?)?;
        if let Some(unit) = self.take_aligned(class, mask, wide, SEARCHED_LINES) {
            return Some(unit);
        }
        while self.make_room(class) {
            let found = self.take_aligned(class, mask, wide, usize::MAX);
            if let Some(unit) = found.or_else(|| self.take_from_narrow(class, mask, wide)) {
                return Some(unit);
            }
        }
        None
    }

    /// Takes back a block whose front is full.
    #[cold]
    pub(super) fn spill(&mut self, entry: Entry) {
        self.collect_merged();
        let front = &mut self.fronts[usize::from(entry.class.code())];
        let before = front.len();
        let lines = front.spill(self.backs.of_mut(entry.class));
        let moved = before - front.len();
        let has_room = front.push(entry);
        debug_assert!(has_room, "half of the front was moved");
        self.count_exchange(lines, moved);
    }

    /// A block of the class without a merge.
    fn take(&mut self, class: Class) -> Option<u32> {
        loop {
            let front = self.front(class);
            if let Some(unit) = front.pop_of(class) {
                return Some(unit);
            }
            if front.len() == 0 && self.refill(class) {
                continue;
            }
            // The newest entry, if there is one, is a larger block: it waits for the end of the
            // block that is open.
            if let Some(unit) = self.carve(class) {
                return Some(unit);
            }
            if let Some(larger) = self.front(class).pop() {
                self.open(class, larger.into());
                continue;
            }
            self.merge_early(class);
            if !(self.open_unused(class) || self.split(class) || self.share(class)) {
                return None;
            }
        }
    }

    /// Moves entries from the back of the class to its front, which is empty.
    fn refill(&mut self, class: Class) -> bool {
        let front = &mut self.fronts[usize::from(class.code())];
        let back = self.backs.of_mut(class);
        if back.len() == 0 {
            return false;
        }
        let lines = front.refill(back);
        let moved = front.len();
        self.count_exchange(lines, moved);
        true
    }

    /// Carves a block from what the class has open. A small block comes with a line of others, as
    /// entries of the front, so that the next allocations are fast.
    fn carve(&mut self, class: Class) -> Option<u32> {
        let (units, piece) = (class.units(), self.piece_units);
        let front = self.front(class);
        let unit = front.extent.carve(units)?;
        if units <= piece / LINE_ENTRIES as u32 {
            let most = front.room().min(LINE_ENTRIES - 1) as u32;
            let blocks = most.min(front.extent.units() / units);
            front.extent.start += blocks * units;
            // The front is a stack: its newest entry gets the lowest address.
            for block in (1..=blocks).rev() {
                let has_room = front.push(Entry { unit: unit + block * units, class });
                debug_assert!(has_room, "no more blocks than the front has room for");
            }
        }
        Some(unit)
    }

    /// Makes `extent` the memory that blocks of the class are carved from.
    fn open(&mut self, class: Class, extent: Extent) {
        let remaining = std::mem::replace(&mut self.front(class).extent, extent);
        self.backs.push_cut(remaining);
    }

    /// Opens unused memory for the class. False if there is too little.
    fn open_unused(&mut self, class: Class) -> bool {
        let (units, piece) = (class.units(), self.piece_units);
        let to_end_of_piece = piece - self.unused.start % piece;
        let wanted = match units {
            _ if units > piece / 4 => units,
            _ if units > to_end_of_piece => to_end_of_piece + piece,
            _ => to_end_of_piece,
        };
        let opened = wanted.min(self.unused.units()).max(units);
        let Some(start) = self.unused.carve(opened) else { return false };
        self.open(class, Extent { start, end: start + opened });
        true
    }

    /// Copies entries of a larger class to the back of this one. False if no larger class has any.
    ///
    /// Classes of at least twice the size come first: a closer one leaves much of its block as a
    /// remainder, and is more likely to be asked for again. If its entries hold few blocks each,
    /// whole lines are copied, up to an eighth of its stack.
    fn split(&mut self, class: Class) -> bool {
        let units = class.units();
        let larger = || Class::all().skip(usize::from(class.code()));
        let far = larger().filter(|larger| larger.units() / 2 >= units);
        let near = larger().take_while(|larger| larger.units() / 2 < units);
        let has_entries = |&larger: &Class| self.stacked(larger) > 0;
        let Some(larger) = far.chain(near).find(has_entries) else { return false };
        self.events.splits += 1;
        let blocks = larger.units() / units;
        let (from, into) = self.backs.two(larger, class);
        if blocks <= FEW_BLOCKS && from.len() > 0 {
            let lines = (from.len() / LINE_ENTRIES / 8).clamp(1, SPLIT_LINES);
            let before = from.len();
            from.take_lines(lines, |line| into.push_line(*line));
            self.events.split_entries += (before - from.len()) as u64;
            return true;
        }
        for _ in 0..(LINE_ENTRIES as u32).div_ceil(blocks) {
            let popped = self.backs.of_mut(larger).pop();
            let Some(entry) = popped.or_else(|| self.front(larger).pop()) else { break };
            self.backs.of_mut(class).push(entry);
            self.events.split_entries += 1;
        }
        true
    }

    /// Opens a part of what another class has open, up to half of it. False if none has enough.
    fn share(&mut self, class: Class) -> bool {
        let units = class.units();
        for other in Class::all() {
            let extent = &mut self.front(other).extent;
            let line = units.saturating_mul(LINE_ENTRIES as u32);
            let shared = (extent.units() / 2).min(line).max(units);
            if let Some(start) = extent.carve(shared) {
                self.open(class, Extent { start, end: start + shared });
                return true;
            }
        }
        false
    }

    /// A block of the class whose first unit is a multiple of `mask + 1`, without a merge. A block
    /// of the class `wide` always contains one.
    fn take_aligned(&mut self, class: Class, mask: u32, wide: Class, lines: usize) -> Option<u32> {
        let is_wanted = |entry: Entry| entry.class == class && entry.unit & mask == 0;
        if let Some(entry) = self.backs.of_mut(class).pop_where(lines, is_wanted) {
            return Some(entry.unit);
        }
        if let Some(unit) = self.carve_aligned(class, mask) {
            return Some(unit);
        }
        // Near the end of unused memory, opening a piece could divide the only run that is wide.
        let piece = self.piece_units;
        let has_pieces = class.units() <= piece / 4 && self.unused.units() >= 2 * piece;
        if has_pieces
            && mask < piece
            && self.open_unused(class)
            && let Some(unit) = self.carve_aligned(class, mask)
        {
            return Some(unit);
        }
        if let Some((before, unit)) = self.unused.carve_aligned(class.units(), mask) {
            self.backs.push_cut(before);
            return Some(unit);
        }
        let unit = self.take(wide)?;
        self.cut_aligned(Entry { unit, class: wide }, class, mask)
    }

    /// Carves an aligned block from what the class has open.
    fn carve_aligned(&mut self, class: Class, mask: u32) -> Option<u32> {
        let carved = self.front(class).extent.carve_aligned(class.units(), mask);
        let (before, unit) = carved?;
        self.backs.push_cut(before);
        Some(unit)
    }

    /// An aligned block from one that is not wide enough for every position, but happens to lie
    /// well. Searches all such blocks, so it follows a merge.
    fn take_from_narrow(&mut self, class: Class, mask: u32, wide: Class) -> Option<u32> {
        let narrow = Class::all().skip(usize::from(class.code()));
        for larger in narrow.take_while(|&larger| larger < wide) {
            let is_wanted =
                |entry: Entry| Extent::from(entry).carve_aligned(class.units(), mask).is_some();
            let found = self.backs.of_mut(larger).pop_where(usize::MAX, is_wanted);
            if let Some(block) = found.or_else(|| self.front(larger).pop_where(is_wanted)) {
                return self.cut_aligned(block, class, mask);
            }
        }
        None
    }

    /// Cuts an aligned block out of a larger one.
    fn cut_aligned(&mut self, block: Entry, class: Class, mask: u32) -> Option<u32> {
        let mut extent = Extent::from(block);
        let (before, unit) = extent.carve_aligned(class.units(), mask)?;
        self.backs.push_cut(before);
        self.backs.push_cut(extent);
        Some(unit)
    }

    /// Number of entries in the stacks of a class.
    pub(super) fn stacked(&self, class: Class) -> usize {
        self.fronts[usize::from(class.code())].len() + self.backs.of(class).len()
    }

    fn count_exchange(&mut self, lines: usize, entries: usize) {
        self.events.exchanges += 1;
        self.events.transfers += lines as u64;
        self.events.exchanged_entries += entries as u64;
    }
}
