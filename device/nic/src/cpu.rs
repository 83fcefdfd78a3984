// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor as a device: native code, one worker, run to completion.
//!
//! The worker takes a batch from each input port, runs the graph until everything in it has left or
//! waits for room, sends what came out, and begins again. Native code is lent the memory of the
//! frames, and what comes out mostly lies there still: it is sent from there. Only what a full
//! output port holds up, and what the graph has not taken yet, is copied, so that it outlives the
//! batch it came in.

use crate::device::{
    Bound, ChannelCounters, Device, DeviceCounters, DeviceError, EndpointCounters, Ports, Run,
    RunEnd, Told, port_error,
};
use crate::port::{
    BATCH, Batch, Frame, FrameQueue, Frames, HEADROOM, MAX_FRAME, Pages, PortError, Sent, Transmit,
};
use freeport_ir::oracle::TableEntries;
use freeport_ir::{Bits, Direction, EndpointId, InstanceId, Item, Program};
use freeport_native::{Buffer, EndpointIo, Graph, Image, Options, Placed, RunStatus};

/// Bytes from one buffer of an output to the next.
const SLOT_BYTES: usize = HEADROOM + MAX_FRAME;
/// Room for records that leave at an endpoint nobody reads.
const RECORD_ROOM_BYTES: usize = 1 << 16;
/// Turns without a frame in or out before a graph that can always go on gives way to the caller.
const MOST_TURNS_WITHOUT_FRAMES: u32 = 64;

/// A program as native code.
pub struct CpuDevice<'p> {
    program: &'p Program,
    graph: Graph,
    /// By endpoint: frames received and not yet taken by the graph.
    held: Vec<FrameQueue>,
    /// By endpoint: what came out and waits for the port.
    outputs: Vec<Output>,
    /// By endpoint.
    counters: Vec<EndpointCounters>,
    /// When the newest frame was received: what leaves now is given this time.
    clock_ns: u64,
}

/// The buffers of an endpoint out of the graph, and what waits there.
#[derive(Default)]
struct Output {
    memory: Pages,
    waiting: Waiting,
}

/// Frames on their way to a port. Each belongs to the buffer of the same number.
#[derive(Default)]
struct Waiting {
    frames: Vec<Frame>,
    /// Which of them lie in the same memory, in order.
    stretches: Vec<Stretch>,
    /// Frames that have left.
    gone: usize,
    /// Of these, packets without bytes, which went nowhere.
    dropped: u64,
}

/// Frames of an output that lie in the same memory.
#[derive(Clone, Copy)]
struct Stretch {
    place: Place,
    /// How many frames of the output come before the end of this stretch.
    end: usize,
}

/// Whose memory a frame lies in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The output's own.
    Own,
    /// That of the batch of this endpoint.
    Batch(EndpointId),
    /// It has no bytes, and no port takes it.
    Nowhere,
}

/// A batch that the graph has before it.
struct Lent<'b> {
    endpoint: EndpointId,
    batch: Batch<'b>,
    consumed: usize,
}

impl<'p> CpuDevice<'p> {
    /// Builds native code for a verified program, or takes it from the cache, and loads it.
    ///
    /// # Errors
    /// What native code cannot do, no compiler, or one that fails.
    pub fn load(program: &'p Program, options: &Options) -> Result<Self, DeviceError> {
        Self::load_seeded(program, options, 0)
    }

    /// As [`load`](Self::load); what `random` gives is drawn from `seed`.
    ///
    /// # Errors
    /// As for `load`.
    pub fn load_seeded(
        program: &'p Program,
        options: &Options,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        Self::of_image(program, &freeport_native::build(program, options)?, seed)
    }

    /// Loads an image that was built of `program`; what `random` gives is drawn from `seed`.
    ///
    /// # Errors
    /// An image that cannot be loaded, or is of another program.
    pub fn of_image(program: &'p Program, image: &Image, seed: u64) -> Result<Self, DeviceError> {
        let graph = Graph::load_seeded(image, seed)?;
        let endpoints = &program.graph.endpoints;
        let manifest = graph.manifest().endpoints.iter().map(|it| it.name.as_str());
        if !endpoints.iter().map(|it| it.name.as_str()).eq(manifest) {
            let (instance, what) = (program.name.clone(), "image with these endpoints".into());
            return Err(DeviceError::Unknown { instance, what });
        }
        Ok(Self {
            program,
            graph,
            held: vec![FrameQueue::default(); endpoints.len()],
            outputs: endpoints.iter().map(|it| Output::new(it.direction, it.item)).collect(),
            counters: vec![EndpointCounters::default(); endpoints.len()],
            clock_ns: 0,
        })
    }

    /// Takes in a batch of each input and runs the graph on it.
    fn turn(&mut self, bound: &mut Bound<'_>, run: &mut Run) -> Result<RunStatus, DeviceError> {
        self.send(&mut bound.outputs, &[], run)?;
        let mut queues: Vec<FrameQueue> =
            bound.inputs.iter().map(|(id, _)| std::mem::take(&mut self.held[id.index()])).collect();
        let mut lent: Vec<Lent<'_>> = Vec::with_capacity(queues.len());
        let is_blocked = self.is_blocked();
        for ((id, port), queue) in bound.inputs.iter_mut().zip(&mut queues) {
            let batch = if queue.waiting() > 0 || is_blocked {
                queue.lend(BATCH)
            } else {
                let batch = port.receive(BATCH);
                let batch = batch.map_err(|source| port_error(self.program, *id, source))?;
                let counters = &mut self.counters[id.index()];
                counters.frames += batch.len() as u64;
                counters.bytes += batch.as_frames().byte_count();
                run.received += batch.len() as u64;
                batch
            };
            let times = batch.frames().iter().map(|frame| frame.timestamp_ns);
            self.clock_ns = times.fold(self.clock_ns, u64::max);
            lent.push(Lent { endpoint: *id, batch, consumed: 0 });
        }
        let status = loop {
            let status = self.run_graph(&mut lent)?;
            self.send(&mut bound.outputs, &lent, run)?;
            if status != RunStatus::OutputFull || self.is_blocked() {
                break status;
            }
        };
        self.outputs.iter_mut().for_each(|output| output.keep(&lent));
        lent.iter().try_for_each(|lent| self.hold(lent))?;
        Ok(status)
    }

    /// Whether frames wait for a port that has no room.
    fn is_blocked(&self) -> bool {
        self.outputs.iter().any(|output| output.waiting.count() > 0)
    }

    /// Keeps what the graph has not taken, for the next turn.
    fn hold(&mut self, lent: &Lent<'_>) -> Result<(), DeviceError> {
        for (frame, bytes) in lent.batch.as_frames().behind(lent.consumed).iter() {
            let queue = &mut self.held[lent.endpoint.index()];
            let pushed = queue.push(bytes, frame.original_length, frame.timestamp_ns);
            pushed.map_err(|source| port_error(self.program, lent.endpoint, source))?;
        }
        Ok(())
    }

    /// Runs the graph on the frames before it, with as much room as the outputs have.
    fn run_graph(&mut self, lent: &mut [Lent<'_>]) -> Result<RunStatus, DeviceError> {
        let endpoints = &self.program.graph.endpoints;
        let mut frames: Vec<Vec<freeport_native::Frame<'_>>> = vec![];
        frames.resize_with(endpoints.len(), Vec::new);
        // Where the frames are that the run is given.
        let mut places: Vec<&[Frame]> = vec![&[]; endpoints.len()];
        for Lent { endpoint, batch, consumed } in lent.iter_mut() {
            places[endpoint.index()] = &batch.frames()[*consumed..];
            let frames = &mut frames[endpoint.index()];
            frames.reserve(batch.len());
            batch.split(*consumed, frames, freeport_native::Frame::within);
        }
        let mut buffers: Vec<Vec<Buffer<'_>>> = Vec::with_capacity(endpoints.len());
        let mut rooms: Vec<&mut [u8]> = Vec::with_capacity(endpoints.len());
        let mut waiting: Vec<&mut Waiting> = Vec::with_capacity(endpoints.len());
        for output in &mut self.outputs {
            let (slots, room, queue) = output.room();
            buffers.push(slots);
            rooms.push(room);
            waiting.push(queue);
        }
        let mut io = Vec::with_capacity(endpoints.len());
        let memory = frames.iter_mut().zip(buffers.iter_mut().zip(rooms));
        for (endpoint, (frames, (buffers, room))) in endpoints.iter().zip(memory) {
            io.push(match (endpoint.direction, endpoint.item) {
                (Direction::Into, Item::Bits(_)) => EndpointIo::records_in(&[]),
                (Direction::OutOf, Item::Bits(_)) => EndpointIo::records_out(room),
                (Direction::Into, _) => EndpointIo::frames_in(frames),
                (Direction::OutOf, _) => EndpointIo::frames_out(buffers),
            });
        }
        let status = self.graph.run(&mut io)?;
        let done: Vec<usize> = io.iter().map(EndpointIo::done).collect();
        for (at, ((buffers, done), waiting)) in buffers.iter().zip(&done).zip(waiting).enumerate() {
            let clock_ns = self.clock_ns;
            match (endpoints[at].direction, endpoints[at].item) {
                (Direction::Into, _) => {}
                (Direction::OutOf, Item::Bits(_)) => self.counters[at].dropped += *done as u64,
                (Direction::OutOf, _) => waiting.add(&buffers[..*done], &places, clock_ns),
            }
        }
        for lent in lent {
            lent.consumed += done[lent.endpoint.index()];
        }
        Ok(status)
    }

    /// Hands what came out to the ports; what no port is bound for is dropped.
    fn send(
        &mut self,
        ports: &mut [(EndpointId, &mut dyn Transmit)],
        lent: &[Lent<'_>],
        run: &mut Run,
    ) -> Result<(), DeviceError> {
        for (at, output) in self.outputs.iter_mut().enumerate() {
            let count = output.waiting.count();
            if count == 0 {
                continue;
            }
            let Some((id, port)) = ports.iter_mut().find(|(id, _)| id.index() == at) else {
                self.counters[at].dropped += count as u64;
                output.waiting.gone += count;
                continue;
            };
            let sent = output.send_to(*port, lent);
            let Sent { frames, bytes } =
                sent.map_err(|source| port_error(self.program, *id, source))?;
            self.counters[at].frames += frames as u64;
            self.counters[at].bytes += bytes;
            run.sent += frames as u64;
        }
        Ok(())
    }

    /// Why nothing moves.
    fn rest(&self, bound: &mut Bound<'_>, status: RunStatus) -> Result<RunEnd, DeviceError> {
        let is_empty_below = bound.flush(self.program)?;
        let is_waiting = self.is_blocked();
        Ok(match status {
            _ if is_waiting || !is_empty_below => RunEnd::OutputFull,
            RunStatus::Stalled(stall) if bound.are_inputs_ended() => {
                RunEnd::Stalled(stall.to_string())
            }
            RunStatus::RecordFull => RunEnd::Stalled("the recording is full".into()),
            RunStatus::Budget => RunEnd::Idle,
            _ if !bound.are_inputs_ended() => RunEnd::Idle,
            _ => RunEnd::Ended,
        })
    }
}

impl Device for CpuDevice<'_> {
    fn program(&self) -> &Program {
        self.program
    }

    fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, DeviceError> {
        let mut bound = ports.bind(self.program)?;
        let mut run = Run::default();
        let mut turns_without_frames = 0;
        loop {
            let before = run.received + run.sent;
            let status = self.turn(&mut bound, &mut run)?;
            let has_moved = run.received + run.sent != before;
            turns_without_frames = if has_moved { 0 } else { turns_without_frames + 1 };
            let goes_on =
                status == RunStatus::Budget && turns_without_frames < MOST_TURNS_WITHOUT_FRAMES;
            if !has_moved && !goes_on {
                run.end = self.rest(&mut bound, status)?;
                return Ok(run);
            }
        }
    }

    fn signal(&mut self, instance: InstanceId, signal: &Bits) -> Result<Bits, DeviceError> {
        Ok(self.graph.signal(instance, signal.clone())?)
    }

    fn call_method(
        &mut self,
        instance: InstanceId,
        method: &str,
        arguments: &[Bits],
    ) -> Result<Option<Bits>, DeviceError> {
        Ok(self.graph.call_method(instance, method, arguments)?)
    }

    fn read_variable(
        &self,
        instance: InstanceId,
        variable: &str,
        index: u64,
    ) -> Result<Bits, DeviceError> {
        Ok(self.graph.read_variable(instance, variable, index)?)
    }

    fn write_variable(
        &mut self,
        instance: InstanceId,
        variable: &str,
        index: u64,
        value: &Bits,
    ) -> Result<(), DeviceError> {
        Ok(self.graph.write_variable(instance, variable, index, value.clone())?)
    }

    fn table_lookup(
        &self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<Option<Bits>, DeviceError> {
        Ok(self.graph.table_lookup(instance, table, key)?)
    }

    fn table_update(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
        value: &Bits,
    ) -> Result<bool, DeviceError> {
        Ok(self.graph.table_update(instance, table, key.clone(), value.clone())?)
    }

    fn table_delete(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<bool, DeviceError> {
        Ok(self.graph.table_delete(instance, table, key.clone())?)
    }

    fn table_entries(
        &self,
        instance: InstanceId,
        table: &str,
    ) -> Result<TableEntries, DeviceError> {
        Ok(self.graph.table_entries(instance, table)?)
    }

    fn counters(&self) -> DeviceCounters {
        let counted = self.graph.counters();
        let mut endpoints = self.counters.clone();
        for (endpoint, output) in endpoints.iter_mut().zip(&counted.outputs) {
            endpoint.dropped += output.too_long + output.malformed;
        }
        for (endpoint, output) in endpoints.iter_mut().zip(&self.outputs) {
            endpoint.dropped += output.waiting.dropped;
        }
        let channel = |it: &freeport_native::ChannelCounters| ChannelCounters {
            items: it.items,
            dropped: it.drops,
        };
        let channels = counted.channels.iter().map(channel).collect();
        DeviceCounters { instances: counted.instances, channels, endpoints }
    }

    /// Native code does not stop at breakpoints; it tells that it passed them.
    fn take_told(&mut self) -> Told {
        let (events, lost) = self.graph.take_probes();
        Told { lines: events.into_iter().map(|it| (it.instance, it.text)).collect(), lost }
    }
}

impl Output {
    fn new(direction: Direction, item: Item) -> Self {
        let bytes = match (direction, item) {
            (Direction::Into, _) => 0,
            (Direction::OutOf, Item::Bits(_)) => RECORD_ROOM_BYTES,
            (Direction::OutOf, _) => BATCH * SLOT_BYTES,
        };
        Self { memory: Pages::new(bytes), waiting: Waiting::default() }
    }

    /// Buffers for frames, or room for records; none while frames wait in them. What the run
    /// produces is to be added to the third.
    fn room(&mut self) -> (Vec<Buffer<'_>>, &mut [u8], &mut Waiting) {
        let Self { memory, waiting } = self;
        if waiting.count() > 0 {
            return (vec![], &mut [], waiting);
        }
        waiting.clear();
        if memory.len() == RECORD_ROOM_BYTES {
            return (vec![], memory, waiting);
        }
        let slots = memory.chunks_exact_mut(SLOT_BYTES);
        (slots.map(|slot| Buffer::new(&mut slot[HEADROOM..])).collect(), &mut [], waiting)
    }

    /// Hands what waits to `port`, as far as it has room, from wherever it lies.
    fn send_to(&mut self, port: &mut dyn Transmit, lent: &[Lent<'_>]) -> Result<Sent, PortError> {
        let Self { memory, waiting } = self;
        let mut all = Sent::default();
        for Stretch { place, end } in &waiting.stretches {
            if *end <= waiting.gone {
                continue;
            }
            let memory = match place {
                Place::Own => &memory[..],
                Place::Nowhere => {
                    waiting.dropped += (*end - waiting.gone) as u64;
                    waiting.gone = *end;
                    continue;
                }
                Place::Batch(endpoint) => memory_of(lent, *endpoint),
            };
            let frames = Frames::new(memory, &waiting.frames[waiting.gone..*end])?;
            let sent = port.transmit(frames)?;
            all.frames += sent;
            all.bytes += frames.first(sent).byte_count();
            waiting.gone += sent;
            if sent < frames.len() {
                break;
            }
        }
        Ok(all)
    }

    /// Copies what waits in the memory of batches, so that it outlives them.
    fn keep(&mut self, lent: &[Lent<'_>]) {
        let Self { memory, waiting } = self;
        let mut first = waiting.gone;
        for Stretch { place, end } in &mut waiting.stretches {
            let frames = first..*end;
            first = first.max(*end);
            let Place::Batch(endpoint) = *place else { continue };
            for at in frames {
                let frame = &mut waiting.frames[at];
                let from = &memory_of(lent, endpoint)[frame.start..frame.start + frame.length];
                frame.start = at * SLOT_BYTES + HEADROOM;
                memory[frame.start..frame.start + frame.length].copy_from_slice(from);
            }
            *place = Place::Own;
        }
    }
}

/// The memory of the batch of an endpoint.
fn memory_of<'l>(lent: &'l [Lent<'_>], endpoint: EndpointId) -> &'l [u8] {
    let lent = lent.iter().find(|lent| lent.endpoint == endpoint);
    lent.map_or(&[], |lent| lent.batch.memory())
}

impl Waiting {
    fn count(&self) -> usize {
        self.frames.len() - self.gone
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.stretches.clear();
        self.gone = 0;
    }

    /// Notes the frames that a run has produced with the first buffers. `given` is where the frames
    /// of each endpoint are that the run was given.
    fn add(&mut self, produced: &[Buffer<'_>], given: &[&[Frame]], timestamp_ns: u64) {
        for (slot, buffer) in produced.iter().enumerate() {
            let (place, start, length) = match buffer.placed() {
                Placed::Own { length: 0 } | Placed::Input { length: 0, .. } => {
                    (Place::Nowhere, 0, 0)
                }
                Placed::Own { length } => (Place::Own, slot * SLOT_BYTES + HEADROOM, length),
                Placed::Input { endpoint, frame, start, length } => {
                    let from = given[endpoint][frame].start;
                    let start = from.wrapping_add_signed(start as isize);
                    (Place::Batch(EndpointId::new(endpoint)), start, length)
                }
            };
            self.frames.push(Frame { start, length, original_length: length, timestamp_ns });
            match self.stretches.last_mut() {
                Some(last) if last.place == place => last.end = slot + 1,
                _ => self.stretches.push(Stretch { place, end: slot + 1 }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_conformance;
    use crate::port::{Generator, Sink};
    use crate::programs::{mac_swap, mac_swap_of_packets, swapped};
    use crate::trace::TraceFrame;

    #[test]
    fn it_conforms() {
        let cache = tempfile::tempdir().expect("a folder");
        let options = Options { cache: cache.path().to_path_buf(), ..Options::default() };
        for program in [mac_swap(), mac_swap_of_packets()] {
            let image = freeport_native::build(&program, &options).expect("clang-19 is needed");
            let load = || CpuDevice::of_image(&program, &image, 0).expect("it loads");
            device_conformance::check(load);
        }
    }

    #[test]
    fn a_packet_without_bytes_is_dropped_and_counted() {
        let cache = tempfile::tempdir().expect("a folder");
        let options = Options { cache: cache.path().to_path_buf(), ..Options::default() };
        let program = mac_swap_of_packets();
        let mut device = CpuDevice::load(&program, &options).expect("clang-19 is needed");
        let frames: Vec<Vec<u8>> =
            (0..40).map(|at: u8| vec![if at.is_multiple_of(3) { 0xff } else { at }; 60]).collect();
        let left = frames.iter().filter(|frame| frame[0] != 0xff).map(Vec::as_slice);
        let mut sink = Sink::checking(left.map(swapped).collect()).with_room(0);
        let trace: Vec<TraceFrame> = frames.iter().cloned().map(TraceFrame::of).collect();
        let mut source = Generator::once(&trace).expect("good");
        for room in [5, 100] {
            sink.make_room(room);
            let mut ports =
                Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
            device.run(&mut ports).expect("nothing fails");
        }
        assert!(sink.is_as_expected(), "{:?}", sink.first_mismatch());
        let counters = device.counters().endpoints[1];
        assert_eq!((counters.frames, counters.dropped), (26, 14));
    }
}
