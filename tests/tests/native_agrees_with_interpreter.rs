// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The back-end oracle: native code and the interpreter agree on generated programs.
//!
//! Programs in the ClickNP language are compiled, put side by side in batches, run as native code
//! on random packets and records in random pieces and with random room at the outputs, and replayed
//! from what that run recorded: every channel's history, all state and all counters must be equal.
//! `FREEPORT_SEED` picks other programs, `FREEPORT_LONG` a hundred times as many.

#[path = "../../compiler/native/tests/replay/mod.rs"]
mod replay;

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::analysis::LargeMemory;
use freeport_ir::{Bits, Direction, Item, Program, verify};
use freeport_tests::oracle::graphs::{self, RECORD_BYTES};
use freeport_tests::oracle::{batch, is_long, seed};
use replay::{Driver, Traffic};

const BATCH: u64 = 50;

/// The compiler's optimization takes most of the time, so most programs go without.
#[test]
fn generated_programs_run_natively_as_in_the_interpreter() {
    check_programs(seed(1), 15, 0);
}

/// What is undefined in the C that we write would show here.
#[test]
fn optimized_programs_run_natively_as_in_the_interpreter() {
    check_programs(seed(1_000_000), 5, 2);
}

fn check_programs(first: u64, batches: u64, optimization: u8) {
    let batches = if is_long() { 100 * batches } else { batches };
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let options =
        freeport_native::Options { optimization, sanitize: false, ..replay::options(cache.path()) };
    // In every second batch, whatever an item says the place of is asked for ahead.
    let any_memory = LargeMemory { all_bytes: 0, each_bytes: 0 };
    let asking = freeport_native::Options { large_memory: any_memory, ..options.clone() };
    let batches = (0..batches).map(|batch| first + batch * BATCH);
    let options = [&options, &asking].into_iter().cycle();
    let checked = batches.clone().zip(options).map(|(first, options)| check_batch(first, options));
    let fired: u64 = checked.sum();
    let programs = batches.count() as u64 * BATCH;
    assert!(fired > 20 * programs, "only {fired} firings: the programs do too little");
}

/// Runs one batch of programs; the firings that did something.
fn check_batch(first: u64, options: &freeport_native::Options) -> u64 {
    let program = batch::merge((first..first + BATCH).map(compile));
    verify(&program).unwrap_or_else(|errors| panic!("seed {first}: {errors:?}"));
    let image = replay::image(&program, options);
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
