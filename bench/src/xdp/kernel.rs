// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's translated program, by its test facility and its own clock.
//!
//! A program that leaves its packet as it was is repeated in the kernel; the mean has the program
//! and its call in it. One that changes its packet would see what it made of it in the run before,
//! so each packet is a call of its own, and what reading the clock takes is in the figure.
//!
//! It is all done on a host of its own, whose devices have the numbers that maps of devices name.

use super::work::Work;
use crate::harness;
use crate::network::Host;
use anyhow::{Result, ensure};
use freeport_xdp::Kernel;
use std::time::Duration;

/// Runs on one packet: a call that repeats has a fixed cost of some milliseconds.
const REPEAT: u32 = 1_000_000;
/// Times that a trace is run in a round, where each packet is a call.
const LAPS: usize = 4;

/// Devices 2 and 3, beside the loopback, which is 1.
const DEVICES: &str = "link add fp2 index 2 type veth peer name fp3 index 3\n";

/// A loaded program.
pub struct InKernel<'w> {
    work: &'w Work,
    host: Host,
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
        let host = Host::new("kernel")?;
        host.ip(DEVICES)?;
        let (kernel, verdict) = host.within(|| {
            let mut kernel = Kernel::load(&work.bytes)?;
            work.fill(&mut kernel)?;
            let verdict = kernel.time(work.program, &work.packets[0].arrival(), 1)?.verdict;
            Ok((kernel, verdict))
        })?;
        Ok(Self { work, host, kernel, verdict })
    }
}

impl harness::Subject for InKernel<'_> {
    fn name(&self) -> &str {
        "kernel"
    }

    fn run(&mut self) -> Result<harness::Work> {
        let Self { work, host, kernel, verdict } = self;
        host.within(|| {
            if work.is_repeatable { repeat(work, kernel, *verdict) } else { pass(work, kernel) }
        })
    }
}

/// The first packet again and again.
fn repeat(work: &Work, kernel: &mut Kernel, verdict: u32) -> Result<harness::Work> {
    let timed = kernel.time(work.program, &work.packets[0].arrival(), REPEAT)?;
    ensure!(timed.verdict == verdict, "the verdict becomes {}", timed.verdict);
    Ok(harness::Work { frames: 1.0, elapsed: timed.mean })
}

/// One packet after the other, each by a call.
fn pass(work: &Work, kernel: &mut Kernel) -> Result<harness::Work> {
    let mut elapsed = Duration::ZERO;
    for packet in std::iter::repeat_n(&work.packets, LAPS).flatten() {
        elapsed += kernel.time(work.program, &packet.arrival(), 1)?.mean;
    }
    Ok(harness::Work { frames: (LAPS * work.packets.len()) as f64, elapsed })
}
