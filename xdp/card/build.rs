// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds a library from `hardware/sephirot`: Verilator translates it to C++, which is compiled
//! together with the code that steps its clock. The library has two cards: one with one core, and
//! one with several.

#[path = "src/verilator.rs"]
mod verilator;

use std::path::{Path, PathBuf};
use std::thread;
use verilator::Verilator;

/// Size of map memory in bytes: more than the programs of `programs/xdp` need.
const MAP_BYTES: u32 = 16 << 20;

/// A card by its number of cores, with the compiler's optimisation levels.
struct Card {
    cores: u8,
    level: u32,
    /// Optimisation level of code that runs only once.
    slow_level: u32,
}

/// The larger card has four times the code: except in a release build, it is only optimised as far
/// as that pays off within the tests.
fn cards() -> Result<[Card; 2], String> {
    let level = if variable("PROFILE")? == "release" { 2 } else { 1 };
    let one = Card { cores: 1, level: 3, slow_level: 0 };
    Ok([one, Card { cores: 4, level, slow_level: 0 }])
}

fn main() {
    if std::env::var_os("CARGO_FEATURE_CARD").is_none() {
        return;
    }
    if let Err(error) = build() {
        // Cargo shows standard error if a build fails.
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let crate_folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let hardware = crate_folder.join("../../hardware");
    println!("cargo:rerun-if-env-changed=FREEPORT_LANES");
    println!("cargo:rerun-if-env-changed=VERILATOR");
    println!("cargo:rerun-if-changed={}", crate_folder.join("shim.cpp").display());
    let verilator = Verilator::find()?;
    let sources = verilator::sources(&hardware)?;
    for source in &sources {
        println!("cargo:rerun-if-changed={}", source.display());
    }
    // Watches the folders as well, for new modules.
    for folder in ["sephirot", "lib"] {
        println!("cargo:rerun-if-changed={}", hardware.join(folder).display());
    }
    let out = PathBuf::from(variable("OUT_DIR")?);
    let mut objects = vec![];
    for card in &cards()? {
        let folder = out.join(format!("nic{}", card.cores));
        verilate(&verilator, card, &hardware, &sources, &folder)?;
        objects.extend(compile(&verilator, card, &crate_folder, &folder)?);
    }
    let mut common = compiler(&verilator)?;
    let include = verilator.root()?.join("include");
    let files = ["verilated.cpp", "verilated_threads.cpp", "verilated_vcd_c.cpp"];
    common.opt_level(3).files(files.iter().map(|file| include.join(file))).objects(objects);
    common.try_compile("freeport_runtime").map_err(|error| error.to_string())
}

/// Translates a card to C++.
fn verilate(
    verilator: &Verilator,
    card: &Card,
    hardware: &Path,
    sources: &[PathBuf],
    folder: &Path,
) -> Result<(), String> {
    empty(folder)?;
    let lanes = std::env::var("FREEPORT_LANES").unwrap_or_else(|_| "4".into());
    let mut command = verilator.command();
    command.args(["--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-timing"]);
    // Warnings are left to `tests/lint.rs`.
    command.args(["-Wno-fatal", "--assert", "--top-module", "nic", "--Mdir"]).arg(folder);
    command.arg(format!("-GLANES={lanes}")).arg(format!("-GMAP_BYTES={MAP_BYTES}"));
    command.arg(format!("-GCORES={}", card.cores)).arg("--prefix");
    command.arg(format!("Vnic{}", card.cores)).args(verilator::include_flags(hardware));
    // A waveform that is not requested costs next to nothing.
    command.args(["--trace-vcd", "--trace-structs"]);
    verilator::run(command.args(sources))
}

/// Compiles all C++ files of a card, and the shim, to objects.
///
/// Verilator's files all include the same large headers, which take longer to compile than the
/// files themselves. Each job therefore compiles several of them as one.
fn compile(
    verilator: &Verilator,
    card: &Card,
    crate_folder: &Path,
    folder: &Path,
) -> Result<Vec<PathBuf>, String> {
    let (slow, mut fast): (Vec<PathBuf>, Vec<PathBuf>) = files(folder, "cpp")?
        .into_iter()
        .partition(|file| file.to_string_lossy().ends_with("__Slow.cpp"));
    fast.push(crate_folder.join("shim.cpp"));
    // As many jobs as cargo allows; the longest files are distributed among them.
    let jobs = variable("NUM_JOBS")?.parse().unwrap_or(1).max(1);
    let mut parts = vec![];
    for (name, files, level) in [("fast", fast, card.level), ("slow", slow, card.slow_level)] {
        for job in 0..jobs {
            let together = folder.join(format!("{name}_{job}.cpp"));
            verilator::write_together(&together, files.iter().skip(job).step_by(jobs))?;
            let mut part = compiler(verilator)?;
            // Both cards have files with these names.
            part.out_dir(folder).include(folder).opt_level(level);
            part.define("CORES", &*card.cores.to_string()).file(together);
            parts.push(part);
        }
    }
    let mut objects = vec![];
    for parts in parts.chunks(jobs) {
        let compiled: Result<Vec<_>, _> = thread::scope(|scope| {
            let jobs = parts.iter().map(|part| scope.spawn(|| part.try_compile_intermediates()));
            let jobs: Vec<_> = jobs.collect();
            jobs.into_iter().map(|job| job.join().expect("it does not panic")).collect()
        });
        objects.extend(compiled.map_err(|error| error.to_string())?.concat());
    }
    Ok(objects)
}

/// Returns a compiler for Verilator's C++ files.
fn compiler(verilator: &Verilator) -> Result<cc::Build, String> {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").debug(false).warnings(false).flag("-pthread");
    // clang compiles faster models than g++.
    if std::env::var_os("CXX").is_none() && exists("clang++-19") {
        build.compiler("clang++-19");
    }
    let include = verilator.root()?.join("include");
    build.include(&include).include(include.join("vltstd"));
    build.define("VM_TRACE", "1").define("VM_TRACE_VCD", "1");
    Ok(build)
}

fn exists(command: &str) -> bool {
    std::process::Command::new(command).arg("--version").output().is_ok()
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}

/// Returns the files of a folder with this extension, in order.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    verilator::files(folder, |name| name.ends_with(&format!(".{extension}")))
}

/// Empties a folder. Old files may belong to another state of the hardware: a class that is no
/// longer generated would still be compiled.
fn empty(folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    std::fs::create_dir_all(folder).map_err(failed)
}
