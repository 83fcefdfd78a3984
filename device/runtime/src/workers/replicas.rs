// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copies of a whole graph, one per worker, each with the frames of its share of the flows (ClickNP
//! 4.2). The calling thread is worker 0: it steers frames, has the ports, and runs the first copy.
//!
//! To the host, an instance `exact` stands for all its copies, and `exact@0`, `exact@1` for one
//! each. An operation on all copies (a method, a signal, a written variable, a table entry) must
//! have the same result everywhere; otherwise the difference is reported. A variable that is read
//! from all must have one value, and a table shows the entries of all copies, since each learns its
//! own flows. Counters are sums over all copies.

use super::crew::{Crew, Job, Post};
use super::device::RING_FRAMES;
use super::run::{self, Host, Turn};
use super::steer::Steerer;
use crate::cpu::{CpuDevice, LinkEnd};
use crate::device::{Bound, Device, DeviceCounters, DeviceError, Ports, Reported, Run, Transfer};
use crate::ring::frame_ring;
use freeport_ir::oracle::{ChannelCounters, InstanceCounters, Occupancy, TableEntries};
use freeport_ir::{Bits, Direction, EndpointId, Instance, InstanceId, Item, Program, Sink, Source};
use freeport_native::{Options, RunStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Copies of a program, as one device.
pub struct Replicas {
    /// The program, followed by the copies' instances and channels.
    program: Arc<Program>,
    crew: Crew<Lane>,
    /// Numbers of instances and channels of one copy.
    instances: usize,
    channels: usize,
}

/// The work of a worker.
struct Lane {
    device: CpuDevice<'static>,
    /// The steerer; worker 0 has it.
    steerer: Option<Steerer>,
}

impl Job for Lane {
    fn turn(&mut self, wanted: &AtomicBool) -> Result<(RunStatus, bool), DeviceError> {
        self.turn_between(&mut Bound::giving_way(wanted), &mut Run::default())
    }

    fn has_news(&self) -> bool {
        self.device.has_news() || self.steerer.as_ref().is_some_and(Steerer::has_news)
    }
}

impl Lane {
    fn turn_between(
        &mut self,
        bound: &mut Bound<'_>,
        run: &mut Run,
    ) -> Result<(RunStatus, bool), DeviceError> {
        let is_steered = match &mut self.steerer {
            Some(steerer) => steerer.turn(bound, run)?,
            None => false,
        };
        let (status, has_moved) =
            self.device.turn(&mut bound.without_ports(), &mut Run::default())?;
        Ok((status, has_moved || is_steered))
    }
}

impl Replicas {
    /// Builds a verified program once and starts `copies` of it, each on a worker; `cores` has the
    /// cores to which workers 1, 2 and so on are pinned, as far as it has entries.
    ///
    /// # Errors
    /// A program that native code does not support, no compiler, or a compiler that fails; no
    /// threads.
    pub fn load(
        program: Arc<Program>,
        copies: usize,
        cores: &[usize],
        options: &Options,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        let image = freeport_native::build(&program, options)?;
        let seeds = (0..copies as u64).map(|at| seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let devices = seeds.map(|seed| CpuDevice::of_image(program.clone(), &image, seed));
        let mut devices: Vec<CpuDevice<'static>> = devices.collect::<Result<_, _>>()?;
        let mut steerer = Steerer::new(program.clone());
        for (at, endpoint) in program.graph.endpoints.iter().enumerate() {
            let id = EndpointId::new(at);
            if let Item::Bits(_) = endpoint.item {
                continue;
            }
            let (writers, readers): (Vec<_>, Vec<_>) =
                (0..copies).map(|_| frame_ring(RING_FRAMES)).unzip();
            if endpoint.direction == Direction::Into {
                let ends = devices.iter_mut().zip(readers);
                ends.for_each(|(device, ring)| device.attach(id, LinkEnd::FramesIn(ring)));
                steerer.add_input(id, writers);
            } else {
                let ends = devices.iter_mut().zip(writers);
                ends.for_each(|(device, ring)| device.attach(id, LinkEnd::FramesOut(ring)));
                steerer.add_output(id, readers);
            }
        }
        let mut steerer = Some(steerer);
        let post = |(worker, device)| Post {
            worker,
            neighbours: if worker == 0 { (1..copies).collect() } else { vec![0] },
            job: Lane { device, steerer: steerer.take() },
            core: worker.checked_sub(1).and_then(|it| cores.get(it)).copied(),
        };
        let crew = Crew::start(devices.into_iter().enumerate().map(post).collect())?;
        let (instances, channels) = (program.graph.instances.len(), program.graph.channels.len());
        Ok(Self { program: Arc::new(named(&program, copies)), crew, instances, channels })
    }

    /// Returns the copies that an instance stands for, and its number there.
    fn copies(&self, instance: InstanceId) -> (std::ops::Range<usize>, InstanceId) {
        let at = instance.index();
        let there = InstanceId::new(at % self.instances.max(1));
        match (at / self.instances.max(1)).checked_sub(1) {
            Some(copy) if copy < self.crew.len() => (copy..copy + 1, there),
            // There is no copy with that number; any copy reports this.
            Some(_) => (0..1, instance),
            None => (0..self.crew.len(), there),
        }
    }

    /// Accesses each copy that an instance stands for.
    fn ask<T>(
        &self,
        instance: InstanceId,
        ask: impl Fn(&mut CpuDevice<'static>, InstanceId) -> Result<T, DeviceError>,
    ) -> Result<Vec<T>, DeviceError> {
        let (copies, there) = self.copies(instance);
        copies.map(|at| self.crew.ask(at, |lane| ask(&mut lane.device, there))?).collect()
    }

    /// Like `ask`, for an access that may give the copies work. The first copy refuses an invalid
    /// operation, so that no copy has applied it.
    fn tell<T>(
        &self,
        instance: InstanceId,
        tell: impl Fn(&mut CpuDevice<'static>, InstanceId) -> Result<T, DeviceError>,
    ) -> Result<Vec<T>, DeviceError> {
        let (copies, there) = self.copies(instance);
        copies.map(|at| self.crew.tell(at, |lane| tell(&mut lane.device, there))?).collect()
    }

    /// Returns the result if all copies agree on it.
    fn alike<T: PartialEq>(
        &self,
        instance: InstanceId,
        what: &str,
        results: Vec<T>,
    ) -> Result<T, DeviceError> {
        let mut results = results.into_iter();
        if let Some(first) = results.next()
            && results.all(|result| result == first)
        {
            return Ok(first);
        }
        let instance = self.program.instance(instance).name.clone();
        let what = what.to_owned();
        Err(DeviceError::CopiesDiffer { instance, what })
    }
}

impl Host<Lane> for Replicas {
    fn program(&self) -> &Program {
        &self.program
    }

    fn turn(lane: &mut Lane, bound: &mut Bound<'_>, run: &mut Run) -> Turn {
        lane.turn_between(bound, run)
    }

    fn is_blocked(lane: &Lane) -> bool {
        lane.steerer.as_ref().is_some_and(Steerer::is_blocked)
    }

    fn holds(lane: &Lane, endpoint: EndpointId) -> bool {
        lane.steerer.as_ref().is_some_and(|steerer| steerer.holds(endpoint))
    }

    fn holds_items(lane: &Lane) -> bool {
        lane.device.holds_items()
    }

    fn name_of(&self, copy: usize, there: InstanceId) -> InstanceId {
        InstanceId::new((copy + 1) * self.instances + there.index())
    }
}

/// Returns a program followed by its copies' instances and channels: the names for the host.
fn named(program: &Program, copies: usize) -> Program {
    let mut named = program.clone();
    let count = program.graph.instances.len();
    for copy in 0..copies {
        let id = |id: InstanceId| InstanceId::new(id.index() + (copy + 1) * count);
        named.graph.instances.extend(program.graph.instances.iter().map(|instance| Instance {
            name: format!("{}@{copy}", instance.name),
            ..instance.clone()
        }));
        named.graph.channels.extend(program.graph.channels.iter().cloned().map(|mut channel| {
            if let Source::Port(writer, _) = &mut channel.source {
                *writer = id(*writer);
            }
            if let Sink::Port(reader, _) = &mut channel.sink {
                *reader = id(*reader);
            }
            channel
        }));
    }
    named
}

impl Device for Replicas {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, DeviceError> {
        let mut bound = ports.bind(&self.program)?;
        run::run(self, &self.crew, &mut bound)
    }

    fn signal(&mut self, instance: InstanceId, signal: &Bits) -> Result<Bits, DeviceError> {
        let answers = self.tell(instance, |device, there| device.signal(there, signal))?;
        self.alike(instance, "answer to the signal", answers)
    }

    fn call_method(
        &mut self,
        instance: InstanceId,
        method: &str,
        arguments: &[Bits],
    ) -> Result<Option<Bits>, DeviceError> {
        let call =
            |device: &mut CpuDevice<'static>, there| device.call_method(there, method, arguments);
        let results = self.tell(instance, call)?;
        self.alike(instance, &format!("result of {method}"), results)
    }

    fn read_variable(
        &self,
        instance: InstanceId,
        variable: &str,
        index: u64,
    ) -> Result<Bits, DeviceError> {
        let read =
            |device: &mut CpuDevice<'static>, there| device.read_variable(there, variable, index);
        self.alike(instance, variable, self.ask(instance, read)?)
    }

    fn write_variable(
        &mut self,
        instance: InstanceId,
        variable: &str,
        index: u64,
        value: &Bits,
    ) -> Result<(), DeviceError> {
        let write = |device: &mut CpuDevice<'static>, there| {
            device.write_variable(there, variable, index, value)
        };
        self.tell(instance, write).map(|_| ())
    }

    fn table_lookup(
        &self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<Option<Bits>, DeviceError> {
        let look = |device: &mut CpuDevice<'static>, there| device.table_lookup(there, table, key);
        let found: Vec<Bits> = self.ask(instance, look)?.into_iter().flatten().collect();
        if found.is_empty() {
            return Ok(None);
        }
        self.alike(instance, &format!("entry in {table}"), found).map(Some)
    }

    fn table_update(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
        value: &Bits,
    ) -> Result<bool, DeviceError> {
        let update =
            |device: &mut CpuDevice<'static>, there| device.table_update(there, table, key, value);
        let results = self.tell(instance, update)?;
        self.alike(instance, &format!("room in {table}"), results)
    }

    fn table_delete(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<bool, DeviceError> {
        let delete =
            |device: &mut CpuDevice<'static>, there| device.table_delete(there, table, key);
        Ok(self.tell(instance, delete)?.into_iter().any(|was_there| was_there))
    }

    fn table_entries(
        &self,
        instance: InstanceId,
        table: &str,
    ) -> Result<TableEntries, DeviceError> {
        let list = |device: &mut CpuDevice<'static>, there| device.table_entries(there, table);
        let mut entries: TableEntries = self.ask(instance, list)?.into_iter().flatten().collect();
        freeport_ir::oracle::sort_entries(&mut entries);
        entries.dedup();
        Ok(entries)
    }

    fn counters(&self) -> DeviceCounters {
        let steered =
            self.crew.ask(0, |lane| lane.steerer.as_ref().map(|steerer| steerer.counters.clone()));
        let mut all = DeviceCounters {
            instances: vec![InstanceCounters::default(); self.instances],
            channels: vec![ChannelCounters::default(); self.channels],
            fills: vec![Occupancy::default(); self.channels],
            // Counters of a worker that has ended are lost with it.
            endpoints: steered.ok().flatten().unwrap_or_default(),
        };
        for copy in 0..self.crew.len() {
            let Ok(counted) = self.crew.ask(copy, |lane| lane.device.counters()) else { continue };
            for (sum, it) in all.instances.iter_mut().zip(&counted.instances) {
                sum.firings += it.firings;
                sum.out_of_range += it.out_of_range;
                sum.empty_reads += it.empty_reads;
                for (code, count) in &it.traps {
                    *sum.traps.entry(*code).or_default() += count;
                }
            }
            for (sum, it) in all.channels.iter_mut().zip(&counted.channels) {
                sum.items += it.items;
                sum.packets += it.packets;
                sum.bytes += it.bytes;
                sum.stalls += it.stalls;
                sum.dropped += it.dropped;
            }
            for (fullest, it) in all.fills.iter_mut().zip(&counted.fills) {
                *fullest = fullest.or_fuller(*it);
            }
            for (sum, it) in all.endpoints.iter_mut().zip(&counted.endpoints) {
                sum.dropped += it.dropped;
            }
            all.instances.extend(counted.instances);
            all.channels.extend(counted.channels);
            all.fills.extend(counted.fills);
        }
        all
    }

    fn take_reported(&mut self) -> Reported {
        let mut all = Reported::default();
        for copy in 0..self.crew.len() {
            let Ok(reported) = self.crew.ask(copy, |lane| lane.device.take_reported()) else {
                continue;
            };
            let lines = reported.lines.into_iter();
            all.lines.extend(lines.map(|(there, text)| (self.name_of(copy, there), text)));
            all.lost += reported.lost;
        }
        all
    }

    fn set_breakpoints_enabled(&mut self, is_enabled: bool) {
        for copy in 0..self.crew.len() {
            // A worker that has ended is not paused.
            let _ = self.crew.tell(copy, |lane| lane.device.set_breakpoints_enabled(is_enabled));
        }
    }

    fn resume(&mut self, instance: InstanceId) {
        let _ = self.tell(instance, |device, there| {
            device.resume(there);
            Ok(())
        });
    }

    fn waits(&self) -> Option<String> {
        run::waits(&self.crew)
    }

    /// Returns none: moving the state of the copies to another program is not supported.
    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        None
    }
}
