// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a program in native code on random pieces of its input and with random room, and replays
//! the recording in the interpreter, which must end in the same execution.

use freeport_ir::analysis::TURN_LIMIT;
use freeport_ir::interp::{Interpreter, Options as ReplayOptions};
use freeport_ir::oracle::{Execution, Oracles};
use freeport_ir::{Bits, InstanceId, Item, Program, Sink, Source};
use freeport_native::manifest::ItemInfo;
use freeport_native::{Buffer, EndpointIo, Frame, Graph, Image, Options, Placed, RunStatus, build};
use std::ops::Range;
use std::path::Path;

/// Room for one frame at an output: enough for jumbo frames and what elements add to them.
pub const FRAME_BYTES_MAX: usize = 9_216 + 256;

/// Input or output of one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub packets: Vec<Vec<u8>>,
    pub records: Vec<Bits>,
}

/// Returns options for tests: a separate cache, quick compilation, and code that checks itself:
/// undefined behaviour in C ends the test with a signal.
pub fn options(cache: &Path) -> Options {
    let base = Options { optimization: 1, cache: Some(cache.to_owned()), ..Options::default() };
    Options { record: true, sanitize: true, ..base }
}

/// Builds a program that native code supports.
pub fn image(program: &Program, options: &Options) -> Image {
    build(program, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Guard bytes on both sides of lent memory.
const GUARD_BYTES: usize = 96;
const GUARD: u8 = 0xc3;

/// Memory to lend, between guard bytes that must not change. A frame in it has room around it, of a
/// size that differs from frame to frame.
struct Lent {
    memory: Vec<u8>,
    range: Range<usize>,
}

impl Lent {
    fn frame_of(bytes: &[u8]) -> Self {
        let [head, tail] = [bytes.len() % 5 * 16, bytes.len() % 3 * 20];
        let mut this = Self::room(head + bytes.len() + tail);
        this.range = head..head + bytes.len();
        this.lend()[head..head + bytes.len()].copy_from_slice(bytes);
        this
    }

    fn room(bytes: usize) -> Self {
        let mut this = Self { memory: vec![GUARD; bytes + 2 * GUARD_BYTES], range: 0..0 };
        this.lend().fill(0xdd);
        this
    }

    fn lend(&mut self) -> &mut [u8] {
        let end = self.memory.len() - GUARD_BYTES;
        &mut self.memory[GUARD_BYTES..end]
    }

    fn frame(&mut self) -> Frame<'_> {
        let range = self.range.clone();
        Frame::within(self.lend(), range)
    }

    /// Returns the frame, as the run has left it.
    fn bytes(&mut self) -> Vec<u8> {
        let range = self.range.clone();
        self.lend()[range].to_vec()
    }

    fn is_whole(&self) -> bool {
        let end = self.memory.len() - GUARD_BYTES;
        let mut around = self.memory[..GUARD_BYTES].iter().chain(&self.memory[end..]);
        around.all(|byte| *byte == GUARD)
    }
}

/// A graph with its remaining input, and its output so far.
pub struct Driver {
    pub graph: Graph,
    left: Vec<Traffic>,
    /// Complete input.
    input: Vec<Traffic>,
    pub out: Vec<Traffic>,
    /// Memory of frames of earlier runs.
    spent: Vec<Vec<u8>>,
    /// Maximum number of packets that suspended handlers keep.
    pub suspended: u64,
    /// Number of output frames in the memory of input frames.
    #[allow(dead_code, reason = "not every test asks")]
    pub by_reference: usize,
}

impl Driver {
    pub fn new(image: &Image, input: Vec<Traffic>) -> Self {
        let out = vec![Traffic::default(); image.manifest.endpoints.len()];
        let graph = Graph::load(image).expect("a library just built");
        let left = input.clone();
        Self { graph, left, input, out, spent: vec![], suspended: 0, by_reference: 0 }
    }

    /// Checks that the flits recorded as input are the first ones of the actual input.
    #[allow(dead_code, reason = "not every test asks")]
    pub fn check_entered(&self, program: &Program, execution: &Execution) {
        for (channel, history) in program.graph.channels.iter().zip(&execution.histories) {
            let Source::Endpoint(endpoint) = channel.source else { continue };
            if channel.item != freeport_ir::Item::Flit {
                continue;
            }
            let packets = self.input[endpoint.index()].packets.iter();
            let flits: Vec<Bits> = packets.flat_map(|it| freeport_ir::flit::cut(it)).collect();
            assert!(flits.starts_with(history), "{}: what was read is not what came", program.name);
        }
    }

    /// Runs once on at most `most` packets or records of each input, and with room for `room` at
    /// each output.
    pub fn run(&mut self, most: &[usize], room: &[usize]) -> RunStatus {
        let endpoints = self.graph.manifest().endpoints.clone();
        let mut given: Vec<Vec<Lent>> = (self.left.iter().zip(most))
            .map(|(left, most)| {
                left.packets.iter().take(*most).map(|it| Lent::frame_of(it)).collect()
            })
            .collect();
        let mut frames: Vec<Vec<Frame<'_>>> =
            given.iter_mut().map(|given| given.iter_mut().map(Lent::frame).collect()).collect();
        let records: Vec<Vec<u8>> = (self.left.iter().zip(most))
            .map(|(left, most)| {
                left.records.iter().take(*most).flat_map(Bits::to_le_bytes).collect()
            })
            .collect();
        let mut memory: Vec<Vec<Lent>> = (room.iter())
            .map(|room| (0..*room).map(|_| Lent::room(FRAME_BYTES_MAX)).collect())
            .collect();
        let mut buffers: Vec<Vec<Buffer<'_>>> = (memory.iter_mut())
            .map(|memory| memory.iter_mut().map(|it| Buffer::new(it.lend())).collect())
            .collect();
        let record_bytes = |item: ItemInfo| item.bits().map_or(1, |bits| bits.div_ceil(8) as usize);
        let mut room_for_records: Vec<Vec<u8>> = (endpoints.iter().zip(room))
            .map(|(endpoint, room)| vec![0xee; room * record_bytes(endpoint.item)])
            .collect();
        let mut io = vec![];
        let places = buffers.iter_mut().zip(&mut room_for_records).zip(&mut frames);
        for ((endpoint, at), ((buffers, room), frames)) in endpoints.iter().zip(0..).zip(places) {
            io.push(match (endpoint.is_input, endpoint.item) {
                (true, ItemInfo::Flit | ItemInfo::Packet) => EndpointIo::frames_in(frames),
                (true, ItemInfo::Record(_)) => EndpointIo::records_in(&records[at]),
                (false, ItemInfo::Flit | ItemInfo::Packet) => EndpointIo::frames_out(buffers),
                (false, ItemInfo::Record(_)) => EndpointIo::records_out(room),
            });
        }
        let status = self.graph.run(&mut io).expect("an io for each endpoint");
        self.check_buffers();
        let used: Vec<usize> = io.iter().map(EndpointIo::done).collect();
        for (at, end) in io.iter().enumerate() {
            let done = used[at];
            match end {
                EndpointIo::FramesIn { .. } | EndpointIo::RecordsIn { .. } => {}
                EndpointIo::FramesOut { buffers, .. } => {
                    let is_input = |it: &&Buffer<'_>| matches!(it.placed(), Placed::Input { .. });
                    self.by_reference += buffers[..done].iter().filter(is_input).count();
                    let written = EndpointIo::produced(&io, at).map(<[u8]>::to_vec);
                    self.out[at].packets.extend(written);
                }
                EndpointIo::RecordsOut { room, .. } => {
                    let width = endpoints[at].item.bits().expect("a record");
                    let written = room.chunks_exact(record_bytes(endpoints[at].item)).take(done);
                    self.out[at].records.extend(written.map(|it| Bits::from_le_bytes(width, it)));
                }
            }
        }
        assert!(
            given.iter().chain(&memory).flatten().all(Lent::is_whole),
            "nothing else is written"
        );
        for ((left, given), used) in self.left.iter_mut().zip(&mut given).zip(used) {
            // Frames that are not consumed are given again as they were left: all unread bytes must
            // be intact.
            for (packet, lent) in left.packets.iter_mut().zip(given) {
                *packet = lent.bytes();
            }
            left.packets.drain(..used.min(left.packets.len()));
            left.records.drain(..used.min(left.records.len()));
        }
        // Overwrites them, so that a graph that still reads frames of this run is detected.
        given.iter_mut().flatten().for_each(|lent| lent.memory.fill(0x99));
        self.spent.extend(given.into_iter().flatten().map(|lent| lent.memory));
        status
    }

    /// Checks that no buffer leaks: a packet that has left the graph must have released its buffer.
    fn check_buffers(&self) {
        let channels = &self.graph.manifest().channels;
        let is_packet = |at: &usize| channels[*at].item == ItemInfo::Packet;
        let waiting = (0..channels.len()).filter(is_packet).map(|at| self.graph.waiting(at));
        let most = waiting.map(u64::from).sum::<u64>() + self.suspended;
        let in_use = self.graph.buffers_in_use();
        assert!(in_use <= most, "{in_use} buffers for {most} packets");
    }

    /// Runs randomly, then with unlimited room until nothing moves.
    pub fn run_in_pieces(&mut self, random: &mut fastrand::Rng, pieces: usize) -> RunStatus {
        let count = self.out.len();
        for _ in 0..pieces {
            let most: Vec<usize> = (0..count).map(|_| random.usize(0..6)).collect();
            let room: Vec<usize> = (0..count).map(|_| random.usize(0..4)).collect();
            self.run(&most, &room);
        }
        let mut status = RunStatus::Budget;
        for _ in 0..1000 {
            status = self.run(&vec![usize::MAX; count], &vec![200; count]);
            if matches!(status, RunStatus::Idle | RunStatus::Stalled(_)) {
                break;
            }
        }
        status
    }
}

/// Returns the bytes of a packet in a history, where a single bit stands for an empty packet.
pub fn packet_bytes(item: &Bits) -> Vec<u8> {
    if item.width() == 1 { vec![] } else { item.to_le_bytes() }
}

/// Replays a recording, and checks that it ends in the same execution; returns the output.
#[allow(dead_code, reason = "not every test asks")]
pub fn check(program: &Program, oracles: Oracles, execution: &Execution) -> Vec<Traffic> {
    check_within(program, oracles, execution, TURN_LIMIT)
}

/// Checks like `check`, with a watchdog limit.
pub fn check_within(
    program: &Program,
    oracles: Oracles,
    execution: &Execution,
    turn_limit: u64,
) -> Vec<Traffic> {
    let options =
        ReplayOptions { unbounded_channels: true, turn_limit, ..ReplayOptions::default() };
    let mut replay = Interpreter::replay(program, oracles, &options).expect("a sound record");
    for (at, counters) in execution.counters.iter().enumerate() {
        replay.limit_firings(InstanceId::new(at), counters.firings);
    }
    let channels = || program.graph.channels.iter().zip(&execution.histories);
    for (channel, history) in channels() {
        if let Source::Endpoint(endpoint) = channel.source {
            for item in history {
                let fed = match channel.item {
                    Item::Packet { .. } => replay.feed_packet(endpoint, &packet_bytes(item)),
                    _ => replay.feed_item(endpoint, item.clone()),
                };
                fed.expect("an item of the channel");
            }
        }
    }
    replay.run(u64::MAX).unwrap_or_else(|error| panic!("{}: {error}", program.name));
    let replayed = replay.execution();
    for (at, (want, got)) in replayed.histories.iter().zip(&execution.histories).enumerate() {
        assert_eq!(got, want, "{}: channel {at}", program.name);
    }
    assert_eq!(*execution, replayed, "{}", program.name);
    let mut out = vec![Traffic::default(); program.graph.endpoints.len()];
    for (channel, history) in channels() {
        if let Sink::Endpoint(endpoint) = channel.sink {
            let end = &mut out[endpoint.index()];
            match channel.item {
                Item::Bits(_) => end.records = history.clone(),
                Item::Packet { .. } => end.packets = history.iter().map(packet_bytes).collect(),
                Item::Flit => {
                    let mut joiner = freeport_ir::flit::Joiner::default();
                    let joined = history.iter();
                    let joined = joined.filter_map(|it| joiner.push(it).expect("well formed"));
                    end.packets = joined.collect();
                }
            }
        }
    }
    out
}
