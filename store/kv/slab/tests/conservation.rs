// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No block is handed out twice, and none is lost, under random operations of all classes with
//! exhausted memory and merges of both kinds.

use crate::shadow::Shadow;
use fastrand::Rng;
use freeport_kv_slab::{Class, Options};
use freeport_testbed::{seed, usual_or_long};
use std::num::NonZero;

/// Steps in which the operations change from mostly allocations to mostly frees, and back.
const PHASE_STEPS: usize = 4_000;

fn random_class(random: &mut Rng, units: u32) -> Class {
    // Small classes most of the time, and up to the whole range.
    let bound = 1 << random.u32(..=units.ilog2());
    Class::holding_units(random.u32(1..=bound)).expect("sizes in the range have a class")
}

fn random_operations(seed: u64, steps: usize) {
    let mut random = Rng::with_seed(seed);
    let start = random.u32(..1_000);
    let units = 1 << random.u32(6..18);
    let options = Options {
        unit_bytes: 16 << random.u32(..3),
        has_background_merge: random.bool(),
        sort_threads: NonZero::new(random.usize(1..4)).expect("not zero"),
    };
    let mut shadow = Shadow::new(start..start + units, options);
    for step in 0..steps {
        let of_ten = if (step / PHASE_STEPS).is_multiple_of(2) { 7 } else { 3 };
        if random.u32(..10) < of_ten {
            let class = random_class(&mut random, units / 2);
            let align_units = if random.u32(..8) == 0 { 1 << random.u32(..4) } else { 1 };
            allocate(&mut shadow, class, align_units);
        } else if !shadow.blocks.is_empty() {
            let at = random.usize(..shadow.blocks.len());
            shadow.free(at);
        }
    }
    shadow.free_all();
    let left = units - u32::from(start == 0);
    let most = Class::all().rev().find(|class| class.units() <= left).expect("a class");
    assert!(shadow.allocate(most), "all {left} units are one run again");
    let statistics = shadow.slabs.statistics();
    let in_use: u64 = statistics.classes.iter().map(|class| class.handed_out()).sum();
    assert_eq!(in_use, 1);
}

/// Allocates. If even a merge gave no block, no free run was long enough.
fn allocate(shadow: &mut Shadow, class: Class, align_units: u32) {
    let merges = |shadow: &Shadow| shadow.slabs.statistics().events.merges;
    let before = merges(shadow);
    if !shadow.allocate_aligned(class, align_units) && merges(shadow) > before {
        let sufficient = Class::holding_units(class.units() + align_units - 1).expect("a class");
        let longest = shadow.longest_run();
        assert!(longest < sufficient.units(), "{class:?} fits in a run of {longest} units");
    }
}

#[test]
fn random_operations_keep_every_unit() {
    let first = seed();
    for seed in first..first + usual_or_long(14, 400) {
        let result = std::panic::catch_unwind(|| random_operations(seed, 5 * PHASE_STEPS));
        assert!(result.is_ok(), "FREEPORT_SEED={seed}");
    }
}
