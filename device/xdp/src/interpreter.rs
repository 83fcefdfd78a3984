// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interpreter as a target.

use crate::{Arrival, Contents, Departure, Error, Target};
use freeport_ebpf::interpreter::{Environment, Machine, Observer, Outcome, Packet};
use freeport_ebpf::maps::{ErrorNumber, Map};
use freeport_ebpf::object::{MapKind, Object};

/// An object in the interpreter.
pub struct Interpreter {
    machine: Machine,
    programs: Vec<String>,
    maps: Vec<String>,
    packet: Packet,
    last: Option<Outcome>,
}

impl Interpreter {
    /// Loads an object with all its programs and maps into a world.
    ///
    /// # Errors
    /// What is wrong with the object, or what of it cannot run here.
    pub fn load(object: &Object, environment: Environment) -> Result<Self, Error> {
        let load = |error: &dyn std::fmt::Display| Error::Load(error.to_string());
        let machine = Machine::load(object, environment).map_err(|error| load(&error))?;
        let packet = Packet::new(&[]).map_err(|error| load(&error))?;
        let programs = object.programs.iter().map(|program| program.name.clone()).collect();
        let maps = object.maps.iter().map(|map| map.name.clone()).collect();
        Ok(Self { machine, programs, maps, packet, last: None })
    }

    /// What came of the last packet, with where it was redirected to and why it was aborted.
    pub fn last(&self) -> Option<&Outcome> {
        self.last.as_ref()
    }

    /// Runs a program on a packet, as [`Target::run`] does, with an observer who is told of each
    /// instruction.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn run_observed(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Departure, Error> {
        self.run_with(program, arrival, |machine, number, packet| {
            machine.run_observed(number, packet, observer)
        })
    }

    fn run_with(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        run: impl FnOnce(&mut Machine, usize, &mut Packet) -> Outcome,
    ) -> Result<Departure, Error> {
        let found = self.programs.iter().position(|name| name == program);
        let number = found.ok_or_else(|| Error::NoProgram(program.into()))?;
        self.packet
            .fill(arrival.bytes)
            .map_err(|error| Error::Refused { what: program.into(), reason: error.to_string() })?;
        self.packet.ingress_ifindex = arrival.ingress_ifindex;
        self.packet.rx_queue_index = arrival.rx_queue_index;
        let outcome = run(&mut self.machine, number, &mut self.packet);
        let verdict = outcome.verdict;
        self.last = Some(outcome);
        let (bytes, metadata) = (self.packet.bytes().to_vec(), self.packet.metadata().to_vec());
        Ok(Departure { verdict, bytes, metadata })
    }

    fn map(&mut self, name: &str) -> Result<&mut Map, Error> {
        self.machine.map_mut(name).ok_or_else(|| Error::NoMap(name.into()))
    }

    fn number_of(&self, name: &str) -> Result<usize, Error> {
        let found = self.maps.iter().position(|map| map == name);
        found.ok_or_else(|| Error::NoMap(name.into()))
    }
}

impl Target for Interpreter {
    fn run(&mut self, program: &str, arrival: &Arrival<'_>) -> Result<Departure, Error> {
        self.run_with(program, arrival, Machine::run)
    }

    fn update(&mut self, map: &str, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.map(map)?.update(key, value, 0).map_err(refused("updating", map))
    }

    fn delete(&mut self, map: &str, key: &[u8]) -> Result<(), Error> {
        self.map(map)?.delete(key).map_err(refused("deleting in", map))
    }

    fn push(&mut self, map: &str, value: &[u8]) -> Result<(), Error> {
        self.map(map)?.push(value, 0).map_err(refused("pushing to", map))
    }

    fn put_inside(&mut self, outer: &str, key: &[u8], inner: &str) -> Result<(), Error> {
        let (outer_map, inner) = (self.number_of(outer)?, self.number_of(inner)?);
        self.machine.set_inner(outer_map, key, inner).map_err(refused("putting a map into", outer))
    }

    fn maps(&self) -> Vec<String> {
        self.maps.clone()
    }

    fn contents(&mut self, map: &str) -> Result<Contents, Error> {
        let found = self.map(map)?;
        Ok(match found.definition().kind {
            MapKind::Queue | MapKind::Stack => {
                Contents::Items(std::iter::from_fn(|| found.pop().ok()).collect())
            }
            MapKind::RingBuffer => Contents::Items(found.take_records()),
            MapKind::ProgramArray
            | MapKind::PerfEventArray
            | MapKind::ArrayOfMaps
            | MapKind::HashOfMaps
            | MapKind::Xskmap
            | MapKind::BloomFilter => Contents::Opaque,
            _ => Contents::Entries(found.entries().into_iter().collect()),
        })
    }
}

fn refused(what: &str, map: &str) -> impl FnOnce(ErrorNumber) -> Error {
    let what = format!("{what} {map}");
    move |error| Error::Refused { what, reason: error.to_string() }
}
