// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The examples of `docs/guide/kv-functions.md` compile, and its message is one of the compiler's.

use freeport_kv_compiled::{Options, compile_text};
use std::fs;
use std::path::Path;

fn text_of(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn examples_of_the_guide_compile() {
    let page = text_of("../../../docs/guide/kv-functions.md");
    let examples: Vec<_> = page.split("```clicknp\n").skip(1).collect();
    assert!(examples.len() >= 2);
    for example in examples {
        let text = example.split("```").next().expect("the start of the rest");
        let compiled = compile_text("guide.cnp", text, &Options::interpreted());
        let compiled = compiled.unwrap_or_else(|refused| panic!("{refused}\n{text}"));
        assert!(compiled.warnings.is_empty(), "{:?}", compiled.warnings);
    }
}

#[test]
fn the_message_in_the_guide_is_that_of_the_compiler() {
    let page = text_of("../../../docs/guide/kv-functions.md");
    let message = text_of("tests/refused/K0204_loops.expect");
    let first = message.split("\n\n").next().expect("one message");
    let shown = first.replace("K0204_loops.cnp", "collatz.cnp");
    let shown: Vec<String> = shown.lines().map(|line| format!("    {line}")).collect();
    assert!(page.contains(&shown.join("\n")), "{}", shown.join("\n"));
}
