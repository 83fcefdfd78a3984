// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Exact messages of the compiler for wrong programs: each `errors/<code>_<slug>.cnp` has the
//! expected text beside it in `.expect`. `BLESS=1` rewrites those files; review the differences.

use freeport_clicknp::lints::LINTS;
use freeport_clicknp::types::Type;
use freeport_clicknp::{Options, compile_file, compile_function, compile_functions_of_file};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_wrong_program_is_explained() {
    let folder = errors_folder();
    let mut wrong = vec![];
    for source in files_of(&folder, "cnp") {
        let golden = source.with_extension("expect");
        let rendered = explain(&source).replace(&format!("{}/", folder.display()), "");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&golden, &rendered).unwrap();
        }
        let code = source.file_name().unwrap().to_string_lossy()[..5].to_string();
        assert!(rendered.contains(&format!("[{code}]")), "{source:?} is not about {code}");
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if rendered != expected {
            wrong.push(format!("{}:\n{rendered}\nexpected:\n{expected}", source.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_has_a_golden() {
    let mut codes = BTreeSet::new();
    for file in files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "rs") {
        let text = fs::read_to_string(file).unwrap();
        codes.extend(codes_in(text.split("#[cfg(test)]").next().unwrap()));
    }
    let goldens = files_of(&errors_folder(), "expect");
    let shown: BTreeSet<String> =
        goldens.iter().flat_map(|file| brackets_in(&fs::read_to_string(file).unwrap())).collect();
    let missing: Vec<_> = codes.difference(&shown).collect();
    assert!(missing.is_empty(), "write tests/errors/<code>_<slug>.cnp for {missing:?}");
}

#[test]
fn every_warning_has_its_code_and_a_section_of_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/warnings.md");
    let page = fs::read_to_string(page).unwrap();
    for lint in LINTS {
        let (code, name) = (lint.code, lint.name);
        assert!(page.contains(&format!("\n## {code} {name}\n")), "no section of {code} {name}");
        assert!(page.contains(&format!("\n| {code} | {name} | ")), "no row of {code} {name}");
    }
    let sections = page.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(sections, LINTS.len(), "a section of no warning");
    let known: BTreeSet<_> = LINTS.iter().map(|lint| lint.code).collect();
    for file in files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "rs") {
        for code in codes_in(&fs::read_to_string(file).unwrap()) {
            assert!(code.starts_with('E') || known.contains(code.as_str()), "{code} is not listed");
        }
    }
}

/// Returns the messages for the program in a file, for the single function that its `// function:
/// name` line names, or for all its functions if it has a line `// functions`.
fn explain(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let alone = text.lines().find_map(|line| line.strip_prefix("// function: "));
    let options = Options::default();
    if let Some(name) = alone {
        return compile_function(&text, name, &options)
            .map_or_else(|failure| failure.render(), |_| String::new());
    }
    if text.lines().any(|line| line == "// functions") {
        return compile_functions_of_file(path, &[Type::uint(32)], &options)
            .map_or_else(|failure| failure.render(), |_| String::new());
    }
    match compile_file(path, &options) {
        Ok(compiled) => {
            let warnings = compiled.warnings.iter();
            warnings.map(|one| one.render(&compiled.sources)).collect::<Vec<_>>().join("\n")
        }
        Err(failure) => failure.render(),
    }
}

fn errors_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors")
}

fn files_of(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|own| own == extension)).collect();
    files.sort();
    files
}

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = files_of(folder, extension);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path, extension));
        }
    }
    files
}

/// Returns the codes in quotation marks in a text.
fn codes_in(text: &str) -> Vec<String> {
    let quoted = text.split('"');
    quoted.filter(|word| is_code(word)).map(str::to_string).collect()
}

/// Returns the codes in brackets in a text, as shown in messages.
fn brackets_in(text: &str) -> Vec<String> {
    text.split(['[', ']']).filter(|word| is_code(word)).map(str::to_string).collect()
}

fn is_code(word: &str) -> bool {
    let digits = word.strip_prefix(['E', 'W']);
    digits.is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit()))
}
