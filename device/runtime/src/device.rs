// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device: holds a loaded program and runs it between ports.
//!
//! Its host side is the same for every kind of device, so that swapping one changes no caller: run
//! between ports, send signals, read and write variables, read counters. Each kind of device has
//! its own constructor, since loading is where they differ.
//!
//! The caller owns the ports. A run borrows them, continues until nothing moves any more, and
//! reports why it stopped. Frames that do not fit a full output port stay in the device, and the
//! next run sends them. So no frame is lost, and a run never blocks its caller.

mod counters;
mod host;
mod transfer;

pub use counters::{DeviceCounters, EndpointCounters};
pub(crate) use host::host_methods;
pub(crate) use transfer::MOST_DRAIN_RUNS;
pub use transfer::{Transfer, WaitingFrames, WaitingItems};

use crate::placement::PlacementError;
use freeport_ir::oracle::TableEntries;
use freeport_ir::{Bits, Direction, EndpointId, InstanceId, Item, Program};
use freeport_port::{PortError, Receive, Transmit};
use std::sync::atomic::{AtomicBool, Ordering};

/// A loaded program, ready to run.
pub trait Device {
    /// Returns the loaded program.
    fn program(&self) -> &Program;

    /// Runs between these ports until every input port has ended and everything has left, or
    /// until nothing moves.
    ///
    /// # Errors
    /// A port that does not fit the program, or a failure of a port or of the device.
    fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, DeviceError>;

    /// Sends a signal of [`SIGNAL_BITS`](freeport_ir::SIGNAL_BITS) to an instance, between two
    /// firings, and returns its answer.
    ///
    /// # Errors
    /// An instance that takes no signals.
    fn signal(&mut self, instance: InstanceId, signal: &Bits) -> Result<Bits, DeviceError>;

    /// Calls a method of an instance, between two firings, and returns its result, if it has one.
    ///
    /// # Errors
    /// No such method, or arguments of other widths than its parameters.
    fn call_method(
        &mut self,
        instance: InstanceId,
        method: &str,
        arguments: &[Bits],
    ) -> Result<Option<Bits>, DeviceError>;

    /// Reads element `index` of a variable.
    ///
    /// # Errors
    /// No such variable or element, or one that is hidden from the host.
    fn read_variable(
        &self,
        instance: InstanceId,
        variable: &str,
        index: u64,
    ) -> Result<Bits, DeviceError>;

    /// Writes element `index` of a variable, between two firings.
    ///
    /// # Errors
    /// No such variable or element, one that is hidden from the host, or a value of another width.
    fn write_variable(
        &mut self,
        instance: InstanceId,
        variable: &str,
        index: u64,
        value: &Bits,
    ) -> Result<(), DeviceError>;

    /// Looks a key up in a table and returns the value it matches. This does not count as a use of
    /// the entry.
    ///
    /// # Errors
    /// No such table, or a key of another width.
    fn table_lookup(
        &self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<Option<Bits>, DeviceError>;

    /// Sets the value of a key, between two firings, and returns whether there was room.
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

    /// Removes the entry of a key, between two firings, and returns whether there was one.
    ///
    /// # Errors
    /// No such table, or a key of another width.
    fn table_delete(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<bool, DeviceError>;

    /// Returns all entries of a table.
    ///
    /// # Errors
    /// No such table.
    fn table_entries(&self, instance: InstanceId, table: &str)
    -> Result<TableEntries, DeviceError>;

    /// Returns the counters since the program was loaded.
    fn counters(&self) -> DeviceCounters;

    /// Takes the output of printf, log and breakpoint probes since the last call.
    fn take_reported(&mut self) -> Reported;

    /// Sets whether an instance pauses once a firing of it passed a breakpoint, which ends the run
    /// with [`RunEnd::Breakpoint`]. Off by default. While an instance is paused no frame is
    /// received, but the rest of the graph keeps running. Disabling breakpoints resumes all paused
    /// instances.
    fn set_breakpoints_enabled(&mut self, is_enabled: bool);

    /// Resumes an instance from its breakpoint, in the next run.
    fn resume(&mut self, instance: InstanceId);

    /// Describes which instances wait for what, if the last run ended with items inside that
    /// nothing could take, even if an input may still bring what they wait for.
    fn waits(&self) -> Option<String>;

    /// Returns the interface from which a replacement takes state and packets; none if the device
    /// cannot be replaced.
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

    fn take_reported(&mut self) -> Reported {
        (**self).take_reported()
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

/// Output of probes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reported {
    /// The instance and its line: a printf's text, or a probe's name and operands.
    pub lines: Vec<(InstanceId, String)>,
    /// Lines that were dropped because they were not read in time.
    pub lost: u64,
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// Frames taken from input ports.
    pub received: u64,
    /// Frames that output ports accepted.
    pub sent: u64,
    /// Reason why the run stopped.
    pub end: RunEnd,
}

/// Reason why a run stopped.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RunEnd {
    /// Every input port has ended, and everything has been sent.
    #[default]
    Ended,
    /// Input ports may have more later; there is no work now.
    Idle,
    /// The caller requested a pause, or the graph keeps running by itself without frames: run it
    /// again.
    Paused,
    /// Instances only poll the clock, waiting for a point in time: run it again later.
    Waiting {
        /// Whether items wait for that time, and not only the polling instances.
        holds_items: bool,
    },
    /// An output port has no room, and frames wait for it.
    OutputFull,
    /// This instance passed a breakpoint, and is paused until it is resumed.
    Breakpoint(InstanceId),
    /// Items wait in the graph, nothing in it can fire, and no input delivers anything: each has
    /// ended or holds frames that the graph does not take.
    Stalled(String),
}

/// Errors of a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// A port failed.
    #[error("port of {endpoint}: {source}")]
    Port {
        /// The endpoint that the port is bound to.
        endpoint: String,
        /// The port's error.
        source: PortError,
    },
    /// A port that does not fit the program.
    #[error("no port can be bound to {endpoint}: {reason}")]
    Binding {
        /// The requested endpoint.
        endpoint: String,
        /// Reason.
        reason: String,
    },
    /// The program has no such item.
    #[error("{instance} has no {what}")]
    Unknown {
        /// Name of the instance.
        instance: String,
        /// The requested item.
        what: String,
    },
    /// Instances placed on workers that they cannot run on.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// A value that differs between the copies of an instance, where one value was requested.
    #[error(
        "{instance} has a different {what} in each copy: select one, {instance}@0, {instance}@1"
    )]
    CopiesDiffer {
        /// Name of the instance.
        instance: String,
        /// The requested item.
        what: String,
    },
    /// One of several workers has ended.
    #[error("worker {worker}: {reason}")]
    Worker {
        /// Number of the worker.
        worker: usize,
        /// Reason.
        reason: String,
    },
    /// The interpreter failed.
    #[error(transparent)]
    Interpreter(#[from] freeport_ir::interp::Error),
    /// Native code failed, or could not be built.
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

/// Condition under which a run returns to its caller although frames keep arriving.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pause<'a> {
    /// Flag that ends the run as soon as it is set.
    wanted: Option<&'a AtomicBool>,
    /// Number of turns after which the run ends.
    turns: Option<u32>,
}

impl<'a> Ports<'a> {
    /// Creates an empty set of ports.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a receiver to an input endpoint of the graph, such as `from_tor`.
    pub fn with_input(mut self, endpoint: &str, port: &'a mut dyn Receive) -> Self {
        self.inputs.push((endpoint.to_owned(), port));
        self
    }

    /// Binds a transmitter to an output endpoint of the graph, such as `to_tor`.
    pub fn with_output(mut self, endpoint: &str, port: &'a mut dyn Transmit) -> Self {
        self.outputs.push((endpoint.to_owned(), port));
        self
    }

    /// Makes the run end with [`RunEnd::Paused`] after at most `turns` batches of each input, or
    /// earlier if `wanted` is set; under endless load it would otherwise never end. A run always
    /// does one turn.
    pub fn with_pause(mut self, turns: u32, wanted: &'a AtomicBool) -> Self {
        self.pause = Pause { wanted: Some(wanted), turns: Some(turns) };
        self
    }

    /// Checks that a program has the endpoints that these ports are bound to.
    ///
    /// # Errors
    /// An endpoint that does not exist, has the other direction, carries records, or is
    /// bound twice.
    pub fn check(&mut self, program: &Program) -> Result<(), DeviceError> {
        self.bind(program).map(|_| ())
    }

    /// Checks the ports against a program and finds their endpoints.
    ///
    /// # Errors
    /// An endpoint that does not exist, has the other direction, carries records, or is
    /// bound twice.
    pub(crate) fn bind(&mut self, program: &Program) -> Result<Bound<'_>, DeviceError> {
        let mut bound = Bound { inputs: vec![], outputs: vec![], pause: self.pause };
        for (name, port) in &mut self.inputs {
            let id = endpoint_for(program, name, Direction::Into)?;
            if bound.inputs.iter().any(|(other, _)| *other == id) {
                return Err(binding(name, "it is already bound"));
            }
            bound.inputs.push((id, &mut **port));
        }
        for (name, port) in &mut self.outputs {
            let id = endpoint_for(program, name, Direction::OutOf)?;
            if bound.outputs.iter().any(|(other, _)| *other == id) {
                return Err(binding(name, "it is already bound"));
            }
            bound.outputs.push((id, &mut **port));
        }
        Ok(bound)
    }
}

/// Ports that fit a program.
#[derive(Default)]
pub(crate) struct Bound<'a> {
    /// Input endpoints of the graph.
    pub inputs: Vec<(EndpointId, &'a mut dyn Receive)>,
    /// Output endpoints of the graph.
    pub outputs: Vec<(EndpointId, &'a mut dyn Transmit)>,
    pause: Pause<'a>,
}

impl<'a> Bound<'a> {
    /// Creates an empty set of ports, for a run that ends as soon as `wanted` is set.
    pub fn giving_way(wanted: &'a AtomicBool) -> Self {
        Self { pause: Pause { wanted: Some(wanted), turns: None }, ..Self::default() }
    }

    /// Creates an empty set of ports, for a run that ends when this one does.
    pub fn without_ports(&self) -> Bound<'a> {
        Bound { pause: self.pause, ..Bound::default() }
    }

    /// Returns the flag that is set once the caller wants the run to end; none if it never does.
    pub fn wanted(&self) -> Option<&'a AtomicBool> {
        self.pause.wanted
    }

    /// Returns whether the run has to end now; called once after each turn.
    #[inline]
    pub fn gives_way(&mut self) -> bool {
        let is_over = self.pause.turns.as_mut().is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        });
        // The flag carries no data: what it announces is handed over by means that order memory.
        is_over || self.pause.wanted.is_some_and(|wanted| wanted.load(Ordering::Relaxed))
    }

    /// Returns whether the caller wants the run to end, regardless of the turns left.
    pub fn is_pause_wanted(&self) -> bool {
        self.pause.wanted.is_some_and(|wanted| wanted.load(Ordering::Relaxed))
    }

    /// Returns whether every input port has ended.
    pub fn are_inputs_ended(&self) -> bool {
        self.inputs.iter().all(|(_, port)| port.is_ended())
    }

    /// Returns whether no input can deliver anything to a graph that takes nothing: each has ended,
    /// or the device `holds` frames of it that have to be taken first.
    pub fn are_inputs_over(&self, holds: impl Fn(EndpointId) -> bool) -> bool {
        self.inputs.iter().all(|(id, port)| port.is_ended() || holds(*id))
    }

    /// Flushes the output ports and returns whether they are empty.
    ///
    /// # Errors
    /// A port failed.
    pub fn flush(&mut self, program: &Program) -> Result<bool, DeviceError> {
        let mut is_empty = true;
        for (id, port) in &mut self.outputs {
            is_empty &= port.flush().map_err(|source| port_error(program, *id, source))?;
        }
        Ok(is_empty)
    }
}

/// Wraps an error of the port of an endpoint.
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
