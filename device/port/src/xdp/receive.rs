// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiving half of an AF_XDP port.
//!
//! A frame that fits a chunk is lent where the kernel has put it. One that lies in several chunks
//! is joined in a slot of its own, after the chunks; so its memory is contiguous, and it can be
//! sent from there like any other.

use super::memory::Memory;
use super::program::Entry;
use super::ring::{Consumer, Producer};
use super::socket::Socket;
use super::wait::Wait;
use crate::port::{Batch, Frame, HEADROOM, MAX_FRAME, PortError, Receive};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Calls without a frame after which the socket is checked for an interface that was removed.
const SILENT_CALLS: u32 = 256;
/// Time without a frame after which it is checked however few calls there were: a caller that
/// sleeps between two calls makes few.
const SILENT_TIME: Duration = Duration::from_millis(500);
/// Number of chunks found still in flight after which the rest is left for the next call.
const MOST_BUSY: usize = 4;

/// Counters of received frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XdpReceived {
    /// Frames lent where they arrived.
    pub in_place: u64,
    /// Frames joined from several chunks, which copies them.
    pub joined: u64,
    /// Frames longer than a port carries: dropped.
    pub too_long: u64,
    /// Descriptors that do not point to a chunk that the kernel has: ignored.
    pub invalid: u64,
}

/// The receiving half of a port.
#[derive(Debug)]
pub struct XdpReceiver {
    /// Name used in messages.
    name: String,
    queues: Vec<ReceiveQueue>,
    chunks: Chunks,
    /// The queue that is read first in the next call.
    turn: usize,
    frames: Vec<Frame>,
    received: XdpReceived,
    silent_calls: u32,
    /// Time of the last check.
    asked: Instant,
    wait: Wait,
    entry: Arc<Entry>,
    // Last, so that the sockets are closed before the memory is unmapped.
    memory: Arc<Memory>,
}

/// A queue of the interface, with its socket.
#[derive(Debug)]
pub(super) struct ReceiveQueue {
    pub number: u32,
    pub socket: Arc<Socket>,
    pub ring: Consumer<libc::xdp_desc>,
    pub fill: Producer<u64>,
    /// The frame that is being joined.
    pub joining: Option<Joining>,
}

/// A frame of which some chunks have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joining {
    /// Slot in which it is joined; none if it has become too long.
    slot: Option<usize>,
    length: usize,
}

/// Positions of a receiver's chunks and their present owners. Chunks are counted from the
/// receiver's first one.
#[derive(Debug)]
struct Chunks {
    /// Position of the first one in the memory, in chunks.
    first: usize,
    /// Number of chunks per queue.
    of_queue: usize,
    /// By chunk: whether the kernel has it.
    is_kernels: Vec<bool>,
    lent: Vec<u32>,
    /// No longer lent, but still in flight.
    given: VecDeque<u32>,
    /// Slots for joined frames after the chunks: number of chunks of each.
    slot_chunks: usize,
    slots: usize,
    free_slots: Vec<u32>,
    lent_slots: Vec<u32>,
    given_slots: VecDeque<u32>,
}

/// Memory of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReceiveRoom {
    /// Its first chunk in the memory.
    pub first: usize,
    /// Number of chunks of each queue.
    pub of_queue: usize,
    /// Number of slots for joined frames.
    pub slots: usize,
}

impl ReceiveRoom {
    /// Returns the total number of chunks for this number of queues.
    pub fn chunks(&self, queues: usize, chunk_bytes: usize) -> usize {
        queues * self.of_queue + self.slots * slot_chunks(chunk_bytes)
    }
}

fn slot_chunks(chunk_bytes: usize) -> usize {
    (HEADROOM + MAX_FRAME).div_ceil(chunk_bytes)
}

impl XdpReceiver {
    pub(super) fn new(
        name: String,
        mut queues: Vec<ReceiveQueue>,
        room: ReceiveRoom,
        entry: Arc<Entry>,
        memory: Arc<Memory>,
    ) -> std::io::Result<Self> {
        let mut chunks = Chunks {
            first: room.first,
            of_queue: room.of_queue,
            is_kernels: vec![false; room.of_queue * queues.len()],
            lent: vec![],
            given: VecDeque::new(),
            slot_chunks: slot_chunks(memory.chunk_bytes()),
            slots: room.slots,
            free_slots: (0..room.slots as u32).rev().collect(),
            lent_slots: vec![],
            given_slots: VecDeque::new(),
        };
        for chunk in 0..chunks.is_kernels.len() {
            chunks.hand_to_kernel(chunk as u32, &mut queues, &memory);
        }
        queues.iter_mut().for_each(|queue| queue.fill.show());
        let wait = Wait::on(queues.iter().map(|queue| &queue.socket))?;
        Ok(Self {
            name,
            queues,
            chunks,
            turn: 0,
            frames: vec![],
            received: XdpReceived::default(),
            silent_calls: 0,
            asked: Instant::now(),
            wait,
            entry,
            memory,
        })
    }

    /// Returns the counters of received frames.
    pub fn received(&self) -> XdpReceived {
        self.received
    }

    /// Returns the number of chunks that are in flight and so cannot be filled; for tests and
    /// statistics.
    pub fn given_away(&self) -> usize {
        self.chunks.given.len()
    }

    fn error(&self, source: std::io::Error) -> PortError {
        super::error::lost_interface(&self.name, source)
    }

    /// Takes frames of a queue until there are `most` in all.
    fn take(&mut self, at: usize, most: usize) {
        let Self { queues, chunks, frames, received, memory, .. } = self;
        let chunk_bytes = memory.chunk_bytes();
        let mut left = queues[at].ring.available();
        while left > 0 && frames.len() < most {
            let queue = &mut queues[at];
            let descriptor = queue.ring.peek();
            let is_last = descriptor.options & libc::XDP_PKT_CONTD == 0;
            let Some(part) = chunks.find(&descriptor, at, memory) else {
                received.invalid += 1;
                queue.ring.pass();
                left -= 1;
                continue;
            };
            let is_whole = is_last && queue.joining.is_none() && part.offset >= HEADROOM;
            if is_whole {
                chunks.lent.push(part.chunk);
                frames.push(frame(part.chunk as usize * chunk_bytes + part.offset, part.length));
                received.in_place += 1;
            } else {
                if queue.joining.is_none() {
                    let Some(slot) = chunks.free_slots.pop() else { break };
                    queue.joining = Some(Joining { slot: Some(slot as usize), length: 0 });
                }
                if let Some(joining) = &mut queue.joining {
                    chunks.join(joining, &part, memory);
                    if is_last {
                        match chunks.finish(joining) {
                            Some(slot) => {
                                let start = chunks.slot_start(slot as usize) * chunk_bytes;
                                frames.push(frame(start + HEADROOM, joining.length));
                                received.joined += 1;
                            }
                            None => received.too_long += 1,
                        }
                        queue.joining = None;
                    }
                }
                chunks.is_kernels[part.chunk as usize] = false;
                chunks.hand_to_kernel(part.chunk, queues, memory);
            }
            if is_whole {
                chunks.is_kernels[part.chunk as usize] = false;
            }
            queues[at].ring.pass();
            left -= 1;
        }
    }

    /// Returns unused chunks to the kernel, and wakes it if it waits for them.
    fn refill(&mut self) -> Result<(), PortError> {
        self.chunks.recycle(&mut self.queues, &self.memory);
        for queue in &mut self.queues {
            queue.fill.show();
        }
        for queue in &self.queues {
            if queue.fill.needs_wakeup() {
                queue.socket.kick_receive().map_err(|source| self.error(source))?;
            }
        }
        Ok(())
    }

    /// Checks from time to time whether the interface still exists.
    fn check(&mut self) -> Result<(), PortError> {
        self.silent_calls += 1;
        if self.silent_calls < SILENT_CALLS && self.asked.elapsed() < SILENT_TIME {
            return Ok(());
        }
        (self.silent_calls, self.asked) = (0, Instant::now());
        let failure = self.queues.iter().find_map(|queue| queue.socket.failure());
        failure.map_or(Ok(()), |source| Err(self.error(source)))
    }
}

impl Receive for XdpReceiver {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        self.frames.clear();
        self.refill()?;
        for step in 0..self.queues.len() {
            if self.frames.len() < most {
                self.take((self.turn + step) % self.queues.len(), most);
            }
        }
        self.turn = (self.turn + 1) % self.queues.len();
        self.queues.iter_mut().for_each(|queue| queue.ring.give());
        if self.frames.is_empty() {
            self.check()?;
            return Ok(Batch::empty());
        }
        self.silent_calls = 0;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos() as u64);
        self.frames.iter_mut().for_each(|frame| frame.timestamp_ns = now);
        let chunk_bytes = self.memory.chunk_bytes();
        let start = self.chunks.first * chunk_bytes;
        let chunks = self.chunks.is_kernels.len() + self.chunks.slots * self.chunks.slot_chunks;
        // SAFETY: these chunks are this receiver's, and the batch borrows it. Only the chunks of
        // the frames are accessed, none of which the kernel has; a transmitter that is given them
        // only reads.
        let memory = unsafe { self.memory.bytes_mut(start..start + chunks * chunk_bytes) };
        // SAFETY: each frame is in a chunk, or in a slot of whole chunks, which belonged to the
        // kernel or was free before, and so belongs to no other frame.
        Ok(unsafe { Batch::in_chunks(memory, &self.frames, chunk_bytes) })
    }

    fn is_ended(&self) -> bool {
        false
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wait.descriptor())
    }

    /// Counts frames that found no chunk or no place in the ring, or were longer than a port
    /// carries.
    fn lost(&self) -> u64 {
        let statistics = self.queues.iter().filter_map(|queue| queue.socket.statistics().ok());
        let by_kernel: u64 = statistics.map(|it| it.rx_dropped + it.rx_ring_full).sum();
        by_kernel + self.received.too_long
    }
}

impl Drop for XdpReceiver {
    fn drop(&mut self) {
        // The transmitting half may still be used: received frames then go to the network stack.
        self.queues.iter().for_each(|queue| self.entry.leave(queue.number));
    }
}

fn frame(start: usize, length: usize) -> Frame {
    Frame { start, length, original_length: length, timestamp_ns: 0 }
}

/// Contents of a checked descriptor.
struct Part {
    chunk: u32,
    /// Offset in its chunk.
    offset: usize,
    length: usize,
}

impl Chunks {
    /// Returns the first chunk of a slot.
    fn slot_start(&self, slot: usize) -> usize {
        self.is_kernels.len() + slot * self.slot_chunks
    }

    /// Returns the chunk that a descriptor of queue `at` names; none if the kernel cannot have it.
    #[inline]
    fn find(&self, descriptor: &libc::xdp_desc, at: usize, memory: &Memory) -> Option<Part> {
        let chunk = memory.chunk_of(descriptor.addr).checked_sub(self.first as u64)?;
        let chunk = usize::try_from(chunk).ok()?;
        let is_its = self.is_kernels.get(chunk) == Some(&true) && chunk / self.of_queue == at;
        let (offset, length) =
            (descriptor.addr as usize & (memory.chunk_bytes() - 1), descriptor.len as usize);
        let is_within = length > 0 && offset + length <= memory.chunk_bytes();
        (is_its && is_within).then_some(Part { chunk: chunk as u32, offset, length })
    }

    /// Copies a part to the end of the frame that is being joined.
    fn join(&mut self, joining: &mut Joining, part: &Part, memory: &Memory) {
        let Some(slot) = joining.slot else { return };
        if joining.length + part.length > MAX_FRAME {
            self.free_slots.push(slot as u32);
            joining.slot = None;
            return;
        }
        let chunk_bytes = memory.chunk_bytes();
        let base = self.first * chunk_bytes;
        let from = base + part.chunk as usize * chunk_bytes + part.offset;
        let to = base + self.slot_start(slot) * chunk_bytes + HEADROOM + joining.length;
        // SAFETY: the chunk is this receiver's; the kernel has released it.
        let from = unsafe { memory.bytes_mut(from..from + part.length) };
        // SAFETY: the chunk is this receiver's and free, and different from the one above.
        let to = unsafe { memory.bytes_mut(to..to + part.length) };
        to.copy_from_slice(from);
        joining.length += part.length;
    }

    /// Lends the slot of a complete frame and returns it; none if the frame was too long.
    fn finish(&mut self, joining: &Joining) -> Option<u32> {
        let slot = joining.slot? as u32;
        self.lent_slots.push(slot);
        Some(slot)
    }

    /// Takes back the lent chunks, and returns to the kernel those that are not in flight.
    fn recycle(&mut self, queues: &mut [ReceiveQueue], memory: &Memory) {
        let mut busy = 0;
        for _ in 0..self.given.len() {
            let Some(chunk) = self.given.pop_front() else { break };
            if memory.is_marked(self.first + chunk as usize) {
                self.given.push_back(chunk);
                busy += 1;
                if busy == MOST_BUSY {
                    break;
                }
            } else {
                self.hand_to_kernel(chunk, queues, memory);
            }
        }
        let mut lent = std::mem::take(&mut self.lent);
        for chunk in lent.drain(..) {
            if memory.is_marked(self.first + chunk as usize) {
                self.given.push_back(chunk);
            } else {
                self.hand_to_kernel(chunk, queues, memory);
            }
        }
        self.lent = lent;
        self.recycle_slots(memory);
    }

    fn recycle_slots(&mut self, memory: &Memory) {
        if self.lent_slots.is_empty() && self.given_slots.is_empty() {
            return;
        }
        self.given_slots.extend(self.lent_slots.drain(..));
        for _ in 0..self.given_slots.len() {
            let Some(slot) = self.given_slots.pop_front() else { break };
            let start = self.first + self.slot_start(slot as usize);
            let mut chunks = start..start + self.slot_chunks;
            if chunks.any(|chunk| memory.is_marked(chunk)) {
                self.given_slots.push_back(slot);
            } else {
                self.free_slots.push(slot);
            }
        }
    }

    /// Gives the kernel a chunk to fill. There is room for it: the ring holds all chunks of its
    /// queue.
    #[inline]
    fn hand_to_kernel(&mut self, chunk: u32, queues: &mut [ReceiveQueue], memory: &Memory) {
        let queue = &mut queues[chunk as usize / self.of_queue];
        self.is_kernels[chunk as usize] = true;
        queue.fill.put((self.first + chunk as usize) as u64 * memory.chunk_bytes() as u64);
    }
}
