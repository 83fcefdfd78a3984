// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and times of a driver outside the simulation.

use super::{Machine, Pending, Poster};
use crate::route::{Route, Time};
use crate::simulator::events::Event;

impl Machine {
    pub(in crate::simulator) fn now(&self) -> Time {
        self.now
    }

    pub(in crate::simulator) fn profile(&self) -> &crate::profile::Profile {
        &self.profile
    }

    /// Adds a route, and returns its number.
    pub(in crate::simulator) fn add_route(&mut self, route: Route) -> u32 {
        self.routes.push(route);
        (self.routes.len() - 1) as u32
    }

    /// Begins a request on a route, from a machine of clients. Its number is over when it is done.
    pub(in crate::simulator) fn begin(&mut self, route: u32, machine: u32, number: u64) {
        let (by, since) = (Poster::Driver(number), self.now);
        self.add_request(Pending { load: route, by, machine, since, ..Pending::default() });
        self.advance_ready();
    }

    /// Lets a number be over at a time.
    pub(in crate::simulator) fn wait(&mut self, until: Time, number: u64) {
        self.events.schedule(until.max(self.now), Event::Due(number));
    }
}
