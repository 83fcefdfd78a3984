// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The simulated card as an engine. Packets are offered as they arrive, many are in flight at a
//! time, and they leave in the order in which the card releases them.

use crate::devices::Devices;
use crate::{Engine, Error, Ran, Stop, Way};
use freeport_card::Sim;
use freeport_ebpf::interpreter::verdict;
use freeport_ebpf::object::Object;
use freeport_xdp::{Arrival, Target};
use std::ops::RangeInclusive;

/// Packets that wait for the card or are on it, at most.
const PACKETS_MAX: usize = 256;
/// Cycles simulated between two rounds of ports and requests: a few milliseconds of real time.
const CYCLES: u64 = 1_000;
/// Packets after which the card is drained, so that it can drop its per-packet cycle records.
const REMEMBERED_MAX: u64 = 1 << 16;
/// Map number that the card reports for a redirection without a map.
const NO_MAP: u32 = u32::MAX;

/// A program of an object on the card.
pub struct OnCard {
    sim: Sim,
    program: String,
    devices: Devices,
    at_work: usize,
    /// Packets whose cycle records the card still keeps.
    remembered: u64,
    /// Cycle in which the last packet left, or in which a packet entered an empty card.
    moved_at: u64,
}

impl OnCard {
    /// Creates the engine for a program of a loaded object.
    ///
    /// # Errors
    /// The object has no such program, or the program cannot run on the card.
    pub fn new(object: &Object, sim: Sim, program: &str) -> Result<Self, Error> {
        sim.takes(program)?;
        let devices = Devices::of(object);
        let program = program.to_owned();
        Ok(Self { sim, program, devices, at_work: 0, remembered: 0, moved_at: 0 })
    }
}

impl Engine for OnCard {
    fn name(&self) -> &'static str {
        "simulated card"
    }

    fn lengths(&self) -> RangeInclusive<usize> {
        Sim::LENGTHS
    }

    fn room(&self) -> usize {
        match self.remembered {
            REMEMBERED_MAX.. => 0,
            _ => PACKETS_MAX - self.at_work,
        }
    }

    fn offer(&mut self, arrival: &Arrival<'_>) -> Result<(), Error> {
        self.sim.send(&self.program, arrival)?;
        if self.at_work == 0 {
            self.moved_at = self.sim.cycles();
        }
        self.at_work += 1;
        self.remembered += 1;
        Ok(())
    }

    fn work(&mut self) -> Result<bool, Error> {
        if self.at_work == 0 {
            return Ok(false);
        }
        self.sim.step(CYCLES);
        Ok(true)
    }

    fn take(&mut self, ran: &mut Ran) -> Result<bool, Error> {
        let Some(tags) = self.sim.take_left(&mut ran.departure) else {
            let is_stuck =
                self.at_work > 0 && self.sim.cycles() - self.moved_at > Sim::LEAVES_WITHIN;
            return if is_stuck { Err(Error::Hangs(Sim::LEAVES_WITHIN)) } else { Ok(false) };
        };
        self.moved_at = self.sim.cycles();
        self.at_work = self.at_work.saturating_sub(1);
        if self.at_work == 0 {
            self.sim.forget_stamps();
            self.remembered = 0;
        }
        ran.ingress_ifindex = tags.ifindex;
        ran.stop = (tags.stop != 0).then_some(Stop::Card(tags.stop));
        ran.way = match (ran.departure.verdict, tags.map, tags.to_all()) {
            (verdict::REDIRECT, NO_MAP, _) => Some(Way::Device(tags.key)),
            (verdict::REDIRECT, _, Some(to_all)) => {
                Some(self.devices.way(to_all, tags.ifindex, &mut self.sim)?)
            }
            (verdict::REDIRECT, map, None) => {
                Some(self.devices.way_by_key(map as usize, tags.key, &mut self.sim)?)
            }
            _ => None,
        };
        Ok(true)
    }

    fn at_work(&self) -> usize {
        self.at_work
    }

    fn target_mut(&mut self) -> &mut dyn Target {
        &mut self.sim
    }

    fn maps_changed(&mut self) {
        self.devices.forget();
    }

    fn figures(&mut self) -> Result<Vec<(&'static str, u64)>, Error> {
        let counters = self.sim.counters();
        counters.map_err(|stuck| {
            let (what, reason) = ("the card's counters".into(), stuck.to_string());
            Error::Target(freeport_xdp::Error::Refused { what, reason })
        })
    }
}
