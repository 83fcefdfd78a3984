// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Native code as the machine for golden cases, with arrivals and room drawn from a seed.

use super::Variable;
use super::run::{INSTANCE, Machine, arguments, place};
use freeport_ir::{Bits, InstanceId, SIGNAL_WORDS};
use freeport_native::manifest::{EndpointInfo, ItemInfo};
use freeport_native::{Buffer, EndpointIo, Frame, Graph, Image, RunStatus};
use freeport_port::MAX_FRAME;
use freeport_runtime::signal::Signal;

/// Number of runs after which a graph is assumed to run forever.
const RUN_LIMIT: usize = 100_000;
/// Capacity of each output, in frames or records, in a run without stalls.
const AMPLE_ROOM: usize = 64;

/// A graph with its remaining input, and its output so far.
pub struct Native {
    graph: Graph,
    endpoints: Vec<EndpointInfo>,
    /// Remaining input by endpoint: packets, or records as little-endian bytes.
    left: Vec<Vec<Vec<u8>>>,
    /// Output by endpoint, in the same form as `left`.
    out: Vec<Vec<Vec<u8>>>,
    /// If absent, runs get all the input and ample room.
    random: Option<fastrand::Rng>,
}

impl Native {
    /// Loads an image. Seed 0 gives everything at once; any other gives input and room in small
    /// random pieces.
    ///
    /// # Errors
    /// An image that cannot be loaded.
    pub fn new(image: &Image, seed: u64) -> Result<Self, String> {
        let graph = Graph::load_seeded(image, seed).map_err(|error| error.to_string())?;
        let endpoints = graph.manifest().endpoints.clone();
        let none = vec![vec![]; endpoints.len()];
        let random = (seed != 0).then(|| fastrand::Rng::with_seed(seed));
        Ok(Self { graph, endpoints, left: none.clone(), out: none, random })
    }

    fn endpoint(&self, name: &str) -> Result<usize, String> {
        let found = self.endpoints.iter().position(|endpoint| endpoint.name == name);
        found.ok_or(format!("there is no {name}"))
    }

    fn place<'n>(&self, name: &'n str) -> Result<(InstanceId, &'n str), String> {
        place(name, |instance| self.graph.instance(instance))
    }

    /// Runs with at most `most` items of each input, and room for `room` at each output; returns
    /// the status, and whether anything passed an endpoint.
    fn run(&mut self, most: usize, room: usize) -> Result<(RunStatus, bool), String> {
        let heads = || self.left.iter().map(|left| left.iter().take(most));
        let mut given: Vec<Vec<Vec<u8>>> = heads().map(|head| head.cloned().collect()).collect();
        let mut frames: Vec<Vec<Frame<'_>>> = (given.iter_mut())
            .map(|given| given.iter_mut().map(|bytes| Frame::new(bytes)).collect())
            .collect();
        let records: Vec<Vec<u8>> = heads().map(|head| head.flatten().copied().collect()).collect();
        let mut memory: Vec<Vec<u8>> =
            self.endpoints.iter().map(|it| vec![0xee; room * slot_bytes(it.item)]).collect();
        let mut buffers: Vec<Vec<Buffer<'_>>> = vec![];
        let mut rooms: Vec<&mut [u8]> = vec![];
        for (endpoint, memory) in self.endpoints.iter().zip(&mut memory) {
            match endpoint.item {
                ItemInfo::Flit | ItemInfo::Packet => {
                    buffers.push(memory.chunks_exact_mut(MAX_FRAME).map(Buffer::new).collect());
                    rooms.push(&mut []);
                }
                ItemInfo::Record(_) => {
                    buffers.push(vec![]);
                    rooms.push(memory);
                }
            }
        }
        let mut io = vec![];
        let places = buffers.iter_mut().zip(rooms).zip(&mut frames);
        for (at, ((buffers, room), frames)) in places.enumerate() {
            io.push(match (self.endpoints[at].is_input, self.endpoints[at].item) {
                (true, ItemInfo::Flit | ItemInfo::Packet) => EndpointIo::frames_in(frames),
                (true, ItemInfo::Record(_)) => EndpointIo::records_in(&records[at]),
                (false, ItemInfo::Flit | ItemInfo::Packet) => EndpointIo::frames_out(buffers),
                (false, ItemInfo::Record(_)) => EndpointIo::records_out(room),
            });
        }
        let status = self.graph.run(&mut io).map_err(|error| error.to_string())?;
        let done: Vec<usize> = io.iter().map(EndpointIo::done).collect();
        for (at, end) in io.iter().enumerate() {
            match end {
                EndpointIo::FramesOut { .. } => {
                    self.out[at].extend(EndpointIo::produced(&io, at).map(<[u8]>::to_vec));
                }
                EndpointIo::RecordsOut { room, produced } => {
                    let records = room.chunks_exact(slot_bytes(self.endpoints[at].item));
                    self.out[at].extend(records.take(*produced).map(<[u8]>::to_vec));
                }
                EndpointIo::FramesIn { .. } | EndpointIo::RecordsIn { .. } => {}
            }
        }
        for (left, done) in self.left.iter_mut().zip(&done) {
            left.drain(..(*done).min(left.len()));
        }
        Ok((status, done.iter().any(|done| *done > 0)))
    }
}

/// Returns the bytes that an item occupies in the memory of an endpoint.
fn slot_bytes(item: ItemInfo) -> usize {
    match item {
        ItemInfo::Flit | ItemInfo::Packet => MAX_FRAME,
        ItemInfo::Record(bits) => bits.div_ceil(8) as usize,
    }
}

impl Machine for Native {
    fn feed(&mut self, endpoint: &str, packet: &[u8]) -> Result<(), String> {
        let at = self.endpoint(endpoint)?;
        self.left[at].push(packet.to_vec());
        Ok(())
    }

    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..RUN_LIMIT {
            if let Some(random) = &mut self.random {
                let (most, room) = (random.usize(..4), random.usize(..3));
                let (_, has_moved) = self.run(most, room)?;
                if has_moved {
                    continue;
                }
            }
            match self.run(usize::MAX, AMPLE_ROOM)? {
                (RunStatus::Idle, false) => return Ok(()),
                (RunStatus::Stalled(stall), false) => return Err(stall.to_string()),
                _ => {}
            }
        }
        Err("it does not come to rest".into())
    }

    fn take(&mut self, endpoint: &str) -> Result<Vec<Vec<u8>>, String> {
        let at = self.endpoint(endpoint)?;
        Ok(std::mem::take(&mut self.out[at]))
    }

    fn read(&mut self, variable: &Variable) -> Result<u64, String> {
        let (instance, name) = self.place(&variable.name)?;
        let value = self.graph.read_variable(instance, name, variable.index);
        let value = value.map_err(|error| error.to_string())?;
        value.checked_u64().ok_or("it is above 64 bits".into())
    }

    fn write(&mut self, variable: &Variable, value: u64) -> Result<(), String> {
        let (instance, name) = self.place(&variable.name)?;
        let old = self.graph.read_variable(instance, name, variable.index);
        let width = old.map_err(|error| error.to_string())?.width();
        let value = Bits::from_u64(width, value);
        let written = self.graph.write_variable(instance, name, variable.index, value);
        written.map_err(|error| error.to_string())
    }

    fn signal(&mut self, words: &[u64]) -> Result<[u64; SIGNAL_WORDS], String> {
        let mut signal = Signal::default();
        signal.params[..words.len()].copy_from_slice(words);
        let instance = self.graph.instance(INSTANCE).ok_or("a group takes no signals")?;
        let answer = self.graph.signal(instance, signal.to_bits());
        Ok(Signal::from_bits(&answer.map_err(|error| error.to_string())?).params)
    }

    fn call(&mut self, method: &str, given: &[Vec<u8>]) -> Result<Option<Bits>, String> {
        let (instance, method) = self.place(method)?;
        let manifest = self.graph.manifest();
        let element = &manifest.elements[manifest.instances[instance.index()].element];
        let found = element.methods.iter().find(|it| it.name == method);
        let found = found.ok_or(format!("there is no method {method}"))?;
        let arguments = arguments(given, &found.parameters)?;
        let result = self.graph.call_method(instance, method, &arguments);
        result.map_err(|error| error.to_string())
    }
}
