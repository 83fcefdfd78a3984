// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When free blocks are merged (KV-Direct, slab allocator).
//!
//! Nothing is merged on a free. An allocation that finds no block, no unused memory and no larger
//! block merges everything that is free, and waits for that. Earlier, once the memory that can
//! still be split falls below 1/32 of the range, a second thread gets the smaller free blocks, and
//! allocation continues with what is left.
//!
//! A merge takes time in proportion to the free blocks, and may find nothing. The next one follows
//! only after 1/16 as many operations as it had entries, so that its cost for each operation is
//! bounded, also if memory stays exhausted.

use super::Slabs;
use crate::back::Stock;
use crate::class::Class;
use crate::merge;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// Memory is short if less than this share of the range can be split.
const SHORT_SHARE: u32 = 32;
/// A merge of this many entries pays for itself in one operation.
const ENTRIES_FOR_AN_OPERATION: u64 = 16;

/// Limits of merges in the background.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Merges of fewer entries take less than a millisecond, and wait until they are needed.
    few_entries: usize,
    /// Lines of each class that are not given to the second thread, so that frees and allocations
    /// of the class find entries meanwhile.
    kept_lines: usize,
    /// Number of collections before the one that takes the result.
    #[cfg(test)]
    collections_before: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            few_entries: 1 << 16,
            kept_lines: 64,
            #[cfg(test)]
            collections_before: 0,
        }
    }
}

/// The last merges of either kind.
#[derive(Clone, Copy, Default)]
pub(super) struct LastMerges {
    /// The last merge of all free blocks.
    complete: Option<Merge>,
    /// The last one of the second thread.
    early: Option<Merge>,
}

/// A merge, as far as it decides when another may follow.
#[derive(Clone, Copy)]
struct Merge {
    entries: u64,
    /// Number of allocations and frees before it.
    operations: u64,
}

impl Merge {
    /// Whether another merge may follow, after this number of operations in all.
    fn is_paid(self, operations: u64) -> bool {
        let since = operations - self.operations;
        since > 0 && since >= self.entries / ENTRIES_FOR_AN_OPERATION
    }
}

/// A thread that merges the entries it got.
///
/// Entries change hands twice, as whole stacks, whose memory is moved and not copied: to the thread
/// when it starts, and back when the allocator collects them. Each stack belongs to one thread at
/// any time; the thread first sends it, then sets a flag (data before the pointer). All that
/// the threads' timing decides is which operation collects the result.
pub(super) struct Keeper {
    merged: Receiver<Stock>,
    /// Asking the channel instead would cost a barrier in each exchange.
    is_done: Arc<AtomicBool>,
    #[cfg(test)]
    collections_before: u32,
}

impl Keeper {
    /// Starts a thread. Returns the entries if the system gives none.
    fn start(stock: Stock, last: u32, threads: usize) -> Result<Keeper, Stock> {
        let (give, given) = mpsc::sync_channel::<Stock>(1);
        let (finish, merged) = mpsc::sync_channel(1);
        let is_done = Arc::new(AtomicBool::new(false));
        let flag = is_done.clone();
        let work = move || {
            if let Ok(stock) = given.recv() {
                // The allocator may be dropped meanwhile: nothing is lost then.
                let _ = finish.send(merge::cut(&merge::runs(&stock, last, threads)));
                flag.store(true, Ordering::Release);
            }
        };
        match thread::Builder::new().name("slab-merge".into()).spawn(work) {
            Ok(_) => {
                give.send(stock).map_err(|error| error.0)?;
                Ok(Keeper {
                    merged,
                    is_done,
                    #[cfg(test)]
                    collections_before: 0,
                })
            }
            Err(_) => Err(stock),
        }
    }

    /// The result, if the thread has finished.
    fn collect(&mut self) -> Option<Stock> {
        #[cfg(test)]
        self.wait_if_chosen()?;
        if self.is_done.load(Ordering::Acquire) { self.merged.recv().ok() } else { None }
    }

    /// In tests of this file, the result comes at the collection that the test chose.
    #[cfg(test)]
    fn wait_if_chosen(&mut self) -> Option<()> {
        self.collections_before = self.collections_before.checked_sub(1)?;
        while self.collections_before == 0 && !self.is_done.load(Ordering::Acquire) {
            thread::yield_now();
        }
        (self.collections_before == 0).then_some(())
    }
}

impl Slabs {
    /// Takes the result of the second thread, if there is one.
    pub(super) fn collect_merged(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        if let Some(stock) = keeper.collect() {
            self.keeper = None;
            self.backs.add(stock);
        }
    }

    /// Merges because no block of the class is left. False if that cannot help.
    pub(super) fn make_room(&mut self, class: Class) -> bool {
        if self.free_units() < u64::from(class.units()) {
            return false;
        }
        if let Some(keeper) = self.keeper.take() {
            let merged = keeper.merged.recv().expect("merging does not panic");
            self.backs.add(merged);
            return true;
        }
        let is_paid = self.last_merges.complete.is_none_or(|last| last.is_paid(self.operations()));
        if is_paid {
            self.merge_all();
        }
        is_paid
    }

    /// Gives the free blocks below the class to a second thread, if memory is short and they can
    /// change that.
    pub(super) fn merge_early(&mut self, class: Class) {
        let short = u64::from(self.units / SHORT_SHARE);
        let is_possible = self.options.has_background_merge && self.keeper.is_none();
        if !is_possible || u64::from(self.unused.units()) >= short {
            return;
        }
        let (LastMerges { complete, early }, operations) = (self.last_merges, self.operations());
        if !complete.into_iter().chain(early).all(|last| last.is_paid(operations)) {
            return;
        }
        let units = |class: Class| self.stacked(class) as u64 * u64::from(class.units());
        let larger: u64 = Class::all().filter(|&other| other > class).map(units).sum();
        let smaller = || Class::all().take_while(|&other| other < class);
        let entries: usize = smaller().map(|class| self.backs.of(class).len()).sum();
        let mergeable: u64 = smaller().map(units).sum();
        if larger >= short || mergeable < short || entries < self.limits.few_entries {
            return;
        }
        let mut given = Stock::default();
        for class in smaller() {
            *given.of_mut(class) = self.backs.of_mut(class).take_below(self.limits.kept_lines);
        }
        let entries = given.len() as u64;
        self.last_merges.early = Some(Merge { entries, operations });
        match Keeper::start(given, self.unused.end, self.options.sort_threads.get()) {
            Ok(keeper) => {
                #[cfg(test)]
                let keeper =
                    Keeper { collections_before: self.limits.collections_before, ..keeper };
                self.keeper = Some(keeper);
                self.events.background_merges += 1;
                self.events.merged_entries += entries;
            }
            Err(given) => self.backs.add(given),
        }
    }

    /// Joins all free blocks, and makes a run before the unused units one of these.
    fn merge_all(&mut self) {
        for class in Class::all() {
            let front = &mut self.fronts[usize::from(class.code())];
            while let Some(entry) = front.pop() {
                self.backs.push(entry);
            }
            self.backs.push_cut(std::mem::take(&mut front.extent));
        }
        let entries = self.backs.len() as u64;
        self.last_merges.complete = Some(Merge { entries, operations: self.operations() });
        self.events.merges += 1;
        self.events.merged_entries += entries;
        let mut runs = merge::runs(&self.backs, self.unused.end, self.options.sort_threads.get());
        if let Some(last) = runs.pop_if(|run| run.end == self.unused.start) {
            self.unused.start = last.start;
        }
        self.backs = merge::cut(&runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use fastrand::Rng;

    const UNITS: u32 = 1 << 11;

    /// Blocks in use, and the units that they occupy.
    #[derive(Default)]
    struct Model {
        blocks: Vec<(u32, Class)>,
        used: Vec<bool>,
    }

    impl Model {
        fn mark(&mut self, unit: u32, class: Class, is_used: bool) {
            for unit in unit..unit + class.units() {
                let was_used = std::mem::replace(&mut self.used[unit as usize], is_used);
                assert_ne!(was_used, is_used, "unit {unit}");
            }
        }

        fn allocate(&mut self, slabs: &mut Slabs, units: u32) {
            let class = Class::holding_units(units).expect("a class");
            if let Some(unit) = slabs.allocate(class) {
                self.mark(unit, class, true);
                self.blocks.push((unit, class));
            }
        }

        fn free(&mut self, slabs: &mut Slabs, at: usize) {
            let (unit, class) = self.blocks.swap_remove(at);
            self.mark(unit, class, false);
            slabs.free(unit, class);
        }
    }

    /// Operations on a small range, in which merges in the background are frequent. Returns the
    /// number of these merges.
    fn operations(seed: u64, collections_before: u32) -> u64 {
        let mut slabs = Slabs::new(0..UNITS, Options::default());
        slabs.limits = Limits { few_entries: 20, kept_lines: 1, collections_before };
        let mut model = Model { used: vec![false; UNITS as usize], ..Model::default() };
        let mut random = Rng::with_seed(seed);
        for round in 0..6 {
            for _ in 0..UNITS / 2 {
                model.allocate(&mut slabs, random.u32(1..4));
            }
            for _ in 0..model.blocks.len() * 3 / 4 {
                let at = random.usize(..model.blocks.len());
                model.free(&mut slabs, at);
            }
            for _ in 0..30 {
                model.allocate(&mut slabs, random.u32(4..8 << round));
                model.allocate(&mut slabs, random.u32(1..4));
            }
        }
        while let Some(last) = model.blocks.len().checked_sub(1) {
            model.free(&mut slabs, last);
        }
        model.allocate(&mut slabs, 1792);
        assert_eq!(model.blocks.len(), 1, "the largest class that fits");
        slabs.events.background_merges
    }

    #[test]
    fn no_entry_is_lost_or_doubled_wherever_the_result_of_the_second_thread_is_collected() {
        let mut merges = 0;
        for (seed, before) in (1..4).flat_map(|seed| (1..40).map(move |before| (seed, before))) {
            let result = std::panic::catch_unwind(|| operations(seed, before));
            merges += result.unwrap_or_else(|_| panic!("seed {seed}, collection {before}"));
        }
        assert!(merges > 250, "{merges} merges in the background");
    }

    #[test]
    fn an_allocation_that_cannot_succeed_does_not_wait() {
        let mut slabs = Slabs::new(1..UNITS, Options::default());
        let (finish, merged) = mpsc::sync_channel(1);
        let is_done = Arc::default();
        slabs.keeper = Some(Keeper { merged, is_done, collections_before: 0 });
        let class = Class::holding_units(UNITS).expect("a class");
        assert_eq!(slabs.allocate(class), None);
        assert!(slabs.keeper.is_some(), "the result is still to come");
        finish.send(Stock::default()).expect("a receiver");
        let class = Class::holding_units(UNITS / 2).expect("a class");
        assert_eq!(slabs.allocate(class), Some(1));
        assert_eq!(slabs.allocate(class), None);
    }

    #[test]
    fn an_allocator_can_move_to_another_thread() {
        fn moves<T: Send>(_: &T) {}
        moves(&Slabs::new(0..UNITS, Options::default()));
    }
}
