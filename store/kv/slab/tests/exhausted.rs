// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Exhausted memory: allocations fail and change nothing, and cost little.

use crate::shadow::Shadow;
use fastrand::Rng;
use freeport_kv_slab::{Class, Options, Slabs};

fn class(units: u32) -> Class {
    Class::holding_units(units).expect("a class")
}

fn inline() -> Options {
    Options { has_background_merge: false, ..Options::default() }
}

#[test]
fn every_unit_can_be_used() {
    for units in [1, 2, 100, 256, 257, 5_000] {
        for start in [0, 1, 77] {
            let mut shadow = Shadow::new(start..start + units, inline());
            while shadow.allocate(class(3)) {}
            while shadow.allocate(class(1)) {}
            assert_eq!(shadow.slabs.free_bytes(), 0, "{units} units from {start}");
            assert_eq!(shadow.slabs.used_bytes(), 16 * u64::from(units - u32::from(start == 0)));
        }
    }
}

#[test]
fn a_range_without_units_gives_none() {
    for range in [0..0, 0..1, 5..5] {
        let mut slabs = Slabs::new(range, Options::default());
        assert_eq!(slabs.allocate(class(1)), None);
        assert_eq!(slabs.allocate_aligned(class(1), 8), None);
        assert_eq!((slabs.used_bytes(), slabs.free_bytes()), (0, 0));
    }
}

#[test]
fn failing_changes_nothing_that_others_can_see() {
    let mut shadow = Shadow::new(0..10_000, inline());
    let mut random = Rng::with_seed(1);
    while shadow.allocate(class(random.u32(1..40))) {}
    let before = shadow.slabs.statistics();
    for _ in 0..1_000 {
        for units in [64, 1_000, 5_000, 1 << 30] {
            assert!(!shadow.allocate(class(units)));
            assert!(!shadow.allocate_aligned(class(units), 4));
        }
    }
    let after = shadow.slabs.statistics();
    let handed_out = |statistics: &freeport_kv_slab::Statistics| -> Vec<u64> {
        statistics.classes.iter().map(|class| class.handed_out()).collect()
    };
    assert_eq!(handed_out(&before), handed_out(&after));
    assert!(after.events.merges <= before.events.merges + 1, "a merge that failed is not repeated");
    // The next block that is freed can be allocated again.
    shadow.free(0);
    let (free, _) = (shadow.slabs.free_bytes(), ());
    assert!(free > 0 && shadow.allocate(class(1)));
}

#[test]
fn merges_of_exhausted_memory_are_paid_by_operations() {
    let mut shadow = Shadow::new(0..1 << 16, inline());
    while shadow.allocate(class(1)) {}
    // Every second unit is free: no two are neighbours.
    shadow.blocks.sort_unstable_by_key(|&(unit, _)| unit);
    for at in (0..shadow.blocks.len()).rev().step_by(2) {
        let last = shadow.blocks.len() - 1;
        shadow.blocks.swap(at, last);
        shadow.free(last);
    }
    let mut random = Rng::with_seed(2);
    for _ in 0..20_000 {
        if random.bool() {
            shadow.allocate(class(64));
        } else if random.bool() {
            assert!(shadow.allocate(class(1)), "the half of the units that is free");
        } else {
            shadow.free(shadow.blocks.len() - 1);
        }
    }
    let statistics = shadow.slabs.statistics();
    let merged = statistics.events.merged_entries;
    assert!(statistics.events.merges > 2);
    assert!(merged <= 17 * statistics.operations(), "{merged} merged entries");
}

#[test]
#[should_panic(expected = "units have 31 bits")]
fn a_range_beyond_31_bits_is_refused() {
    Slabs::new(0..(1 << 31) + 1, Options::default());
}

#[test]
#[should_panic(expected = "units of 16, 32 or 64 bytes")]
fn units_of_other_sizes_are_refused() {
    Slabs::new(0..1, Options { unit_bytes: 24, ..Options::default() });
}
