// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device: whatever holds a loaded program and runs it between ports.
//!
//! Its host side is the same for every kind of device, so that swapping one changes no caller: run
//! between ports, send signals, read and write variables, read counters. Devices are loaded by
//! their own constructors, for that is where they differ.
//!
//! Ports stay the caller's. A run borrows them, goes on until nothing moves any more, and says why
//! it stopped; frames that a full output port has no room for stay in the device, and the next run
//! goes on with them. So nothing is lost, and a caller is never stuck in a run.

mod counters;
mod host;
mod transfer;

pub use counters::{DeviceCounters, EndpointCounters};
pub(crate) use host::host_methods;
pub(crate) use transfer::MOST_DRAIN_RUNS;
pub use transfer::{Transfer, WaitingFrames, WaitingItems};

use crate::placement::PlacementError;
use crate::port::{PortError, Receive, Transmit};
use freeport_ir::oracle::TableEntries;
use freeport_ir::{Bits, Direction, EndpointId, InstanceId, Item, Program};
use std::sync::atomic::{AtomicBool, Ordering};

/// A loaded program, ready to run.
pub trait Device {
    /// What is loaded.
    fn program(&self) -> &Program;

    /// Runs between these ports until every input port has ended and everything has left, or
    /// until nothing moves.
    ///
    /// # Errors
    /// Ports that do not fit the program, what went wrong at a port, or in the device.
    fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, DeviceError>;

    /// Sends a signal of [`SIGNAL_BITS`](freeport_ir::SIGNAL_BITS) to an instance, between two
    /// firings; gives its answer.
    ///
    /// # Errors
    /// An instance that takes no signals.
    fn signal(&mut self, instance: InstanceId, signal: &Bits) -> Result<Bits, DeviceError>;

    /// Calls a method of an instance, between two firings; its result, where it has one.
    ///
    /// # Errors
    /// No such method, or arguments of other widths than its parameters.
    fn call_method(
        &mut self,
        instance: InstanceId,
        method: &str,
        arguments: &[Bits],
    ) -> Result<Option<Bits>, DeviceError>;

    /// Element `index` of a variable.
    ///
    /// # Errors
    /// No such variable or element, or one that the host may not see.
    fn read_variable(
        &self,
        instance: InstanceId,
        variable: &str,
        index: u64,
    ) -> Result<Bits, DeviceError>;

    /// Writes element `index` of a variable, between two firings.
    ///
    /// # Errors
    /// As for reading, and a value of another width.
    fn write_variable(
        &mut self,
        instance: InstanceId,
        variable: &str,
        index: u64,
        value: &Bits,
    ) -> Result<(), DeviceError>;

    /// The value that a key matches in a table. It is no use of the entry.
    ///
    /// # Errors
    /// No such table, or a key of another width.
    fn table_lookup(
        &self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<Option<Bits>, DeviceError>;

    /// Sets the value under a key, between two firings; whether there was room.
    ///
    /// # Errors
    /// No such table, or a key or value of another width.
    fn table_update(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
        value: &Bits,
    ) -> Result<bool, DeviceError>;

    /// Removes the entry under a key, between two firings; whether there was one.
    ///
    /// # Errors
    /// No such table, or a key of another width.
    fn table_delete(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<bool, DeviceError>;

    /// All entries of a table.
    ///
    /// # Errors
    /// No such table.
    fn table_entries(&self, instance: InstanceId, table: &str)
    -> Result<TableEntries, DeviceError>;

    /// What was counted since the program was loaded.
    fn counters(&self) -> DeviceCounters;

    /// What printf, log and breakpoint probes have told since this was last asked.
    fn take_told(&mut self) -> Told;

    /// Whether an instance rests once a firing of it passed a breakpoint, and the run ends with
    /// [`RunEnd::Breakpoint`]; from the start it does not. While one rests no frame comes in, and
    /// what is inside goes on. Those that rest go on if breakpoints are switched off.
    fn set_breakpoints_enabled(&mut self, is_enabled: bool);

    /// Lets an instance go on from its breakpoint, in the next run.
    fn resume(&mut self, instance: InstanceId);

    /// What waits for what, if the last run ended with items inside that nothing could take, even
    /// if an input may bring what they wait for.
    fn waits(&self) -> Option<String>;

    /// The inner side, from which a replacement takes state and packets; none if the device cannot
    /// be replaced.
    fn transfer(&mut self) -> Option<&mut dyn Transfer>;
}

/// For `host_methods`: forwards to the contents of the box.
macro_rules! inside {
    ($self:ident, $method:ident, $($argument:ident),*) => {
        (**$self).$method($($argument),*)
    };
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn program(&self) -> &Program {
        (**self).program()
    }

    fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, DeviceError> {
        (**self).run(ports)
    }

    host_methods!(inside, inside);

    fn counters(&self) -> DeviceCounters {
        (**self).counters()
    }

    fn take_told(&mut self) -> Told {
        (**self).take_told()
    }

    fn set_breakpoints_enabled(&mut self, is_enabled: bool) {
        (**self).set_breakpoints_enabled(is_enabled);
    }

    fn resume(&mut self, instance: InstanceId) {
        (**self).resume(instance);
    }

    fn waits(&self) -> Option<String> {
        (**self).waits()
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        (**self).transfer()
    }
}

/// What probes have told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// Which instance, and its words: a printf's text, or a probe's name and operands.
    pub lines: Vec<(InstanceId, String)>,
    /// Lines that were lost because nobody asked in time.
    pub lost: u64,
}

/// What a run did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// Frames taken from input ports.
    pub received: u64,
    /// Frames that output ports accepted.
    pub sent: u64,
    /// Why it stopped.
    pub end: RunEnd,
}

/// Why a run stopped.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RunEnd {
    /// Every input port has ended, and everything has left.
    #[default]
    Ended,
    /// Input ports may have more later; there is nothing to do now.
    Idle,
    /// The caller asked for a pause, or the graph goes on by itself without frames: run it again.
    Paused,
    /// Instances only look at the clock, and wait for a time: run it again, after a while.
    Waiting {
        /// Whether items wait for it, and not only those who look.
        holds_items: bool,
    },
    /// An output port has no room, and frames wait for it.
    OutputFull,
    /// That instance passed a breakpoint, and rests until it is told to go on.
    Breakpoint(InstanceId),
    /// Items wait in the graph, nothing in it can fire, and no input brings anything: each has
    /// ended or has frames that the graph does not take.
    Stalled(String),
}

/// What can go wrong with a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// At a port.
    #[error("port of {endpoint}: {source}")]
    Port {
        /// The endpoint that the port is bound to.
        endpoint: String,
        /// What.
        source: PortError,
    },
    /// A port that does not fit the program.
    #[error("no port can be bound to {endpoint}: {reason}")]
    Binding {
        /// The endpoint that was asked for.
        endpoint: String,
        /// Why.
        reason: String,
    },
    /// Something that the program does not have.
    #[error("{instance} has no {what}")]
    Unknown {
        /// Which instance.
        instance: String,
        /// What was asked for.
        what: String,
    },
    /// Instances that cannot be on the workers they were placed on.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// Something that all copies of an instance should have alike.
    #[error("{instance} has another {what} in each copy: ask for one, {instance}@0, {instance}@1")]
    CopiesDiffer {
        /// Which instance.
        instance: String,
        /// What was asked for.
        what: String,
    },
    /// A worker of several that has ended, and why.
    #[error("worker {worker}: {reason}")]
    Worker {
        /// Its number.
        worker: usize,
        /// What happened.
        reason: String,
    },
    /// In the interpreter.
    #[error(transparent)]
    Interpreter(#[from] freeport_ir::interp::Error),
    /// In native code, or on the way to it.
    #[error(transparent)]
    Native(#[from] freeport_native::Error),
}

/// The ports of a run, by the names of the endpoints they are bound to.
#[derive(Default)]
pub struct Ports<'a> {
    inputs: Vec<(String, &'a mut dyn Receive)>,
    outputs: Vec<(String, &'a mut dyn Transmit)>,
    pause: Pause<'a>,
}

/// When a run gives way to its caller though frames go on coming.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pause<'a> {
    /// As soon as this is set.
    wanted: Option<&'a AtomicBool>,
    /// After so many turns.
    turns: Option<u32>,
}

impl<'a> Ports<'a> {
    /// No ports.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a receiver to an endpoint into the graph, such as `from_tor`.
    pub fn with_input(mut self, endpoint: &str, port: &'a mut dyn Receive) -> Self {
        self.inputs.push((endpoint.to_owned(), port));
        self
    }

    /// Binds a transmitter to an endpoint out of the graph, such as `to_tor`.
    pub fn with_output(mut self, endpoint: &str, port: &'a mut dyn Transmit) -> Self {
        self.outputs.push((endpoint.to_owned(), port));
        self
    }

    /// Has the run end with [`RunEnd::Paused`] after at most `turns` batches of each input, or
    /// earlier if `wanted` is set: under endless load it would otherwise go on for ever. It always
    /// does one turn.
    pub fn with_pause(mut self, turns: u32, wanted: &'a AtomicBool) -> Self {
        self.pause = Pause { wanted: Some(wanted), turns: Some(turns) };
        self
    }

    /// Checks that a program has the endpoints that these ports are bound to.
    ///
    /// # Errors
    /// An endpoint that does not exist, faces the other way, carries records, or is bound twice.
    pub fn check(&mut self, program: &Program) -> Result<(), DeviceError> {
        self.bind(program).map(|_| ())
    }

    /// Checks the ports against a program and finds their endpoints.
    ///
    /// # Errors
    /// An endpoint that does not exist, faces the other way, carries records, or is bound twice.
    pub(crate) fn bind(&mut self, program: &Program) -> Result<Bound<'_>, DeviceError> {
        let mut bound = Bound { inputs: vec![], outputs: vec![], pause: self.pause };
        for (name, port) in &mut self.inputs {
            let id = endpoint_for(program, name, Direction::Into)?;
            if bound.inputs.iter().any(|(other, _)| *other == id) {
                return Err(binding(name, "it is bound already"));
            }
            bound.inputs.push((id, &mut **port));
        }
        for (name, port) in &mut self.outputs {
            let id = endpoint_for(program, name, Direction::OutOf)?;
            if bound.outputs.iter().any(|(other, _)| *other == id) {
                return Err(binding(name, "it is bound already"));
            }
            bound.outputs.push((id, &mut **port));
        }
        Ok(bound)
    }
}

/// Ports that fit a program.
#[derive(Default)]
pub(crate) struct Bound<'a> {
    /// Into the graph.
    pub inputs: Vec<(EndpointId, &'a mut dyn Receive)>,
    /// Out of the graph.
    pub outputs: Vec<(EndpointId, &'a mut dyn Transmit)>,
    pause: Pause<'a>,
}

impl<'a> Bound<'a> {
    /// No ports, of a run that gives way as soon as `wanted` is set.
    pub fn giving_way(wanted: &'a AtomicBool) -> Self {
        Self { pause: Pause { wanted: Some(wanted), turns: None }, ..Self::default() }
    }

    /// No ports, of a run that gives way when this one does.
    pub fn without_ports(&self) -> Bound<'a> {
        Bound { pause: self.pause, ..Bound::default() }
    }

    /// What is set once the caller wants the run to end; nothing if it never does.
    pub fn wanted(&self) -> Option<&'a AtomicBool> {
        self.pause.wanted
    }

    /// Whether the run gives way now; asked once behind each turn.
    #[inline]
    pub fn gives_way(&mut self) -> bool {
        let is_over = self.pause.turns.as_mut().is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        });
        // What the flag announces is handed over by other means, which order memory.
        is_over || self.pause.wanted.is_some_and(|wanted| wanted.load(Ordering::Relaxed))
    }

    /// Whether the caller wants the run to end, however many turns are left.
    pub fn is_pause_wanted(&self) -> bool {
        self.pause.wanted.is_some_and(|wanted| wanted.load(Ordering::Relaxed))
    }

    /// Whether every input port has ended.
    pub fn are_inputs_ended(&self) -> bool {
        self.inputs.iter().all(|(_, port)| port.is_ended())
    }

    /// Whether no input brings anything to a graph that takes nothing: each has ended, or the
    /// device `holds` frames of it that have to be taken first.
    pub fn are_inputs_over(&self, holds: impl Fn(EndpointId) -> bool) -> bool {
        self.inputs.iter().all(|(id, port)| port.is_ended() || holds(*id))
    }

    /// Pushes out what the output ports hold; gives whether nothing is left in them.
    ///
    /// # Errors
    /// What went wrong at a port.
    pub fn flush(&mut self, program: &Program) -> Result<bool, DeviceError> {
        let mut is_empty = true;
        for (id, port) in &mut self.outputs {
            is_empty &= port.flush().map_err(|source| port_error(program, *id, source))?;
        }
        Ok(is_empty)
    }
}

/// What went wrong at the port of an endpoint.
pub(crate) fn port_error(program: &Program, id: EndpointId, source: PortError) -> DeviceError {
    let endpoint = program.graph.endpoints[id.index()].name.clone();
    DeviceError::Port { endpoint, source }
}

fn endpoint_for(
    program: &Program,
    name: &str,
    direction: Direction,
) -> Result<EndpointId, DeviceError> {
    let endpoints = &program.graph.endpoints;
    let Some(at) = endpoints.iter().position(|endpoint| endpoint.name == name) else {
        let names: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
        let reason = format!("the program has {}", names.join(", "));
        return Err(binding(name, &reason));
    };
    match endpoints[at].direction {
        Direction::Into if direction != Direction::Into => {
            return Err(binding(name, "it leads into the graph"));
        }
        Direction::OutOf if direction != Direction::OutOf => {
            return Err(binding(name, "it leads out of the graph"));
        }
        _ => {}
    }
    match endpoints[at].item {
        Item::Bits(width) => {
            Err(binding(name, &format!("it carries records of {width} bits, not frames")))
        }
        Item::Flit | Item::Packet { .. } => Ok(EndpointId::new(at)),
    }
}

fn binding(endpoint: &str, reason: &str) -> DeviceError {
    DeviceError::Binding { endpoint: endpoint.to_owned(), reason: reason.to_owned() }
}
