// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The goldens of library elements hold in the interpreter and as native code, for any division of
//! input and room, and with any pass disabled; and everything in ClickNP in the repository
//! compiles.

use freeport_clicknp::{Options, compile_file, compile_text};
use freeport_golden::native::Native;
use freeport_golden::run::Reference;
use freeport_golden::{Case, Golden, run};
use freeport_ir::passes::{self, PassSet};
use freeport_ir::{Program, verify};
use freeport_testbed::cache::Cache;
use freeport_testbed::usual_or_long;
use freeport_tests::{repository, side_by_side};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn files_below(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, extension, found);
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
}

fn files(extension: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    files_below(&repository().join("elements"), extension, &mut found);
    assert!(!found.is_empty(), "no .{extension} file in elements/");
    found
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap()
}

fn library() -> Options {
    Options { library: vec![repository().join("elements")] }
}

/// Returns each case of each golden with its location, and its program.
fn cases() -> Vec<(String, Case, Program)> {
    let mut found = vec![];
    for path in files("test") {
        let text = std::fs::read_to_string(&path).unwrap();
        let golden = Golden::parse(&text).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
        for case in golden.cases {
            let place = format!("{}:{}", path.display(), case.line);
            let text = run::configuration(&case).unwrap_or_else(|it| panic!("{place}: {it}"));
            let compiled = compile_text("case.cnp", &text, &library());
            let program = compiled.unwrap_or_else(|it| panic!("{place}:\n{it}")).program;
            assert_eq!(verify(&program), Ok(()), "{place}");
            found.push((place, case, program));
        }
    }
    found
}

fn seeds() -> u64 {
    usual_or_long(2, 100)
}

/// Fails with all failures at once.
fn none_fails(failures: &[String]) {
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_golden_tests_the_element_beside_it() {
    for path in files("test") {
        let text = std::fs::read_to_string(&path).unwrap();
        let golden = Golden::parse(&text).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
        let mut titles = BTreeSet::new();
        for case in &golden.cases {
            let place = format!("{}:{}", path.display(), case.line);
            assert!(titles.insert(&case.title), "{place}: the title is taken");
            assert_eq!(case.element.split('<').next().unwrap(), stem(&path), "{place}");
        }
    }
}

#[test]
fn every_golden_holds_in_the_interpreter() {
    let failures = side_by_side(&cases(), |_, (place, case, program)| {
        let fails = |seed| {
            let machine = Reference::new(program, seed);
            let done = machine.and_then(|mut machine| run::run_case(case, &mut machine));
            done.err().map(|error| format!("{place}, seed {seed}: {error}"))
        };
        (0..seeds()).filter_map(fails).collect::<Vec<_>>()
    });
    none_fails(&failures.concat());
}

/// As [`cases`], grouped by program, each program once.
fn programs() -> Vec<(Program, Vec<(String, Case)>)> {
    let mut found: Vec<(Program, Vec<(String, Case)>)> = vec![];
    for (place, case, program) in cases() {
        match found.iter_mut().find(|(known, _)| *known == program) {
            Some((_, cases)) => cases.push((place, case)),
            None => found.push((program, vec![(place, case)])),
        }
    }
    found
}

#[test]
fn every_golden_holds_whichever_pass_is_switched_off() {
    let failures = side_by_side(&programs(), |_, (program, cases)| without_passes(program, cases));
    none_fails(&failures.concat());
}

/// Returns the failures with each pass disabled in turn, and with none disabled.
fn without_passes(program: &Program, cases: &[(String, Case)]) -> Vec<String> {
    let all = PassSet::for_cpu();
    let names = passes::NAMES.into_iter().filter(|pass| all.contains(pass));
    let off = names.map(|pass| (pass, all.clone().without(pass).unwrap()));
    let sets: Vec<_> = [("none", all.clone())].into_iter().chain(off).collect();
    let mut failures = vec![];
    for (off, set) in &sets {
        let mut program = program.clone();
        let report = passes::run(&mut program, set);
        assert!(report.steps.iter().all(|(pass, _)| pass != off), "{off} has run");
        for (place, case) in cases {
            let machine = Reference::new(&program, 0);
            let done = machine.and_then(|mut machine| run::run_case(case, &mut machine));
            failures.extend(done.err().map(|error| format!("{place}, off: {off}: {error}")));
        }
    }
    failures
}

#[test]
fn every_golden_holds_as_native_code() {
    let cache = Cache::of("native");
    let options = freeport_native::Options {
        optimization: 1,
        cache: Some(cache.path().to_owned()),
        ..freeport_native::Options::default()
    };
    let failures = side_by_side(&programs(), |_, (program, cases)| {
        let image = freeport_native::build(program, &options);
        let image = image.unwrap_or_else(|error| panic!("{}: {error}", cases[0].0));
        let mut failures = vec![];
        for (place, case) in cases {
            for seed in 0..seeds() {
                let machine = Native::new(&image, seed);
                let done = machine.and_then(|mut machine| run::run_case(case, &mut machine));
                failures.extend(done.err().map(|error| format!("{place}, seed {seed}: {error}")));
            }
        }
        failures
    });
    none_fails(&failures.concat());
}

#[test]
fn every_library_file_and_example_compiles_without_warnings() {
    let mut paths = files("cnp");
    files_below(&repository().join("examples"), "cnp", &mut paths);
    for path in paths {
        let compiled =
            compile_file(&path, &library()).unwrap_or_else(|failure| panic!("{failure}"));
        let reported = compiled.warnings.iter().map(|it| it.render(&compiled.sources));
        let reported: Vec<String> = reported.collect();
        assert!(reported.is_empty(), "{}:\n{}", path.display(), reported.join("\n"));
        assert_eq!(verify(&compiled.program), Ok(()), "{}", path.display());
    }
}

#[test]
fn all_files_of_the_library_can_be_used_in_one_program() {
    let folder = repository().join("elements");
    let import = |path: &PathBuf| {
        let place = path.strip_prefix(&folder).expect("it is in the library");
        format!("import \"{}\"\n", place.display())
    };
    let text: String = files("cnp").iter().map(import).collect();
    compile_text("all.cnp", &text, &library()).unwrap_or_else(|failure| panic!("{failure}"));
}
