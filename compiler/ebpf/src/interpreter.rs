// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interpreter: runs an object's programs, with their maps, on packets one by one.
//!
//! [`Machine::load`] compiles each program to a dense form and reports what cannot run. During
//! execution nothing is trusted: each access is checked against the reachable memory
//! (`run/memory.rs`), each helper checks its arguments (`helper_functions.rs`), and a limit of
//! instructions stops endless programs. A program that violates a check is aborted with the verdict
//! `XDP_ABORTED` and a reason; in the kernel the verifier would have rejected it.

mod arithmetic;
mod atomic;
mod compiled;
mod constant;
mod engine;
mod execute;
mod lower;
mod observe;
mod step;

pub use crate::abi::{HEAD_ROOM, PACKET_MAX, verdict};
pub use crate::refusal::Unsupported;
pub use crate::run::{
    Abort, Access, Clock, Device, Environment, Neighbour, Packet, REGISTERS, Reason, Redirect,
    Route, TooLong, Way, Window,
};
pub use constant::{compute, holds};
pub use engine::{Change, Engine, Execution};
pub use observe::{Observer, Point};

use crate::maps::{ErrorNumber, Map, MapError, flags};
use crate::object::{MapDefinition, MapKind, Object, Program, ProgramKind, SlotTarget};
use crate::refusal;
use crate::run::memory::{self, MAPS_MAX};
use crate::run::{Executor, Run, Scratch, Stack};
use compiled::Compiled;
use engine::ByEngine;
use execute::BySteps;
use std::collections::BTreeMap;
use thiserror::Error;

/// A loaded object with its maps.
pub struct Machine {
    programs: Vec<Compiled>,
    maps: Vec<Map>,
    /// Number of maps that are named in the object; the others are inner maps.
    named_maps: usize,
    environment: Environment,
    stack: Stack,
    scratch: Scratch,
    aborts: BTreeMap<(usize, usize), (Abort, u64)>,
    refused: BTreeMap<usize, Vec<Unsupported>>,
}

/// Reason for which an object cannot be run here.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LoadError {
    /// A map cannot be created.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The object has too many maps.
    #[error("the object has {0} maps; at most {MAPS_MAX} are supported")]
    TooManyMaps(usize),
    /// Instructions that are not supported.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unsupported(Vec<Unsupported>),
}

/// Returns what keeps a program from running: its instructions, or a map that could not be created.
fn check(
    object: &Object,
    program: &Program,
    absent: &BTreeMap<usize, String>,
) -> Result<(), Vec<Unsupported>> {
    refusal::check(program, &object.maps).map_err(|unsupported| vec![unsupported])?;
    let missing = program.maps_used().find_map(|(slot, map)| Some((slot, map, absent.get(&map)?)));
    let Some((slot, map, reason)) = missing else { return Ok(()) };
    let reason = format!("map `{}`: {reason}", object.maps[map].name);
    Err(vec![Unsupported { program: program.name.clone(), slot, reason }])
}

/// The outcome of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Verdict, see [`verdict`], or any other number that the program returned.
    pub verdict: u32,
    /// The whole 64-bit register 0.
    pub value: u64,
    /// Reason for which the program was aborted, if it was.
    pub aborted: Option<Abort>,
    /// Number of executed instructions; a wide load counts once.
    pub instructions: u64,
    /// Destination of the packet, if the verdict is `XDP_REDIRECT`.
    pub redirect: Option<Redirect>,
}

/// The way in which a program is executed and observed.
#[derive(Default)]
struct Executed<'e> {
    observer: Option<&'e mut dyn Observer>,
    engine: Option<&'e dyn Engine>,
}

impl Machine {
    /// Loads an object: creates its maps and compiles its XDP programs. Programs of other types are
    /// not loaded.
    ///
    /// # Errors
    /// The object has too many maps, or instructions that cannot run here; all of them are listed.
    pub fn load(object: &Object, environment: Environment) -> Result<Self, LoadError> {
        let machine = Self::load_partly(object, environment)?;
        let refused = machine.refused.into_values().flatten().collect::<Vec<_>>();
        if refused.is_empty() {
            Ok(Self { refused: BTreeMap::new(), ..machine })
        } else {
            Err(LoadError::Unsupported(refused))
        }
    }

    /// As [`load`](Self::load), but tolerates programs that cannot run here: those are
    /// [refused](Self::refused), and the others run. A program that calls a refused one is aborted.
    /// A map that cannot be created only affects the programs that use it.
    ///
    /// # Errors
    /// The object has too many maps.
    pub fn load_partly(object: &Object, environment: Environment) -> Result<Self, LoadError> {
        let mut machine = Self {
            programs: vec![],
            maps: vec![],
            named_maps: object.maps.len(),
            scratch: Scratch::new(environment.seed),
            environment,
            stack: Stack::new(),
            aborts: BTreeMap::new(),
            refused: BTreeMap::new(),
        };
        let absent = machine.make_maps(object)?;
        for (number, program) in object.programs.iter().enumerate() {
            let is_xdp = matches!(
                program.kind,
                ProgramKind::Xdp | ProgramKind::XdpDevmap | ProgramKind::XdpCpumap
            );
            let lowered = match is_xdp {
                true => check(object, program, &absent)
                    .and_then(|()| lower::lower(program, &machine.maps)),
                false => Ok(Compiled::default()),
            };
            machine.programs.push(lowered.unwrap_or_else(|unsupported| {
                machine.refused.insert(number, unsupported);
                Compiled::default()
            }));
        }
        Ok(machine)
    }

    /// Returns what keeps a program, by its number in the object, from running here.
    pub fn refused(&self, program: usize) -> &[Unsupported] {
        self.refused.get(&program).map_or(&[], Vec::as_slice)
    }

    /// Creates all maps of an object; returns those that cannot be created, with the reason.
    fn make_maps(&mut self, object: &Object) -> Result<BTreeMap<usize, String>, LoadError> {
        if object.maps.len() > MAPS_MAX {
            return Err(LoadError::TooManyMaps(object.maps.len()));
        }
        let mut absent = BTreeMap::new();
        for (number, definition) in object.maps.iter().enumerate() {
            match self.add_map(definition) {
                Ok(_) => {}
                Err(LoadError::Map(MapError { reason, .. })) => {
                    absent.insert(number, reason);
                    self.maps.push(Map::absent(definition));
                }
                Err(error) => return Err(error),
            }
        }
        for (map, definition) in object.maps.iter().enumerate() {
            if absent.contains_key(&map) {
                continue;
            }
            for &(key, target) in &definition.slots {
                let (SlotTarget::Program(target) | SlotTarget::Map(target)) = target;
                let value = target as u32;
                let set = self.maps[map].update(&key.to_ne_bytes(), &value.to_ne_bytes(), 0);
                set.map_err(|error| MapError {
                    name: definition.name.clone(),
                    reason: format!("its initial entry {key} cannot be set: {error}"),
                })?;
            }
        }
        Ok(absent)
    }

    /// Creates another map, for use in an array or hash of maps; returns its number.
    ///
    /// # Errors
    /// The map cannot be created, or there are too many.
    pub fn add_map(&mut self, definition: &MapDefinition) -> Result<usize, LoadError> {
        if self.maps.len() >= MAPS_MAX {
            return Err(LoadError::TooManyMaps(self.maps.len() + 1));
        }
        let taken = self.maps.iter().map(Map::memory_bytes).sum::<usize>();
        let bytes_max = self.environment.map_bytes_max.saturating_sub(taken);
        let seed = self.environment.seed ^ (self.maps.len() as u64) << 32;
        let mut definition = definition.clone();
        if definition.kind == MapKind::PerfEventArray && definition.max_entries == 0 {
            // Loaders do the same: one buffer for each processor.
            definition.max_entries = self.environment.processor.saturating_add(1);
        }
        self.maps.push(Map::new(&definition, seed, bytes_max)?);
        Ok(self.maps.len() - 1)
    }

    /// Stores a map at `key` of an array or a hash of maps.
    ///
    /// # Errors
    /// `EINVAL` if `outer` is not such a map or `inner` does not match its definition, and the
    /// errors of [`Map::update`].
    pub fn set_inner(
        &mut self,
        outer_map: usize,
        key: &[u8],
        inner: usize,
    ) -> Result<(), ErrorNumber> {
        let invalid = || ErrorNumber::EINVAL;
        let added = self.maps.get(inner).ok_or_else(invalid)?.definition();
        let outer = self.maps.get(outer_map).ok_or_else(invalid)?.definition();
        let holds_maps = outer.kind.is_of_maps();
        let is_alike = outer.inner.as_ref().is_none_or(|alike| {
            (alike.kind, alike.key_size, alike.value_size)
                == (added.kind, added.key_size, added.value_size)
        });
        let nests = added.kind.is_of_maps();
        if !holds_maps || !is_alike || nests {
            return Err(ErrorNumber::EINVAL);
        }
        self.maps[outer_map].update(key, &(inner as u32).to_ne_bytes(), flags::ANY)
    }

    /// Runs a program, by its number in the object, on a packet.
    pub fn run(&mut self, program: usize, packet: &mut Packet) -> Outcome {
        self.run_with(program, packet, Executed::default(), |_| {})
    }

    /// As [`run`](Self::run), and calls an observer before each instruction.
    pub fn run_observed(
        &mut self,
        program: usize,
        packet: &mut Packet,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let executed = Executed { observer: Some(observer), engine: None };
        self.run_with(program, packet, executed, |_| {})
    }

    /// As [`run`](Self::run), executed by another engine. [`Outcome::instructions`] is the number
    /// that it has [spent](Execution::spend).
    pub fn run_on(&mut self, engine: &dyn Engine, program: usize, packet: &mut Packet) -> Outcome {
        let executed = Executed { observer: None, engine: Some(engine) };
        self.run_with(program, packet, executed, |_| {})
    }

    /// Runs a program on bytes instead of a packet: register 1 is their address and register 2
    /// their number, as test suites of the instruction set require.
    pub fn run_on_bytes(&mut self, program: usize, bytes: &mut Packet) -> Outcome {
        let [_, start, end] = bytes.places();
        self.run_with(program, bytes, Executed::default(), |run| {
            run.registers[1] = memory::packet_address(start);
            run.registers[2] = end - start;
        })
    }

    fn run_with(
        &mut self,
        program: usize,
        packet: &mut Packet,
        executed: Executed<'_>,
        prepare: impl FnOnce(&mut Run),
    ) -> Outcome {
        let observer = executed.observer.map(|observer| observer as &mut dyn Observer);
        let steps = BySteps::new(&self.programs, observer);
        let engine = executed.engine.map(ByEngine);
        let executor: &dyn Executor = match &engine {
            Some(engine) => engine,
            None => &steps,
        };
        let mut run = Run::new(
            executor,
            self.programs.len(),
            &mut self.maps,
            &self.environment,
            &mut self.stack,
            &mut self.scratch,
            packet,
        );
        prepare(&mut run);
        let is_runnable = run.places(program).is_some();
        let result = if is_runnable { run.program(program) } else { Err(Reason::NotRunnable) };
        let instructions = self.environment.instructions_max - run.remaining;
        let (redirect, program, place) = (run.redirect, run.program, run.at.saturating_sub(1));
        match result {
            Ok(value) => {
                let verdict = value as u32;
                let redirect = redirect.filter(|_| verdict == verdict::REDIRECT);
                Outcome { verdict, value, aborted: None, instructions, redirect }
            }
            Err(reason) => {
                run.abandon_records();
                let slot = match executed.engine {
                    Some(engine) => engine.slot(program, place),
                    None => self.slot(program, place),
                };
                let aborted = Some(self.count_abort(Abort { program, slot, reason }));
                let verdict = verdict::ABORTED;
                Outcome { verdict, value: 0, aborted, instructions, redirect: None }
            }
        }
    }

    /// Returns the slot of a program's step.
    fn slot(&self, program: usize, step: usize) -> usize {
        let slots = self.programs.get(program).map_or(&[][..], |program| &program.slots);
        slots.get(step).copied().unwrap_or(0) as usize
    }

    fn count_abort(&mut self, abort: Abort) -> Abort {
        let place = (abort.program, abort.slot);
        let counted = self.aborts.entry(place).or_insert_with(|| (abort.clone(), 0));
        counted.0.clone_from(&abort);
        counted.1 += 1;
        abort
    }

    /// Returns all aborts so far: for each instruction the last reason, and the number.
    pub fn aborts(&self) -> impl Iterator<Item = &(Abort, u64)> {
        self.aborts.values()
    }

    /// Returns a map by its name in the object.
    pub fn map(&self, name: &str) -> Option<&Map> {
        self.maps[..self.named_maps].iter().find(|map| map.definition().name == name)
    }

    /// As [`map`](Self::map), mutable.
    pub fn map_mut(&mut self, name: &str) -> Option<&mut Map> {
        self.maps[..self.named_maps].iter_mut().find(|map| map.definition().name == name)
    }

    /// Returns a map by its number: those of the object in their order, then the added ones.
    pub fn map_at(&self, map: usize) -> Option<&Map> {
        self.maps.get(map)
    }

    /// As [`map_at`](Self::map_at), mutable.
    pub fn map_at_mut(&mut self, map: usize) -> Option<&mut Map> {
        self.maps.get_mut(map)
    }

    /// Returns the environment that programs see, to be changed between packets.
    pub fn environment_mut(&mut self) -> &mut Environment {
        &mut self.environment
    }

    /// Takes the lines that programs have printed.
    pub fn take_trace(&mut self) -> Vec<String> {
        self.scratch.take_trace()
    }
}
