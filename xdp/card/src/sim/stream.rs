// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that come and go without an end: many are on the card at a time, and each leaves with
//! what became of it.

use super::{Failure, Sim, TRANSFER_CYCLES, WATCHDOG_CYCLES, check_length};
use crate::{NicError, Tags, control};
use freeport_xdp::{Arrival, Departure, Error};

impl Sim {
    /// Cycles in which a packet has left that nothing is in front of, or the card hangs.
    pub const LEAVES_WITHIN: u64 = WATCHDOG_CYCLES + TRANSFER_CYCLES;

    /// Lets a packet come behind those that were sent before. All packets leave, whatever their
    /// verdict; [`step`](Self::step) lets them.
    ///
    /// # Errors
    /// No such program, a packet that the card does not take, or a card that does not answer.
    pub fn send(&mut self, program: &str, arrival: &Arrival<'_>) -> Result<(), Error> {
        let row = self.row_of(program)?;
        check_length(program, arrival)?;
        self.start(row, control::EMIT_ALL).map_err(|error| Failure::from(error).of(program))?;
        self.nic.send(arrival);
        Ok(())
    }

    /// Lets cycles pass.
    pub fn step(&mut self, cycles: u64) {
        self.nic.step(cycles);
    }

    /// Takes the next packet that has left, if one has.
    pub fn take_left(&mut self, departure: &mut Departure) -> Option<Tags> {
        let tags = self.nic.receive(0, &mut self.bytes)?;
        self.fill(tags, departure);
        Some(tags)
    }

    /// Forgets when packets were where, which must not grow for ever. None may be on the card.
    pub fn forget_stamps(&mut self) {
        self.nic.forget();
    }

    /// Cycles since the card was made.
    pub fn cycles(&self) -> u64 {
        self.nic.cycles()
    }

    /// What the card has counted, by name.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn counters(&mut self) -> Result<Vec<(&'static str, u64)>, NicError> {
        self.nic.counters()
    }
}
