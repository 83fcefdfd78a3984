// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every case behaves the same with accelerated sockets as without.
//!
//! `FREEPORT_CASES` runs only the cases whose title contains it, `FREEPORT_LONG` repeats each, and
//! those that are races more often; `FREEPORT_SEED` is what those that do random things
//! begin with, and `FREEPORT_PRELOAD` is another library.

mod accelerating;

use accelerating::{library, monitor};
use freeport_sockets_conformance::{
    Case, Effort, How, Preload, compare, compile, exported, flag, rows,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::thread;

/// Cases that run at the same time. Most of them wait most of the time.
const WORKERS: usize = 6;
/// A case that differs is run again so often with nothing beside it. One that is the same then was
/// disturbed by others, or is a race that is seldom lost: it is told, and there may be few.
const REPEATS: usize = 3;
const UNSTEADY_MAX: usize = 5;

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
    let (unsteady, failures): (Vec<_>, Vec<_>) =
        failures.into_inner().unwrap().into_iter().partition(|(case, _)| is_same(case));
    let reports = |cases: Vec<(&Case, String)>| {
        let mut reports: Vec<String> = cases.into_iter().map(|(_, report)| report).collect();
        reports.sort();
        reports
    };
    let (unsteady, failures) = (reports(unsteady), reports(failures));
    let (differed, failed) = (unsteady.len(), failures.len());
    println!(
        "{differed} of {count} cases differed once, and then no more:\n{}",
        unsteady.join("\n")
    );
    assert!(differed <= UNSTEADY_MAX, "{differed} of {count} cases differ at times");
    assert!(failures.is_empty(), "{failed} of {count} cases fail:\n{}", failures.join("\n"));
}

fn next<'a>(left: &Mutex<Vec<&'a Case>>) -> Option<&'a Case> {
    left.lock().unwrap().pop()
}

/// Cases that are not yet as they should be, as `known-differences.txt` says.
fn known() -> BTreeSet<&'static str> {
    let lines = include_str!("../known-differences.txt").lines();
    lines.filter_map(|line| line.split_once(" | ")).map(|(case, _)| case).collect()
}

fn effort(case: &Case) -> Effort {
    let is_long = std::env::var_os("FREEPORT_LONG").is_some();
    let repeats = match (is_long, case.has(flag::RACE)) {
        _ if case.program == "stress" => {
            if is_long {
                100
            } else {
                4
            }
        }
        (false, _) => 1,
        (true, false) => 3,
        (true, true) => 20,
    };
    let seed = std::env::var("FREEPORT_SEED").ok().and_then(|text| text.parse().ok());
    Effort { repeats, seconds: 15, seed: seed.unwrap_or(1) }
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
    fs::read_to_string(folder.join("../../docs/sockets-coverage.csv")).unwrap()
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
fn every_replaced_call_is_in_the_table() {
    let bytes = fs::read(library()).unwrap();
    let known: BTreeSet<String> = rows(&table()).unwrap().into_iter().map(|row| row.call).collect();
    let exported = exported(&bytes).expect("the library is an ELF file");
    let own = |name: &String| name.starts_with("freeport_");
    let unknown: Vec<_> =
        exported.iter().filter(|name| !own(name) && !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "calls without a row: {unknown:?}");
}
