// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A receiver that tells on standard error how far a long run is, and keeps batches small if asked.

use freeport_nic::port::{Batch, PortError, Receive};
use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

const QUIET_FOR: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_millis(500);

/// Wraps the receiver of an outer end.
pub struct Progress<P> {
    inner: P,
    most: usize,
    frames: u64,
    started: Instant,
    told: Instant,
    has_told: bool,
}

impl<P> Progress<P> {
    /// Lends at most `most` frames at a time.
    pub fn new(inner: P, most: usize) -> Self {
        let now = Instant::now();
        Self { inner, most, frames: 0, started: now, told: now, has_told: false }
    }

    fn tell(&mut self) {
        let elapsed = self.started.elapsed();
        if elapsed < QUIET_FOR || self.told.elapsed() < EVERY || !std::io::stderr().is_terminal() {
            return;
        }
        let seconds = elapsed.as_secs_f64();
        let rate = self.frames as f64 / seconds;
        eprint!("\r{} frames in {seconds:.1} s, {rate:.0} a second \x1b[K", self.frames);
        // A progress line that cannot be shown is no reason to stop.
        let _ = std::io::stderr().flush();
        self.told = Instant::now();
        self.has_told = true;
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
}

impl<P> Drop for Progress<P> {
    fn drop(&mut self) {
        if self.has_told {
            eprintln!();
        }
    }
}
