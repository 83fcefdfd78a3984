// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Aligned blocks, such as chained buckets of 64 bytes in units of 16.

use crate::shadow::Shadow;
use fastrand::Rng;
use freeport_kv_slab::{Class, Options};

fn class(units: u32) -> Class {
    Class::holding_units(units).expect("a class")
}

fn inline() -> Options {
    Options { has_background_merge: false, ..Options::default() }
}

#[test]
fn aligned_blocks_among_others_waste_no_memory() {
    let mut shadow = Shadow::new(1..1 << 18, inline());
    let mut random = Rng::with_seed(1);
    for step in 0..20_000 {
        let is_bucket = step % 4 == 0;
        let class = class(if is_bucket { 4 } else { random.u32(1..12) });
        assert!(shadow.allocate_aligned(class, if is_bucket { 4 } else { 1 }));
    }
    let statistics = shadow.slabs.statistics();
    let touched = u64::from((1 << 18) - 1 - statistics.unused_units) * 16;
    let used = shadow.slabs.used_bytes();
    assert!(touched - used < 64 << 10, "{touched} bytes are touched for {used} in use");
}

#[test]
fn freed_aligned_blocks_are_found_again() {
    let mut shadow = Shadow::new(1..1 << 16, inline());
    let mut random = Rng::with_seed(2);
    for _ in 0..2_000 {
        assert!(shadow.allocate_aligned(class(4), 4));
        assert!(shadow.allocate(class(random.u32(3..6))));
    }
    let unused = shadow.slabs.statistics().unused_units;
    let is_bucket = |&(unit, class): &(u32, Class)| unit % 4 == 0 && class.units() == 4;
    for _ in 0..20_000 {
        let start = random.usize(..shadow.blocks.len());
        let at = (start..shadow.blocks.len()).find(|&at| is_bucket(&shadow.blocks[at]));
        if let Some(at) = at {
            shadow.free(at);
            assert!(shadow.allocate_aligned(class(4), 4));
        }
    }
    assert_eq!(shadow.slabs.statistics().unused_units, unused, "no new memory");
}

#[test]
fn aligned_blocks_are_cut_out_of_larger_ones() {
    for align_units in [2, 4, 8, 256] {
        let mut shadow = Shadow::new(1..1 + 10 * 3_000, inline());
        while shadow.allocate(class(10)) {}
        while shadow.allocate(class(1)) {}
        for _ in 0..shadow.blocks.len() / 2 {
            shadow.free(0);
        }
        // An aligned block is possible at every aligned unit that is free with the one after it.
        let mut possible = 0;
        let mut is_free = vec![true; 1 + 10 * 3_000];
        for &(unit, class) in &shadow.blocks {
            is_free[unit as usize..(unit + class.units()) as usize].fill(false);
        }
        for unit in (align_units..30_000).step_by(align_units as usize) {
            possible += u32::from(is_free[unit as usize] && is_free[unit as usize + 1]);
        }
        let mut found = 0;
        while shadow.allocate_aligned(class(2), align_units) {
            found += 1;
        }
        assert!(found >= possible * 9 / 10, "{found} of {possible} at {align_units} units");
    }
}

#[test]
fn alignments_larger_than_the_range_have_no_block() {
    let mut shadow = Shadow::new(1..1 << 10, inline());
    assert!(!shadow.allocate_aligned(class(1), 1 << 10));
    assert!(!shadow.allocate_aligned(class(1), 1 << 31));
    assert!(shadow.allocate_aligned(class(1), 1 << 9));
    assert!(!shadow.allocate_aligned(class(1), 1 << 9));
}
