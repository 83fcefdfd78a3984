// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No text makes the compiler panic: texts of the repository, changed at random. A failure prints
//! its seed; `FREEPORT_SEED=<seed>` begins there, and `FREEPORT_LONG=1` runs longer.

use fastrand::Rng;
use freeport_clicknp::format::{Unformatted, format_text};
use freeport_clicknp::{Options, compile_text};
use freeport_testbed::{is_long, seed};
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

/// Number of texts that are tried by default.
const TRIES: u64 = 1_000;
/// Maximum size of a generated text, in bytes.
const BYTES_MAX: usize = 20_000;

/// Text to insert: everything that the lexer and the parser distinguish.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ">>",
    ";",
    ",",
    ".",
    "->",
    "::",
    "##",
    "#",
    "@",
    "=",
    "==",
    "?",
    ":",
    "*",
    "&",
    "&&",
    "-",
    "--",
    "~",
    "!",
    "<<=",
    "...",
    "\"",
    "'",
    "/*",
    "*/",
    "/**",
    "//",
    "\n",
    "\\",
    "é",
    "\u{0}",
    "🦀",
    "0",
    "1",
    "0x",
    "0b2",
    "1'0",
    "99999999999999999999",
    "1.5",
    "10.0.0.1",
    "256.1.1.1",
    "02:00:00:00:00:01",
    "1ull",
    "'a'",
    "\"text\"",
    ".element",
    ".state",
    ".handler",
    ".init",
    ".signal",
    ".method",
    ".async",
    "async",
    "group",
    "begin",
    "end",
    "host",
    "verilog",
    "import",
    "struct",
    "union",
    "enum",
    "typedef",
    "const",
    "template",
    "inline",
    "if",
    "else",
    "for",
    "while",
    "do",
    "switch",
    "case",
    "default",
    "break",
    "continue",
    "return",
    "goto",
    "sizeof",
    "new",
    "uint",
    "int",
    "uint<",
    "uint13",
    "void",
    "bool",
    "flit",
    "packet",
    "table",
    "ClSignal",
    "register",
    "local",
    "global",
    "await all",
    "interval",
    "depth",
    "lossy",
    "from_tor",
    "to_tor",
    "#pragma unroll\n",
    "#pragma bound 4\n",
    "#pragma",
    "in",
    "out",
    "x",
    "Count",
    "Tee<",
    "#2",
    "read_input_port(",
    "set_output_port(out,",
    "x.data[",
    "(uint *)",
    "packet<",
    "packet p = read_input_port(in);",
    "p.length",
    "p.data[",
    "(uint *)(p.data +",
    "adjust_head(p,",
    "new_packet(",
];

#[test]
fn no_text_makes_the_compiler_panic() {
    let corpus = corpus();
    let first = seed();
    for seed in first..first + if is_long() { 100 * TRIES } else { TRIES } {
        let text = mutated(&corpus, &mut Rng::with_seed(seed));
        let result = catch_unwind(|| compile(&text));
        assert!(result.is_ok(), "seed {seed} makes a text that panics:\n{text}");
    }
}

#[test]
fn every_beginning_of_a_text_is_reported_without_a_panic() {
    for text in corpus().iter().filter(|text| text.len() < 2_000) {
        for (end, _) in text.char_indices().step_by(7) {
            compile(&text[..end]);
        }
    }
}

#[test]
fn whatever_can_be_parsed_can_be_formatted() {
    let corpus = corpus();
    let first = seed();
    let mut formatted = 0;
    for seed in first..first + if is_long() { 100 * TRIES } else { TRIES } {
        let text = mutated(&corpus, &mut Rng::with_seed(seed));
        let result = catch_unwind(|| format_twice(&text));
        assert!(result.is_ok(), "seed {seed} makes a text that is not formatted:\n{text}");
        formatted += u32::from(result.is_ok_and(|is_formatted| is_formatted));
    }
    assert!(formatted > 10, "only {formatted} texts can be parsed");
}

/// These texts take long if a part is visited again for each enclosing level, or for each preceding
/// part. The bound is far above the linear cost, and far below the quadratic one.
#[test]
fn deep_and_long_texts_are_formatted_in_one_go() {
    let block = |open: &str, close: &str, depth: usize, inside: &str| {
        format!("{}{inside}{}", open.repeat(depth), close.repeat(depth))
    };
    let long = 40_000;
    for body in [
        block("if (x) { ", " }", 90, &"x = 1; ".repeat(1000)),
        block("if (x) ", "", 90, "x = 1;"),
        format!("x = {};", block("(", ")", 90, "1 + 2")),
        format!("x = {};", block("f(1, ", ", 2)", 60, "3")),
        format!("uint a[9] = {};", block("{ ", " }", 90, &"1, ".repeat(long))),
        block("struct { ", " } a; ", 90, &"uint b; ".repeat(1000)),
        format!("x = f({}1);", "1, ".repeat(long)),
        format!("x = 1;{}", " /* a */".repeat(long)),
        format!("{}x = 1;", "\n/* a\n b */".repeat(long)),
        format!("{};", "x = y".to_string() + &" /* a */ ".repeat(long)),
        format!("switch (x) {{ {} }}", "case 1: x = 1; break; ".repeat(long / 4)),
        ";".repeat(long),
    ] {
        let text = format!(".element A (uint in -> ) {{ .handler {{ {body} }} }}");
        assert!(format_twice(&text), "{}", &text[..200]);
    }
    let chain = format!("a {} -> b", "-> b [1] ".repeat(long));
    assert!(format_twice(&chain));
}

/// Formats a text if possible, and checks that formatting again changes nothing; returns whether it
/// was possible.
fn format_twice(text: &str) -> bool {
    match format_text("mutated.cnp", text) {
        Ok(once) => {
            let twice = format_text("mutated.cnp", &once).unwrap_or_else(|error| panic!("{error}"));
            assert!(twice == once, "{text}\n---\n{once}\n---\n{twice}");
            true
        }
        Err(Unformatted::Wrong(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

fn compile(text: &str) {
    match compile_text("mutated.cnp", text, &Options::default()) {
        Ok(compiled) => {
            freeport_ir::verify(&compiled.program).unwrap_or_else(|errors| panic!("{errors:#?}"));
        }
        Err(failure) => assert!(failure.render().contains("error[E")),
    }
}

/// Returns every program of the repository.
fn corpus() -> Vec<String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = vec![];
    for folder in [own.join("tests"), own.join("../../elements"), own.join("../../examples")] {
        collect(&folder, &mut texts);
    }
    assert!(texts.len() > 30, "the programs of the repository are not where they were");
    texts
}

fn collect(folder: &Path, texts: &mut Vec<String>) {
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|extension| extension == "cnp") {
            texts.push(fs::read_to_string(path).unwrap());
        }
    }
}

/// Returns a text of the corpus with a few changes.
fn mutated(corpus: &[String], random: &mut Rng) -> String {
    let mut text: Vec<char> = corpus[random.usize(..corpus.len())].chars().collect();
    for _ in 0..random.usize(1..12) {
        let at = random.usize(..=text.len());
        let end = (at + random.usize(0..40)).min(text.len());
        match random.u32(0..6) {
            0 => drop(text.drain(at..end)),
            1 => {
                let copy = text[at..end].to_vec();
                let times = random.usize(1..4);
                text.splice(at..at, copy.repeat(times));
            }
            2 => text.truncate(at),
            3 => {
                let other: Vec<char> = corpus[random.usize(..corpus.len())].chars().collect();
                text.splice(at..end, other[random.usize(..=other.len())..].to_vec());
            }
            _ => {
                let piece = PIECES[random.usize(..PIECES.len())];
                text.splice(at..at, format!(" {piece} ").chars());
            }
        }
        text.truncate(BYTES_MAX);
    }
    text.into_iter().collect()
}
