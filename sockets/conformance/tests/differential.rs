// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every case behaves the same with accelerated sockets as without.
//!
//! `FREEPORT_CASES` selects the cases whose title contains it. `FREEPORT_LONG` repeats each case,
//! and races more often; `FREEPORT_SEED` is the first seed of random cases, and `FREEPORT_PRELOAD`
//! selects another library.

mod accelerating;
mod unsteady;

use accelerating::{library, monitor};
use freeport_sockets_conformance::{
    Case, Effort, How, Preload, compare, compile, exported, flag, rows,
};
use freeport_testbed::{is_long, note, seed, usual_or_long};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::thread;
use unsteady::unsteady_cases;

/// Number of cases that run concurrently. Most of them wait most of the time.
const WORKERS: usize = 6;
/// Number of repetitions of a differing case, with nothing beside it. If it differs again, it
/// fails.
const REPEATS: usize = 20;
/// Number of cases that may differ once without being listed in `unsteady-cases.txt`: races that
/// are lost once in some thousand runs under load. The end of the run lists them.
const UNNAMED_MAX: usize = 2;
/// Time limit in seconds, which only a hang reaches, even on a loaded machine.
const SECONDS: u64 = 120;

#[test]
fn cases_are_the_same_with_accelerated_sockets() {
    let wanted = std::env::var("FREEPORT_CASES").unwrap_or_default();
    let cases: Vec<&Case> = cases().iter().filter(|case| case.title().contains(&wanted)).collect();
    assert!(!cases.is_empty(), "no case has `{wanted}` in its title");
    let folder = tempfile::tempdir().unwrap();
    let preload = Preload { library: library().to_owned(), monitor: monitor(folder.path()) };
    let count = cases.len();
    let left = Mutex::new(cases);
    let known = known();
    let failures = Mutex::new(vec![]);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = next(&left) {
                    let Err(failure) = compare(case, Some(&preload), effort(case)) else {
                        continue;
                    };
                    let report = format!("--- {}\n{failure}\n", case.title());
                    if known.contains(case.subject().as_str()) {
                        println!("known: {report}");
                    } else {
                        failures.lock().unwrap().push((case, report));
                    }
                }
            });
        }
    });
    let is_same =
        |case: &Case| (0..REPEATS).all(|_| compare(case, Some(&preload), effort(case)).is_ok());
    let named = unsteady_cases();
    let (mut failed, mut unnamed) = (vec![], vec![]);
    for (case, report) in failures.into_inner().unwrap() {
        if !is_same(case) {
            failed.push(report);
            continue;
        }
        note(format_args!("differed once of {}: {}", REPEATS + 1, case.title()));
        println!("once, and then no more: {report}");
        if !named.contains(&*case.subject()) {
            unnamed.push(case.title());
        }
    }
    failed.sort();
    let differed = failed.len();
    assert!(failed.is_empty(), "{differed} of {count} cases differ:\n{}", failed.join("\n"));
    assert!(unnamed.len() <= UNNAMED_MAX, "more than {UNNAMED_MAX} differ once: {unnamed:?}");
}

fn next<'a>(left: &Mutex<Vec<&'a Case>>) -> Option<&'a Case> {
    left.lock().unwrap().pop()
}

/// Cases with a known difference, as `known-differences.txt` lists them.
fn known() -> BTreeSet<&'static str> {
    let lines = include_str!("../known-differences.txt").lines();
    lines.filter_map(|line| line.split_once(" | ")).map(|(case, _)| case).collect()
}

fn effort(case: &Case) -> Effort {
    let repeats = match (is_long(), case.has(flag::RACE)) {
        _ if case.program == "stress" => usual_or_long(4, 100),
        (false, _) => 1,
        (true, false) => 3,
        (true, true) => 20,
    };
    Effort { repeats, seconds: SECONDS, seed: seed() }
}

fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(compiled_cases)
}

fn compiled_cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    let programs = compile(&folder, &folder, &cache).unwrap();
    programs.iter().flat_map(|program| program.cases().unwrap()).collect()
}

fn table() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(folder.join("../../docs/reference/sockets-coverage.csv")).unwrap()
}

#[test]
fn every_row_of_the_table_names_a_case() {
    let cases: BTreeSet<String> = cases().iter().map(Case::subject).collect();
    let rows = rows(&table()).unwrap();
    let unknown: Vec<_> = rows.iter().filter(|row| !cases.contains(&row.case)).collect();
    assert!(unknown.is_empty(), "rows that name no case: {unknown:#?}");
    assert!(rows.iter().any(|row| row.how == How::Accelerated));
}

#[test]
fn every_known_difference_is_of_a_case() {
    let cases: BTreeSet<String> = cases().iter().map(Case::subject).collect();
    let gone: Vec<_> = known().into_iter().filter(|case| !cases.contains(*case)).collect();
    assert!(gone.is_empty(), "not cases: {gone:?}");
}

#[test]
fn every_unsteady_case_is_a_case() {
    let cases: BTreeSet<String> = cases().iter().map(Case::subject).collect();
    let entries = unsteady_cases().into_iter().filter(|entry| !entry.contains(": seed "));
    let gone: Vec<_> = entries.filter(|case| !cases.contains(*case)).collect();
    assert!(gone.is_empty(), "not cases: {gone:?}");
}

#[test]
fn every_replaced_call_is_in_the_table() {
    let bytes = fs::read(library()).unwrap();
    let known: BTreeSet<String> = rows(&table()).unwrap().into_iter().map(|row| row.call).collect();
    let exported = exported(&bytes).expect("the library is an ELF file");
    let own = |name: &String| name.starts_with("freeport_");
    let unknown: Vec<_> =
        exported.iter().filter(|name| !own(name) && !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "calls without a row: {unknown:?}");
}
