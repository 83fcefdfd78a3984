// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The back-end oracle: native code and the interpreter agree on generated programs.
//!
//! Programs in the ClickNP language are compiled, merged in batches, run as native code on random
//! packets and records in random pieces and with random room at the outputs, and replayed from the
//! recording of that run: every channel's history, all state and all counters must be equal.
//! `FREEPORT_SEED` selects other programs, `FREEPORT_PROGRAMS` sets their number, and
//! `FREEPORT_LONG` tests a hundred times as many and reports each batch.

use crate::replay::{self, Driver, Traffic};
use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::analysis::LargeMemory;
use freeport_ir::{Bits, Direction, Item, Program, verify};
use freeport_testbed::cache::Cache;
use freeport_testbed::is_long;
use freeport_tests::oracle::batch::merge;
use freeport_tests::oracle::graphs::{self, RECORD_BYTES};
use freeport_tests::oracle::{programs, seed};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{panic, thread};

const BATCH: u64 = 50;
/// Optimization takes the compiler seven times the rest, so only every fifteenth batch has it: an
/// odd interval, so that it is tested with and without prefetching.
const OPTIMIZED_EACH: u64 = 15;

#[test]
fn generated_programs_run_natively_as_in_the_interpreter() {
    let (first, batches) = (seed(1), programs(200).div_ceil(BATCH));
    let (next, fired) = (AtomicU64::new(0), AtomicU64::new(0));
    let wrong = Mutex::new(vec![]);
    let check_batches = || {
        loop {
            let batch = next.fetch_add(1, Relaxed);
            if batch >= batches {
                return;
            }
            let first = first + batch * BATCH;
            match panic::catch_unwind(|| check_batch(first)) {
                Ok(firings) => _ = fired.fetch_add(firings, Relaxed),
                Err(_) => wrong.lock().expect("nobody panics with it").push(first),
            }
            if is_long() {
                eprintln!("programs {first} to {}, batch {batch} of {batches}", first + BATCH - 1);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(check_batches);
        }
    });
    let wrong = wrong.into_inner().expect("nobody panics with it");
    assert!(wrong.is_empty(), "wrong: {BATCH} programs each from the seeds {wrong:?} on");
    let (fired, programs) = (fired.into_inner(), batches * BATCH);
    assert!(fired > 20 * programs, "only {fired} firings: the programs do too little");
}

/// Returns the options of a batch, which depend on its first seed, so that it can be reproduced.
/// Every second batch prefetches all memory whose address follows from an item. Undefined behaviour
/// in the generated C would show in the optimized batches.
fn options(batch: u64, cache: &Path) -> freeport_native::Options {
    let optimization = if batch.is_multiple_of(OPTIMIZED_EACH) { 2 } else { 0 };
    let quick = replay::options(cache);
    let options = freeport_native::Options { optimization, sanitize: false, ..quick };
    match batch % 2 {
        0 => options,
        _ => freeport_native::Options {
            large_memory: LargeMemory { all_bytes: 0, each_bytes: 0 },
            ..options
        },
    }
}

/// Runs one batch of programs; returns the number of firings that did something.
fn check_batch(first: u64) -> u64 {
    let cache = Cache::of("native");
    let options = options(first / BATCH, cache.path());
    let program = merge((first..first + BATCH).map(compile));
    verify(&program).unwrap_or_else(|errors| panic!("seed {first}: {errors:?}"));
    let image = replay::image(&program, &options);
    let asks = image.manifest.channels.iter().any(|channel| !channel.asked.is_empty());
    assert_eq!(asks, options.large_memory.all_bytes == 0, "seed {first}: state is small");
    let mut random = Rng::with_seed(first);
    let input = program.graph.endpoints.iter().map(|endpoint| match endpoint.direction {
        Direction::Into => traffic(&mut random, endpoint.item),
        Direction::OutOf => Traffic::default(),
    });
    let mut driver = Driver::new(&image, input.collect());
    driver.run_in_pieces(&mut random, 30);
    let (oracles, execution) = driver.graph.take_recording();
    driver.check_entered(&program, &execution);
    let out = replay::check(&program, oracles, &execution);
    assert_eq!(driver.out, out, "first seed {first}: what the host got is not what was sent");
    execution.counters.iter().map(|counters| counters.firings).sum()
}

fn compile(seed: u64) -> Program {
    let generated = graphs::generate(seed);
    match compile_text(format!("seed-{seed}.cnp"), &generated.text, &Options::default()) {
        Ok(compiled) => compiled.program,
        Err(failure) => panic!("seed {seed}:\n{}\n{}", failure.render(), generated.text),
    }
}

fn traffic(random: &mut Rng, item: Item) -> Traffic {
    let mut bytes = |count: usize| (0..count).map(|_| random.u8(..)).collect::<Vec<u8>>();
    let mut traffic = Traffic::default();
    for at in 0..40 {
        match item {
            Item::Bits(width) => {
                let bytes = bytes(RECORD_BYTES);
                traffic.records.push(Bits::from_le_bytes(width, &bytes));
            }
            _ => {
                let length = if at % 8 == 0 { 1 + at * 30 } else { 60 + at * 2 };
                traffic.packets.push(bytes(length));
            }
        }
    }
    traffic
}
