// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Distributes the frames of ports over the copies of a graph, by their flows, and merges the
//! output of the copies. Frames of a flow stay in order: all pass the same copy, through rings.

use crate::device::{Bound, DeviceError, EndpointCounters, Run, port_error};
use crate::ring::{FrameReader, FrameWriter};
use freeport_ir::{EndpointId, Program};
use freeport_port::packet::flow_hash::copy_of;
use freeport_port::{BATCH, Frame, FrameQueue, Frames, MAX_FRAME, PortError, Transmit};
use std::sync::Arc;

/// Worker 0's ends of the copies' rings.
pub(super) struct Steerer {
    program: Arc<Program>,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    /// Counters by endpoint.
    pub counters: Vec<EndpointCounters>,
}

struct Input {
    endpoint: EndpointId,
    /// By copy: its ring, and the frames that the ring had no room for.
    copies: Vec<(FrameWriter, FrameQueue)>,
    /// By copy: the frames of a batch that go to it.
    chosen: Vec<Vec<Frame>>,
}

struct Output {
    endpoint: EndpointId,
    /// Rings by copy.
    copies: Vec<FrameReader>,
    /// Set while the port has no room.
    is_blocked: bool,
}

impl Steerer {
    pub fn new(program: Arc<Program>) -> Self {
        let counters = vec![EndpointCounters::default(); program.graph.endpoints.len()];
        Self { program, inputs: vec![], outputs: vec![], counters }
    }

    pub fn add_input(&mut self, endpoint: EndpointId, writers: Vec<FrameWriter>) {
        let chosen = vec![vec![]; writers.len()];
        let copies = writers.into_iter().map(|writer| (writer, FrameQueue::default())).collect();
        self.inputs.push(Input { endpoint, copies, chosen });
    }

    pub fn add_output(&mut self, endpoint: EndpointId, copies: Vec<FrameReader>) {
        self.outputs.push(Output { endpoint, copies, is_blocked: false });
    }

    /// Receives a batch from each port, and sends the output of the copies; returns whether
    /// anything moved.
    ///
    /// # Errors
    /// A port failed.
    pub fn turn(&mut self, bound: &mut Bound<'_>, run: &mut Run) -> Result<bool, DeviceError> {
        let before = run.received + run.sent;
        let mut has_moved = false;
        let Self { program, inputs, outputs, counters } = self;
        for output in outputs {
            let counters = &mut counters[output.endpoint.index()];
            let sent = output.send(bound, run, counters);
            has_moved |= sent.map_err(|source| port_error(program, output.endpoint, source))?;
        }
        for input in inputs {
            let counters = &mut counters[input.endpoint.index()];
            let taken = input.take(bound, run, counters);
            has_moved |= taken.map_err(|source| port_error(program, input.endpoint, source))?;
        }
        Ok(has_moved || run.received + run.sent != before)
    }

    /// Returns whether frames wait for a port that has no room.
    pub fn is_blocked(&self) -> bool {
        self.outputs.iter().any(|output| output.is_blocked)
    }

    /// Returns whether frames of an input wait for room on their way to a copy.
    pub fn holds(&self, endpoint: EndpointId) -> bool {
        let mut inputs = self.inputs.iter().filter(|input| input.endpoint == endpoint);
        inputs.any(|input| input.copies.iter().any(|(_, queue)| queue.waiting() > 0))
    }

    /// Returns whether a copy has done something that makes another turn worthwhile.
    pub fn has_news(&self) -> bool {
        self.inputs.iter().flat_map(|it| &it.copies).any(|(writer, _)| writer.has_news())
            || self.outputs.iter().flat_map(|it| &it.copies).any(FrameReader::has_news)
    }
}

impl Input {
    fn take(
        &mut self,
        bound: &mut Bound<'_>,
        run: &mut Run,
        counters: &mut EndpointCounters,
    ) -> Result<bool, PortError> {
        let mut has_moved = false;
        for (ring, queue) in &mut self.copies {
            has_moved |= queue.send_to(ring)?.frames > 0;
        }
        // While frames wait for a copy, no frame is received, so that the number held is bounded.
        if self.copies.iter().any(|(_, queue)| queue.waiting() > 0) {
            return Ok(has_moved);
        }
        let port = bound.inputs.iter_mut().find(|(id, _)| *id == self.endpoint);
        let Some((_, port)) = port else { return Ok(has_moved) };
        let batch = port.receive(BATCH)?;
        run.received += batch.len() as u64;
        counters.frames += batch.len() as u64;
        counters.bytes += batch.as_frames().byte_count();
        self.chosen.iter_mut().for_each(Vec::clear);
        for (frame, bytes) in batch.as_frames().iter() {
            self.chosen[copy_of(bytes, self.copies.len())].push(*frame);
        }
        for ((ring, queue), chosen) in self.copies.iter_mut().zip(&self.chosen) {
            let frames = Frames::new(batch.memory(), chosen)?;
            for (frame, bytes) in frames.behind(ring.transmit(frames)?).iter() {
                queue.push(bytes, frame.original_length, frame.timestamp_ns)?;
            }
        }
        Ok(has_moved)
    }
}

impl Output {
    fn send(
        &mut self,
        bound: &mut Bound<'_>,
        run: &mut Run,
        counters: &mut EndpointCounters,
    ) -> Result<bool, PortError> {
        let mut port = bound.outputs.iter_mut().find(|(id, _)| *id == self.endpoint);
        let mut has_moved = false;
        self.is_blocked = false;
        for ring in &mut self.copies {
            let (batch, _) = ring.lend(BATCH);
            let frames = batch.as_frames();
            // A packet without bytes, or one that has grown too long, is not sent.
            let is_good = |frame: &Frame| (1..=MAX_FRAME).contains(&frame.length);
            let good = frames.frames().iter().take_while(|frame| is_good(frame)).count();
            let (sent, dropped) = match &mut port {
                None => (0, frames.len()),
                Some(_) if good == 0 => (0, frames.len().min(1)),
                Some((_, port)) => {
                    let sent = port.transmit(frames.first(good))?;
                    self.is_blocked |= sent < good;
                    (sent, 0)
                }
            };
            run.sent += sent as u64;
            counters.frames += sent as u64;
            counters.bytes += frames.first(sent).byte_count();
            counters.dropped += dropped as u64;
            has_moved |= sent + dropped > 0;
            ring.give_back(sent + dropped);
        }
        Ok(has_moved)
    }
}
