// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs jobs, as many at a time as the machine has cores for: those that mostly wait overlap with
//! those that compute, and some run alone.

use crate::arguments::Arguments;
use crate::artifacts::Artifacts;
use crate::jobs::Job;
use crate::process::{self, Ended};
use crate::report::Report;
use crate::schedule::Runs;
use anyhow::{Context, bail};
use freeport_testbed::variable;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Time limit against hangs: no process takes that long, even under load.
const PATIENCE: Duration = Duration::from_secs(20 * 60);
const LONG_PATIENCE: Duration = Duration::from_secs(3 * 60 * 60);
/// Interval between searches for orphans.
const LOOKING: Duration = Duration::from_millis(20);
/// More than one: the cores that a job keeps busy are a guess, and many wait at times.
const OVERLAP: f64 = 1.25;
/// Maximum number of concurrent processes, however little each computes.
const PROCESSES_MAX: usize = 12;

/// Runs all jobs, and reports each as it ends.
///
/// # Errors
/// A binary that cannot be started, or a report that cannot be written.
pub fn run(
    mut jobs: Vec<Job>,
    artifacts: &Artifacts,
    arguments: &Arguments,
    report: &mut Report,
) -> anyhow::Result<()> {
    process::adopt_orphans().context("orphaned processes cannot be adopted")?;
    let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    let expected = report.expected_seconds();
    let seconds = |job: &Job| expected.get(&job.to_string()).copied().unwrap_or(job.row.seconds);
    // Jobs that run alone come last; of the others the longest start first.
    let is_alone = |job: &Job| job.row.runs == Runs::Alone;
    jobs.sort_by(|one, other| {
        is_alone(one).cmp(&is_alone(other)).then(seconds(other).total_cmp(&seconds(one)))
    });
    let mut lanes = Lanes { cores: OVERLAP * cores, busy: 0.0, running: 0 };
    let (done, ended) = channel();
    thread::scope(|scope| {
        let mut number = 0;
        loop {
            while let Some(at) = jobs.iter().position(|job| lanes.have_room_for(job)) {
                let job = jobs.remove(at);
                lanes.enter(&job);
                number += 1;
                let (done, output) = (done.clone(), report.output_of(number));
                scope.spawn(move || {
                    let result = run_one(&job, artifacts, arguments, output);
                    // The receiver is gone if an earlier job could not be started.
                    let _ = done.send((job, number, result));
                });
            }
            if lanes.running == 0 {
                return Ok(());
            }
            process::reap_orphans();
            let (job, number, result) = match ended.recv_timeout(LOOKING) {
                Ok(ended) => ended,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => bail!("a job ended without a report"),
            };
            lanes.leave(&job);
            report.add(&job, number, result.with_context(|| job.to_string())?)?;
        }
    })
}

/// Part of the machine that is in use.
struct Lanes {
    cores: f64,
    busy: f64,
    running: usize,
}

impl Lanes {
    fn have_room_for(&self, job: &Job) -> bool {
        let share = self.share(job);
        self.running == 0
            || (self.running < PROCESSES_MAX && self.busy + share <= self.cores + 0.01)
    }

    fn share(&self, job: &Job) -> f64 {
        // More than all cores, so that it runs alone.
        if job.row.runs == Runs::Alone { self.cores + 1.0 } else { job.row.cores.min(self.cores) }
    }

    fn enter(&mut self, job: &Job) {
        self.busy += self.share(job);
        self.running += 1;
    }

    fn leave(&mut self, job: &Job) {
        self.busy -= self.share(job);
        self.running -= 1;
    }
}

fn run_one(
    job: &Job,
    artifacts: &Artifacts,
    arguments: &Arguments,
    output: PathBuf,
) -> io::Result<Ended> {
    let mut command = Command::new(&job.binary.executable);
    let threads = job.row.cores.ceil().max(1.0);
    command.arg(format!("--test-threads={threads}"));
    if arguments.long {
        command.arg("--include-ignored").env(variable::LONG, "1");
    }
    command.arg("--exact").args(&job.tests);
    command.current_dir(&job.binary.folder);
    command.env("CARGO", &artifacts.cargo).env("CARGO_MANIFEST_DIR", &job.binary.folder);
    command.env(variable::LIBRARY, &artifacts.library);
    command.env(variable::CACHE, artifacts.cache());
    command.env(variable::SKIPS, Report::skips_of(&output));
    command.env(variable::NOTES, Report::notes_of(&output));
    process::run(&mut command, &output, if arguments.long { LONG_PATIENCE } else { PATIENCE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifacts::Binary;
    use crate::schedule::Row;

    fn job(runs: Runs, cores: f64) -> Job {
        let row = Row { pattern: "x".into(), part: "house".into(), runs, cores, seconds: 1.0 };
        let binary = Binary {
            package: "x".into(),
            target: "lib".into(),
            folder: "/".into(),
            executable: "/nowhere".into(),
        };
        Job { binary, tests: vec![], row }
    }

    #[test]
    fn jobs_overlap_up_to_the_cores_and_some_run_alone() {
        let mut lanes = Lanes { cores: 2.0, busy: 0.0, running: 0 };
        let [small, one, many, alone] = [
            job(Runs::Each, 0.5),
            job(Runs::Whole, 1.0),
            job(Runs::Whole, 8.0),
            job(Runs::Alone, 1.0),
        ];
        for job in [&many, &alone] {
            assert!(lanes.have_room_for(job), "nothing else runs");
            lanes.enter(job);
            assert!(!lanes.have_room_for(&small));
            lanes.leave(job);
        }
        lanes.enter(&one);
        lanes.enter(&small);
        assert!(lanes.have_room_for(&small) && !lanes.have_room_for(&one));
        assert!(!lanes.have_room_for(&alone));
    }
}
