// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traffic between the stacks: exchanged lines, and entries that splits copy.

use fastrand::Rng;
use freeport_kv_slab::{Class, Options, Slabs};
use freeport_testbed::note;

fn class(units: u32) -> Class {
    Class::holding_units(units).expect("a class")
}

/// Lines of 64 bytes for an operation of `work`.
fn transfers(slabs: &mut Slabs, work: impl FnOnce(&mut Slabs)) -> f64 {
    let before = slabs.statistics();
    work(slabs);
    let after = slabs.statistics();
    let lines = after.events.transfers - before.events.transfers;
    lines as f64 / (after.operations() - before.operations()) as f64
}

#[test]
fn steady_churn_exchanges_less_than_a_tenth_of_a_line_in_an_operation() {
    let mut random = Rng::with_seed(1);
    let mut slabs = Slabs::new(1..1 << 22, Options::default());
    let mut held: Vec<(u32, Class)> = Vec::new();
    let churn = |slabs: &mut Slabs, random: &mut Rng, held: &mut Vec<(u32, Class)>, count| {
        for _ in 0..count {
            // Sizes of short keys and values; about 20000 blocks are in use.
            if held.len() < random.usize(..40_000) {
                let class = class(random.u32(2..33));
                held.push((slabs.allocate(class).expect("room"), class));
            } else {
                let (unit, class) = held.swap_remove(random.usize(..held.len()));
                slabs.free(unit, class);
            }
        }
    };
    churn(&mut slabs, &mut random, &mut held, 100_000);
    let steady = transfers(&mut slabs, |slabs| churn(slabs, &mut random, &mut held, 400_000));
    assert!(steady > 0.0 && steady < 0.1, "{steady} lines");
    note(format!("exchanged lines in an operation of steady churn: {steady:.4}"));
}

#[test]
fn the_worst_order_of_operations_exchanges_less_than_a_tenth_of_a_line() {
    let mut slabs = Slabs::new(1..1 << 20, Options::default());
    let mut held = Vec::new();
    let mut swing = |slabs: &mut Slabs, count: usize| {
        held.extend((0..count).map(|_| slabs.allocate(class(4)).expect("room")));
        held.drain(..).for_each(|unit| slabs.free(unit, class(4)));
    };
    swing(&mut slabs, 10_000);
    for count in [24, 25, 48, 49, 100, 10_000] {
        let lines = transfers(&mut slabs, |slabs| (0..50).for_each(|_| swing(slabs, count)));
        assert!(lines < 0.1, "{lines} lines if {count} blocks come and go");
    }
}

#[test]
fn stable_sizes_exchange_nothing() {
    let mut slabs = Slabs::new(1..1 << 20, Options::default());
    let sizes = [2, 3, 8, 20];
    let mut held: Vec<(u32, Class)> = Vec::new();
    for units in sizes.into_iter().cycle().take(4_000) {
        held.push((slabs.allocate(class(units)).expect("room"), class(units)));
    }
    let mut random = Rng::with_seed(3);
    let mut replace = |slabs: &mut Slabs, count| {
        for _ in 0..count {
            let at = random.usize(..held.len());
            let (unit, class) = held[at];
            slabs.free(unit, class);
            held[at].0 = slabs.allocate(class).expect("the block just freed");
        }
    };
    replace(&mut slabs, 1_000);
    let lines = transfers(&mut slabs, |slabs| replace(slabs, 100_000));
    assert_eq!(lines, 0.0);
    let events = slabs.statistics().events;
    assert_eq!((events.splits, events.merges, events.background_merges), (0, 0, 0));
}

#[test]
fn a_split_copies_entries_and_cuts_blocks_only_when_they_are_needed() {
    let large = class(4096);
    let count = 16;
    let mut slabs = Slabs::new(1..1 + count * large.units(), Options::default());
    let held: Vec<u32> = std::iter::from_fn(|| slabs.allocate(large)).collect();
    assert_eq!(held.len(), count as usize);
    held.into_iter().for_each(|unit| slabs.free(unit, large));
    let free = |slabs: &Slabs| slabs.statistics().classes.iter().map(|class| class.free).sum();
    let entries: u64 = free(&slabs);
    let mut allocated = 0;
    while slabs.allocate(class(1)).is_some() {
        allocated += 1;
        let now: u64 = free(&slabs);
        assert!(now <= entries + 12, "{now} entries: at most a line of blocks is cut early");
    }
    assert_eq!(allocated, count * large.units());
    let events = slabs.statistics().events;
    assert_eq!(events.split_entries, u64::from(count), "one copy for {} blocks", large.units());
    assert_eq!(events.merges, 0);
}

#[test]
fn a_split_among_close_classes_copies_lines() {
    let (large, small) = (class(16), class(8));
    let mut slabs = Slabs::new(256..256 + 16 * 3_000, Options::default());
    let held: Vec<u32> = std::iter::from_fn(|| slabs.allocate(large)).collect();
    held.iter().for_each(|&unit| slabs.free(unit, large));
    let blocks = std::iter::from_fn(|| slabs.allocate(small)).count();
    assert_eq!(blocks, 2 * held.len());
    let events = slabs.statistics().events;
    assert_eq!(events.split_entries, held.len() as u64, "each entry is copied once");
    assert!(events.splits * 10 < events.split_entries, "{} splits", events.splits);
}
