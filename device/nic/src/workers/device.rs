// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program on several workers, as one device.

use super::crew::{Crew, Job, MOST_TURNS_ALONE, Post};
use super::partition::{Link, Part, Partition};
use super::ring::{frame_ring, slot_ring};
use crate::cpu::{CpuDevice, LinkEnd};
use crate::device::{
    Bound, Device, DeviceCounters, DeviceError, EndpointCounters, Ports, Run, RunEnd, Told,
};
use crate::replace::Transfer;
use freeport_ir::oracle::{ChannelCounters, InstanceCounters, TableEntries};
use freeport_ir::{Bits, InstanceId, Item, Program};
use freeport_native::{Options, RunStatus};
use std::sync::Arc;

/// Frames that a ring between two workers holds.
const RING_FRAMES: usize = 512;
/// Bytes of a ring of records.
const RING_RECORD_BYTES: usize = 1 << 17;

/// Turns in which items came from other workers, and no frame from or to a port, after which a run
/// gives way to its caller.
const MOST_TURNS_INSIDE: u32 = 1 << 16;

/// A program in parts, each of them native code on a thread of its own. The thread that calls
/// [`run`](Device::run) is worker 0, which has the ports.
pub struct WorkersDevice {
    program: Arc<Program>,
    crew: Crew<CpuDevice<'static>>,
    parts: Vec<Part>,
    /// By instance of the program: its part, and which instance it is there.
    instances: Vec<(usize, InstanceId)>,
}

impl Job for CpuDevice<'static> {
    fn turn(&mut self) -> Result<(RunStatus, bool), DeviceError> {
        self.turn(&mut Bound::default(), &mut Run::default())
    }

    fn has_news(&self) -> bool {
        self.has_news()
    }
}

impl WorkersDevice {
    /// Cuts a verified program, builds each part, and starts the workers. `workers` has the worker
    /// of each instance, and `cores` the cores that workers 1, 2 and so on stay on, as far as it
    /// goes.
    ///
    /// # Errors
    /// What native code cannot do, no compiler, or one that fails; no threads.
    pub fn load(
        program: Arc<Program>,
        workers: &[usize],
        cores: &[usize],
        options: &Options,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        let Partition { parts, links } = Partition::new(&program, workers)?;
        let mut devices = vec![];
        for part in &parts {
            let number = part.worker as u64;
            let seed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let program = Arc::new(part.program.clone());
            devices.push(CpuDevice::load_seeded(program, options, seed)?);
        }
        links.iter().for_each(|link| join(&mut devices, link));
        let mut instances = vec![(0, InstanceId::new(0)); program.graph.instances.len()];
        for (at, part) in parts.iter().enumerate() {
            for (there, id) in part.instances.iter().enumerate() {
                if let Some(id) = id {
                    instances[id.index()] = (at, InstanceId::new(there));
                }
            }
        }
        let post = |(at, job): (usize, CpuDevice<'static>)| Post {
            worker: parts[at].worker,
            neighbours: neighbours(&links, at),
            job,
            core: parts[at].worker.checked_sub(1).and_then(|it| cores.get(it)).copied(),
        };
        let crew = Crew::start(devices.into_iter().enumerate().map(post).collect())?;
        Ok(Self { program, crew, parts, instances })
    }

    /// Which part an instance is in, and which instance it is there.
    fn place(&self, instance: InstanceId) -> Result<(usize, InstanceId), DeviceError> {
        let unknown = || {
            let what = format!("instance {}", instance.0);
            DeviceError::Unknown { instance: self.program.name.clone(), what }
        };
        self.instances.get(instance.index()).copied().ok_or_else(unknown)
    }

    /// Which instance of the program one of a part is. Those that were put in have no breakpoints,
    /// and no words.
    fn name_of(&self, part: usize, there: InstanceId) -> InstanceId {
        self.parts[part].instances[there.index()].unwrap_or(there)
    }

    fn ask<T>(
        &self,
        instance: InstanceId,
        ask: impl FnOnce(&mut CpuDevice<'static>, InstanceId) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let (part, there) = self.place(instance)?;
        self.crew.ask(part, |device| ask(device, there))?
    }

    fn tell<T>(
        &self,
        instance: InstanceId,
        tell: impl FnOnce(&mut CpuDevice<'static>, InstanceId) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let (part, there) = self.place(instance)?;
        self.crew.tell(part, |device| tell(device, there))?
    }

    /// Why nobody has anything to do.
    fn rest(&self, bound: &mut Bound<'_>) -> Result<RunEnd, DeviceError> {
        let is_empty_below = bound.flush(&self.program)?;
        let is_waiting = self.crew.ask(0, |device| device.is_blocked())?;
        if is_waiting || !is_empty_below {
            return Ok(RunEnd::OutputFull);
        }
        let statuses = self.crew.statuses();
        if statuses.iter().any(|(_, status)| *status == RunStatus::Budget) {
            return Ok(RunEnd::Paused);
        }
        if !bound.are_inputs_ended() {
            return Ok(RunEnd::Idle);
        }
        let lines = statuses.into_iter().filter_map(|(worker, status)| {
            let text = match status {
                RunStatus::Idle | RunStatus::Budget | RunStatus::Breakpoint(_) => return None,
                RunStatus::Stalled(stall) => stall.to_string(),
                RunStatus::OutputFull => "another worker takes no more from it".into(),
                RunStatus::RecordFull => "the recording is full".into(),
            };
            Some(format!("worker {worker}: {text}"))
        });
        let lines: Vec<String> = lines.collect();
        Ok(if lines.is_empty() { RunEnd::Ended } else { RunEnd::Stalled(lines.join("\n")) })
    }
}

/// Joins the two ends of a link by a ring.
fn join(devices: &mut [CpuDevice<'static>], link: &Link) {
    let (written, read) = match link.item {
        Item::Bits(width) => {
            let bytes = width.div_ceil(8) as usize;
            let (writer, reader) = slot_ring((RING_RECORD_BYTES / bytes).max(64), bytes);
            (LinkEnd::RecordsOut(writer), LinkEnd::RecordsIn(reader))
        }
        Item::Flit | Item::Packet { .. } => {
            let (writer, reader) = frame_ring(RING_FRAMES);
            (LinkEnd::FramesOut(writer), LinkEnd::FramesIn(reader))
        }
    };
    devices[link.from.0].attach(link.from.1, written);
    devices[link.to.0].attach(link.to.1, read);
}

/// The parts that part `at` shares rings with.
fn neighbours(links: &[Link], at: usize) -> Vec<usize> {
    let others = links.iter().filter_map(|link| match (link.from.0, link.to.0) {
        (from, to) if from == at => Some(to),
        (from, to) if to == at => Some(from),
        _ => None,
    });
    let mut others: Vec<usize> = others.collect();
    others.sort_unstable();
    others.dedup();
    others
}

impl Device for WorkersDevice {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, DeviceError> {
        let mut bound = ports.bind(&self.program)?;
        let mut run = Run::default();
        let (mut looks, mut turns_inside) = (0, 0);
        self.crew.arrive();
        loop {
            // While an instance rests at a breakpoint, no frame comes in, and the rest goes on.
            let is_held = self.crew.held().is_some();
            let inputs = if is_held { std::mem::take(&mut bound.inputs) } else { vec![] };
            let before = run.received + run.sent;
            let turn = self.crew.turn(|device| device.turn(&mut bound, &mut run));
            if is_held {
                bound.inputs = inputs;
            }
            let (status, has_moved) = turn?;
            if let Some((part, there)) = self.crew.held() {
                bound.flush(&self.program)?;
                run.end = RunEnd::Breakpoint(self.name_of(part, there));
                return Ok(run);
            }
            looks = if has_moved { 0 } else { looks + 1 };
            let goes_on = status == RunStatus::Budget && looks < MOST_TURNS_ALONE;
            if !has_moved && !goes_on && self.crew.rests() {
                run.end = self.rest(&mut bound)?;
                return Ok(run);
            }
            // Turns without frames are not counted, because others work meanwhile; but what goes
            // round between workers may do so for ever.
            let has_passed = run.received + run.sent != before;
            turns_inside = if has_passed { 0 } else { turns_inside + u32::from(has_moved) };
            let is_over = has_passed && bound.gives_way() || turns_inside == MOST_TURNS_INSIDE;
            if is_over || bound.is_pause_wanted() {
                run.end = RunEnd::Paused;
                return Ok(run);
            }
            if !has_moved && !goes_on {
                self.crew.wait(looks);
            }
        }
    }

    fn signal(&mut self, instance: InstanceId, signal: &Bits) -> Result<Bits, DeviceError> {
        self.tell(instance, |device, there| device.signal(there, signal))
    }

    fn call_method(
        &mut self,
        instance: InstanceId,
        method: &str,
        arguments: &[Bits],
    ) -> Result<Option<Bits>, DeviceError> {
        self.tell(instance, |device, there| device.call_method(there, method, arguments))
    }

    fn read_variable(
        &self,
        instance: InstanceId,
        variable: &str,
        index: u64,
    ) -> Result<Bits, DeviceError> {
        self.ask(instance, |device, there| device.read_variable(there, variable, index))
    }

    fn write_variable(
        &mut self,
        instance: InstanceId,
        variable: &str,
        index: u64,
        value: &Bits,
    ) -> Result<(), DeviceError> {
        self.tell(instance, |device, there| device.write_variable(there, variable, index, value))
    }

    fn table_lookup(
        &self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<Option<Bits>, DeviceError> {
        self.ask(instance, |device, there| device.table_lookup(there, table, key))
    }

    fn table_update(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
        value: &Bits,
    ) -> Result<bool, DeviceError> {
        self.tell(instance, |device, there| device.table_update(there, table, key, value))
    }

    fn table_delete(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<bool, DeviceError> {
        self.tell(instance, |device, there| device.table_delete(there, table, key))
    }

    fn table_entries(
        &self,
        instance: InstanceId,
        table: &str,
    ) -> Result<TableEntries, DeviceError> {
        self.ask(instance, |device, there| device.table_entries(there, table))
    }

    fn counters(&self) -> DeviceCounters {
        let graph = &self.program.graph;
        let mut all = DeviceCounters {
            instances: vec![InstanceCounters::default(); graph.instances.len()],
            channels: vec![ChannelCounters::default(); graph.channels.len()],
            endpoints: vec![EndpointCounters::default(); graph.endpoints.len()],
        };
        for (at, part) in self.parts.iter().enumerate() {
            // Those of a worker that has ended are lost with it.
            let Ok(counted) = self.crew.ask(at, |device| device.counters()) else { continue };
            for (id, counted) in part.instances.iter().zip(counted.instances) {
                id.iter().for_each(|id| all.instances[id.index()] = counted.clone());
            }
            for (id, counted) in part.channels.iter().zip(counted.channels) {
                id.iter().for_each(|id| all.channels[id.index()] = counted);
            }
            for (id, counted) in part.endpoints.iter().zip(counted.endpoints) {
                let Some(id) = id else { continue };
                let EndpointCounters { frames, bytes, dropped } = &mut all.endpoints[id.index()];
                *frames += counted.frames;
                *bytes += counted.bytes;
                *dropped += counted.dropped;
            }
        }
        all
    }

    fn take_told(&mut self) -> Told {
        let mut all = Told::default();
        for at in 0..self.parts.len() {
            let Ok(told) = self.crew.ask(at, |device| device.take_told()) else { continue };
            let lines = told.lines.into_iter();
            all.lines.extend(lines.map(|(there, text)| (self.name_of(at, there), text)));
            all.lost += told.lost;
        }
        all
    }

    fn set_breakpoints_enabled(&mut self, is_enabled: bool) {
        for part in 0..self.crew.len() {
            // One that has ended rests nowhere.
            let _ = self.crew.tell(part, |device| device.set_breakpoints_enabled(is_enabled));
        }
    }

    fn resume(&mut self, instance: InstanceId) {
        let _ = self.tell(instance, |device, there| {
            device.resume(there);
            Ok(())
        });
    }

    /// The state of its parts is not moved to another program yet.
    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        None
    }
}
