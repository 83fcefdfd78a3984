// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A running graph. Runs process the host's frames and records; between runs, the host sends
//! signals, calls methods, and reads and writes variables.

use crate::io::EndpointIo;
use crate::library::{Instance, take};
use crate::manifest::{ItemInfo, Manifest, ProbeKind, VariableInfo};
use crate::{Error, Image, RunStatus, abi};
use freeport_ir::interp::{
    ChannelFill, Report, Standing, StandingChannel, StandingInstance, Wanted, format_printf,
};
use freeport_ir::oracle::{
    ChannelCounters, HostAction, HostEvent, InstanceCounters, MethodCall, Occupancy,
};
use freeport_ir::{Bits, InstanceId, ObjectId, SIGNAL_BITS, TrapCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Flag for runs that are never interrupted.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A loaded graph.
pub struct Graph {
    pub(crate) code: Instance,
    manifest: Arc<Manifest>,
    pub(crate) host_events: Vec<Vec<HostEvent>>,
    pub(crate) answers: Vec<Vec<Bits>>,
    pub(crate) method_calls: Vec<Vec<MethodCall>>,
}

/// Counters of a graph since it was loaded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Counters of each instance.
    pub instances: Vec<InstanceCounters>,
    /// Counters of each channel.
    pub channels: Vec<ChannelCounters>,
    /// Fill of each channel; the peak is sampled at the ends of turns, each of which moves a batch.
    pub fills: Vec<Occupancy>,
    /// Counters of each endpoint; zeros if no frames leave there.
    pub outputs: Vec<OutputCounters>,
}

/// Frames that an endpoint could not deliver to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutputCounters {
    /// Frames longer than their buffer.
    pub too_long: u64,
    /// Flits that broke the framing.
    pub malformed: u64,
}

/// An event from a probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeEvent {
    /// Instance that ran the probe.
    pub instance: InstanceId,
    /// Number of firings of the instance that did something before this one.
    pub firing: u64,
    /// Kind of probe.
    pub kind: ProbeKind,
    /// Text of a printf; for other kinds the probe's name and operands.
    pub text: String,
}

impl Graph {
    /// Loads an image as an independent graph, and runs its init functions.
    ///
    /// # Errors
    /// The library cannot be loaded, or its manifest does not describe it.
    pub fn load(image: &Image) -> Result<Self, Error> {
        Self::load_seeded(image, 0)
    }

    /// Loads like [`load`](Self::load), with `random` drawn from `seed`.
    ///
    /// # Errors
    /// As for `load`.
    pub fn load_seeded(image: &Image, seed: u64) -> Result<Self, Error> {
        let count = image.manifest.instances.len();
        let mut graph = Self {
            code: Instance::load(image, seed)?,
            manifest: Arc::new(image.manifest.clone()),
            host_events: vec![vec![]; count],
            answers: vec![vec![]; count],
            method_calls: vec![vec![]; count],
        };
        graph.note_method_calls();
        Ok(graph)
    }

    /// Returns the description of the image.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Finds the instance of that name.
    pub fn instance(&self, name: &str) -> Option<InstanceId> {
        let at = self.manifest.instances.iter().position(|instance| instance.name == name)?;
        Some(InstanceId::new(at))
    }

    /// Runs until nothing can continue, with one `io` for each endpoint, in their order.
    /// Afterwards, `io` contains how much of it was used.
    ///
    /// # Errors
    /// `io` does not fit the endpoints.
    pub fn run(&mut self, io: &mut [EndpointIo<'_, '_>]) -> Result<RunStatus, Error> {
        self.run_until(&NEVER, io)
    }

    /// Runs like [`run`](Self::run), but yields with [`RunStatus::Budget`] soon after `is_wanted`
    /// is set: after the current instance, or, if that has loops, after its current firing.
    ///
    /// # Errors
    /// As for `run`.
    pub fn run_until(
        &mut self,
        is_wanted: &AtomicBool,
        io: &mut [EndpointIo<'_, '_>],
    ) -> Result<RunStatus, Error> {
        let endpoints = &self.manifest.endpoints;
        if io.len() != endpoints.len() {
            let (wanted, given) = (endpoints.len().to_string(), io.len().to_string());
            return Err(Error::mismatch("a run", wanted + " endpoints", given));
        }
        // The usual graph has two endpoints: up to four need no allocation.
        let mut raw = [const { abi::EndpointIo::EMPTY }; 4];
        let mut many = vec![];
        let raw = match io.len() {
            count if count <= raw.len() => &mut raw[..count],
            count => {
                many.resize_with(count, || abi::EndpointIo::EMPTY);
                &mut many[..]
            }
        };
        let given = raw.iter_mut().zip(io.iter_mut()).zip(endpoints).enumerate();
        for (at, ((raw, io), endpoint)) in given {
            let fits = matches!(
                (&*io, endpoint.is_input, endpoint.item),
                (EndpointIo::FramesIn { .. }, true, ItemInfo::Flit | ItemInfo::Packet)
                    | (EndpointIo::FramesOut { .. }, false, ItemInfo::Flit | ItemInfo::Packet)
                    | (EndpointIo::RecordsIn { .. }, true, ItemInfo::Record(_))
                    | (EndpointIo::RecordsOut { .. }, false, ItemInfo::Record(_))
            );
            if !fits {
                let direction = if endpoint.is_input { "in" } else { "out" };
                let wanted = match endpoint.item {
                    ItemInfo::Flit | ItemInfo::Packet => format!("frames {direction}"),
                    ItemInfo::Record(width) => format!("records {direction} of {width} bits"),
                };
                return Err(Error::mismatch(&endpoint.name, wanted, io.kind()));
            }
            *raw = io.raw(at, endpoint.item);
        }
        let status = self.code.run(is_wanted, raw);
        for (raw, io) in raw.iter().zip(io.iter_mut()) {
            io.set_done(raw.done);
        }
        if let Some(held) = self.held(status) {
            return Ok(RunStatus::Breakpoint(held));
        }
        Ok(match status {
            abi::STATUS_IDLE => RunStatus::Idle,
            abi::STATUS_OUTPUT_FULL => RunStatus::OutputFull,
            abi::STATUS_RECORD_FULL => RunStatus::RecordFull,
            abi::STATUS_STALLED => RunStatus::Stalled(self.stall(raw)),
            abi::STATUS_WAITING => RunStatus::Waiting,
            _ => RunStatus::Budget,
        })
    }

    /// Sets whether an instance is held after a firing that passed a breakpoint. Disabling
    /// breakpoints resumes the instances that are held.
    pub fn set_breakpoints_enabled(&mut self, is_enabled: bool) {
        self.code.runtime().breakpoints_enabled = u64::from(is_enabled);
        for at in 0..self.manifest.instances.len() {
            self.code.instance_mut(at).is_held *= u64::from(is_enabled);
        }
    }

    /// Resumes an instance from its breakpoint, in the next run.
    pub fn resume(&mut self, instance: InstanceId) {
        self.code.instance_mut(instance.index()).is_held = 0;
    }

    /// Returns whether a breakpoint holds some instance.
    pub fn is_held(&self) -> bool {
        self.code.breakpoints_enabled()
            && (0..self.manifest.instances.len()).any(|at| self.code.instance(at).is_held != 0)
    }

    /// Returns the instance that ends a run: one whose hold has not been reported, or the first
    /// held one if nothing else can continue.
    fn held(&mut self, status: u32) -> Option<InstanceId> {
        if !self.is_held() {
            return None;
        }
        let mut instances = 0..self.manifest.instances.len();
        let is_new = |at: &usize| self.code.instance(*at).is_held == abi::HELD_NEWLY;
        if let Some(at) = instances.clone().find(is_new) {
            self.code.instance_mut(at).is_held = abi::HELD;
            return Some(InstanceId::new(at));
        }
        let is_at_rest = matches!(status, abi::STATUS_IDLE | abi::STATUS_STALLED);
        let held = instances.find(|at| is_at_rest && self.code.instance(*at).is_held != 0);
        held.map(InstanceId::new)
    }

    /// Sends a signal of [`SIGNAL_BITS`] to an instance; returns its answer.
    ///
    /// # Errors
    /// The instance has no signal handler, or the signal has another width.
    pub fn signal(&mut self, instance: InstanceId, signal: Bits) -> Result<Bits, Error> {
        let info = self.info(instance)?;
        if !self.manifest.elements[info].takes_signals {
            return Err(self.unknown(instance, "signal handler"));
        }
        check_width("a signal", &signal, SIGNAL_BITS)?;
        let arguments = signal.to_le_bytes();
        let answer = self.call(instance, abi::SIGNAL, &arguments, Some(SIGNAL_BITS));
        self.note(instance, HostAction::Signal(signal), answer.clone());
        Ok(answer.unwrap_or_else(|| Bits::zero(SIGNAL_BITS)))
    }

    /// Calls a method of an instance; returns its result, if it has one. A method that traps
    /// returns 0.
    ///
    /// # Errors
    /// There is no such method, or the arguments do not fit its parameters.
    pub fn call_method(
        &mut self,
        instance: InstanceId,
        method: &str,
        arguments: &[Bits],
    ) -> Result<Option<Bits>, Error> {
        let element = self.info(instance)?;
        let manifest = self.manifest.clone();
        let methods = &manifest.elements[element].methods;
        let at = methods.iter().position(|it| it.name == method);
        let at = at.ok_or_else(|| self.unknown(instance, &format!("method {method}")))?;
        let bytes = argument_bytes(method, &methods[at].parameters, arguments)?;
        let result = self.call(instance, at as u32, &bytes, methods[at].result);
        self.note(instance, HostAction::Method(at, arguments.to_vec()), result.clone());
        Ok(result)
    }

    /// Returns element `index` of a state variable.
    ///
    /// # Errors
    /// There is no such variable or element, or the host may not access it.
    pub fn read_variable(
        &self,
        instance: InstanceId,
        object: &str,
        index: u64,
    ) -> Result<Bits, Error> {
        let (at, variable) = self.variable(instance, object, index)?;
        Ok(self.element(instance.index(), at, index, variable.width))
    }

    /// Writes element `index` of a state variable.
    ///
    /// # Errors
    /// As for [`read_variable`](Self::read_variable); a value of another width.
    pub fn write_variable(
        &mut self,
        instance: InstanceId,
        object: &str,
        index: u64,
        value: Bits,
    ) -> Result<(), Error> {
        let (at, variable) = self.variable(instance, object, index)?;
        check_width(object, &value, variable.width)?;
        let bytes = value.to_le_bytes();
        let place = self.code.variable_mut(instance.index(), at, index, bytes.len());
        place.copy_from_slice(&bytes);
        self.code.instance_mut(instance.index()).is_quiet = 0;
        let action = HostAction::Write { object: ObjectId::new(at), index, value };
        self.note(instance, action, None);
        Ok(())
    }

    /// Returns the counters since the graph was loaded.
    pub fn counters(&self) -> Counters {
        let instances = 0..self.manifest.instances.len();
        let endpoints = 0..self.manifest.endpoints.len();
        Counters {
            instances: instances.map(|at| self.instance_counters(at)).collect(),
            channels: (0..self.manifest.channels.len()).map(|at| self.channel(at)).collect(),
            fills: (0..self.manifest.channels.len()).map(|at| self.fill(at)).collect(),
            outputs: endpoints.map(|at| self.output(at)).collect(),
        }
    }

    /// Returns the number of items that wait in a channel between two runs.
    pub fn waiting(&self, channel: usize) -> u32 {
        self.code.channel(channel).fill
    }

    /// Returns the number of buffers allocated for packets: at most one for each packet inside the
    /// graph between two runs.
    pub fn buffers_in_use(&self) -> u64 {
        self.code.buffers_in_use()
    }

    /// Returns the probe events since the last call, and the number of events lost because the host
    /// did not collect them in time.
    pub fn take_probes(&mut self) -> (Vec<ProbeEvent>, u64) {
        let runtime = self.code.runtime();
        let lost = std::mem::take(&mut runtime.lost_probes);
        let bytes = take(&mut runtime.probes);
        let mut left = &bytes[..];
        let mut events = vec![];
        while let Some((event, rest)) = self.probe_event(left) {
            events.push(event);
            left = rest;
        }
        (events, lost)
    }

    fn probe_event<'b>(&self, bytes: &'b [u8]) -> Option<(ProbeEvent, &'b [u8])> {
        let (head, mut rest) = bytes.split_at_checked(24)?;
        let [instance, probe, firing] =
            [0, 8, 16].map(|at| Bits::from_le_bytes(64, &head[at..at + 8]).to_u64());
        let probe = self.manifest.probes.get(probe as usize)?;
        let mut operands = vec![];
        for width in &probe.operands {
            let (operand, after) = rest.split_at_checked(width.div_ceil(8) as usize)?;
            operands.push(Bits::from_le_bytes(*width, operand));
            rest = after;
        }
        let text = match probe.kind {
            ProbeKind::Printf => format_printf(&probe.text, &operands),
            ProbeKind::Breakpoint | ProbeKind::Log => {
                operands.iter().fold(probe.text.clone(), |text, it| format!("{text} {it}"))
            }
        };
        let instance = InstanceId::new(instance as usize);
        Some((ProbeEvent { instance, firing, kind: probe.kind, text }, rest))
    }

    fn instance_counters(&self, at: usize) -> InstanceCounters {
        let counted = self.code.instance(at);
        let codes = self.manifest.traps.iter();
        let traps = codes.zip(self.code.traps(at, self.manifest.traps.len()));
        InstanceCounters {
            firings: counted.firings,
            out_of_range: counted.out_of_range,
            empty_reads: counted.empty_reads,
            traps: traps
                .filter(|(_, count)| **count > 0)
                .map(|(code, count)| (TrapCode::from(*code), *count))
                .collect(),
        }
    }

    fn channel(&self, at: usize) -> ChannelCounters {
        let abi::Channel { items, packets, bytes, stalls, drops, .. } = *self.code.channel(at);
        let (packets, bytes) = match self.manifest.channels[at].item {
            ItemInfo::Flit => (packets, bytes),
            ItemInfo::Packet => (items, bytes),
            ItemInfo::Record(width) => (items, items * u64::from(width.div_ceil(8))),
        };
        ChannelCounters { items, packets, bytes, stalls, dropped: drops }
    }

    fn fill(&self, at: usize) -> Occupancy {
        let abi::Channel { fill, peak, .. } = *self.code.channel(at);
        let room = u64::from(self.manifest.channels[at].room);
        // The additional item is the one that a firing has staged.
        let waiting = room.min(fill.into());
        Occupancy { waiting, peak: room.min(peak).max(waiting), room }
    }

    fn output(&self, at: usize) -> OutputCounters {
        let output = self.code.output(at);
        output.map_or(OutputCounters::default(), |output| OutputCounters {
            too_long: output.too_long,
            malformed: output.malformed,
        })
    }

    /// Reports why the graph waits; `raw` contains the remaining input of the host.
    fn stall(&self, raw: &[abi::EndpointIo]) -> Report {
        let Manifest { instances, elements, channels, .. } = &*self.manifest;
        let instances = instances.iter().enumerate().map(|(at, info)| {
            let abi::Instance { mask, is_quiet, .. } = *self.code.instance(at);
            let wanted = match mask {
                0 => Wanted::Nothing,
                mask if elements[info.element].awaits_all => Wanted::All(mask),
                mask => Wanted::Any(mask),
            };
            let name = info.name.clone();
            StandingInstance { name, wanted: Some(wanted), is_quiet: is_quiet != 0 }
        });
        let channels = channels.iter().enumerate().map(|(at, channel)| {
            let host_has = |endpoint: usize| (raw[endpoint].count - raw[endpoint].done) as usize;
            let depth = channel.room as usize;
            let waiting = match channel.endpoint {
                Some(endpoint) => host_has(endpoint),
                None => self.code.channel(at).fill as usize,
            };
            StandingChannel {
                fill: ChannelFill { name: channel.name.clone(), fill: waiting.min(depth), depth },
                writer: channel.writer,
                reader: channel.reader,
                has_staged: channel.writer.is_some() && waiting > depth,
            }
        });
        Report::of(&Standing { instances: instances.collect(), channels: channels.collect() })
    }

    /// Calls code that has no ports.
    fn call(
        &mut self,
        instance: InstanceId,
        method: u32,
        arguments: &[u8],
        result: Option<u32>,
    ) -> Option<Bits> {
        let mut bytes = vec![0; result.map_or(0, |width| width.div_ceil(8) as usize)];
        self.code.call(instance.index(), method, arguments, &mut bytes);
        self.note_method_calls();
        result.map(|width| Bits::from_le_bytes(width, &bytes))
    }

    /// Records an action of the host, if the graph records.
    pub(crate) fn note(&mut self, instance: InstanceId, action: HostAction, answer: Option<Bits>) {
        if self.manifest.records {
            let before_firing = self.code.instance(instance.index()).firings;
            self.host_events[instance.index()].push(HostEvent { before_firing, action });
            self.answers[instance.index()].extend(answer);
        }
    }

    /// Returns an element of a variable that is known to exist.
    pub(crate) fn element(&self, instance: usize, object: usize, index: u64, width: u32) -> Bits {
        let bytes = width.div_ceil(8) as usize;
        Bits::from_le_bytes(width, self.code.variable(instance, object, index, bytes))
    }

    fn variable(
        &self,
        instance: InstanceId,
        name: &str,
        index: u64,
    ) -> Result<(usize, &VariableInfo), Error> {
        let variables = &self.manifest.elements[self.info(instance)?].variables;
        let mut found = variables.iter().enumerate();
        let found = found.find(|(_, it)| it.name == name && it.is_host_visible);
        let found = found
            .ok_or_else(|| self.unknown(instance, &format!("variable {name} open to the host")))?;
        if index >= found.1.depth {
            return Err(self.unknown(instance, &format!("element {index} of {name}")));
        }
        Ok(found)
    }

    /// Returns the position of an instance's element in the manifest.
    pub(crate) fn info(&self, instance: InstanceId) -> Result<usize, Error> {
        let info = self.manifest.instances.get(instance.index());
        let unknown = || Error::unknown(&self.manifest.program, format!("instance {}", instance.0));
        info.map(|info| info.element).ok_or_else(unknown)
    }

    pub(crate) fn unknown(&self, instance: InstanceId, what: &str) -> Error {
        Error::unknown(&self.manifest.instances[instance.index()].name, what)
    }
}

/// Concatenates the arguments of a call, if they fit its parameters.
pub(crate) fn argument_bytes(
    what: &str,
    parameters: &[u32],
    arguments: &[Bits],
) -> Result<Vec<u8>, Error> {
    let given: Vec<u32> = arguments.iter().map(Bits::width).collect();
    if given != parameters {
        let list = |widths: &[u32]| format!("arguments of {widths:?} bits");
        return Err(Error::mismatch(what, list(parameters), list(&given)));
    }
    Ok(arguments.iter().flat_map(Bits::to_le_bytes).collect())
}

fn check_width(what: &str, value: &Bits, width: u32) -> Result<(), Error> {
    match value.width() == width {
        true => Ok(()),
        false => {
            let bits = |width: u32| format!("{width} bits");
            Err(Error::mismatch(what, bits(width), bits(value.width())))
        }
    }
}
