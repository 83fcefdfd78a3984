// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress of long operations in one line on standard error: a line by itself, and a receiver that
//! reports its frames and limits the size of batches.

use freeport_port::{Batch, PortError, Receive};
use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

const QUIET_FOR: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_millis(500);

/// A line that is overwritten. Nothing is shown in the first two seconds, and nothing if standard
/// error is not a terminal.
pub struct ProgressLine {
    started: Instant,
    reported: Option<Instant>,
}

impl Default for ProgressLine {
    fn default() -> Self {
        Self { started: Instant::now(), reported: None }
    }
}

impl ProgressLine {
    /// Whether a line would be shown now.
    pub fn is_due(&self) -> bool {
        let is_late = self.reported.is_none_or(|reported| reported.elapsed() >= EVERY);
        is_late && self.started.elapsed() >= QUIET_FOR && std::io::stderr().is_terminal()
    }

    /// Shows a line if one is due.
    pub fn tell(&mut self, line: &str) {
        if !self.is_due() {
            return;
        }
        eprint!("\r{line} \x1b[K");
        // An error here does not matter to the operation.
        let _ = std::io::stderr().flush();
        self.reported = Some(Instant::now());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.reported.is_some() {
            eprintln!();
        }
    }
}

/// A receiver that reports progress.
pub struct Progress<P> {
    inner: P,
    most: usize,
    frames: u64,
    line: ProgressLine,
}

impl<P> Progress<P> {
    /// Wraps a receiver; a batch has at most `most` frames.
    pub fn new(inner: P, most: usize) -> Self {
        Self { inner, most, frames: 0, line: ProgressLine::default() }
    }

    fn tell(&mut self) {
        if self.line.is_due() {
            let seconds = self.line.started.elapsed().as_secs_f64();
            let rate = self.frames as f64 / seconds;
            let line = format!("{} frames in {seconds:.1} s, {rate:.0} per second", self.frames);
            self.line.tell(&line);
        }
    }
}

impl<P: Receive> Receive for Progress<P> {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        self.tell();
        let batch = self.inner.receive(most.min(self.most))?;
        self.frames += batch.len() as u64;
        Ok(batch)
    }

    fn is_ended(&self) -> bool {
        self.inner.is_ended()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.inner.readiness()
    }

    fn lost(&self) -> u64 {
        self.inner.lost()
    }

    fn remarks(&self) -> Vec<String> {
        self.inner.remarks()
    }
}
