// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `make test`: builds all tests at once, runs them in lanes, and reports what was skipped.
//!
//! 1. One call of cargo builds every test binary, the command and the sockets library
//!    ([`artifacts`]).
//! 2. `tests/schedule.txt` determines how each binary runs and how much of the machine it needs
//!    ([`schedule`]). This gives jobs: a binary as a whole, or one of its tests ([`jobs`]).
//! 3. Jobs start longest first, as many at a time as the machine has room for ([`lanes`]).
//! 4. The output of the tests is parsed ([`libtest`]); failures are shown immediately, and the end
//!    lists counts, skips with their reasons, and where the time went ([`report`]).

mod arguments;
mod artifacts;
mod jobs;
mod lanes;
mod libtest;
mod process;
mod report;
mod schedule;
mod unchanged;

use anyhow::Context;
use arguments::Arguments;
use artifacts::Artifacts;
use report::Report;
use schedule::Schedule;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use unchanged::Unchanged;

fn main() -> anyhow::Result<ExitCode> {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(reported) => {
            eprintln!("{reported}");
            return Ok(ExitCode::from(2));
        }
    };
    if arguments.help {
        print!("{}", arguments::HELP);
        return Ok(ExitCode::SUCCESS);
    }
    let top = top()?;
    let schedule = Schedule::read(&top.join("tests/schedule.txt"))?;
    schedule.check_part(arguments.part.as_deref())?;
    let begin = Instant::now();
    let artifacts = Artifacts::build(&top)?;
    let build_seconds = begin.elapsed().as_secs_f64();
    let folder = artifacts.target.join("test-runner");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    artifacts.bound_cache();
    let unchanged = Unchanged::read(&folder, &top, &artifacts, &arguments);
    let found = jobs::find(&artifacts, &schedule, &arguments, &unchanged)?;
    if arguments.list {
        found.jobs.iter().for_each(|job| println!("{job}"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = Report::new(&folder, build_seconds, found.jobs.len(), found.unchanged)?;
    lanes::run(found.jobs, &artifacts, &arguments, &mut report)?;
    unchanged.note(&report.passed_whole());
    Ok(if report.finish()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the top of the repository, which contains the runner.
fn top() -> anyhow::Result<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    top.canonicalize().with_context(|| top.display().to_string())
}
