// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interpreter, by this process's clock, including the copies of packets in and out and the
//! lookup of the program's name.

use super::work::Work;
use crate::harness;
use anyhow::Result;
use freeport_xdp::{Departure, Interpreter, Target};
use std::time::Instant;

/// Minimum number of packets per round.
const PACKETS: usize = 20_000;

/// A loaded program.
pub struct Interpreted<'w> {
    work: &'w Work,
    interpreter: Interpreter,
}

impl<'w> Interpreted<'w> {
    /// Loads the program.
    ///
    /// # Errors
    /// The interpreter rejects the program.
    pub fn load(work: &'w Work) -> Result<Self> {
        Ok(Self { work, interpreter: work.interpreter()? })
    }
}

impl harness::Subject for Interpreted<'_> {
    fn name(&self) -> &str {
        "interpreter"
    }

    fn run(&mut self) -> Result<harness::Work> {
        let packets = &self.work.packets;
        let laps = PACKETS.div_ceil(packets.len());
        let mut departure = Departure::default();
        let begin = Instant::now();
        for packet in std::iter::repeat_n(packets, laps).flatten() {
            self.interpreter.run_into(self.work.program, &packet.arrival(), &mut departure)?;
        }
        Ok(harness::Work { frames: (laps * packets.len()) as f64, elapsed: begin.elapsed() })
    }
}
