// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Jobs: processes that run one test, several, or all of a binary.

use crate::arguments::Arguments;
use crate::artifacts::{Artifacts, Binary};
use crate::schedule::{Row, Runs, Schedule};
use crate::unchanged::Unchanged;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fmt;
use std::process::Command;

/// A process to run.
#[derive(Clone, Debug)]
pub struct Job {
    pub binary: Binary,
    /// Names of the tests in the binary.
    pub tests: Vec<String>,
    pub row: Row,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tests[..] {
            [test] => write!(f, "{}::{test}", self.binary.name()),
            tests => {
                // A binary may have several such jobs, distinguished by their rows.
                let binary = self.binary.name();
                let is_part = self.row.pattern.starts_with(&binary);
                let name = if is_part { self.row.pattern.trim_end_matches(':') } else { &binary };
                write!(f, "{name} ({} tests)", tests.len())
            }
        }
    }
}

/// Jobs to run.
#[derive(Clone, Debug)]
pub struct Found {
    pub jobs: Vec<Job>,
    /// Number of tests that passed since the last change to anything they use, and are not run
    /// again.
    pub unchanged: usize,
}

/// Finds the jobs of all binaries.
///
/// # Errors
/// A binary that cannot list its tests, one without a row, or filters that match no test.
pub fn find(
    artifacts: &Artifacts,
    schedule: &Schedule,
    arguments: &Arguments,
    unchanged: &Unchanged,
) -> anyhow::Result<Found> {
    let mut found = Found { jobs: vec![], unchanged: 0 };
    for binary in &artifacts.binaries {
        let all = list(binary, &[])?;
        let ignored = if arguments.long { BTreeSet::new() } else { list(binary, &["--ignored"])? };
        let tests = all.difference(&ignored).cloned();
        let jobs = split(binary, tests, schedule, arguments)?;
        if unchanged.has_passed(binary) {
            found.unchanged += jobs.iter().map(|job| job.tests.len()).sum::<usize>();
        } else {
            found.jobs.extend(jobs);
        }
    }
    if found.jobs.is_empty() && found.unchanged == 0 {
        bail!("no test matches {:?}", arguments.filters);
    }
    Ok(found)
}

/// Splits the wanted tests of a binary into jobs.
fn split(
    binary: &Binary,
    tests: impl Iterator<Item = String>,
    schedule: &Schedule,
    arguments: &Arguments,
) -> anyhow::Result<Vec<Job>> {
    let mut jobs: Vec<Job> = vec![];
    for test in tests {
        let name = format!("{}::{test}", binary.name());
        let row = schedule.row(&name)?;
        if arguments.part.as_ref().is_some_and(|part| *part != row.part) || !arguments.wants(&name)
        {
            continue;
        }
        let together = jobs.iter_mut().find(|job| job.row == *row && row.runs != Runs::Each);
        match together {
            Some(job) => job.tests.push(test),
            None => {
                jobs.push(Job { binary: binary.clone(), tests: vec![test], row: row.clone() });
            }
        }
    }
    Ok(jobs)
}

/// Returns the tests that a binary lists.
fn list(binary: &Binary, more: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let mut command = Command::new(&binary.executable);
    command.args(["--list", "--format", "terse"]).args(more).current_dir(&binary.folder);
    let output = command.output().with_context(|| binary.executable.display().to_string())?;
    if !output.status.success() {
        bail!("{}: --list: {}", binary.name(), String::from_utf8_lossy(&output.stderr));
    }
    let lines = String::from_utf8(output.stdout).context("a test's name is not UTF-8")?;
    Ok(lines.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_is_split_as_its_rows_say() {
        let schedule = "cli packets whole 1 5\ncli::it::slow sockets each 0.5 8\n\
            cli::it::quick:: packets whole 1 1\n";
        let folder = std::env::temp_dir();
        let file = folder.join(format!("freeport-schedule-{}", std::process::id()));
        std::fs::write(&file, schedule).expect("it can be written");
        let schedule = Schedule::read(&file).expect("it is right");
        std::fs::remove_file(file).expect("it is ours");
        let binary = Binary {
            package: "cli".into(),
            target: "it".into(),
            folder,
            executable: "/nowhere".into(),
        };
        let names = |arguments: &Arguments| {
            let tests = ["a", "slow::b", "c", "slow::d", "quick::e", "quick::f"]
                .into_iter()
                .map(str::to_owned);
            let jobs = split(&binary, tests, &schedule, arguments).expect("all have rows");
            jobs.iter().map(Job::to_string).collect::<Vec<_>>()
        };
        let [slow, other] = ["cli::it::slow::b", "cli::it::slow::d"];
        let all = ["cli::it (2 tests)", slow, other, "cli::it::quick (2 tests)"];
        assert_eq!(names(&Arguments::default()), all);
        let part = Arguments { part: Some("sockets".into()), ..Arguments::default() };
        assert_eq!(names(&part), all[1..3]);
        let filtered = Arguments { filters: vec!["it::a".into()], ..Arguments::default() };
        assert_eq!(names(&filtered), ["cli::it::a"]);
    }
}
