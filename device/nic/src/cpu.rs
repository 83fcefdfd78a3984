// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor as a device: native code, one worker, run to completion.
//!
//! The worker takes a batch from each input port, runs the graph until everything in it has left or
//! waits for room, sends what came out, and begins again. Native code reads frames where the port
//! has them and writes frames where the output port takes them; only what a full output port holds
//! up is copied, so that it outlives the batch it came in.

use crate::device::{
    Bound, ChannelCounters, Device, DeviceCounters, DeviceError, EndpointCounters, Ports, Run,
    RunEnd, Told, port_error,
};
use crate::port::{BATCH, Batch, Frame, FrameQueue, Frames, HEADROOM, MAX_FRAME, Pages, PortError};
use freeport_ir::{Bits, Direction, EndpointId, InstanceId, Item, Program};
use freeport_native::{Buffer, EndpointIo, Graph, Image, Options, RunStatus};

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

/// The buffers of an endpoint out of the graph.
#[derive(Default)]
struct Output {
    memory: Pages,
    frames: Vec<Frame>,
    /// Frames that have left.
    gone: usize,
}

/// Frames of an input that the graph has before it.
struct Lent<'b> {
    endpoint: EndpointId,
    frames: Vec<freeport_native::Frame<'b>>,
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
        self.send(bound, run)?;
        let mut queues: Vec<FrameQueue> =
            bound.inputs.iter().map(|(id, _)| std::mem::take(&mut self.held[id.index()])).collect();
        let is_blocked = self.outputs.iter().any(|output| output.waiting() > 0);
        let mut batches: Vec<(EndpointId, Batch<'_>)> = vec![];
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
            batches.push((*id, batch));
        }
        let mut lent: Vec<Lent<'_>> = batches.iter().map(|(id, it)| Lent::new(*id, it)).collect();
        let status = loop {
            let status = self.run_graph(&mut lent)?;
            send(self.program, &mut self.outputs, &mut self.counters, &mut bound.outputs, run)?;
            let is_blocked = self.outputs.iter().any(|output| output.waiting() > 0);
            if status != RunStatus::OutputFull || is_blocked {
                break status;
            }
        };
        for (lent, (id, batch)) in lent.iter().zip(&batches) {
            self.hold(*id, batch, lent.consumed)?;
        }
        Ok(status)
    }

    /// Keeps what the graph has not taken, for the next turn.
    fn hold(
        &mut self,
        id: EndpointId,
        batch: &Batch<'_>,
        consumed: usize,
    ) -> Result<(), DeviceError> {
        for (frame, bytes) in batch.as_frames().behind(consumed).iter() {
            let queue = &mut self.held[id.index()];
            let pushed = queue.push(bytes, frame.original_length, frame.timestamp_ns);
            pushed.map_err(|source| port_error(self.program, id, source))?;
        }
        Ok(())
    }

    /// Runs the graph on the frames before it, with as much room as the outputs have.
    fn run_graph(&mut self, lent: &mut [Lent<'_>]) -> Result<RunStatus, DeviceError> {
        let mut buffers: Vec<Vec<Buffer<'_>>> = vec![];
        let mut rooms: Vec<&mut [u8]> = vec![];
        for output in &mut self.outputs {
            let (slots, room) = output.room();
            buffers.push(slots);
            rooms.push(room);
        }
        let mut io = Vec::with_capacity(buffers.len());
        let endpoints = self.program.graph.endpoints.iter().enumerate();
        for ((at, endpoint), (buffers, room)) in endpoints.zip(buffers.iter_mut().zip(rooms)) {
            let lent = lent.iter().find(|lent| lent.endpoint.index() == at);
            io.push(match (endpoint.direction, endpoint.item) {
                (Direction::Into, Item::Bits(_)) => EndpointIo::records_in(&[]),
                (Direction::OutOf, Item::Bits(_)) => EndpointIo::records_out(room),
                (Direction::Into, _) => EndpointIo::frames_in(match lent {
                    Some(lent) => &lent.frames[lent.consumed..],
                    None => &[],
                }),
                (Direction::OutOf, _) => EndpointIo::frames_out(buffers),
            });
        }
        let status = self.graph.run(&mut io)?;
        let done: Vec<usize> = io.iter().map(EndpointIo::done).collect();
        let lengths: Vec<Vec<usize>> = io.iter().map(produced_lengths).collect();
        for lent in lent {
            lent.consumed += done[lent.endpoint.index()];
        }
        for (at, lengths) in lengths.into_iter().enumerate() {
            self.outputs[at].add(&lengths, self.clock_ns);
            if let (Direction::OutOf, Item::Bits(_)) = self.end(at) {
                self.counters[at].dropped += done[at] as u64;
            }
        }
        Ok(status)
    }

    fn end(&self, at: usize) -> (Direction, Item) {
        let endpoint = &self.program.graph.endpoints[at];
        (endpoint.direction, endpoint.item)
    }

    fn send(&mut self, bound: &mut Bound<'_>, run: &mut Run) -> Result<(), DeviceError> {
        send(self.program, &mut self.outputs, &mut self.counters, &mut bound.outputs, run)
    }

    /// Why nothing moves.
    fn rest(&self, bound: &mut Bound<'_>, status: RunStatus) -> Result<RunEnd, DeviceError> {
        let is_empty_below = bound.flush(self.program)?;
        let is_waiting = self.outputs.iter().any(|output| output.waiting() > 0);
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

    fn counters(&self) -> DeviceCounters {
        let counted = self.graph.counters();
        let mut endpoints = self.counters.clone();
        for (endpoint, output) in endpoints.iter_mut().zip(&counted.outputs) {
            endpoint.dropped += output.too_long + output.malformed;
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

/// Hands what came out to the ports; what no port is bound for is dropped.
fn send(
    program: &Program,
    outputs: &mut [Output],
    counters: &mut [EndpointCounters],
    ports: &mut [(EndpointId, &mut dyn crate::port::Transmit)],
    run: &mut Run,
) -> Result<(), DeviceError> {
    for (at, output) in outputs.iter_mut().enumerate() {
        if output.waiting() == 0 {
            continue;
        }
        let Some((id, port)) = ports.iter_mut().find(|(id, _)| id.index() == at) else {
            counters[at].dropped += output.waiting() as u64;
            output.gone = output.frames.len();
            continue;
        };
        let failed = |source: PortError| port_error(program, *id, source);
        let waiting = output.as_frames().map_err(failed)?;
        let sent = port.transmit(waiting).map_err(failed)?;
        counters[at].frames += sent as u64;
        counters[at].bytes += waiting.first(sent).byte_count();
        run.sent += sent as u64;
        output.gone += sent;
    }
    Ok(())
}

fn produced_lengths(io: &EndpointIo<'_, '_>) -> Vec<usize> {
    match io {
        EndpointIo::FramesOut { buffers, produced } => {
            buffers[..*produced].iter().map(|buffer| buffer.bytes().len()).collect()
        }
        _ => vec![],
    }
}

impl Output {
    fn new(direction: Direction, item: Item) -> Self {
        let bytes = match (direction, item) {
            (Direction::Into, _) => 0,
            (Direction::OutOf, Item::Bits(_)) => RECORD_ROOM_BYTES,
            (Direction::OutOf, _) => BATCH * SLOT_BYTES,
        };
        Self { memory: Pages::new(bytes), ..Self::default() }
    }

    fn waiting(&self) -> usize {
        self.frames.len() - self.gone
    }

    fn as_frames(&self) -> Result<Frames<'_>, PortError> {
        Frames::new(&self.memory, &self.frames[self.gone..])
    }

    /// Buffers for frames, or room for records; none while frames wait in them.
    fn room(&mut self) -> (Vec<Buffer<'_>>, &mut [u8]) {
        if self.waiting() > 0 {
            return (vec![], &mut []);
        }
        self.frames.clear();
        self.gone = 0;
        if self.memory.len() == RECORD_ROOM_BYTES {
            return (vec![], &mut self.memory);
        }
        let slots = self.memory.chunks_exact_mut(SLOT_BYTES);
        (slots.map(|slot| Buffer::new(&mut slot[HEADROOM..])).collect(), &mut [])
    }

    /// Notes the frames that were written to the first buffers.
    fn add(&mut self, lengths: &[usize], timestamp_ns: u64) {
        self.frames.extend(lengths.iter().enumerate().map(|(slot, length)| Frame {
            start: slot * SLOT_BYTES + HEADROOM,
            length: *length,
            original_length: *length,
            timestamp_ns,
        }));
    }
}

impl<'b> Lent<'b> {
    fn new(endpoint: EndpointId, batch: &'b Batch<'_>) -> Self {
        let frames = batch.as_frames();
        let frames = (0..frames.len()).map(|at| freeport_native::Frame::new(frames.bytes(at)));
        Self { endpoint, frames: frames.collect(), consumed: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_conformance;
    use crate::programs::mac_swap;

    #[test]
    fn it_conforms() {
        let program = mac_swap();
        let cache = tempfile::tempdir().expect("a folder");
        let options = Options { cache: cache.path().to_path_buf(), ..Options::default() };
        let image = freeport_native::build(&program, &options).expect("clang-19 is needed");
        device_conformance::check(|| CpuDevice::of_image(&program, &image, 0).expect("it loads"));
    }
}
