// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures the paths of the allocator, and asserts nothing about speed. The figures are notes: set
//! `FREEPORT_NOTES` to a file that receives them, and test with `--release`.

use freeport_kv_slab::{Class, Options, Slabs};
use freeport_testbed::note;
use std::hint::black_box;
use std::num::NonZero;
use std::time::Instant;

const UNITS: u32 = 1 << 26;

fn class(units: u32) -> Class {
    Class::holding_units(units).expect("a class")
}

fn slabs(sort_threads: usize) -> Slabs {
    let sort_threads = NonZero::new(sort_threads).expect("not zero");
    Slabs::new(1..UNITS, Options { sort_threads, has_background_merge: false, unit_bytes: 16 })
}

/// Runs `work` several times, and reports the shortest time of one of its `operations`.
fn report(name: &str, operations: usize, mut work: impl FnMut()) {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let best = (0..5).map(time).min().expect("a run");
    note(format!("{name}: {:.2} ns", best.as_nanos() as f64 / operations as f64));
}

#[test]
#[ignore = "long: measures only"]
fn pairs_of_allocate_and_free() {
    let mut slabs = slabs(1);
    let pairs = 10_000_000;
    let small = class(4);
    report("allocate and free, the same block", pairs, || {
        for _ in 0..pairs {
            let unit = slabs.allocate(black_box(small)).expect("room");
            slabs.free(black_box(unit), small);
        }
    });
    for depth in [16, 1_000, 100_000] {
        let mut held = vec![0; depth];
        report(&format!("allocate and free, {depth} at a time"), pairs / depth * depth, || {
            for _ in 0..pairs / depth {
                held.fill_with(|| slabs.allocate(black_box(small)).expect("room"));
                held.iter().for_each(|&unit| slabs.free(unit, small));
            }
        });
    }
    let mut random = fastrand::Rng::with_seed(1);
    let choices: Vec<(u16, Class)> =
        (0..1 << 16).map(|_| (random.u16(..4096), class(random.u32(1..33)))).collect();
    let mut held = vec![None; 4096];
    report("allocate and free, 16 classes at random", pairs, || {
        for &(at, class) in choices.iter().cycle().take(pairs) {
            let unit = slabs.allocate(class).expect("room");
            if let Some((unit, class)) = held[usize::from(at)].replace((unit, class)) {
                slabs.free(unit, class);
            }
        }
    });
}

#[test]
#[ignore = "long: measures only"]
fn carving() {
    let blocks = 8 << 20;
    report("allocate from unused memory", blocks, || {
        let mut slabs = slabs(1);
        for _ in 0..blocks {
            black_box(slabs.allocate(class(4)).expect("room"));
        }
    });
    let mut slabs = slabs(1);
    let held: Vec<u32> = std::iter::from_fn(|| slabs.allocate(class(16))).collect();
    held.iter().for_each(|&unit| slabs.free(unit, class(16)));
    let start = Instant::now();
    let mut count = 0;
    while slabs.allocate(class(8)).is_some() {
        count += 1;
    }
    let time = start.elapsed();
    let entries = slabs.statistics().events.split_entries;
    note(format!(
        "blocks from larger ones: {:.2} ns each, {:.2} ns for each of {entries} copied entries",
        time.as_nanos() as f64 / f64::from(count),
        time.as_nanos() as f64 / entries as f64,
    ));
}

#[test]
#[ignore = "long: measures only"]
fn merges() {
    for (bits, threads) in [(26, 1), (26, 2), (26, 4), (31, 1), (31, 2), (31, 4)] {
        let options = Options {
            sort_threads: NonZero::new(threads).expect("not zero"),
            has_background_merge: false,
            unit_bytes: 16,
        };
        // About 2^24 blocks fill the range.
        let block = class(1 << (bits - 24));
        let mut slabs = Slabs::new(1..(1 << bits) - 1, options);
        let mut held: Vec<u32> = std::iter::from_fn(|| slabs.allocate(block)).collect();
        fastrand::Rng::with_seed(2).shuffle(&mut held);
        held.iter().for_each(|&unit| slabs.free(unit, block));
        let start = Instant::now();
        slabs.allocate(class(3 << (bits - 2))).expect("one run");
        let (time, entries) = (start.elapsed(), slabs.statistics().events.merged_entries);
        let each = time.as_nanos() as f64 / entries as f64;
        let name = format!("{entries} entries of 2^{bits} units, {threads} threads");
        note(format!("merge of {name}: {each:.2} ns an entry"));
    }
}

/// The plainest merge, for comparison: a bitmap of the whole range, filled in random order.
#[test]
#[ignore = "long: measures only"]
fn merges_with_one_bitmap() {
    for units_bits in [26, 29, 31] {
        let mut random = fastrand::Rng::with_seed(4);
        let mut blocks: Vec<u32> = (0..1 << 24).map(|block| block << (units_bits - 24)).collect();
        random.shuffle(&mut blocks);
        let start = Instant::now();
        let mut words = vec![0_u64; 1 << (units_bits - 6)];
        for &unit in &blocks {
            words[unit as usize / 64] |= 0b1111 << (unit % 64);
        }
        let mut runs = 0;
        let mut previous = 0;
        for &word in &words {
            runs += (word & !(word << 1 | previous >> 63)).count_ones();
            previous = word;
        }
        let each = start.elapsed().as_nanos() as f64 / blocks.len() as f64;
        let name = format!("{} entries in one bitmap of 2^{units_bits} units", blocks.len());
        note(format!("merge of {name}, {runs} runs: {each:.2} ns an entry"));
    }
}

#[test]
#[ignore = "long: measures only"]
fn service_during_a_background_merge() {
    let mut slabs = Slabs::new(1..UNITS, Options::default());
    let spare: Vec<u32> =
        (0..UNITS / 64 / 64).map(|_| slabs.allocate(class(64)).expect("room")).collect();
    let mut held: Vec<u32> = std::iter::from_fn(|| slabs.allocate(class(4))).collect();
    fastrand::Rng::with_seed(3).shuffle(&mut held);
    held.drain(held.len() / 16..).for_each(|unit| slabs.free(unit, class(4)));
    spare.into_iter().for_each(|unit| slabs.free(unit, class(64)));
    // One step of the service takes and gives back 1000 small blocks.
    let mut blocks = vec![0; 1_000];
    let mut step = |slabs: &mut Slabs| {
        let start = Instant::now();
        blocks.fill_with(|| slabs.allocate(class(4)).expect("room"));
        blocks.iter().for_each(|&unit| slabs.free(unit, class(4)));
        start.elapsed().as_nanos() as f64 / 1e3
    };
    let median = |mut times: Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        (times[times.len() / 2], times[times.len() - 1])
    };
    let (before, slowest) = median((0..10_000).map(|_| step(&mut slabs)).collect());
    let start = Instant::now();
    black_box(slabs.allocate(class(32)));
    let hand_over = start.elapsed();
    assert!(slabs.statistics().is_merging, "memory that can be split is short");
    let mut during = Vec::new();
    while slabs.statistics().is_merging {
        during.push(step(&mut slabs));
    }
    let (merge, steps) = (start.elapsed(), during.len());
    let (during, longest) = median(during);
    note(format!("entries handed over in {hand_over:?}, merged in the background in {merge:?}"));
    note(format!("allocate and free before it: {before:.2} ns, slowest step {slowest:.2} ns"));
    note(format!("in {steps} steps during it: {during:.2} ns, slowest step {longest:.2} ns"));
}
