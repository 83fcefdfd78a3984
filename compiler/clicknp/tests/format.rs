// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The formatter: each `format/<case>.cnp` is formatted to the `.expect` beside it; `BLESS=1`
//! rewrites those files; review the differences. For any text, only white space changes, formatting
//! again changes nothing, and the program stays the same. A failure prints its seed;
//! `FREEPORT_SEED=<seed>` begins there, and `FREEPORT_LONG=1` runs longer.

use crate::format_texts::{files, respaced};
use fastrand::Rng;
use freeport_clicknp::format::{Unformatted, changes, format_text};
use freeport_clicknp::{Options, compile_text};
use freeport_testbed::{is_long, seed};
use std::fs;
use std::path::Path;

#[test]
fn each_case_becomes_what_is_expected() {
    let mut wrong = vec![];
    let cases = files(&own().join("tests/format"));
    assert!(cases.len() >= 6, "the cases are not where they were");
    for (path, text) in cases {
        let formatted = format(&path.display().to_string(), &text);
        let golden = path.with_extension("expect");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&golden, &formatted).unwrap();
        }
        if formatted != fs::read_to_string(&golden).unwrap_or_default() {
            wrong.push(format!("{}:\n{formatted}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn programs_mean_the_same_and_stay_as_they_are_another_time() {
    let mut compiled = 0;
    for (name, text) in programs() {
        let formatted = format(&name, &text);
        compiled += usize::from(is_same_program(&name, &text, &formatted));
    }
    assert!(compiled > 10, "only {compiled} programs compile");
}

#[test]
fn white_space_and_comments_at_random_places_change_nothing_but_themselves() {
    let programs = programs();
    let first = seed();
    let tries = if is_long() { 20_000 } else { 400 };
    let mut compiled = 0;
    for seed in first..first + tries {
        let mut random = Rng::with_seed(seed);
        let (name, text) = &programs[random.usize(..programs.len())];
        let other = respaced(text, &mut random);
        let formatted = format(&format!("seed {seed}, {name}"), &other);
        if seed % 8 == 0 {
            compiled += usize::from(is_same_program(name, text, &formatted));
        }
    }
    assert!(compiled > 5, "only {compiled} programs compile");
}

#[test]
fn white_space_alone_is_forgotten_but_for_line_ends() {
    for (name, text) in programs() {
        let formatted = format(&name, &text);
        let wide: Vec<String> = formatted
            .lines()
            .map(|line| match line.trim_start().starts_with(['/', '*']) || line.contains("//") {
                true => line.to_string(),
                false => format!("\t \t{}  \t", line.trim_start()),
            })
            .collect();
        if !formatted.contains("/*") {
            assert_eq!(format(&name, &(wide.join("\n"))), formatted, "{name}");
        }
    }
}

/// Formats a text, and checks that formatting again changes nothing.
fn format(name: &str, text: &str) -> String {
    let formatted =
        format_text(name, text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    let again = format_text(name, &formatted);
    let again = again.unwrap_or_else(|error| panic!("{name}: {error}\n{formatted}"));
    let changes: String = changes(&formatted, &again).iter().map(ToString::to_string).collect();
    assert!(again == formatted, "{name}: formatting twice changes\n{changes}of\n{text}");
    formatted
}

/// Returns whether a program compiles; if so, checks that `formatted` is the same program.
fn is_same_program(name: &str, text: &str, formatted: &str) -> bool {
    let library = vec![own().join("../../elements"), own().join("../../examples")];
    let options = Options { library };
    let Ok(one) = compile_text(name, text, &options) else { return false };
    let other = compile_text(name, formatted, &options);
    let other = other.unwrap_or_else(|failure| panic!("{name}: {}", failure.render()));
    assert_eq!(without_places(&one.program), without_places(&other.program), "{name}");
    true
}

/// Returns the words of a program's text form, except `!file:line:column` and line numbers in
/// names.
fn without_places(program: &freeport_ir::Program) -> Vec<String> {
    let text = freeport_ir::text::print(program);
    let is_place = |word: &str| word.starts_with('!') && word.matches(':').count() == 2;
    let without_line = |word: &str| match word.split_once(".async_") {
        Some((name, rest)) => {
            name.to_string() + rest.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        None => word.to_string(),
    };
    text.split_whitespace().filter(|word| !is_place(word)).map(without_line).collect()
}

/// Returns every program of the repository that can be parsed, and those of the reference page.
fn programs() -> Vec<(String, String)> {
    let top = own().join("../..");
    let mut texts = vec![];
    for folder in ["elements", "examples", "tests", "compiler/clicknp/tests"] {
        for (path, text) in files(&top.join(folder)) {
            if !matches!(format_text(&path, &text), Err(Unformatted::Wrong(_))) {
                texts.push((path.display().to_string(), text));
            }
        }
    }
    let page = fs::read_to_string(top.join("docs/reference/language.md")).unwrap();
    for (at, part) in page.split("```clicknp\n").skip(1).enumerate() {
        let text = part.split("```").next().unwrap().to_string();
        texts.push((format!("block {at} of docs/reference/language.md"), text));
    }
    assert!(texts.len() > 80, "only {} programs", texts.len());
    texts
}

fn own() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
