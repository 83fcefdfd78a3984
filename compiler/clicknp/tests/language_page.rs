// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The examples of the language's reference page are programs that compile.

use freeport_clicknp::driver::{Options, compile_text};
use std::path::Path;

#[test]
fn every_example_of_the_reference_compiles() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/language.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples: Vec<_> = page.split("```clicknp\n").skip(1).collect();
    assert!(examples.len() >= 4);
    for example in examples {
        let text = example.split("```").next().unwrap();
        let compiled = compile_text("example.cnp", text, &Options::default());
        let compiled = compiled.unwrap_or_else(|failure| panic!("{text}\n{failure}"));
        assert!(compiled.warnings.is_empty(), "{text}");
        freeport_ir::verify(&compiled.program).unwrap_or_else(|errors| panic!("{errors:#?}"));
        assert!(!compiled.program.elements.is_empty());
    }
}
