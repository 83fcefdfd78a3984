// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs programs on the card with an observer.

use super::{Failure, Sim, TRANSFER_CYCLES, WATCHDOG_CYCLES, check_length};
use crate::nic::control;
use crate::{Cycles, Moment, NicError, Stamp, Watcher};
use freeport_xdp::{Arrival, Departure, Error};

impl Sim {
    /// Sends packets as fast as the card takes them, as [`run_stream`](Self::run_stream) does, and
    /// returns the attribution of their cycles.
    ///
    /// # Errors
    /// As [`run_stream`](Self::run_stream).
    pub fn count_stream(
        &mut self,
        program: &str,
        arrivals: &[Arrival<'_>],
    ) -> Result<Cycles, Error> {
        let mut cycles = Cycles::new();
        self.stream(program, arrivals, Some(&mut |moment: &Moment| cycles.count(moment)))?;
        Ok(cycles)
    }

    /// Sends packets as fast as the card takes them, as [`run_stream`](Self::run_stream) does, and
    /// also returns the attribution of cycles from the first verdict to the last one. The card has
    /// one core in use.
    ///
    /// # Errors
    /// As [`run_stream`](Self::run_stream).
    pub fn run_counted(
        &mut self,
        program: &str,
        arrivals: &[Arrival<'_>],
    ) -> Result<(Vec<Stamp>, Cycles), Error> {
        let mut cycles = Cycles::between_verdicts();
        let watcher = &mut |moment: &Moment| cycles.count(moment);
        let stamps = self.stream(program, arrivals, Some(watcher))?;
        Ok((stamps, cycles))
    }

    /// Runs a program on a packet, as [`Target::run_into`](freeport_xdp::Target::run_into) does,
    /// and shows each cycle from the packet's arrival to its departure.
    ///
    /// # Errors
    /// As [`Target::run_into`](freeport_xdp::Target::run_into).
    pub fn run_watched(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        departure: &mut Departure,
        watcher: Watcher<'_>,
    ) -> Result<(), Error> {
        let failed = |error: NicError| Failure::from(error).of(program);
        let row = self.row_of(program)?;
        check_length(program, arrival)?;
        self.start(row, control::EMIT_ALL).map_err(failed)?;
        self.nic.send(arrival);
        let cycles_max = WATCHDOG_CYCLES + TRANSFER_CYCLES;
        let watched = self
            .nic
            .watched(cycles_max, watcher, |card, cycles| card.run_until_left(1, cycles) > 0);
        watched.map_err(failed)?;
        self.finish(program, departure)
    }

    /// Returns the program to which a row of the instruction memory belongs, by its number in the
    /// object, and the row's number within that program.
    pub fn place_of_row(&self, row: usize) -> Option<(usize, usize)> {
        let begun = self.programs.iter().enumerate().filter_map(|(number, program)| {
            let first = *program.row.as_ref().ok()?;
            (first <= row && row < self.rows).then_some((number, row - first))
        });
        begun.min_by_key(|(_, behind)| *behind)
    }
}
