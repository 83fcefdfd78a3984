// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A trace of all operations shows that merges are lazy: one happens only if the class that
//! allocates has no block, no larger block can be split, and no memory is unused.

use fastrand::Rng;
use freeport_kv_slab::{Class, Options, Slabs, Statistics};

fn class(units: u32) -> Class {
    Class::holding_units(units).expect("a class")
}

fn inline() -> Options {
    Options { has_background_merge: false, ..Options::default() }
}

/// Allocates, and checks that a merge was the last resort. Returns whether one happened.
fn allocate(slabs: &mut Slabs, class: Class) -> (Option<u32>, bool) {
    let before = slabs.statistics();
    let unit = slabs.allocate(class);
    let has_merged = slabs.statistics().events.merges > before.events.merges;
    if has_merged {
        assert!(before.unused_units < class.units(), "{} units unused", before.unused_units);
        for other in &before.classes {
            let is_smaller = other.class < class;
            assert!(is_smaller || other.free == 0, "{} of {:?}", other.free, other.class);
            assert!(other.open_units < class.units(), "{:?} has a block open", other.class);
        }
    }
    (unit, has_merged)
}

fn free(slabs: &mut Slabs, unit: u32, class: Class) {
    let merges = |statistics: Statistics| (statistics.events, statistics.unused_units);
    let (before, unused) = merges(slabs.statistics());
    slabs.free(unit, class);
    let (after, still_unused) = merges(slabs.statistics());
    assert_eq!((before.merges, unused), (after.merges, still_unused), "freeing never merges");
}

#[test]
fn a_merge_is_the_last_resort() {
    let (mut random, mut merges) = (Rng::with_seed(4), 0);
    let mut slabs = Slabs::new(1..20_000, inline());
    let mut held = Vec::new();
    for step in 0..60_000 {
        // Sizes shift from small to large and back.
        let shift = (step / 3_000) % 8;
        if random.u32(..100) < 52 {
            let class = class(random.u32(1..4 << shift));
            let (unit, has_merged) = allocate(&mut slabs, class);
            held.extend(unit.map(|unit| (unit, class)));
            merges += u32::from(has_merged);
        } else if !held.is_empty() {
            let (unit, class) = held.swap_remove(random.usize(..held.len()));
            free(&mut slabs, unit, class);
        }
    }
    assert!(merges > 5, "{merges} merges");
}

#[test]
fn a_shift_from_small_to_large_blocks_merges_once() {
    let mut slabs = Slabs::new(1..1 << 18, inline());
    let held: Vec<u32> = std::iter::from_fn(|| slabs.allocate(class(2))).collect();
    held.into_iter().for_each(|unit| slabs.free(unit, class(2)));
    let mut large = Vec::new();
    while let (Some(unit), _) = allocate(&mut slabs, class(32)) {
        large.push(unit);
    }
    // The last allocation, which failed, is the second to merge: blocks were carved since.
    let events = slabs.statistics().events;
    assert!(events.merges <= 2, "{} merges", events.merges);
    assert!(large.len() >= (1 << 18) / 32 - 2, "{} large blocks", large.len());
}

#[test]
fn large_blocks_of_one_size_reuse_each_other_without_merges() {
    let huge = class((512 << 20) / 16 + 256);
    let mut slabs = Slabs::new(1..(1 << 31) - 1, inline());
    let held: Vec<u32> = std::iter::from_fn(|| slabs.allocate(huge)).collect();
    assert!(held.len() >= 48, "{} blocks", held.len());
    let merges = slabs.statistics().events.merges;
    for _ in 0..3 {
        held.iter().for_each(|&unit| slabs.free(unit, huge));
        let mut again: Vec<u32> = held.iter().filter_map(|_| slabs.allocate(huge)).collect();
        again.sort_unstable();
        assert_eq!(again, held);
    }
    assert_eq!(slabs.statistics().events.merges, merges);
}
