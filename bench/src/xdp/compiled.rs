// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program as compiled code in user space, by this process's clock: packets come in batches of
//! 64, as a port delivers them, and are copied into place before time is taken.

use super::work::Work;
use crate::harness;
use anyhow::Result;
use freeport_native::Options;
use freeport_xdp::traffic::Packet;
use freeport_xdp::{Arrival, Native};
use std::time::Duration;

/// Minimum number of packets per round.
const PACKETS: usize = 200_000;

/// A loaded program.
pub struct Compiled<'w> {
    native: Native,
    arrivals: Vec<Arrival<'w>>,
}

impl<'w> Compiled<'w> {
    /// Compiles the program and fills its maps.
    ///
    /// # Errors
    /// The program cannot be lifted, or the compiler is missing.
    pub fn load(work: &'w Work) -> Result<Self> {
        let mut native = Native::load(&work.object, work.program, &Options::default())?;
        work.fill(&mut native)?;
        let arrivals: Vec<Arrival<'_>> = work.packets.iter().map(Packet::arrival).collect();
        let arrivals = if let [one] = arrivals[..] { vec![one; 64] } else { arrivals };
        Ok(Self { native, arrivals })
    }
}

impl harness::Subject for Compiled<'_> {
    fn name(&self) -> &str {
        "compiled"
    }

    fn run(&mut self) -> Result<harness::Work> {
        let laps = PACKETS.div_ceil(self.arrivals.len());
        let mut elapsed = Duration::ZERO;
        for _ in 0..laps {
            elapsed += self.native.time(&self.arrivals)?;
        }
        Ok(harness::Work { frames: (laps * self.arrivals.len()) as f64, elapsed })
    }
}
