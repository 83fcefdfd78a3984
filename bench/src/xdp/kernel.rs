// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's translated program, by its test facility and its own clock.
//!
//! A program that leaves its packet as it was is repeated in the kernel; the mean has the program
//! and its call in it. One that changes its packet would see what it made of it in the run before,
//! so each packet is a call of its own, and what reading the clock takes is in the figure.

use super::work::Work;
use crate::harness;
use anyhow::{Result, ensure};
use freeport_xdp::Kernel;
use std::time::Duration;

/// Runs on one packet: a call that repeats has a fixed cost of some milliseconds.
const REPEAT: u32 = 1_000_000;
/// Times that a trace is run in a round, where each packet is a call.
const LAPS: usize = 4;

/// A loaded program.
pub struct InKernel<'w> {
    work: &'w Work,
    kernel: Kernel,
    verdict: u32,
}

impl<'w> InKernel<'w> {
    /// Loads it, and runs the first packet once.
    ///
    /// # Errors
    /// Why the kernel may not be used, or what it says against the program.
    pub fn load(work: &'w Work) -> Result<Self> {
        if let Some(refusal) = Kernel::refusal() {
            anyhow::bail!("{refusal}");
        }
        let mut kernel = Kernel::load(&work.bytes)?;
        work.fill(&mut kernel)?;
        let verdict = kernel.time(work.program, &work.packets[0].arrival(), 1)?.verdict;
        Ok(Self { work, kernel, verdict })
    }
}

impl harness::Subject for InKernel<'_> {
    fn name(&self) -> &str {
        "kernel"
    }

    fn run(&mut self) -> Result<harness::Work> {
        let Work { program, packets, is_repeatable, .. } = self.work;
        if *is_repeatable {
            let timed = self.kernel.time(program, &packets[0].arrival(), REPEAT)?;
            ensure!(timed.verdict == self.verdict, "the verdict becomes {}", timed.verdict);
            return Ok(harness::Work { frames: 1.0, elapsed: timed.mean });
        }
        let mut elapsed = Duration::ZERO;
        for packet in std::iter::repeat_n(packets, LAPS).flatten() {
            elapsed += self.kernel.time(program, &packet.arrival(), 1)?.mean;
        }
        Ok(harness::Work { frames: (LAPS * packets.len()) as f64, elapsed })
    }
}
