// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Targets in user space: the maps of an object in the interpreter's machine, with any executor of
//! the programs.

use crate::{Arrival, Contents, Departure, Error, InUserSpace, Target};
use freeport_ebpf::interpreter::{Environment, Machine, Outcome, PACKET_MAX, Packet};
use freeport_ebpf::maps::{ErrorNumber, Map, flags};
use freeport_ebpf::object::{MapKind, Object};

/// Executes programs on a machine.
pub trait Executor {
    /// Returns the reason for which a program cannot run, if it cannot.
    fn refusal(&self, machine: &Machine, program: usize) -> Option<String>;

    /// Runs a program on a packet.
    ///
    /// # Errors
    /// The outcome has no meaning.
    fn run(
        &mut self,
        machine: &mut Machine,
        program: usize,
        packet: &mut Packet,
    ) -> Result<Outcome, Error>;
}

/// An object in a machine, with the executor of its programs.
pub struct Hosted<E> {
    pub(crate) executor: E,
    machine: Machine,
    programs: Vec<String>,
    maps: Vec<String>,
    packet: Packet,
    last: Option<Outcome>,
}

impl<E: Executor> Hosted<E> {
    /// Loads an object with its maps into an environment.
    ///
    /// # Errors
    /// The object is malformed or unsupported.
    pub fn with_executor(
        object: &Object,
        executor: E,
        environment: Environment,
    ) -> Result<Self, Error> {
        let load = |error: &dyn std::fmt::Display| Error::Load(error.to_string());
        let machine = Machine::load_partly(object, environment).map_err(|error| load(&error))?;
        let packet = Packet::new(&[]).map_err(|error| load(&error))?;
        let programs = object.programs.iter().map(|program| program.name.clone()).collect();
        let maps = object.maps.iter().map(|map| map.name.clone()).collect();
        Ok(Self { executor, machine, programs, maps, packet, last: None })
    }

    /// Returns the outcome of the last packet, with its redirection and the reason for an abort.
    pub fn last(&self) -> Option<&Outcome> {
        self.last.as_ref()
    }

    /// Returns the environment that programs see, to be changed between packets.
    pub fn environment_mut(&mut self) -> &mut Environment {
        self.machine.environment_mut()
    }

    /// Takes the lines that programs have printed; the last few thousand are kept.
    pub fn take_trace(&mut self) -> Vec<String> {
        self.machine.take_trace()
    }

    /// Checks that a program can run here.
    ///
    /// # Errors
    /// There is no such program, or it has unsupported instructions; all of them are listed.
    pub fn takes(&self, program: &str) -> Result<(), Error> {
        self.runnable(program).map(|_| ())
    }

    pub(crate) fn run_with(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        departure: &mut Departure,
        run: impl FnOnce(&mut E, &mut Machine, usize, &mut Packet) -> Result<Outcome, Error>,
    ) -> Result<(), Error> {
        let number = self.runnable(program)?;
        self.packet
            .fill(arrival.bytes)
            .map_err(|error| Error::Refused { what: program.into(), reason: error.to_string() })?;
        self.packet.ingress_ifindex = arrival.ingress_ifindex;
        self.packet.rx_queue_index = arrival.rx_queue_index;
        self.last = None;
        let outcome = run(&mut self.executor, &mut self.machine, number, &mut self.packet)?;
        departure.verdict = outcome.verdict;
        self.last = Some(outcome);
        fill(&mut departure.bytes, self.packet.bytes());
        fill(&mut departure.metadata, self.packet.metadata());
        Ok(())
    }

    /// Returns the number of a program, if it can run here.
    fn runnable(&self, name: &str) -> Result<usize, Error> {
        let found = self.programs.iter().position(|program| program == name);
        let number = found.ok_or_else(|| Error::NoProgram(name.into()))?;
        let refusal = self.executor.refusal(&self.machine, number);
        refusal.map_or(Ok(number), |reasons| Err(Error::Unsupported(reasons)))
    }

    fn map(&mut self, name: &str) -> Result<&mut Map, Error> {
        self.machine.map_mut(name).ok_or_else(|| Error::NoMap(name.into()))
    }

    fn number_of(&self, name: &str) -> Result<usize, Error> {
        let found = self.maps.iter().position(|map| map == name);
        found.ok_or_else(|| Error::NoMap(name.into()))
    }
}

impl<E: Executor> InUserSpace for Hosted<E> {
    const LENGTH_MAX: usize = PACKET_MAX;

    fn takes(&self, program: &str) -> Result<(), Error> {
        Hosted::takes(self, program)
    }

    fn last(&self) -> Option<&Outcome> {
        Hosted::last(self)
    }
}

impl<E: Executor> Target for Hosted<E> {
    fn run_into(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        departure: &mut Departure,
    ) -> Result<(), Error> {
        self.run_with(program, arrival, departure, E::run)
    }

    fn update_with(
        &mut self,
        map: &str,
        key: &[u8],
        value: &[u8],
        flags: u64,
    ) -> Result<(), Error> {
        self.map(map)?.update(key, value, flags).map_err(refused("updating", map))
    }

    fn delete(&mut self, map: &str, key: &[u8]) -> Result<(), Error> {
        self.map(map)?.delete(key).map_err(refused("deleting in", map))
    }

    fn lookup(&mut self, map: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        match self.map(map)?.lookup(key) {
            Ok(value) => Ok(Some(value.to_vec())),
            Err(ErrorNumber::ENOENT) => Ok(None),
            Err(error) => Err(refused("looking up in", map)(error)),
        }
    }

    fn push(&mut self, map: &str, value: &[u8]) -> Result<(), Error> {
        self.map(map)?.push(value, 0).map_err(refused("pushing to", map))
    }

    fn put_inside(&mut self, outer: &str, key: &[u8], inner: &str) -> Result<(), Error> {
        let (outer_map, inner) = (self.number_of(outer)?, self.number_of(inner)?);
        self.machine.set_inner(outer_map, key, inner).map_err(refused("putting a map into", outer))
    }

    fn put_program(&mut self, map: &str, key: &[u8], program: &str) -> Result<(), Error> {
        let number = self.runnable(program)?;
        let found = self.map(map)?;
        if found.definition().kind != MapKind::ProgramArray {
            return Err(refused("putting a program into", map)(ErrorNumber::EINVAL));
        }
        let result = found.update(key, &(number as u32).to_ne_bytes(), flags::ANY);
        result.map_err(refused("putting a program into", map))
    }

    fn maps(&self) -> Vec<String> {
        self.maps.clone()
    }

    fn contents(&mut self, map: &str) -> Result<Contents, Error> {
        let found = self.map(map)?;
        if found.is_absent() {
            return Ok(Contents::Opaque);
        }
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

/// Replaces the contents of a vector, and reuses its allocation.
fn fill(vector: &mut Vec<u8>, bytes: &[u8]) {
    vector.clear();
    vector.extend_from_slice(bytes);
}

fn refused(what: &str, map: &str) -> impl FnOnce(ErrorNumber) -> Error {
    let what = format!("{what} {map}");
    move |error| Error::Refused { what, reason: error.to_string() }
}
