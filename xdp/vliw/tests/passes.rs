// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effect of each pass: for a small program in `passes/NAME.bpf`, the rows without and with the
//! pass of this name, as in `passes/NAME.expect`. The checker verifies that both images are
//! equivalent to the program.

use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::instruction::assemble;
use freeport_ebpf::object::{MapDefinition, MapKind, Program};
use freeport_vliw::check::check;
use freeport_vliw::image::Image;
use freeport_vliw::{Options, PASSES, compile_analysed};
use std::fs;
use std::path::PathBuf;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/passes").join(name)
}

fn maps() -> Vec<MapDefinition> {
    let (kind, key_size, value_size, max_entries) = (MapKind::Array, 4, 8, 4);
    let name = "values".into();
    vec![MapDefinition { name, kind, key_size, value_size, max_entries, ..Default::default() }]
}

/// Compiles a program and checks its rows.
fn rows(program: &Program, options: &Options) -> Image {
    let analysis = Analysis::of(program, &maps()).expect("it has a graph");
    let image = compile_analysed(program, &analysis, options).expect("it can be executed");
    if let Err(violations) = check(&image, program, &analysis) {
        panic!("{}: {}\n{image}", program.name, violations[0]);
    }
    image
}

#[test]
fn every_pass_does_what_its_golden_says() {
    let mut failures = vec![];
    for pass in PASSES {
        let text = fs::read_to_string(file(&format!("{pass}.bpf"))).expect("each pass has one");
        let instructions = assemble(&text).expect("the text is right");
        let program = Program { name: pass.into(), instructions, ..Program::default() };
        let mut without = Options::default();
        *without.pass_mut(pass).expect("it is one") = false;
        let [before, after] = [without, Options::default()].map(|it| rows(&program, &it));
        assert_ne!(before, after, "{pass} changes nothing");
        let found = format!("without\n{before}with\n{after}");
        let expected = fs::read_to_string(file(&format!("{pass}.expect"))).unwrap_or_default();
        if found != expected {
            failures.push(format!("{pass}:\n{found}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
