// SPDX-License-Identifier: Apache-2.0 OR MIT
//! FastClick as a subject, if a build of it is given: a configuration of its standard elements
//! processes frames in memory, between preloaded packets and a counter.
//!
//! It replays 4,096 frames, as many as Freeport's ring holds, so it meets at most that many flows:
//! its table lookups are easier. An element that modifies a packet copies it first, as Click does
//! with shared packets. The rate is that of its own counter.

use super::case::{Case, ClickJob};
use super::flows::{Flows, RING_FRAMES};
use super::ours::hexadecimal;
use crate::harness::namespace::run;
use crate::harness::{Subject, Work};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const PCAP_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// Frames per batch, as its input from a network card uses.
const BURST: usize = 32;

/// A FastClick program with a configuration.
pub struct ClickSubject {
    program: PathBuf,
    folder: TempDir,
    laps: usize,
    passed: usize,
}

impl ClickSubject {
    /// Configures the FastClick at `program` for a job, and compares each output frame with the
    /// model.
    ///
    /// # Errors
    /// FastClick does not run, does not know an element, or a frame differs from the model.
    pub fn new(program: &Path, job: &ClickJob, case: &dyn Case, flows: &Flows) -> Result<Self> {
        let folder =
            tempfile::tempdir().context("no temporary folder can be created for FastClick")?;
        let frames: Vec<Vec<u8>> = flows.frames().take(RING_FRAMES).collect();
        std::fs::write(folder.path().join("in.pcap"), capture(&frames))?;
        let laps = job.frames.div_ceil(RING_FRAMES);
        let mut subject = Self { program: program.to_owned(), folder, laps, passed: 0 };
        let mut model = case.model();
        let expected: Vec<Vec<u8>> = frames.iter().filter_map(|frame| model(frame)).collect();
        subject.passed = expected.len();
        subject.write("check.click", &subject.text(job, 1, "ToDump(FILE, SNAPLEN 0)"))?;
        subject.write("run.click", &subject.text(job, laps, "Discard"))?;
        subject.start("check.click", 1)?;
        let made = std::fs::read(subject.folder.path().join("out.pcap"))?;
        let (mut made, mut expected) = (frames_of(&made)?, expected);
        // Batches are split where paths diverge, so frames of one path overtake others.
        made.sort_unstable();
        expected.sort_unstable();
        ensure!(made.len() == expected.len(), "{} frames, not {}", made.len(), expected.len());
        for (number, (made, expected)) in made.iter().zip(&expected).enumerate() {
            ensure!(
                made == expected,
                "output frame {number}, in sorted order, is {}; expected {}",
                hexadecimal(made),
                hexadecimal(expected)
            );
        }
        Ok(subject)
    }

    fn text(&self, job: &ClickJob, laps: usize, end: &str) -> String {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let end = end.replace("FILE", &file("out.pcap"));
        format!(
            "FromDump({}, STOP false, TIMING false) -> ReplayUnqueue(STOP {laps}, BURST {BURST})\n\
             -> count :: AverageCounter -> in :: Null;\nout :: Counter -> {end};\n{}\n\
             DriverManager(wait, print \"counted $(count.count) $(out.count) $(count.rate)\", \
             stop);\n",
            file("in.pcap"),
            job.elements
        )
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        std::fs::write(self.folder.path().join(name), text)
            .context("FastClick's configuration cannot be written")
    }

    /// Runs a configuration; returns the rate that its counter reports.
    fn start(&self, name: &str, laps: usize) -> Result<f64> {
        let program = self.program.to_str().context("the path of FastClick is not UTF-8")?;
        let file = self.folder.path().join(name);
        let file = file.to_str().context("the path of the temporary folder is not UTF-8")?;
        // It waits forever if a frame is lost.
        let output = run("timeout", &["60", program, file], "")?;
        let (came, left, rate) = counts_of(&output)?;
        let expected = (laps * RING_FRAMES, laps * self.passed);
        ensure!(
            (came, left) == expected,
            "{came} frames came in and {left} went out, not {expected:?}"
        );
        Ok(rate)
    }
}

/// Parses the output of a configuration: frames in, frames out, rate.
fn counts_of(output: &str) -> Result<(usize, usize, f64)> {
    let line = output.lines().find_map(|line| line.strip_prefix("counted "));
    let line = line.context("FastClick printed no counters")?;
    let mut words = line.split_whitespace();
    let mut next = || words.next().context("FastClick printed too few counters");
    Ok((next()?.parse()?, next()?.parse()?, next()?.parse()?))
}

/// Returns the frames as a capture file.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let words = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1];
    let mut file: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (at, frame) in (0_u32..).zip(frames) {
        let length = frame.len() as u32;
        file.extend([0, at, length, length].iter().flat_map(|word| word.to_le_bytes()));
        file.extend(frame);
    }
    file
}

/// Returns the frames of a capture file that FastClick wrote on this machine.
fn frames_of(file: &[u8]) -> Result<Vec<&[u8]>> {
    let mut rest = file.get(PCAP_HEADER_BYTES..).context("the capture file has no header")?;
    let mut frames = vec![];
    while !rest.is_empty() {
        let length = rest.get(8..12).and_then(|bytes| bytes.try_into().ok());
        let length = u32::from_le_bytes(length.context("the capture file is truncated")?) as usize;
        let frame = rest.get(RECORD_HEADER_BYTES..).and_then(|rest| rest.get(..length));
        frames.push(frame.context("the capture file is truncated")?);
        rest = &rest[RECORD_HEADER_BYTES + length..];
    }
    Ok(frames)
}

impl Subject for ClickSubject {
    fn name(&self) -> &str {
        "FastClick"
    }

    fn run(&mut self) -> Result<Work> {
        let rate = self.start("run.click", self.laps)?;
        let frames = (self.laps * RING_FRAMES) as f64;
        Ok(Work { frames, elapsed: Duration::from_secs_f64(frames / rate.max(1.0)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_read_as_they_were_written() {
        let frames = vec![vec![1; 60], vec![2; 1_500]];
        let file = capture(&frames);
        assert_eq!(frames_of(&file).expect("a good file"), frames);
        assert!(frames_of(&file[..file.len() - 1]).is_err());
        assert!(frames_of(&file[..20]).is_err());
    }

    #[test]
    fn counts_are_found_among_what_click_says() {
        let said = "Loading ReplayUnqueue@2 with 1 inputs.\ncounted 8192 8100 15603809.5\n";
        assert_eq!(counts_of(said).expect("they are there"), (8_192, 8_100, 15_603_809.5));
        assert!(counts_of("counted 1").is_err());
        assert!(counts_of("").is_err());
    }
}
