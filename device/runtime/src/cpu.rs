// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor as a device: native code, one worker, run to completion.
//!
//! The worker takes a batch from each input port, runs the graph until everything in it has left or
//! waits for room, sends the output, and starts again. Native code borrows the memory of the
//! frames, and most output still lies there and is sent from there. Only frames held up by a full
//! output port, and frames that the graph has not taken yet, are copied, so that they outlive their
//! batch.

mod links;
mod output;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use links::LinkEnd;

use crate::device::{
    Bound, Device, DeviceCounters, DeviceError, EndpointCounters, Ports, Reported, Run, RunEnd,
    Transfer, host_methods, port_error,
};
use crate::ring::FrameReader;
use freeport_ir::interp::Report;
use freeport_ir::{Direction, EndpointId, InstanceId, Item, Program, ProgramRef};
use freeport_native::{Buffer, EndpointIo, Graph, Image, Options, RunStatus};
use freeport_port::{BATCH, Batch, Frame, FrameQueue, HEADROOM, MAX_FRAME, Sent, Transmit};
use links::{Links, Produced};
use output::{Output, Waiting};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes from one output buffer to the next.
const SLOT_BYTES: usize = HEADROOM + MAX_FRAME;
/// Room for records that leave at an endpoint without a reader.
const RECORD_ROOM_BYTES: usize = 1 << 16;
/// Turns without a frame in or out after which a graph that never stops by itself returns to the
/// caller.
const MOST_TURNS_WITHOUT_FRAMES: u32 = 64;
/// Maximum number of times that one turn fills the buffers of its outputs.
const MOST_FILLS: u32 = 64;
/// The flag of runs that no caller interrupts.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A program as native code.
pub struct CpuDevice<'p> {
    program: ProgramRef<'p>,
    graph: Graph,
    /// By endpoint: frames received and not yet taken by the graph.
    held: Vec<FrameQueue>,
    /// By endpoint: output that waits for the port.
    outputs: Vec<Output>,
    /// By endpoint: older output, of this graph when it was drained, or of a device that it has
    /// replaced.
    earlier: Vec<FrameQueue>,
    /// Counters of the device that this one has replaced.
    counted_before: DeviceCounters,
    /// Endpoints that lead to other workers instead of to ports.
    links: Links,
    /// By endpoint.
    counters: Vec<EndpointCounters>,
    /// Time at which the newest frame was received; used as the timestamp of the output.
    clock_ns: u64,
    /// Result of the last turn, if items wait.
    stall: Option<Report>,
    spare: Spare,
}

/// Vectors of a turn, empty in between, so that a turn allocates nothing.
#[derive(Default)]
struct Spare {
    queues: Vec<FrameQueue>,
    lent: Vec<Lent<'static>>,
    sides: Vec<Side<'static>>,
    io: Vec<EndpointIo<'static, 'static>>,
    done: Vec<usize>,
    taken: Vec<usize>,
}

/// Arguments of a run of the graph at one endpoint.
#[derive(Default)]
struct Side<'r> {
    frames: Vec<freeport_native::Frame<'r>>,
    /// Positions of these frames in the memory of their batch.
    given: &'r [Frame],
    /// Number of bytes by which their starts have moved since they entered; empty if none has
    /// moved.
    moved: &'r [i32],
    /// Buffers for frames sent to a port.
    slots: &'r mut [Buffer<'r>],
    /// Buffers for frames sent to another worker.
    buffers: Vec<Buffer<'r>>,
    /// Records received.
    records: &'r [u8],
    /// Room for records sent.
    room: &'r mut [u8],
    /// Queue for the output of the run, at a port.
    waiting: Option<&'r mut Waiting>,
    /// List for the output of the run, at another worker.
    produced: Option<&'r mut Vec<Produced>>,
}

/// A batch lent to the graph.
struct Lent<'b> {
    endpoint: EndpointId,
    batch: Batch<'b>,
    moved: &'b [i32],
    consumed: usize,
}

impl<'p> CpuDevice<'p> {
    /// Builds native code for a verified program, or takes it from the cache, and loads it.
    ///
    /// # Errors
    /// A program that native code does not support, no compiler, or a compiler that fails.
    pub fn load(
        program: impl Into<ProgramRef<'p>>,
        options: &Options,
    ) -> Result<Self, DeviceError> {
        Self::load_seeded(program, options, 0)
    }

    /// Like [`load`](Self::load), with `seed` for the values of `random`.
    ///
    /// # Errors
    /// The errors of `load`.
    pub fn load_seeded(
        program: impl Into<ProgramRef<'p>>,
        options: &Options,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        let program = program.into();
        let image = freeport_native::build(&program, options)?;
        Self::of_image(program, &image, seed)
    }

    /// Loads an image that was built from `program`, with `seed` for the values of `random`.
    ///
    /// # Errors
    /// An image that cannot be loaded, or was built from another program.
    pub fn of_image(
        program: impl Into<ProgramRef<'p>>,
        image: &Image,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        let program = program.into();
        let graph = Graph::load_seeded(image, seed)?;
        let endpoints = &program.graph.endpoints;
        let manifest = graph.manifest().endpoints.iter().map(|it| it.name.as_str());
        if !endpoints.iter().map(|it| it.name.as_str()).eq(manifest) {
            let (instance, what) = (program.name.clone(), "image with these endpoints".into());
            return Err(DeviceError::Unknown { instance, what });
        }
        Ok(Self {
            graph,
            held: vec![FrameQueue::default(); endpoints.len()],
            earlier: vec![FrameQueue::default(); endpoints.len()],
            counted_before: DeviceCounters::default(),
            outputs: endpoints.iter().map(|it| Output::new(it.direction, it.item)).collect(),
            links: Links::default(),
            counters: vec![EndpointCounters::default(); endpoints.len()],
            program: program.clone(),
            clock_ns: 0,
            stall: None,
            spare: Spare::default(),
        })
    }

    /// Connects an endpoint permanently to another worker instead of to a port.
    pub(crate) fn attach(&mut self, endpoint: EndpointId, end: LinkEnd) {
        let item = self.program.graph.endpoints[endpoint.index()].item;
        self.outputs[endpoint.index()] = Output::none();
        self.links.attach(endpoint, item, end);
    }

    /// Returns whether other workers have done something since the last turn that makes another
    /// turn worthwhile.
    pub(crate) fn has_news(&self) -> bool {
        self.links.has_news()
    }

    /// Receives a batch from each input and runs the graph on it. Returns the status, and whether
    /// any frame or record was received or sent.
    pub(crate) fn turn(
        &mut self,
        bound: &mut Bound<'_>,
        run: &mut Run,
    ) -> Result<(RunStatus, bool), DeviceError> {
        let before = run.received + run.sent + self.links.moved;
        let mut readers = std::mem::take(&mut self.links.readers);
        let status = self.turn_on(&mut readers, bound, run);
        self.links.readers = readers;
        let taken = std::mem::take(&mut self.spare.taken);
        self.links.give_back(&taken);
        self.spare.taken = emptied(taken);
        Ok((status?, run.received + run.sent + self.links.moved != before))
    }

    /// Like `turn`; sets `spare.taken` to the number taken from each reader.
    fn turn_on(
        &mut self,
        readers: &mut [(EndpointId, FrameReader)],
        bound: &mut Bound<'_>,
        run: &mut Run,
    ) -> Result<RunStatus, DeviceError> {
        let wanted = bound.wanted();
        self.send(&mut bound.outputs, &[], run)?;
        let mut queues = std::mem::take(&mut self.spare.queues);
        queues
            .extend(bound.inputs.iter().map(|(id, _)| std::mem::take(&mut self.held[id.index()])));
        let mut lent = emptied(std::mem::take(&mut self.spare.lent));
        let is_blocked = self.is_blocked() || self.graph.is_held();
        for ((id, port), queue) in bound.inputs.iter_mut().zip(&mut queues) {
            let is_new = queue.waiting() == 0 && !is_blocked;
            let batch = if is_new {
                let batch = port.receive(BATCH);
                batch.map_err(|source| port_error(&self.program, *id, source))?
            } else {
                queue.lend(queue.waiting())
            };
            let mut bytes = 0;
            for frame in batch.frames() {
                bytes += frame.length as u64;
                self.clock_ns = self.clock_ns.max(frame.timestamp_ns);
            }
            if is_new {
                let counters = &mut self.counters[id.index()];
                counters.frames += batch.len() as u64;
                counters.bytes += bytes;
                run.received += batch.len() as u64;
            }
            lent.push(Lent { endpoint: *id, batch, moved: &[], consumed: 0 });
        }
        let from_ports = lent.len();
        for (endpoint, ring) in readers {
            let (batch, moved) = ring.lend(BATCH);
            let newest = batch.frames().iter().map(|frame| frame.timestamp_ns).max();
            self.clock_ns = self.clock_ns.max(newest.unwrap_or(0));
            lent.push(Lent { endpoint: *endpoint, batch, moved, consumed: 0 });
        }
        // A graph that generates packets fills any buffers, so the number of fills is limited.
        let mut fills_left = MOST_FILLS;
        let status = loop {
            let (status, has_moved) = self.run_graph(&mut lent, wanted)?;
            self.send(&mut bound.outputs, &lent, run)?;
            fills_left -= 1;
            let is_wanted = wanted.is_some_and(|wanted| wanted.load(Ordering::Relaxed));
            if status != RunStatus::OutputFull || self.is_blocked() || !has_moved {
                break status;
            }
            if fills_left == 0 || is_wanted {
                break RunStatus::Budget;
            }
        };
        self.stall = match &status {
            RunStatus::Stalled(stall) => Some(stall.clone()),
            _ => None,
        };
        self.outputs.iter_mut().for_each(|output| output.keep(&lent));
        lent[..from_ports].iter().try_for_each(|lent| self.hold(lent))?;
        self.spare.taken.extend(lent[from_ports..].iter().map(|lent| lent.consumed));
        self.spare.lent = emptied(lent);
        queues.clear();
        self.spare.queues = queues;
        Ok(status)
    }

    /// Returns whether frames wait for a port that has no room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.outputs.iter().any(|output| output.waiting.count() > 0)
            || self.earlier.iter().any(|queue| queue.waiting() > 0)
    }

    /// Returns whether frames of an input wait for the graph to take them.
    pub(crate) fn holds(&self, endpoint: EndpointId) -> bool {
        self.held[endpoint.index()].waiting() > 0
    }

    /// Returns whether anything waits in the graph, or for it.
    pub(crate) fn holds_items(&self) -> bool {
        let channels = self.program.graph.channels.len();
        self.held.iter().any(|queue| queue.waiting() > 0)
            || (0..channels).any(|channel| self.graph.waiting(channel) > 0)
    }

    /// Keeps the frames that the graph has not taken, for the next turn.
    fn hold(&mut self, lent: &Lent<'_>) -> Result<(), DeviceError> {
        for (frame, bytes) in lent.batch.as_frames().behind(lent.consumed).iter() {
            let queue = &mut self.held[lent.endpoint.index()];
            let pushed = queue.push(bytes, frame.original_length, frame.timestamp_ns);
            pushed.map_err(|source| port_error(&self.program, lent.endpoint, source))?;
        }
        Ok(())
    }

    /// Runs the graph on the frames lent to it, with as much room as the outputs have. Also returns
    /// whether any frame or record was received or sent.
    fn run_graph(
        &mut self,
        lent: &mut [Lent<'_>],
        wanted: Option<&AtomicBool>,
    ) -> Result<(RunStatus, bool), DeviceError> {
        let endpoints = &self.program.graph.endpoints;
        let sides = std::mem::take(&mut self.spare.sides);
        let mut sides: Vec<Side<'_>> = sides.into_iter().map(Side::emptied).collect();
        sides.resize_with(endpoints.len(), Side::default);
        for Lent { endpoint, batch, moved, consumed } in lent.iter_mut() {
            let side = &mut sides[endpoint.index()];
            side.given = &batch.frames()[*consumed..];
            side.moved = moved.get(*consumed..).unwrap_or(&[]);
            batch.split(*consumed, &mut side.frames, freeport_native::Frame::within);
            let moved = side.frames.iter_mut().zip(side.moved);
            moved.for_each(|(frame, by)| frame.set_moved(*by));
        }
        for (output, side) in self.outputs.iter_mut().zip(&mut sides) {
            output.make_room(side);
        }
        self.links.make_room(&mut sides);
        let mut io = emptied(std::mem::take(&mut self.spare.io));
        io.extend(endpoints.iter().zip(&mut sides).map(|(endpoint, side)| {
            match (endpoint.direction, endpoint.item) {
                (Direction::Into, Item::Bits(_)) => EndpointIo::records_in(side.records),
                (Direction::OutOf, Item::Bits(_)) => EndpointIo::records_out(side.room),
                (Direction::Into, _) => EndpointIo::frames_in(&mut side.frames),
                (Direction::OutOf, _) => EndpointIo::frames_out(side.frame_room()),
            }
        }));
        let status = self.graph.run_until(wanted.unwrap_or(&NEVER), &mut io)?;
        self.spare.done.clear();
        self.spare.done.extend(io.iter().map(EndpointIo::done));
        self.spare.io = emptied(io);
        for (at, done) in self.spare.done.iter().enumerate() {
            match (endpoints[at].direction, endpoints[at].item) {
                (Direction::Into, _) => {}
                (Direction::OutOf, Item::Bits(_)) => {
                    let is_lost = sides[at].waiting.is_some();
                    self.counters[at].dropped += if is_lost { *done as u64 } else { 0 };
                }
                (Direction::OutOf, _) => {
                    let (waiting, produced) = (sides[at].waiting.take(), sides[at].produced.take());
                    let side = &sides[at];
                    let buffers = if side.slots.is_empty() { &side.buffers } else { &*side.slots };
                    let buffers = &buffers[..*done];
                    if let Some(produced) = produced {
                        let new = |it| Produced::new(it, &sides, self.clock_ns);
                        produced.extend(buffers.iter().map(new));
                    } else if let Some(waiting) = waiting {
                        waiting.add(buffers, &sides, self.clock_ns);
                    }
                }
            }
        }
        self.spare.sides = sides.into_iter().map(Side::emptied).collect();
        for lent in lent.iter_mut() {
            lent.consumed += self.spare.done[lent.endpoint.index()];
        }
        self.links.settle(&self.spare.done, lent);
        Ok((status, self.spare.done.iter().any(|done| *done > 0)))
    }

    /// Sends the output to the ports; output without a bound port is dropped.
    fn send(
        &mut self,
        ports: &mut [(EndpointId, &mut dyn Transmit)],
        lent: &[Lent<'_>],
        run: &mut Run,
    ) -> Result<(), DeviceError> {
        for (at, output) in self.outputs.iter_mut().enumerate() {
            let count = output.waiting.count();
            let earlier = &mut self.earlier[at];
            if count == 0 && earlier.waiting() == 0 {
                continue;
            }
            let counters = &mut self.counters[at];
            let Some((id, port)) = ports.iter_mut().find(|(id, _)| id.index() == at) else {
                counters.dropped += (count + earlier.discard()) as u64;
                output.waiting.gone += count;
                continue;
            };
            let failed = |source| port_error(&self.program, *id, source);
            let mut sent = earlier.send_to(*port).map_err(failed)?;
            if earlier.waiting() == 0 {
                let new = output.send_to(*port, lent).map_err(failed)?;
                sent = Sent { frames: sent.frames + new.frames, bytes: sent.bytes + new.bytes };
            }
            counters.frames += sent.frames as u64;
            counters.bytes += sent.bytes;
            run.sent += sent.frames as u64;
        }
        Ok(())
    }

    /// Determines why nothing moves.
    fn rest(&self, bound: &mut Bound<'_>, status: RunStatus) -> Result<RunEnd, DeviceError> {
        let is_empty_below = bound.flush(&self.program)?;
        let is_waiting = self.is_blocked();
        Ok(match status {
            _ if is_waiting || !is_empty_below => RunEnd::OutputFull,
            RunStatus::Stalled(stall) if bound.are_inputs_over(|id| self.holds(id)) => {
                RunEnd::Stalled(stall.to_string())
            }
            RunStatus::RecordFull => RunEnd::Stalled("the recording is full".into()),
            RunStatus::Budget => RunEnd::Paused,
            RunStatus::Waiting => RunEnd::Waiting { holds_items: self.holds_items() },
            _ if !bound.are_inputs_ended() => RunEnd::Idle,
            _ => RunEnd::Ended,
        })
    }
}

/// For `host_methods`: forwards to the native code.
macro_rules! graph {
    ($self:ident, $method:ident, $instance:ident $(, $argument:ident)*) => {
        Ok($self.graph.$method($instance $(, $argument.into())*)?)
    };
}

impl Device for CpuDevice<'_> {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, DeviceError> {
        let mut bound = ports.bind(&self.program)?;
        let mut run = Run::default();
        let mut turns_without_frames = 0;
        loop {
            let (status, has_moved) = self.turn(&mut bound, &mut run)?;
            if let RunStatus::Breakpoint(instance) = status {
                bound.flush(&self.program)?;
                run.end = RunEnd::Breakpoint(instance);
                return Ok(run);
            }
            turns_without_frames = if has_moved { 0 } else { turns_without_frames + 1 };
            let continues =
                status == RunStatus::Budget && turns_without_frames < MOST_TURNS_WITHOUT_FRAMES;
            if !has_moved && !continues {
                run.end = self.rest(&mut bound, status)?;
                return Ok(run);
            }
            if bound.gives_way() {
                run.end = RunEnd::Paused;
                return Ok(run);
            }
        }
    }

    host_methods!(graph, graph);

    fn counters(&self) -> DeviceCounters {
        let counted = self.graph.counters();
        let mut endpoints = self.counters.clone();
        for (endpoint, output) in endpoints.iter_mut().zip(&counted.outputs) {
            endpoint.dropped += output.too_long + output.malformed;
        }
        for (endpoint, output) in endpoints.iter_mut().zip(&self.outputs) {
            endpoint.dropped += output.waiting.dropped;
        }
        let (instances, channels, fills) = (counted.instances, counted.channels, counted.fills);
        DeviceCounters { instances, channels, fills, endpoints }.after(&self.counted_before)
    }

    fn take_reported(&mut self) -> Reported {
        let (events, lost) = self.graph.take_probes();
        Reported { lines: events.into_iter().map(|it| (it.instance, it.text)).collect(), lost }
    }

    fn set_breakpoints_enabled(&mut self, is_enabled: bool) {
        self.graph.set_breakpoints_enabled(is_enabled);
    }

    fn resume(&mut self, instance: InstanceId) {
        self.graph.resume(instance);
    }

    fn waits(&self) -> Option<String> {
        self.stall.as_ref().map(ToString::to_string)
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }
}

impl<'b> Side<'b> {
    /// Returns the output buffers.
    fn frame_room(&mut self) -> &mut [Buffer<'b>] {
        if self.slots.is_empty() { &mut self.buffers } else { self.slots }
    }

    /// Returns where in the memory of its batch a frame begins, which lies `start` bytes after the
    /// beginning of the packet of frame `at` of this side.
    fn place(&self, at: usize, start: i64) -> usize {
        let moved = self.moved.get(at).map_or(0, |by| i64::from(*by));
        self.given[at].start.wrapping_add_signed((start - moved) as isize)
    }

    /// Returns the same vectors, emptied, for another run.
    fn emptied<'r>(self) -> Side<'r> {
        let (frames, buffers) = (emptied(self.frames), emptied(self.buffers));
        Side { frames, buffers, ..Side::default() }
    }
}

/// Returns the same vector, emptied. `U` is `T` with other lifetimes, so that the standard library
/// collects in place: the memory stays.
fn emptied<T, U>(mut vector: Vec<T>) -> Vec<U> {
    vector.clear();
    vector.into_iter().map(|_| unreachable!("it is empty")).collect()
}
