// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's JIT-compiled program, measured by its test facility and clock.
//!
//! A program that leaves its packet unchanged is repeated in the kernel; the mean covers the
//! program and its call. A program that changes its packet would see its own output in the next
//! run, so each packet is a separate call, whose time includes reading the clock.
//!
//! Everything runs on a separate host, whose devices have the indices that device maps name.

use super::work::Work;
use crate::harness;
use crate::network::Host;
use anyhow::{Result, ensure};
use freeport_xdp::Kernel;
use std::time::Duration;

/// Runs on one packet: a call that repeats has a fixed cost of some milliseconds.
const REPEAT: u32 = 1_000_000;
/// Passes over a trace per round, where each packet is a separate call.
const LAPS: usize = 4;

/// Devices 2 and 3, in addition to the loopback, which is 1.
const DEVICES: &str = "link add fp2 index 2 type veth peer name fp3 index 3\n";

/// A loaded program.
pub struct InKernel<'w> {
    work: &'w Work,
    host: Host,
    kernel: Kernel,
    verdict: u32,
}

impl<'w> InKernel<'w> {
    /// Loads the program, and runs the first packet once.
    ///
    /// # Errors
    /// The kernel may not be used, or rejects the program.
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

/// Runs the first packet repeatedly.
fn repeat(work: &Work, kernel: &mut Kernel, verdict: u32) -> Result<harness::Work> {
    let timed = kernel.time(work.program, &work.packets[0].arrival(), REPEAT)?;
    ensure!(timed.verdict == verdict, "the verdict becomes {}", timed.verdict);
    Ok(harness::Work { frames: 1.0, elapsed: timed.mean })
}

/// Runs one packet after the other, each by a call.
fn pass(work: &Work, kernel: &mut Kernel) -> Result<harness::Work> {
    let mut elapsed = Duration::ZERO;
    for packet in std::iter::repeat_n(&work.packets, LAPS).flatten() {
        elapsed += kernel.time(work.program, &packet.arrival(), 1)?.mean;
    }
    Ok(harness::Work { frames: (LAPS * work.packets.len()) as f64, elapsed })
}
