// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes a library of `hardware/sephirot`: Verilator makes C++ of it, which is compiled with what
//! steps its clock.

#[path = "src/verilator.rs"]
mod verilator;

use std::path::{Path, PathBuf};
use verilator::Verilator;

/// Bytes of map memory: what the programs of `programs/xdp` ask for at most, and more.
const MAP_BYTES: u32 = 16 << 20;

fn main() {
    if let Err(error) = build() {
        // Cargo shows what goes to standard error if a build fails.
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let crate_folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?).join("nic");
    let lanes = std::env::var("FREEPORT_LANES").unwrap_or_else(|_| "4".into());
    let hardware = crate_folder.join("../../hardware");
    println!("cargo:rerun-if-env-changed=FREEPORT_LANES");
    println!("cargo:rerun-if-env-changed=VERILATOR");
    println!("cargo:rerun-if-changed={}", crate_folder.join("shim.cpp").display());
    let verilator = Verilator::find()?;
    let sources = verilator::sources(&hardware)?;
    for source in &sources {
        println!("cargo:rerun-if-changed={}", source.display());
    }
    // New modules, too.
    for folder in ["sephirot", "lib"] {
        println!("cargo:rerun-if-changed={}", hardware.join(folder).display());
    }
    empty(&out)?;
    let mut command = verilator.command();
    command.args(["--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-timing"]);
    // What is only suspicious is for `tests/lint.rs` to say.
    command
        .args(["-Wno-fatal", "--assert", "--prefix", "Vnic", "--top-module", "nic", "--Mdir"])
        .arg(&out);
    command.arg(format!("-GLANES={lanes}")).arg(format!("-GMAP_BYTES={MAP_BYTES}"));
    command.args(verilator::include_flags(&hardware));
    // A waveform that nobody asks for costs next to nothing.
    command.args(["--trace-vcd", "--trace-structs"]);
    verilator::run(command.args(&sources))?;
    compile(&verilator, &crate_folder, &out)
}

/// Compiles all that Verilator has written, its own library, and the shim.
fn compile(verilator: &Verilator, crate_folder: &Path, out: &Path) -> Result<(), String> {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(3).debug(false).warnings(false);
    // clang makes faster models than g++ does.
    if std::env::var_os("CXX").is_none() && exists("clang++-19") {
        build.compiler("clang++-19");
    }
    let include = verilator.root()?.join("include");
    build.include(&include).include(include.join("vltstd")).include(out);
    build.define("VM_TRACE", "1").define("VM_TRACE_VCD", "1");
    build.flag("-pthread");
    build.files(files(out, "cpp")?).file(crate_folder.join("shim.cpp"));
    for file in ["verilated.cpp", "verilated_threads.cpp", "verilated_vcd_c.cpp"] {
        build.file(include.join(file));
    }
    build.try_compile("freeport_nic").map_err(|error| error.to_string())
}

fn exists(command: &str) -> bool {
    std::process::Command::new(command).arg("--version").output().is_ok()
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}

/// Files of a folder that end so, in order.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    verilator::files(folder, |name| name.ends_with(&format!(".{extension}")))
}

/// What was there belongs to another state of the hardware: a class that is no longer made would be
/// compiled all the same.
fn empty(folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    std::fs::create_dir_all(folder).map_err(failed)
}
