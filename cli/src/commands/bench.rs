// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench`: benchmarks Freeport and comparable systems.

use crate::library::LibraryArguments;
use crate::progress::ProgressLine;
use clap::Args;
use std::process::ExitCode;

#[derive(Args)]
#[group(skip)]
#[command(after_help = "Example:\n  freeport bench nf --rounds 15 --out out/bench")]
pub struct Arguments {
    #[command(flatten)]
    bench: freeport_bench::Arguments,
    #[command(flatten)]
    library: LibraryArguments,
}

/// Runs the benchmarks and prints the results.
///
/// # Errors
/// A benchmark that Freeport itself cannot run.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.bench.is_part() {
        eprintln!("measuring; this takes a while");
    }
    let mut progress = ProgressLine::default();
    let output =
        freeport_bench::run(&arguments.bench, &arguments.library.folders(), &mut |step| {
            progress.tell(step);
        })?;
    drop(progress);
    eprint!("{}", output.notes);
    print!("{}", output.text);
    for failure in &output.failures {
        eprintln!("freeport: {failure}");
    }
    let is_complete = output.failures.is_empty();
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
