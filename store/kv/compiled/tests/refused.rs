// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Exact messages for files that are refused: each `refused/<code>_<slug>.cnp` has the expected
//! text beside it in `.expect`. `BLESS=1` rewrites those files; review the differences.

use freeport_kv_compiled::{Options, compile_files};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let entries = fs::read_dir(folder).expect("the folder of refused files");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "cnp"));
    files.sort();
    files
}

#[test]
fn every_refusal_is_explained() {
    let mut wrong = vec![];
    let mut codes = BTreeSet::new();
    for file in files() {
        let refused = compile_files(&[&file], &Options::interpreted());
        let refused = refused.expect_err(&file.display().to_string()).to_string();
        let folder = file.parent().expect("a folder").display().to_string();
        let message = refused.replace(&format!("{folder}/"), "");
        let code = file.file_name().expect("a name").to_string_lossy()[..5].to_owned();
        assert!(message.contains(&format!("[{code}]")), "{message}");
        codes.insert(code);
        let golden = file.with_extension("expect");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&golden, &message).expect("the expected text");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if message != expected {
            wrong.push(format!("{}:\n{message}\nexpected:\n{expected}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for code in 101..=106 {
        assert!(codes.contains(&format!("K0{code}")), "no file shows K0{code}");
    }
    for code in 201..=204 {
        assert!(codes.contains(&format!("K0{code}")), "no file shows K0{code}");
    }
}
