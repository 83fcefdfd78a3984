// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A simulated machine that a driver uses step by step: the steps of functions, and applications
//! that run on it, compete for the machine as loads do.

use super::machine::Machine;
use super::outcome::Outcome;
use crate::profile::Profile;
use crate::route::{Step, Time};
use std::collections::HashMap;

/// A machine whose steps a driver begins and waits for. Equal calls give equal results.
pub struct Session {
    machine: Machine,
    known: HashMap<Step, Option<u32>>,
    clients: u32,
    begun: u64,
}

/// Number of a step or a time that a driver waits for.
pub type Ticket = u64;

impl Session {
    /// Creates an idle machine with this number of machines of clients. `is_plain` selects the
    /// plain NIC, which has no path but [`Path::Rnic`](crate::Path::Rnic).
    pub fn new(profile: &Profile, clients: u32, is_plain: bool, seed: u64) -> Self {
        let clients = clients.max(1);
        let machine = Machine::new(profile, clients, is_plain, seed);
        Self { machine, known: HashMap::new(), clients, begun: 0 }
    }

    /// Returns the simulated time in picoseconds.
    pub fn now(&self) -> Time {
        self.machine.now()
    }

    /// Begins a step. The machine of clients, by its number, is the one whose port data pass; for
    /// steps inside the device's machine it does not matter. Returns none if the step's path does
    /// not have its operation.
    pub fn begin(&mut self, step: Step, client: u32) -> Option<Ticket> {
        let machine = &mut self.machine;
        let route = *self.known.entry(step).or_insert_with(|| {
            let route = step.route(machine.profile())?;
            Some(machine.add_route(route))
        });
        let ticket = self.begun;
        self.machine.begin(route?, client % self.clients, ticket);
        self.begun += 1;
        Some(ticket)
    }

    /// Begins to wait for a time that lies this number of picoseconds ahead.
    pub fn wait(&mut self, time: Time) -> Ticket {
        let ticket = self.begun;
        self.begun += 1;
        self.machine.wait(self.now().saturating_add(time), ticket);
        ticket
    }

    /// Forgets the use of resources and links so far.
    pub fn measure(&mut self) {
        self.machine.measure();
    }

    /// Returns the use of resources and links since the last call of [`measure`](Self::measure); it
    /// has no flows.
    pub fn outcome(&self) -> Outcome {
        self.machine.use_so_far()
    }
}

/// The tickets in the order in which they are over.
impl Iterator for Session {
    type Item = Ticket;

    /// Lets time pass until something is over, and returns its ticket; none if nothing is begun.
    fn next(&mut self) -> Option<Ticket> {
        loop {
            if let Some(ticket) = self.machine.over.pop_front() {
                return Some(ticket);
            }
            if !self.machine.step() {
                return None;
            }
        }
    }
}
