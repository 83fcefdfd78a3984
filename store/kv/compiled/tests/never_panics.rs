// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No text makes the compiler panic, and a text that it accepts is a function that returns: texts
//! of the repository, changed at random. A failure prints its seed; `FREEPORT_SEED=<seed>` begins
//! there.

use crate::values::{any_bytes, any_operands, call};
use fastrand::Rng;
use freeport_kv_compiled::{Options, compile_text};
use freeport_testbed::{seed, usual_or_long};
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

/// Text to insert.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    ";",
    ",",
    "<",
    "=",
    "==",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "!",
    "~",
    "?",
    ":",
    "[",
    "]",
    "0",
    "1",
    "255",
    "1.5",
    "0xffffffffffffffff",
    "v",
    "sigma",
    "T",
    "bool",
    "uchar",
    "long",
    "uint7",
    "ulong",
    "int",
    "float",
    "void",
    "inline ",
    "template <T> ",
    "return ",
    "return v;",
    "if (v) ",
    "else ",
    "for (uint i = 0; i < v; i++) ",
    "for (;;) ",
    "while (v) ",
    "for (uchar i = 0; i <= v; i++) ",
    "for (int i = 7; i >= 0; i--) ",
    "#pragma bound 9\n",
    "do v++; while (v < 9); ",
    "break;",
    "continue;",
    "v = v * 3;",
    "v++;",
    "i += 2;",
    "uint a[8];",
    "a[v] = 1;",
    "now()",
    "random()",
    "printf(\"%d\", v);",
    "order(v)",
    "struct S ",
    "const ulong N = 4;\n",
    ".element E (uint in -> uint out) { .handler { } }",
];

/// Maximum size of a text in bytes.
const BYTES_MAX: usize = 4_000;

fn changed(rng: &mut Rng, text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..rng.usize(1..6) {
        let boundary = |rng: &mut Rng, text: &str| {
            let mut at = rng.usize(..=text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let at = boundary(rng, &text);
        match rng.u8(..4) {
            0 => {
                let end = (at + rng.usize(..20)).min(text.len());
                if text.is_char_boundary(end) {
                    text.replace_range(at..end, "");
                }
            }
            1 => {
                let from = boundary(rng, &text);
                let end = (from + rng.usize(..60)).min(text.len());
                if let Some(part) = text.get(from..end).map(str::to_owned) {
                    text.insert_str(at, &part);
                }
            }
            _ => text.insert_str(at, PIECES[rng.usize(..PIECES.len())]),
        }
    }
    if text.len() > BYTES_MAX { String::new() } else { text }
}

/// Calls every function that is accepted: the interpreter checks that none traps.
fn compile_and_call(text: &str, rng: &mut Rng) -> bool {
    let Ok(compiled) = compile_text("changed.cnp", text, &Options::interpreted()) else {
        return false;
    };
    let registry = compiled.registry;
    for signature in registry.signatures().filter(|signature| signature.id >= 128) {
        for element in signature.elements {
            let values = any_bytes(rng, 3 * element.width());
            let operands = any_operands(rng, &signature, *element, 3);
            call(&registry, signature.id, *element, &values, &operands);
        }
    }
    true
}

#[test]
fn changed_texts_are_refused_or_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/kv");
    let files = fs::read_dir(folder).expect("the folder of examples");
    let read = |file: std::io::Result<fs::DirEntry>| fs::read_to_string(file?.path());
    let mut texts: Vec<String> = files.map(|file| read(file).expect("a text")).collect();
    texts.sort();
    let (mut accepted, mut refused) = (0, 0);
    for seed in (seed()..).take(usual_or_long(400, 20_000)) {
        let mut rng = Rng::with_seed(seed);
        let text = &texts[rng.usize(..texts.len())];
        let text = changed(&mut rng, text);
        let outcome = catch_unwind(move || {
            let mut rng = Rng::with_seed(seed);
            compile_and_call(&text, &mut rng)
        });
        match outcome {
            Ok(true) => accepted += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("the text of seed {seed} panics"),
        }
    }
    assert!(accepted > 0 && refused > accepted, "{accepted} accepted, {refused} refused");
}
