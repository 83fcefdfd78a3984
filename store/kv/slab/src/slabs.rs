// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The allocator: its fast paths, and its accounts. `slabs/supply.rs` has the paths of an
//! allocation that finds no block in the front of its class, `slabs/merging.rs` the last of them.

mod merging;
mod supply;

use crate::back::Stock;
use crate::class::Class;
use crate::entry::Entry;
use crate::extent::Extent;
use crate::front::Front;
use crate::statistics::{ClassStatistics, Events, Statistics};
use merging::{Keeper, LastMerges, Limits};
use std::num::NonZero;
use std::ops::Range;

/// Fronts, one for each seven-bit code, so that a masked code needs no check of bounds.
const FRONTS: usize = 128;

/// Unused memory is opened in pieces of this size, which start at multiples of it if they can.
/// Blocks of a class are then neighbours, and powers of two are aligned.
const PIECE_BYTES: u32 = 4096;

/// Settings of an allocator.
#[derive(Copy, Clone, Debug)]
pub struct Options {
    /// Size of a unit: 16, 32 or 64.
    pub unit_bytes: u32,
    /// Whether a second thread merges free blocks before memory is exhausted. Otherwise, the
    /// allocation that needs a merge does it.
    pub has_background_merge: bool,
    /// Threads that sort the free blocks of a large merge.
    pub sort_threads: NonZero<usize>,
}

impl Default for Options {
    /// Units of 16 bytes, and merges in the background by one thread.
    fn default() -> Options {
        Options { unit_bytes: 16, has_background_merge: true, sort_threads: NonZero::<usize>::MIN }
    }
}

/// Allocator of blocks in a range of units.
///
/// It belongs to one thread at a time, and takes no locks. Its own stacks take 40 KiB, up to 32 KiB
/// for each class in use, and 5 1/3 bytes for each free block (less than 8 if lines are not full).
pub struct Slabs {
    fronts: Box<[Front; FRONTS]>,
    backs: Stock,
    /// Units that no block has used yet. Blocks are carved from their start.
    unused: Extent,
    /// Size of the whole range.
    units: u32,
    piece_units: u32,
    options: Options,
    events: Events,
    /// The merge in the background.
    keeper: Option<Keeper>,
    last_merges: LastMerges,
    limits: Limits,
}

impl Slabs {
    /// Allocator over the units of this range, all of which are free. Unit 0 is never handed out.
    ///
    /// # Panics
    /// If the range ends after unit 2^31, or `unit_bytes` is not 16, 32 or 64.
    pub fn new(range_of_units: Range<u32>, options: Options) -> Slabs {
        assert!(range_of_units.end <= 1 << 31, "units have 31 bits");
        assert!(matches!(options.unit_bytes, 16 | 32 | 64), "units of 16, 32 or 64 bytes");
        let (start, end) = (range_of_units.start.max(1), range_of_units.end);
        let unused = Extent { start: start.min(end), end };
        let fronts = vec![Front::EMPTY; FRONTS].into_boxed_slice();
        Slabs {
            fronts: fronts.try_into().unwrap_or_else(|_| unreachable!("the number of fronts")),
            backs: Stock::default(),
            unused,
            units: unused.units(),
            piece_units: PIECE_BYTES / options.unit_bytes,
            options,
            events: Events::default(),
            keeper: None,
            last_merges: LastMerges::default(),
            limits: Limits::default(),
        }
    }

    /// Hands out a block, and returns its first unit.
    ///
    /// Returns `None` if memory is exhausted; no block has changed then. A merge has been
    /// tried, unless the last one was too recent: after a merge of `n` free blocks, `n / 16`
    /// operations pass before the next. A call can wait for a merge, which takes about 10 ns for
    /// each free block, but only if its class has no block and no larger one is free.
    #[inline]
    pub fn allocate(&mut self, class: Class) -> Option<u32> {
        let front = self.front(class);
        let unit = match front.pop_of(class) {
            Some(unit) => unit,
            None => self.supply(class)?,
        };
        self.front(class).allocated += 1;
        Some(unit)
    }

    /// Hands out a block whose first unit is a multiple of `align_units`, a power of two.
    ///
    /// Returns `None` if memory is short. A free run of `class.units() + align_units - 1` units,
    /// rounded up to a class, is found; a shorter one that happens to lie well may be missed.
    pub fn allocate_aligned(&mut self, class: Class, align_units: u32) -> Option<u32> {
        debug_assert!(align_units.is_power_of_two(), "an alignment of {align_units} units");
        let mask = align_units - 1;
        let is_wanted = |entry: Entry| entry.class == class && entry.unit & mask == 0;
        let unit = match self.front(class).pop_where(is_wanted) {
            Some(entry) => entry.unit,
            None => self.supply_aligned(class, mask)?,
        };
        self.front(class).allocated += 1;
        Some(unit)
    }

    /// Takes a block back, which [`Slabs::allocate`] or [`Slabs::allocate_aligned`] has handed out
    /// with this class, and no call has taken back since. Any other block corrupts the accounts.
    ///
    /// The block may be written and discarded until the next allocation. Its owner can thus give
    /// the pages of a large block back to the system with [`Region::discard`](crate::Region).
    #[inline]
    pub fn free(&mut self, unit: u32, class: Class) {
        debug_assert!(unit > 0 && unit < 1 << 31, "unit {unit} of a block");
        let front = self.front(class);
        debug_assert!(front.handed_out() > 0, "no block of {class:?} is in use");
        front.freed += 1;
        if !front.push(Entry { unit, class }) {
            self.spill(Entry { unit, class });
        }
    }

    /// Bytes of all blocks in use.
    pub fn used_bytes(&self) -> u64 {
        self.used_units() * u64::from(self.options.unit_bytes)
    }

    /// Bytes of the range that are in no block in use.
    pub fn free_bytes(&self) -> u64 {
        self.free_units() * u64::from(self.options.unit_bytes)
    }

    /// State of all classes, and counts of events. Takes about a microsecond.
    pub fn statistics(&self) -> Statistics {
        let state = |class: Class| {
            let front = &self.fronts[usize::from(class.code())];
            ClassStatistics {
                class,
                free: (front.len() + self.backs.of(class).len()) as u64,
                open_units: front.extent.units(),
                allocated: front.allocated,
                freed: front.freed,
            }
        };
        Statistics {
            classes: Class::all().map(state).collect(),
            unused_units: self.unused.units(),
            is_merging: self.keeper.is_some(),
            events: self.events,
        }
    }

    #[inline]
    fn front(&mut self, class: Class) -> &mut Front {
        &mut self.fronts[usize::from(class.code()) % FRONTS]
    }

    fn used_units(&self) -> u64 {
        let used = |class: Class| {
            let front = &self.fronts[usize::from(class.code())];
            front.handed_out() * u64::from(class.units())
        };
        Class::all().map(used).sum()
    }

    fn free_units(&self) -> u64 {
        u64::from(self.units) - self.used_units()
    }

    /// Number of allocations and frees.
    fn operations(&self) -> u64 {
        self.fronts.iter().map(|front| front.allocated + front.freed).sum()
    }
}
