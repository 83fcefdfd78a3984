// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results: failures as they occur, and at the end the counts, the skips with their reasons, and
//! where the time went.

use crate::artifacts::Binary;
use crate::jobs::Job;
use crate::libtest;
use crate::process::{self, Ended};
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Number of jobs whose times are listed at the end.
const SLOWEST: usize = 15;
/// Number of output lines shown of a failed process.
const LINES_SHOWN: usize = 400;

/// State of a run.
pub struct Report {
    folder: PathBuf,
    begin: Instant,
    build_seconds: f64,
    jobs: usize,
    ended: usize,
    unchanged: usize,
    passed: usize,
    failures: Vec<String>,
    skips: Vec<Skip>,
    notes: Vec<String>,
    /// Elapsed and processor seconds of each job.
    times: BTreeMap<String, [f64; 2]>,
    clean: Vec<Binary>,
    unclean: BTreeSet<String>,
}

/// A skipped test.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Skip {
    test: String,
    reason: String,
}

impl Report {
    /// Starts the report of a run of `jobs` jobs, with its files in a folder.
    ///
    /// # Errors
    /// Files of an earlier run cannot be removed.
    pub fn new(
        folder: &Path,
        build_seconds: f64,
        jobs: usize,
        unchanged: usize,
    ) -> anyhow::Result<Self> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("job-") {
                fs::remove_file(&path).with_context(|| path.display().to_string())?;
            }
        }
        println!("built in {build_seconds:.0} s; {jobs} jobs");
        Ok(Self {
            folder: folder.to_owned(),
            begin: Instant::now(),
            build_seconds,
            jobs,
            ended: 0,
            unchanged,
            passed: 0,
            failures: vec![],
            skips: vec![],
            notes: vec![],
            times: BTreeMap::new(),
            clean: vec![],
            unclean: BTreeSet::new(),
        })
    }

    /// Returns the file for the output of a job.
    pub fn output_of(&self, number: usize) -> PathBuf {
        self.folder.join(format!("job-{number}"))
    }

    /// Returns the file in which tests of the job that prints to `output` record skips.
    pub fn skips_of(output: &Path) -> PathBuf {
        output.with_extension("skips")
    }

    /// Returns the duration of jobs in the last run, in seconds.
    pub fn expected_seconds(&self) -> BTreeMap<String, f64> {
        let text = fs::read_to_string(self.folder.join("times.tsv")).unwrap_or_default();
        let row = |line: &str| {
            let mut cells = line.split('\t');
            Some((cells.next()?.to_owned(), cells.next()?.parse().ok()?))
        };
        text.lines().filter_map(row).collect()
    }

    /// Returns the file in which tests of the job that prints to `output` record notes for the end.
    pub fn notes_of(output: &Path) -> PathBuf {
        output.with_extension("notes")
    }

    /// Adds a job that has ended.
    ///
    /// # Errors
    /// The notes of skipped tests cannot be read.
    pub fn add(&mut self, job: &Job, number: usize, ended: Ended) -> anyhow::Result<()> {
        self.ended += 1;
        let name = job.to_string();
        self.times.insert(name.clone(), [ended.seconds, ended.processor_seconds]);
        let skips = self.take_skips(job, number)?;
        let notes = take(&Self::notes_of(&self.output_of(number)))?;
        self.notes.extend(notes.lines().map(|line| format!("{}: {line}", job.binary.name())));
        let counts = libtest::read(&ended.printed).unwrap_or_default();
        let is_good = ended.status.success()
            && counts.failed == 0
            && counts.passed + counts.ignored == job.tests.len();
        self.passed += counts.passed.saturating_sub(skips);
        let word = match (is_good, skips) {
            (false, _) => "FAILED",
            (true, 0) => "ok",
            (true, _) => "skipped",
        };
        if is_good && skips == 0 {
            self.clean.push(job.binary.clone());
        } else {
            self.unclean.insert(job.binary.name());
        }
        println!("[{:3}/{}] {word:7} {:6.1} s  {name}", self.ended, self.jobs, ended.seconds);
        if !is_good {
            self.tell_failure(job, &ended, &counts);
        }
        Ok(())
    }

    fn tell_failure(&mut self, job: &Job, ended: &Ended, counts: &libtest::Counts) {
        let name = job.binary.name();
        if counts.failures.is_empty() {
            let late = if ended.is_late { ", killed at its time limit" } else { "" };
            self.failures.push(format!("{job}: {}{late}", ended.status));
        }
        self.failures.extend(counts.failures.iter().map(|test| format!("{name}::{test}")));
        let lines: Vec<&str> = ended.printed.lines().collect();
        let from = lines.len().saturating_sub(LINES_SHOWN);
        println!("---- {job}: {}\n{}\n----", ended.status, lines[from..].join("\n"));
    }

    /// Reads and removes the skips of a job. Returns their number.
    fn take_skips(&mut self, job: &Job, number: usize) -> anyhow::Result<usize> {
        let text = take(&Self::skips_of(&self.output_of(number)))?;
        let mut tests = BTreeSet::new();
        for line in text.lines() {
            let mut cells = line.splitn(3, '\t').skip(1);
            let test = cells.next().unwrap_or_default();
            let reason = cells.next().unwrap_or_default().to_owned();
            tests.insert(test);
            self.skips.push(Skip { test: format!("{}::{test}", job.binary.name()), reason });
        }
        Ok(tests.len())
    }

    /// Returns the binaries without a failed or skipped test.
    pub fn passed_whole(&self) -> Vec<&Binary> {
        self.clean.iter().filter(|binary| !self.unclean.contains(&binary.name())).collect()
    }

    /// Prints the end of the report. Returns whether everything passed.
    ///
    /// # Errors
    /// The times cannot be written.
    pub fn finish(self) -> anyhow::Result<bool> {
        let orphans = process::end_orphans();
        let mut rows: Vec<(&String, &[f64; 2])> = self.times.iter().collect();
        rows.sort_by(|one, other| other.1[0].total_cmp(&one.1[0]));
        println!("\nslowest jobs: seconds, processor seconds");
        for (name, [seconds, processor]) in rows.iter().take(SLOWEST) {
            println!("{seconds:7.1} {processor:7.1}  {name}");
        }
        if self.unchanged > 0 {
            println!(
                "{} tests were not run: they passed, and nothing they use has changed since; \
                 --again runs them",
                self.unchanged
            );
        }
        if !orphans.is_empty() {
            println!("processes that tests left behind, now killed:\n  {}", orphans.join("\n  "));
        }
        for Skip { test, reason } in &self.skips {
            println!("skipped: {test}: {reason}");
        }
        for note in &self.notes {
            println!("noted: {note}");
        }
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        let processor = rows.iter().fold(0.0, |sum, (_, [_, processor])| sum + processor);
        println!(
            "built in {:.0} s, tested in {:.0} s and {processor:.0} s of processor time",
            self.build_seconds,
            self.begin.elapsed().as_secs_f64()
        );
        self.write_times()?;
        let skipped: BTreeSet<&str> = self.skips.iter().map(|skip| skip.test.as_str()).collect();
        println!(
            "{} passed, {} failed, {} skipped",
            self.passed,
            self.failures.len(),
            skipped.len()
        );
        Ok(self.failures.is_empty())
    }

    /// Writes the times of this run, and keeps those of jobs that only an earlier run had.
    fn write_times(&self) -> anyhow::Result<()> {
        let mut times = self.expected_seconds();
        times.extend(self.times.iter().map(|(name, [seconds, _])| (name.clone(), *seconds)));
        let lines = times.iter().map(|(name, seconds)| format!("{name}\t{seconds:.2}\n"));
        let file = self.folder.join("times.tsv");
        fs::write(&file, lines.collect::<String>()).with_context(|| file.display().to_string())
    }
}

/// Reads and removes a file; empty if it does not exist.
fn take(path: &Path) -> anyhow::Result<String> {
    if !path.exists() {
        return Ok(String::new());
    }
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    fs::remove_file(path).with_context(|| path.display().to_string())?;
    Ok(text)
}
