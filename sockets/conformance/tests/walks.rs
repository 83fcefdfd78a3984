// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Walks of two ends in lockstep have equal traces with accelerated sockets and without: all orders
//! of the calls that end a connection, random walks, and walks that differed once
//! (`kept-walks.txt`).
//!
//! `FREEPORT_SEED` is the first seed of random walks, `FREEPORT_WALKS` their number, and
//! `FREEPORT_LONG` runs many more. `FREEPORT_WALK` is a walk to run instead; both its traces are
//! printed.

mod accelerating;

use freeport_sockets_conformance::walks::{Difference, Walk, Walker, all_orders, random_walk};
use freeport_sockets_conformance::{Preload, compile_folder, difference};
use freeport_testbed::{number, seed, usual_or_long};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Number of walk programs that run concurrently, with two processes each.
const WORKERS: usize = 2;
/// Number of walks per run of the program.
const BATCH: usize = 250;
/// Maximum number of differences that are printed.
const SHOWN: usize = 10;

#[test]
fn all_orders_of_ends_are_the_same() {
    let depth = usual_or_long(4, 5) as usize;
    let mut walks = all_orders("tcp", depth);
    walks.extend(all_orders("unix", depth));
    compare(&walks);
}

#[test]
fn random_walks_are_the_same() {
    let count = number("FREEPORT_WALKS").unwrap_or(usual_or_long(5000, 100_000));
    let first = seed();
    let walks: Vec<Walk> = (first..first + count).map(random_walk).collect();
    compare(&walks);
}

#[test]
fn walks_that_differed_once_do_not_any_more() {
    let text = include_str!("../kept-walks.txt");
    let walks: Vec<Walk> = text.lines().filter_map(Walk::parse).collect();
    assert!(!walks.is_empty());
    compare(&walks);
}

/// Runs a given walk: for the analysis of a difference.
#[test]
fn a_walk_that_is_given() {
    let given = std::env::var("FREEPORT_WALK");
    let walk = Walk::parse(given.as_deref().unwrap_or("tcp A.wr B.wr")).expect("no walk");
    let folder = tempfile::tempdir().unwrap();
    let walker = walker(folder.path());
    let trace = |is_accelerated| {
        let (traces, _) = walker.run(std::slice::from_ref(&walk), is_accelerated, 0).unwrap();
        traces.concat().join("\n")
    };
    let (plain, accelerated) = (trace(false), trace(true));
    println!("{}", difference(&plain, &accelerated).unwrap_or(plain));
}

/// Compares walks in batches, and fails with the reduced form of those that differ.
fn compare(walks: &[Walk]) {
    let folder = tempfile::tempdir().unwrap();
    let walker = walker(folder.path());
    let batches: Vec<&[Walk]> = walks.chunks(BATCH).collect();
    let (next, upgraded, unsteady) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let found = Mutex::new(vec![]);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = walker.judge(batch).unwrap();
                    upgraded.fetch_add(verdict.upgraded, Ordering::Relaxed);
                    unsteady.fetch_add(verdict.unsteady, Ordering::Relaxed);
                    found.lock().unwrap().extend(verdict.differences);
                }
            });
        }
    });
    let (upgraded, unsteady) = (upgraded.into_inner(), unsteady.into_inner());
    let found = found.into_inner().unwrap();
    println!("{} walks, {upgraded} ends upgraded, {unsteady} unsteady", walks.len());
    let (count, shown) = (found.len(), found.into_iter().take(SHOWN));
    let reports: Vec<String> = shown.map(|it| report(&walker.shrink(it).unwrap())).collect();
    assert!(reports.is_empty(), "{count} walks differ:\n{}", reports.join("\n"));
    assert!(upgraded > walks.len(), "hardly anything was upgraded, which proves nothing");
    assert!(unsteady * 20 <= walks.len(), "too many walks differ now and then");
}

fn report(found: &Difference) -> String {
    let [plain, accelerated] = &found.lines;
    format!("--- FREEPORT_WALK=\"{}\"\n- {plain}\n+ {accelerated}", found.walk)
}

fn walker(folder: &Path) -> Walker {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    let program = compile_folder(&root.join("walks"), &root.join("programs"), &cache).unwrap();
    let preload = Preload {
        library: accelerating::library().to_owned(),
        monitor: accelerating::monitor(folder),
    };
    Walker { executable: program.executable, preload, folder: folder.to_owned() }
}
