// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Golden tests of the passes: the first line of `passes/<pass>/<case>.ir` lists the passes to run;
//! the `.expect` file beside it contains their report and the resulting program. `BLESS=1` rewrites
//! the expectations.

use freeport_ir::passes::{self, PassSet};
use freeport_ir::{text, verify};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes")
}

fn cases() -> Vec<PathBuf> {
    let mut found = vec![];
    for directory in fs::read_dir(root()).expect("the goldens are there") {
        let directory = directory.expect("a directory entry").path();
        for file in fs::read_dir(directory).expect("a directory of cases") {
            let file = file.expect("a directory entry").path();
            found.extend((file.extension().is_some_and(|it| it == "ir")).then_some(file));
        }
    }
    found.sort();
    found
}

/// Parses `// passes: unroll, dead_code`, `// passes: inlining; every call`, or `// passes: all`.
fn set_of(source: &str) -> PassSet {
    let line = source.lines().next().unwrap_or_default();
    let flags = line.strip_prefix("// passes: ").expect("the first line names the passes");
    let (names, option) = flags.split_once("; ").unwrap_or((flags, ""));
    let mut set = match names {
        "all" => PassSet::default(),
        names => PassSet::only(&names.split(", ").collect::<Vec<_>>()).expect("names of passes"),
    };
    set.options.inline_every_call = option == "every call";
    set
}

#[test]
fn passes_give_what_is_expected() {
    let mut wrong = vec![];
    for case in cases() {
        let source = fs::read_to_string(&case).expect("a readable case");
        let name = case.display();
        let mut program = text::parse(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
        verify(&program).unwrap_or_else(|errors| panic!("{name}: {errors:#?}"));
        let report = passes::run(&mut program, &set_of(&source));
        let report: String =
            report.to_string().lines().map(|line| format!("// {line}\n")).collect();
        let got = format!("{report}{}", text::print(&program));
        let expectation = case.with_extension("expect");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expectation, &got).expect("the golden can be written");
        }
        let want = fs::read_to_string(&expectation).unwrap_or_default();
        if got != want {
            wrong.push(format!("{name}\n--- expected\n{want}\n--- got\n{got}"));
        }
        let again = text::parse(&got).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(verify(&again), Ok(()), "{name}");
    }
    assert!(wrong.is_empty(), "BLESS=1 accepts what follows\n{}", wrong.join("\n"));
}

#[test]
fn every_pass_has_a_golden() {
    for name in passes::NAMES {
        let directory = root().join(name);
        let own = cases().into_iter().filter(|case| case.parent() == Some(&directory));
        let own = own.filter(|case| {
            let source = fs::read_to_string(case).expect("a readable case");
            set_of(&source).contains(name)
        });
        assert!(own.count() > 0, "{name} has no golden that runs it");
    }
}

#[test]
fn the_page_lists_every_pass_in_its_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/passes.md");
    let page = fs::read_to_string(page).expect("the page is there");
    for name in passes::NAMES {
        assert!(page.contains(&format!("### `{name}`\n")), "{name} has no section");
    }
    let rows = passes::ORDER.iter().enumerate();
    let rows = rows.map(|(at, it)| format!("| {} | `{}` | {} |\n", at + 1, it.pass, it.reason));
    let rows: String = rows.collect();
    assert!(page.contains(&rows), "the order is\n{rows}");
}

#[test]
fn a_set_has_the_passes_it_names() {
    let only = PassSet::only(&["ssa", "unroll"]).expect("names of passes");
    assert!(only.contains("ssa") && only.contains("unroll") && !only.contains("promote"));
    let without = only.without("ssa").expect("a name of a pass");
    assert!(!without.contains("ssa") && without.contains("unroll"));
    assert!(!PassSet::default().contains("async_extraction"));
    assert!(passes::NAMES.iter().all(|name| PassSet::for_hardware().contains(name)));
    let unknown = PassSet::default().without("unrol").expect_err("no pass has that name");
    assert!(unknown.to_string().starts_with("there is no pass `unrol`"), "{unknown}");
}

#[test]
fn no_pass_changes_nothing() {
    let case = root().join("all/checksum.ir");
    let source = fs::read_to_string(case).expect("a readable case");
    let mut program = text::parse(&source).expect("a sound case");
    let before = program.clone();
    assert!(passes::run(&mut program, &PassSet::none()).steps.is_empty());
    assert_eq!(program, before);
}
