// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The goldens of library elements are well formed, and each case can be joined into a program of
//! elements that the library has.

use freeport_clicknp::load;
use freeport_tests::golden::{Golden, run};
use freeport_tests::repository;
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

#[test]
fn every_golden_tests_the_element_beside_it() {
    let library = [repository().join("elements")];
    for path in files("test") {
        let text = std::fs::read_to_string(&path).unwrap();
        let golden = Golden::parse(&text).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
        let mut titles = BTreeSet::new();
        for case in &golden.cases {
            let place = format!("{}:{}", path.display(), case.line);
            assert!(titles.insert(&case.title), "{place}: the title is taken");
            let element = case.element.split('<').next().unwrap();
            assert_eq!(element, stem(&path), "{place}");
            let program = run::configuration(case).unwrap_or_else(|it| panic!("{place}: {it}"));
            let loaded = load::load_text(Path::new("case.cnp"), program, &library);
            let told: Vec<String> =
                loaded.diagnostics.iter().map(|it| it.render(&loaded.sources)).collect();
            assert!(told.is_empty(), "{place}:\n{}", told.join("\n"));
        }
    }
}

#[test]
fn every_library_file_and_example_loads() {
    let library = [repository().join("elements")];
    let mut paths = files("cnp");
    files_below(&repository().join("examples"), "cnp", &mut paths);
    for path in paths {
        let loaded = load::load_file(&path, &library);
        let told: Vec<String> =
            loaded.diagnostics.iter().map(|it| it.render(&loaded.sources)).collect();
        assert!(told.is_empty(), "{}:\n{}", path.display(), told.join("\n"));
    }
}
