// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport test`: runs the golden tests of elements, in the reference interpreter and as native
//! code.

use crate::library::LibraryArguments;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use freeport_clicknp::source::without_mark;
use freeport_clicknp::{Options, compile_text};
use freeport_golden::native::Native;
use freeport_golden::run::{self, Machine, Reference};
use freeport_golden::{Case, Golden};
use freeport_ir::{Program, verify};
use freeport_native::Image;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum depth of nested folders that are searched.
const FOLDER_DEPTH_MAX: u32 = 16;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport test Guard.test\n  \
    freeport test elements --case tunnel --on interpreter\n\n\
    An element is searched in the folder of its golden first, then in the library. \
    docs/reference/elements.md describes\nthe format. With --json, each case is an object with \
    file, line, case, passed and failures.")]
pub struct Arguments {
    /// Golden files (.test), or folders that contain some
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,
    /// Run only cases whose title contains this text
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Run only on this device
    #[arg(long, value_name = "DEVICE")]
    on: Option<On>,
    /// Number of runs of each case on a device, each with another order of packets and free space
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Print one JSON object per line, one for each case
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    library: LibraryArguments,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    Native,
    Interpreter,
}

/// Runs all cases. The status is that of a failure if one fails.
///
/// # Errors
/// No golden file, or one that cannot be read.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut files = vec![];
    for path in &arguments.paths {
        collect(path, 0, &mut files)?;
    }
    if files.is_empty() {
        bail!("there is no .test file; docs/reference/elements.md describes how to write one");
    }
    let (mut passed, mut failed) = (0, 0);
    for file in &files {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let golden = Golden::parse(without_mark(&text))
            .map_err(|it| anyhow::anyhow!("{}, {it}", file.display()))?;
        let wanted =
            |case: &&Case| arguments.case.as_ref().is_none_or(|it| case.title.contains(it));
        for case in golden.cases.iter().filter(wanted) {
            let failures = failures(case, file, arguments);
            match failures.is_empty() {
                true => passed += 1,
                false => failed += 1,
            }
            tell(case, file, &failures, arguments.json);
        }
    }
    if passed + failed == 0 {
        bail!("no case has this text in its title");
    }
    if !arguments.json {
        println!("{passed} passed, {failed} failed");
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Collects the golden files at or below a path, in the order of their names.
fn collect(path: &Path, depth: u32, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() && depth < FOLDER_DEPTH_MAX {
            collect(&path, depth + 1, found)?;
        } else if path.is_file() && path.extension().is_some_and(|extension| extension == "test") {
            found.push(path);
        }
    }
    Ok(())
}

/// The first failure of a case on each device.
fn failures(case: &Case, file: &Path, arguments: &Arguments) -> Vec<String> {
    let program = match compiled(case, file, arguments) {
        Ok(program) => program,
        Err(reason) => return vec![reason],
    };
    let mut failures = vec![];
    if arguments.on != Some(On::Native) {
        let reference = |seed| Reference::new(&program, seed);
        failures.extend(first_failure("interpreter", case, arguments.seeds, reference));
    }
    if arguments.on != Some(On::Interpreter) {
        match built(&program) {
            Ok(image) => {
                let native = |seed| Native::new(&image, seed);
                failures.extend(first_failure("native", case, arguments.seeds, native));
            }
            Err(reason) => failures.push(reason),
        }
    }
    failures
}

fn compiled(case: &Case, file: &Path, arguments: &Arguments) -> Result<Program, String> {
    let mut library = arguments.library.folders();
    let beside = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    library.insert(0, beside.unwrap_or(Path::new(".")).to_owned());
    let text = run::configuration(case)?;
    let compiled = compile_text("case.cnp", &text, &Options { library });
    let program = compiled.map_err(|failure| failure.to_string())?.program;
    verify(&program).map_err(|errors| format!("a defect of the compiler: {errors:?}"))?;
    Ok(program)
}

fn built(program: &Program) -> Result<Image, String> {
    // A case has few packets, so most of the time is spent on compiling.
    let options =
        freeport_native::Options { optimization: 1, ..freeport_native::Options::default() };
    freeport_native::build(program, &options).map_err(|error| error.to_string())
}

/// Runs a case with each seed until it fails.
fn first_failure<M: Machine>(
    device: &str,
    case: &Case,
    seeds: u64,
    machine: impl Fn(u64) -> Result<M, String>,
) -> Option<String> {
    (0..seeds).find_map(|seed| {
        let done = machine(seed).and_then(|mut machine| run::run_case(case, &mut machine));
        done.err().map(|error| format!("{device}, seed {seed}: {error}"))
    })
}

fn tell(case: &Case, file: &Path, failures: &[String], as_json: bool) {
    if as_json {
        let reported = json!({
            "file": file.display().to_string(),
            "line": case.line,
            "case": case.title,
            "passed": failures.is_empty(),
            "failures": failures,
        });
        println!("{reported}");
        return;
    }
    let state = if failures.is_empty() { "ok  " } else { "FAIL" };
    println!("{state} {}:{}  {}", file.display(), case.line, case.title);
    for failure in failures {
        println!("       {}", failure.replace('\n', "\n       "));
    }
}
