// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reference interpreter, which defines the meaning of programs.
//!
//! It implements the rules of `docs/reference/semantics.md`, each in a file of its own: pure
//! operations (`eval`), memory, tables and packets, the operations of a firing (`machine`) and its
//! control flow (`frame`), firings and host calls (`firing`), channels, endpoints, scheduling
//! (`schedule`), and deadlock reports (`deadlock`). Every run records its choices as [`Oracles`];
//! [`Interpreter::replay`] takes them from such a record instead, whichever back end made it.

mod channel;
mod choice;
mod deadlock;
mod endpoint;
mod error;
mod eval;
mod firing;
#[cfg(test)]
mod fixture;
mod frame;
mod host;
mod host_action;
mod instance;
mod machine;
pub(crate) mod memory;
mod method_call;
mod packet;
mod ports;
mod probe;
mod schedule;
#[cfg(test)]
mod schedule_fuzz;
mod table;
mod transfer;

pub use deadlock::{
    Blocked, ChannelFill, Report, Standing, StandingChannel, StandingInstance, Wait,
};
pub use error::Error;
pub use eval::eval_pure;
pub use firing::Wanted;
pub use packet::{HEAD_ROOM_BYTES, MOST_NEW_PACKETS, TAIL_LIMIT_BYTES, packet_bits};
pub use probe::{ProbeEvent, ProbeKind, format_printf};
pub use schedule::{Outcome, Schedule};
pub use transfer::WaitingItem;

use crate::analysis::TURN_LIMIT;
use crate::oracle::{
    ChannelCounters, Execution, InstanceCounters, Occupancy, Oracles, TableEntries,
};
use crate::{Bits, Direction, EndpointId, InstanceId, ProgramRef, Sink, Source};
use channel::ChannelState;
use choice::Choice;
use endpoint::{InputEnd, OutputEnd};
use frame::{Frame, LoopBounds};
use instance::InstanceState;
use machine::Shared;
use schedule::Actor;
use std::collections::VecDeque;

/// Options of a run. None of them changes the meaning of the program.
#[derive(Clone, Debug)]
pub struct Options {
    /// Order in which instances and endpoints advance.
    pub schedule: Schedule,
    /// Seed for `random`, unless a record is replayed.
    pub random_seed: u64,
    /// Loop iterations in one firing, or one call by the host, before the watchdog traps it.
    pub turn_limit: u64,
    /// Whether every item that enters a channel is kept for [`Interpreter::execution`].
    pub keep_histories: bool,
    /// Clock for `now`, unless a record is replayed.
    pub clock: Clock,
    /// Whether channels hold any number of items instead of their declared depth, to replay the
    /// record of a back end that buffers more.
    pub unbounded_channels: bool,
}

/// Source of the time.
#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    /// Advances by a nanosecond with each firing, so that runs are reproducible.
    #[default]
    Firings,
    /// Calls this function, which returns nanoseconds. A run ends once instances only read the
    /// clock.
    Measured(fn() -> u64),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schedule: Schedule::RoundRobin,
            random_seed: 0,
            turn_limit: TURN_LIMIT,
            keep_histories: true,
            clock: Clock::Firings,
            unbounded_channels: false,
        }
    }
}

/// A program in execution.
pub struct Interpreter<'p> {
    program: ProgramRef<'p>,
    loops: Vec<LoopBounds>,
    instances: Vec<InstanceState>,
    channels: Vec<ChannelState>,
    inputs: Vec<InputEnd>,
    outputs: Vec<OutputEnd>,
    /// By endpoint: its position in `inputs` or `outputs`.
    endpoints: Vec<usize>,
    actors: Vec<Actor>,
    /// Generator of the random order.
    order: Option<fastrand::Rng>,
    shared: Shared,
    breakpoints_enabled: bool,
    is_replay: bool,
}

impl<'p> Interpreter<'p> {
    /// Makes a [verified](crate::verify()) program ready to run, and runs its init functions.
    ///
    /// # Errors
    /// A program that is too large; a port or an endpoint without a channel.
    pub fn new(program: impl Into<ProgramRef<'p>>, options: &Options) -> Result<Self, Error> {
        Self::start(program.into(), options, None)
    }

    /// Replays a record: starts like [`new`](Self::new), with all choices taken from the record.
    /// Given the same input and the same options except for the schedule, it ends in the same
    /// [`Execution`].
    ///
    /// # Errors
    /// As for `new`; a record of another graph.
    pub fn replay(
        program: impl Into<ProgramRef<'p>>,
        oracles: Oracles,
        options: &Options,
    ) -> Result<Self, Error> {
        Self::start(program.into(), options, Some(oracles))
    }

    fn start(
        held: ProgramRef<'p>,
        options: &Options,
        oracles: Option<Oracles>,
    ) -> Result<Self, Error> {
        let (program, graph) = (&*held, &held.graph);
        let is_replay = oracles.is_some();
        let channels = graph.channels.iter();
        let channels = channels.map(|it| ChannelState::new(it, program.channel_name(it), options));
        let mut interpreter = Self {
            program: held.clone(),
            loops: LoopBounds::of_all(program, options.turn_limit),
            instances: vec![],
            channels: channels.collect(),
            inputs: vec![],
            outputs: vec![],
            endpoints: vec![],
            actors: vec![],
            order: match options.schedule {
                Schedule::RoundRobin => None,
                Schedule::Random { seed } => Some(fastrand::Rng::with_seed(seed)),
            },
            shared: Shared {
                generator: fastrand::Rng::with_seed(options.random_seed),
                clock_ns: 0,
                clock: options.clock,
                probes: vec![],
                frames: program.functions.iter().map(|_| vec![]).collect(),
                turn_limit: options.turn_limit,
            },
            breakpoints_enabled: false,
            is_replay,
        };
        let choices: Vec<Choice> = match oracles {
            Some(oracles) => interpreter.take_record(oracles)?,
            None => graph.instances.iter().map(|_| Choice::recording()).collect(),
        };
        for (at, choice) in choices.into_iter().enumerate() {
            let id = InstanceId::new(at);
            interpreter.instances.push(InstanceState::new(program, id, choice)?);
            interpreter.actors.push(Actor::Instance(id));
        }
        interpreter.hold_frames()?;
        interpreter.open_endpoints()?;
        for at in 0..graph.instances.len() {
            interpreter.initialise(InstanceId::new(at))?;
        }
        Ok(interpreter)
    }

    /// Checks that the record fits the graph and distributes it.
    fn take_record(&mut self, oracles: Oracles) -> Result<Vec<Choice>, Error> {
        let (channels, instances) = (self.channels.len(), self.program.graph.instances.len());
        for (what, recorded, there) in [
            ("channels", oracles.channels.len(), channels),
            ("instances", oracles.instances.len(), instances),
        ] {
            if recorded != there {
                return Err(Error::ForeignRecord { what, recorded, there });
            }
        }
        for (channel, oracle) in self.channels.iter_mut().zip(oracles.channels) {
            channel.replay(oracle.keep);
        }
        Ok(oracles.instances.into_iter().map(Choice::replaying).collect())
    }

    /// Creates a frame for every function, so that a frame that is too large is found before the
    /// run.
    fn hold_frames(&mut self) -> Result<(), Error> {
        for (frames, function) in self.shared.frames.iter_mut().zip(&self.program.functions) {
            let what = || format!("the objects of {}", function.name);
            frames.push(Frame::new(function).ok_or_else(|| Error::TooLarge { what: what() })?);
        }
        Ok(())
    }

    fn open_endpoints(&mut self) -> Result<(), Error> {
        let graph = &self.program.graph;
        for (at, endpoint) in graph.endpoints.iter().enumerate() {
            let id = EndpointId::new(at);
            let channel = match endpoint.direction {
                Direction::Into => graph.channel_from(Source::Endpoint(id)),
                Direction::OutOf => graph.channel_to(Sink::Endpoint(id)),
            };
            let channel = channel.ok_or_else(|| Error::Unknown {
                instance: endpoint.name.clone(),
                what: "channel".into(),
            })?;
            if endpoint.direction == Direction::Into {
                self.endpoints.push(self.inputs.len());
                self.actors.push(Actor::Input(self.inputs.len()));
                self.inputs.push(InputEnd { channel, queue: VecDeque::new() });
            } else {
                self.endpoints.push(self.outputs.len());
                self.actors.push(Actor::Output(self.outputs.len()));
                self.outputs.push(OutputEnd::new(channel));
            }
        }
        Ok(())
    }

    /// Returns the probe events since the last call, in order.
    pub fn take_probes(&mut self) -> Vec<ProbeEvent> {
        std::mem::take(&mut self.shared.probes)
    }

    /// Returns the counters of an instance.
    pub fn counters(&self, instance: InstanceId) -> &InstanceCounters {
        &self.instances[instance.index()].counters
    }

    /// Returns the counters of a channel.
    pub fn channel_counters(&self, channel: crate::ChannelId) -> ChannelCounters {
        self.channels[channel.index()].counters
    }

    /// Returns the current and the maximum fill of a channel.
    pub fn channel_fill(&self, channel: crate::ChannelId) -> Occupancy {
        let channel = &self.channels[channel.index()];
        let [waiting, peak, room] = [channel.fill(), channel.most(), channel.depth()];
        Occupancy { waiting: waiting as u64, peak: peak as u64, room: room as u64 }
    }

    /// Returns every item that has entered a channel, in order.
    pub fn history(&self, channel: crate::ChannelId) -> &[Bits] {
        &self.channels[channel.index()].history
    }

    /// Returns the choices made so far, ready to be replayed.
    pub fn oracles(&self) -> Oracles {
        let channels = self.channels.iter();
        Oracles {
            instances: self.instances.iter().map(|instance| instance.choice.made.clone()).collect(),
            channels: channels
                .map(|it| crate::oracle::ChannelOracle { keep: it.keep.clone() })
                .collect(),
        }
    }

    /// Discards the choices, answers and items so far, so that an endless run does not exhaust
    /// memory. Counters and state remain. [`oracles`](Self::oracles) and
    /// [`execution`](Self::execution) then begin at this point, and cannot be replayed.
    pub fn forget_record(&mut self) {
        for instance in &mut self.instances {
            instance.choice.forget();
            instance.answers.clear();
        }
        for channel in &mut self.channels {
            channel.forget();
        }
    }

    /// Returns the observable results so far.
    pub fn execution(&self) -> Execution {
        let contents = |object: &memory::ObjectMemory| {
            (0..object.depth()).filter_map(|index| object.element(index)).collect()
        };
        let instances = self.instances.iter();
        Execution {
            histories: self.channels.iter().map(|channel| channel.history.clone()).collect(),
            state: instances
                .map(|instance| instance.objects.iter().map(contents).collect())
                .collect(),
            tables: self.table_contents(),
            counters: self.instances.iter().map(|it| it.counters.clone()).collect(),
            channels: self.channels.iter().map(|it| it.counters.without_stalls()).collect(),
            answers: self.instances.iter().map(|it| it.answers.clone()).collect(),
        }
    }

    fn table_contents(&self) -> Vec<Vec<TableEntries>> {
        let tables = self.instances.iter().map(|instance| instance.tables.iter());
        tables.map(|tables| tables.map(table::TableMemory::entries).collect()).collect()
    }

    pub(crate) fn unknown(&self, instance: InstanceId, what: &str) -> Error {
        let instance = self.program.instance(instance).name.clone();
        Error::Unknown { instance, what: what.into() }
    }
}
