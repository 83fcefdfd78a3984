// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Continuous streams of packets: many are on the card at a time, and each leaves with its outcome.

use super::{Failure, Sim, TRANSFER_CYCLES, WATCHDOG_CYCLES, check_length};
use crate::{NicError, Tags, control};
use freeport_xdp::{Arrival, Departure, Error};

impl Sim {
    /// Cycles within which the first packet in line must leave; otherwise the card hangs.
    pub const LEAVES_WITHIN: u64 = WATCHDOG_CYCLES + TRANSFER_CYCLES;

    /// Sends a packet after those that were sent before. All packets leave, whatever their verdict;
    /// [`step`](Self::step) advances them.
    ///
    /// # Errors
    /// There is no such program, the card does not accept the packet, or it does not answer.
    pub fn send(&mut self, program: &str, arrival: &Arrival<'_>) -> Result<(), Error> {
        let row = self.row_of(program)?;
        check_length(program, arrival)?;
        self.start(row, control::EMIT_ALL).map_err(|error| Failure::from(error).of(program))?;
        self.nic.send(arrival);
        Ok(())
    }

    /// Advances the clock.
    pub fn step(&mut self, cycles: u64) {
        self.nic.step(cycles);
    }

    /// Takes the next packet that has left, if there is one.
    pub fn take_left(&mut self, departure: &mut Departure) -> Option<Tags> {
        let tags = self.nic.receive(0, &mut self.bytes)?;
        self.fill(tags, departure);
        Some(tags)
    }

    /// Forgets the times of packets, which would otherwise grow without bound. No packet may be on
    /// the card.
    pub fn forget_stamps(&mut self) {
        self.nic.forget();
    }

    /// Returns the number of cycles since the card was created.
    pub fn cycles(&self) -> u64 {
        self.nic.cycles()
    }

    /// Returns the card's counters, by name.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn counters(&mut self) -> Result<Vec<(&'static str, u64)>, NicError> {
        self.nic.counters()
    }
}
