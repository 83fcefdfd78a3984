// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program on several workers as one device.

use super::crew::{Crew, Job, Post};
use super::partition::{Link, Part, Partition};
use super::run::{self, Host, Turn};
use crate::cpu::{CpuDevice, LinkEnd};
use crate::device::{
    Bound, Device, DeviceCounters, DeviceError, EndpointCounters, Ports, Reported, Run, Transfer,
    host_methods,
};
use crate::ring::{frame_ring, slot_ring};
use freeport_ir::oracle::{ChannelCounters, InstanceCounters, Occupancy};
use freeport_ir::{EndpointId, InstanceId, Item, Program};
use freeport_native::{Options, RunStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Frames that a ring between two workers holds.
pub(super) const RING_FRAMES: usize = 512;
/// Bytes of a ring of records.
const RING_RECORD_BYTES: usize = 1 << 17;

/// A program in parts, each of which runs as native code on a thread of its own. The thread that
/// calls [`run`](Device::run) is worker 0, which has the ports.
pub struct WorkersDevice {
    program: Arc<Program>,
    crew: Crew<CpuDevice<'static>>,
    parts: Vec<Part>,
    /// By instance of the program: its part, and its number there.
    instances: Vec<(usize, InstanceId)>,
}

impl Job for CpuDevice<'static> {
    fn turn(&mut self, wanted: &AtomicBool) -> Result<(RunStatus, bool), DeviceError> {
        self.turn(&mut Bound::giving_way(wanted), &mut Run::default())
    }

    fn has_news(&self) -> bool {
        self.has_news()
    }
}

impl WorkersDevice {
    /// Partitions a verified program, builds each part, and starts the workers. `workers` has the
    /// worker of each instance, and `cores` the cores to which workers 1, 2 and so on are pinned,
    /// as far as it has entries.
    ///
    /// # Errors
    /// A program that native code does not support, no compiler, or a compiler that fails; no
    /// threads.
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

    /// Returns the part of an instance, and its number there.
    fn place(&self, instance: InstanceId) -> Result<(usize, InstanceId), DeviceError> {
        let unknown = || {
            let what = format!("instance {}", instance.0);
            DeviceError::Unknown { instance: self.program.name.clone(), what }
        };
        self.instances.get(instance.index()).copied().ok_or_else(unknown)
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
}

impl Host<CpuDevice<'static>> for WorkersDevice {
    fn program(&self) -> &Program {
        &self.program
    }

    fn turn(device: &mut CpuDevice<'static>, bound: &mut Bound<'_>, run: &mut Run) -> Turn {
        device.turn(bound, run)
    }

    fn is_blocked(device: &CpuDevice<'static>) -> bool {
        device.is_blocked()
    }

    fn holds(device: &CpuDevice<'static>, endpoint: EndpointId) -> bool {
        device.holds(endpoint)
    }

    fn holds_items(device: &CpuDevice<'static>) -> bool {
        device.holds_items()
    }

    /// Instances that the partitioning added have no breakpoints and no probe output.
    fn name_of(&self, part: usize, there: InstanceId) -> InstanceId {
        self.parts[part].instances[there.index()].unwrap_or(there)
    }
}

/// Connects the two ends of a link by a ring.
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

/// Returns the parts with which part `at` shares rings.
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

/// For `host_methods`: has the worker of the instance read.
macro_rules! ask {
    ($self:ident, $method:ident, $instance:ident $(, $argument:ident)*) => {
        $self.ask($instance, |device, there| device.$method(there $(, $argument)*))
    };
}

/// For `host_methods`: has the worker of the instance make a change.
macro_rules! tell {
    ($self:ident, $method:ident, $instance:ident $(, $argument:ident)*) => {
        $self.tell($instance, |device, there| device.$method(there $(, $argument)*))
    };
}

impl Device for WorkersDevice {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, DeviceError> {
        let mut bound = ports.bind(&self.program)?;
        run::run(self, &self.crew, &mut bound)
    }

    host_methods!(ask, tell);

    fn counters(&self) -> DeviceCounters {
        let graph = &self.program.graph;
        let mut all = DeviceCounters {
            instances: vec![InstanceCounters::default(); graph.instances.len()],
            channels: vec![ChannelCounters::default(); graph.channels.len()],
            fills: vec![Occupancy::default(); graph.channels.len()],
            endpoints: vec![EndpointCounters::default(); graph.endpoints.len()],
        };
        for (at, part) in self.parts.iter().enumerate() {
            // Counters of a worker that has ended are lost with it.
            let Ok(counted) = self.crew.ask(at, |device| device.counters()) else { continue };
            for (id, counted) in part.instances.iter().zip(counted.instances) {
                id.iter().for_each(|id| all.instances[id.index()] = counted.clone());
            }
            for (id, counted) in part.channels.iter().zip(counted.channels) {
                id.iter().for_each(|id| all.channels[id.index()] = counted);
            }
            for (id, fill) in part.channels.iter().zip(counted.fills) {
                id.iter().for_each(|id| all.fills[id.index()] = fill);
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

    fn take_reported(&mut self) -> Reported {
        let mut all = Reported::default();
        for at in 0..self.parts.len() {
            let Ok(reported) = self.crew.ask(at, |device| device.take_reported()) else { continue };
            let lines = reported.lines.into_iter();
            all.lines.extend(lines.map(|(there, text)| (self.name_of(at, there), text)));
            all.lost += reported.lost;
        }
        all
    }

    fn set_breakpoints_enabled(&mut self, is_enabled: bool) {
        for part in 0..self.crew.len() {
            // A worker that has ended is not paused.
            let _ = self.crew.tell(part, |device| device.set_breakpoints_enabled(is_enabled));
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

    /// Returns none: moving the state of the parts to another program is not supported.
    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        None
    }
}
