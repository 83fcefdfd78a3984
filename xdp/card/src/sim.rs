// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An object on the simulated card.

mod maps;
mod redirect;
mod refusals;
mod stream;
mod watched;

use crate::nic::control;
use crate::{Layout, Nic, NicError, Stamp, Tags, Watcher, address};
use freeport_ebpf::interpreter::verdict::REDIRECT;
use freeport_ebpf::interpreter::{Clock, Environment, Redirect};
use freeport_ebpf::object::{MapDefinition, Object, Program, SlotTarget};
use freeport_vliw::encode::encode;
use freeport_vliw::image::Image;
use freeport_vliw::operation::Operation;
use freeport_vliw::{Options, compile, with_local_helpers};
use freeport_xdp::{Arrival, Contents, Departure, Error, Profiles, Target};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Default number of cycles after which a program is stopped.
const WATCHDOG_CYCLES: u64 = 1_000_000;
/// Additional cycles of a packet for its arrival and departure.
const TRANSFER_CYCLES: u64 = 20_000;

/// An object's programs and maps on a simulated card.
pub struct Sim {
    nic: Nic,
    programs: Vec<Loaded>,
    maps: Vec<MapDefinition>,
    layout: Layout,
    /// Number of rows in the instruction memory.
    rows: usize,
    /// Last values written to `entry` and `control` of the card.
    entry: Option<(usize, u64)>,
    clock: u64,
    last: Option<Tags>,
    cycles: Option<u64>,
    bytes: Vec<u8>,
}

/// A program, with its first row or the reason for which it has none.
struct Loaded {
    name: String,
    row: Result<usize, String>,
}

impl From<NicError> for Failure {
    fn from(error: NicError) -> Self {
        Self(error.to_string())
    }
}

/// Description of a failure of the card.
struct Failure(String);

impl Failure {
    fn of(self, what: &str) -> Error {
        Error::Refused { what: what.to_owned(), reason: self.0 }
    }
}

impl Sim {
    /// Packet lengths that the card accepts. The longest is the kernel's; a packet without bytes
    /// does not appear on the bus.
    pub const LENGTHS: RangeInclusive<usize> = 1..=3520;

    /// Compiles all programs of an object that the card can execute, and loads them with its maps.
    ///
    /// # Errors
    /// The object does not fit the card, or the card does not answer.
    pub fn load(
        object: &Object,
        options: &Options,
        environment: &Environment,
    ) -> Result<Self, Error> {
        Self::load_on(new_card()?, object, options, environment)
    }

    /// As [`load`](Self::load), on a given unused card: one with several cores, for example.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_on(
        nic: Nic,
        object: &Object,
        options: &Options,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let object = with_local_helpers(object);
        let images = object.programs.iter().map(|program| {
            let image = compile(program, &object.maps, options);
            image.map_err(|unsupported| unsupported.to_string())
        });
        Self::with_images_on(nic, &object, images.collect(), environment)
    }

    /// As [`load`](Self::load), optimised for the paths in profiles: see
    /// [`compile_profiled`](freeport_vliw::compile_profiled).
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_profiled(
        object: &Object,
        profiles: &Profiles,
        environment: &Environment,
    ) -> Result<Self, Error> {
        Self::load_profiled_on(new_card()?, object, profiles, environment)
    }

    /// As [`load_profiled`](Self::load_profiled), on a given unused card.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_profiled_on(
        nic: Nic,
        object: &Object,
        profiles: &Profiles,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let object = with_local_helpers(object);
        let programs = object.programs.iter().enumerate();
        let images = programs.map(|(number, program)| {
            let image = profiles.compile(number, program, &object.maps, &Options::default());
            image.map_err(|unsupported| unsupported.to_string())
        });
        Self::with_images_on(nic, &object, images.collect(), environment)
    }

    /// As [`load_on`](Self::load_on), with given images: for each program, in the order of the
    /// object, an image or the reason for which there is none.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn with_images(
        object: &Object,
        images: Vec<Result<Image, String>>,
        environment: &Environment,
    ) -> Result<Self, Error> {
        Self::with_images_on(new_card()?, object, images, environment)
    }

    fn with_images_on(
        mut nic: Nic,
        object: &Object,
        images: Vec<Result<Image, String>>,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let failed = |error: NicError| Error::Load(error.to_string());
        let identity = nic.identity().map_err(failed)?;
        let layout = Layout::new(&object.maps, identity.map_bytes, identity.cores);
        let (mut programs, mut rows) = (vec![], vec![]);
        let bytes_per_row = 8 * usize::from(identity.lanes);
        for (program, image) in object.programs.iter().zip(images) {
            let first = rows.len() / bytes_per_row;
            let encoded = image.and_then(|image| {
                placed(program, image, first, identity.lanes, identity.rows, &layout)
            });
            let row = encoded.map(|bytes| {
                rows.extend(bytes);
                first
            });
            programs.push(Loaded { name: program.name.clone(), row });
        }
        nic.load_rows(&rows).map_err(failed)?;
        let mut sim = Self {
            nic,
            programs,
            maps: object.maps.clone(),
            layout,
            rows: rows.len() / bytes_per_row,
            entry: None,
            clock: 0,
            last: None,
            cycles: None,
            bytes: vec![],
        };
        sim.nic.host_write(address::WATCHDOG, &[WATCHDOG_CYCLES]).map_err(failed)?;
        sim.set_environment(environment).map_err(failed)?;
        sim.fill_maps().map_err(|failure| Error::Load(failure.0))?;
        sim.set_slots()?;
        Ok(sim)
    }

    /// Sets the card's time and random seed to those of the interpreter's environment.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn set_environment(&mut self, environment: &Environment) -> Result<(), NicError> {
        self.clock = match environment.clock {
            Clock::Running(_) => control::CLOCK,
            Clock::Set(_) => 0,
        };
        self.entry = None;
        self.nic.host_write(address::TIME, &[environment.clock.now_ns()])?;
        self.nic.host_write(address::RANDOM, &[environment.seed])
    }

    /// Sets initial map entries that refer to programs and maps.
    fn set_slots(&mut self) -> Result<(), Error> {
        for number in 0..self.maps.len() {
            let map = self.maps[number].clone();
            for (key, target) in map.slots {
                if self.layout.maps[number].is_err() {
                    continue;
                }
                // A missing target leaves its entry empty: a lookup or call finds nothing.
                match target {
                    SlotTarget::Program(program) => {
                        let Some(program) = self.programs.get(program) else { continue };
                        if let (name, Ok(_)) = (program.name.clone(), &program.row) {
                            self.put_program(&map.name, &key.to_ne_bytes(), &name)?;
                        }
                    }
                    SlotTarget::Map(inner) => {
                        if matches!(self.layout.maps.get(inner), Some(Ok(_))) {
                            let inner = self.maps[inner].name.clone();
                            self.put_inside(&map.name, &key.to_ne_bytes(), &inner)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the card.
    pub fn nic_mut(&mut self) -> &mut Nic {
        &mut self.nic
    }

    /// Returns the number of rows in the instruction memory that the object's programs take.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the layout of the maps.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the tags of the last packet: its redirection, and the reason for which it was
    /// stopped.
    pub fn last(&self) -> Option<&Tags> {
        self.last.as_ref()
    }

    /// Returns the destination of the last packet, if it is redirected: from its tags and the entry
    /// of the map.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn redirect(&mut self) -> Result<Option<Redirect>, Error> {
        let Some(tags) = self.last.filter(|tags| tags.verdict == REDIRECT) else { return Ok(None) };
        let found = self.redirect_of(&tags);
        found.map_err(|failure| failure.of("reading where a packet goes"))
    }

    /// Returns the cycles from the first beat of the last packet to its verdict.
    pub fn cycles_of_last(&self) -> Option<u64> {
        self.cycles
    }

    /// Returns all values of a map's entries by key: one for each entry, or one for each core of
    /// the card, in order. [`contents`](Target::contents) returns the first core's.
    ///
    /// # Errors
    /// There is no such map, or the card refuses.
    pub fn values(&mut self, map: &str) -> Result<BTreeMap<Vec<u8>, Vec<Vec<u8>>>, Error> {
        self.values_of(map).map_err(|it| it.of(&format!("reading {map}")))
    }

    /// Checks that a program can run here.
    ///
    /// # Errors
    /// There is no such program, or it cannot run.
    pub fn takes(&self, program: &str) -> Result<(), Error> {
        self.row_of(program).map(|_| ())
    }

    /// Sends packets as fast as the card takes them, and returns the times of each. Departing
    /// packets are discarded.
    ///
    /// # Errors
    /// There is no such program, the card does not accept a packet, or it does not answer.
    pub fn run_stream(
        &mut self,
        program: &str,
        arrivals: &[Arrival<'_>],
    ) -> Result<Vec<Stamp>, Error> {
        self.stream(program, arrivals, None)
    }

    /// As [`run_stream`](Self::run_stream), with an observer.
    fn stream(
        &mut self,
        program: &str,
        arrivals: &[Arrival<'_>],
        watcher: Option<Watcher<'_>>,
    ) -> Result<Vec<Stamp>, Error> {
        let row = self.row_of(program)?;
        arrivals.iter().try_for_each(|arrival| check_length(program, arrival))?;
        self.start(row, 0).map_err(|error| Failure::from(error).of(program))?;
        self.nic.forget();
        arrivals.iter().for_each(|arrival| self.nic.send(arrival));
        let count = arrivals.len() as u64;
        let cycles_max = count * (WATCHDOG_CYCLES + TRANSFER_CYCLES);
        let done = match watcher {
            None => self.nic.run_until_done(count, cycles_max),
            Some(watcher) => {
                let mut done = 0;
                let watched = self.nic.watched(cycles_max, watcher, |card, cycles| {
                    done = card.run_until_done(count, cycles);
                    done == count
                });
                watched.map_err(|error| Failure::from(error).of(program))?;
                done
            }
        };
        let stamps = self.nic.stamps(arrivals.len());
        self.nic.forget();
        self.drain().map_err(|error| Failure::from(error).of(program))?;
        if done == count {
            return Ok(stamps);
        }
        let reason = format!("packet {done} was not completed within {cycles_max} cycles");
        Err(Error::Refused { what: program.into(), reason })
    }

    /// Sends packets as fast as the card takes them, and returns the outcome of each: all of them
    /// leave, in this order. With several cores, only packets of the same flow keep their order.
    ///
    /// # Errors
    /// As [`run_stream`](Self::run_stream).
    pub fn run_together(
        &mut self,
        program: &str,
        arrivals: &[Arrival<'_>],
    ) -> Result<Vec<Departure>, Error> {
        let row = self.row_of(program)?;
        arrivals.iter().try_for_each(|arrival| check_length(program, arrival))?;
        self.start(row, control::EMIT_ALL).map_err(|error| Failure::from(error).of(program))?;
        arrivals.iter().for_each(|arrival| self.nic.send(arrival));
        let departures = arrivals.iter().map(|_| {
            let mut departure = Departure::default();
            self.receive(program, &mut departure).map(|()| departure)
        });
        let departures = departures.collect();
        self.nic.forget();
        departures
    }

    /// Receives the next packet that leaves.
    fn receive(&mut self, program: &str, departure: &mut Departure) -> Result<(), Error> {
        let cycles_max = WATCHDOG_CYCLES + TRANSFER_CYCLES;
        let tags = self.nic.receive(cycles_max, &mut self.bytes).ok_or_else(|| {
            let reason = format!("the packet did not leave within {cycles_max} cycles");
            Error::Refused { what: program.into(), reason }
        })?;
        self.last = Some(tags);
        self.fill(tags, departure);
        Ok(())
    }

    /// Converts the last packet to a departure.
    fn fill(&self, tags: Tags, departure: &mut Departure) {
        let metadata = (tags.metadata as usize).min(self.bytes.len());
        departure.verdict = tags.verdict;
        departure.metadata.clear();
        departure.metadata.extend(&self.bytes[..metadata]);
        departure.bytes.clear();
        departure.bytes.extend(&self.bytes[metadata..]);
    }

    /// Receives a packet that was sent alone, and records its cycles.
    fn finish(&mut self, program: &str, departure: &mut Departure) -> Result<(), Error> {
        let received = self.receive(program, departure);
        let stamp = self.nic.stamps(1).first().copied();
        self.cycles = stamp.filter(|_| received.is_ok()).map(|stamp| stamp.done - stamp.arrived);
        self.nic.forget();
        received
    }

    /// Drains all packets, and forgets them.
    fn drain(&mut self) -> Result<(), NicError> {
        for _ in 0..TRANSFER_CYCLES {
            let is_idle = self.nic.read(address::IDLE)? & 1 != 0;
            while self.nic.receive(0, &mut self.bytes).is_some() {}
            if is_idle {
                return Ok(());
            }
        }
        Err(NicError::Stuck { what: "packets do not leave".into() })
    }

    /// Starts programs at a row, with these bits of `control`.
    fn start(&mut self, row: usize, bits: u64) -> Result<(), NicError> {
        let wanted = Some((row, bits));
        if self.entry == wanted {
            return Ok(());
        }
        let entry = row as u64 | (self.rows as u64) << 16;
        self.nic.host_write(address::ENTRY, &[entry])?;
        let bits = control::RUN | self.clock | bits;
        self.nic.host_write(address::CONTROL, &[bits])?;
        self.entry = wanted;
        Ok(())
    }

    fn row_of(&self, name: &str) -> Result<usize, Error> {
        let found = self.programs.iter().find(|program| program.name == name);
        let program = found.ok_or_else(|| Error::NoProgram(name.into()))?;
        program.row.clone().map_err(Error::Unsupported)
    }
}

/// Creates a card with one core.
fn new_card() -> Result<Nic, Error> {
    Nic::new().map_err(|error| Error::Load(error.to_string()))
}

/// Encodes a program's rows, if the card can execute them from this row on.
fn placed(
    program: &Program,
    mut image: Image,
    first: usize,
    lanes: u8,
    rows_max: usize,
    layout: &Layout,
) -> Result<Vec<u8>, String> {
    let refused = |reason: String| format!("program `{}`: {reason}", program.name);
    if image.machine.lanes != lanes {
        let compiled = image.machine.lanes;
        return Err(refused(format!(
            "it is compiled for {compiled} lanes, but the card has {lanes}"
        )));
    }
    refusals::check(program, &image, layout)?;
    if first + image.rows.len() > rows_max {
        let (rows, left) = (image.rows.len(), rows_max - first.min(rows_max));
        return Err(refused(format!("it has {rows} rows, but only {left} of {rows_max} are free")));
    }
    // Targets of calls are rows of the instruction memory.
    for slot in image.rows.iter_mut().flat_map(|row| row.lanes.iter_mut().flatten()) {
        if let Operation::CallFunction(row) = &mut slot.operation {
            *row += first;
        }
    }
    encode(&image).map_err(|error| refused(error.to_string()))
}

fn check_length(program: &str, arrival: &Arrival<'_>) -> Result<(), Error> {
    let length = arrival.bytes.len();
    if Sim::LENGTHS.contains(&length) {
        return Ok(());
    }
    let (least, most) = (Sim::LENGTHS.start(), Sim::LENGTHS.end());
    let reason = format!("packets must have {least} to {most} bytes, and this one has {length}");
    Err(Error::Refused { what: program.into(), reason })
}

impl Target for Sim {
    fn run_into(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        departure: &mut Departure,
    ) -> Result<(), Error> {
        let row = self.row_of(program)?;
        check_length(program, arrival)?;
        self.last = None;
        self.start(row, control::EMIT_ALL).map_err(|error| Failure::from(error).of(program))?;
        self.nic.send(arrival);
        self.finish(program, departure)
    }

    fn run_all(
        &mut self,
        program: &str,
        arrivals: &[Arrival<'_>],
        departures: &mut Vec<Departure>,
    ) -> Result<(), Error> {
        *departures = self.run_together(program, arrivals)?;
        Ok(())
    }

    fn update_with(
        &mut self,
        map: &str,
        key: &[u8],
        value: &[u8],
        flags: u64,
    ) -> Result<(), Error> {
        self.update_map(map, key, value, flags).map_err(|it| it.of(&format!("updating {map}")))
    }

    fn delete(&mut self, map: &str, key: &[u8]) -> Result<(), Error> {
        self.delete_in_map(map, key).map_err(|it| it.of(&format!("deleting in {map}")))
    }

    fn lookup(&mut self, map: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lookup_in_map(map, key).map_err(|it| it.of(&format!("looking up in {map}")))
    }

    fn push(&mut self, map: &str, value: &[u8]) -> Result<(), Error> {
        self.push_value(map, value).map_err(|it| it.of(&format!("pushing to {map}")))
    }

    fn put_inside(&mut self, outer: &str, key: &[u8], inner: &str) -> Result<(), Error> {
        let put = self.put_map(outer, key, inner);
        put.map_err(|it| it.of(&format!("putting a map into {outer}")))
    }

    fn put_program(&mut self, map: &str, key: &[u8], program: &str) -> Result<(), Error> {
        let row = self.row_of(program)?;
        let put = self.put_row(map, key, row);
        put.map_err(|it| it.of(&format!("putting a program into {map}")))
    }

    fn maps(&self) -> Vec<String> {
        self.maps.iter().map(|map| map.name.clone()).collect()
    }

    fn contents(&mut self, map: &str) -> Result<Contents, Error> {
        self.contents_of(map).map_err(|it| it.of(&format!("reading {map}")))
    }
}
