// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every element of the library and every example compiles, without warnings, to a program that
//! the verifier of the IR accepts.

use freeport_clicknp::{Options, compile_file};
use freeport_ir::verify;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn elements_and_examples_compile() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let options = Options { library: vec![top.join("elements")] };
    let mut files = vec![];
    for folder in
        ["elements/basic", "elements/ethernet", "elements/ip", "elements/host", "examples"]
    {
        let entries = fs::read_dir(top.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let is_source = |path: &PathBuf| path.extension().is_some_and(|own| own == "cnp");
        files.extend(entries.filter(is_source));
    }
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        let compiled = match compile_file(&file, &options) {
            Ok(compiled) => compiled,
            Err(failure) => panic!("{}", failure.render()),
        };
        assert!(compiled.warnings.is_empty(), "{:?}", compiled.warnings);
        assert_eq!(verify(&compiled.program), Ok(()), "{}", file.display());
    }
}
