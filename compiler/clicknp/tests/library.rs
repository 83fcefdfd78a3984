// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every element of the library, every example and every program of tests compiles, without
//! warnings, to a program that the verifier of the IR accepts.

use freeport_clicknp::{Options, compile_file};
use freeport_ir::verify;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn elements_and_examples_compile() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let options = Options { library: vec![top.join("elements")] };
    let folders = ["elements", "examples", "tests/tests/programs"];
    let files: Vec<PathBuf> =
        folders.iter().flat_map(|folder| sources_below(&top.join(folder))).collect();
    assert!(files.len() >= 100, "{files:?}");
    let mut wrong = vec![];
    for file in files {
        let compiled = match compile_file(&file, &options) {
            Ok(compiled) => compiled,
            Err(failure) => panic!("{}", failure.render()),
        };
        let warnings = compiled.warnings.iter();
        let reported: Vec<_> = warnings.map(|one| one.render(&compiled.sources)).collect();
        wrong.extend(reported);
        assert_eq!(verify(&compiled.program), Ok(()), "{}", file.display());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn sources_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|own| own == "cnp");
    let below = folders.iter().flat_map(|folder| sources_below(folder));
    below.chain(files.into_iter().filter(is_source)).collect()
}
