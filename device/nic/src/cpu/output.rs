// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What comes out of the graph, on its way to a port: where each frame lies, and what happens to
//! those that have to wait.

use super::{Lent, RECORD_ROOM_BYTES, SLOT_BYTES, Side};
use crate::port::{BATCH, Frame, Frames, HEADROOM, Pages, PortError, Sent, Transmit};
use freeport_ir::{Direction, Item};
use freeport_native::{Buffer, Buffers, Placed};

/// The buffers of an endpoint out of the graph, and what waits there.
#[derive(Default)]
pub(super) struct Output {
    leads_to_port: bool,
    pub memory: Pages,
    buffers: Buffers,
    pub waiting: Waiting,
}

/// Frames on their way to a port. Each belongs to the buffer of the same number.
#[derive(Default)]
pub(super) struct Waiting {
    pub frames: Vec<Frame>,
    /// Which of them lie in the same memory, in order.
    pub stretches: Vec<Stretch>,
    /// Frames that have left.
    pub gone: usize,
    /// Of these, packets without bytes, which went nowhere.
    pub dropped: u64,
}

/// Frames of an output that lie in the same memory.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub place: FramePlace,
    /// How many frames of the output come before the end of this stretch.
    pub end: usize,
}

/// Whose memory a frame lies in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FramePlace {
    /// The output's own.
    Own,
    /// That of the batch of the endpoint of this number.
    Batch(usize),
    /// It has no bytes, and no port takes it.
    Nowhere,
}

impl Output {
    pub fn new(direction: Direction, item: Item) -> Self {
        let bytes = match (direction, item) {
            (Direction::Into, _) => 0,
            (Direction::OutOf, Item::Bits(_)) => RECORD_ROOM_BYTES,
            (Direction::OutOf, _) => BATCH * SLOT_BYTES,
        };
        Self { leads_to_port: true, memory: Pages::new(bytes), ..Self::default() }
    }

    /// One of an endpoint that has no port.
    pub fn none() -> Self {
        Self::default()
    }

    /// Gives the run buffers for frames, or room for records; none while frames wait in them.
    pub fn make_room<'r>(&'r mut self, side: &mut Side<'r>) {
        let Self { leads_to_port: true, memory, buffers, waiting } = self else { return };
        if waiting.count() == 0 {
            waiting.clear();
            if memory.len() == RECORD_ROOM_BYTES {
                side.room = memory;
            } else {
                // SAFETY: nobody exchanges them, and an output has these slots only.
                side.slots = unsafe { buffers.lend(memory, SLOT_BYTES, HEADROOM) };
            }
        }
        side.waiting = Some(waiting);
    }

    /// Hands what waits to `port`, as far as it has room, from wherever it lies.
    pub fn send_to(
        &mut self,
        port: &mut dyn Transmit,
        lent: &[Lent<'_>],
    ) -> Result<Sent, PortError> {
        let Self { memory, waiting, .. } = self;
        let mut all = Sent::default();
        for Stretch { place, end } in &waiting.stretches {
            if *end <= waiting.gone {
                continue;
            }
            let memory = match place {
                FramePlace::Own => &memory[..],
                FramePlace::Nowhere => {
                    waiting.dropped += (*end - waiting.gone) as u64;
                    waiting.gone = *end;
                    continue;
                }
                FramePlace::Batch(endpoint) => memory_of(lent, *endpoint),
            };
            let (frames, bytes) = Frames::counted(memory, &waiting.frames[waiting.gone..*end])?;
            let sent = port.transmit(frames)?;
            all.frames += sent;
            waiting.gone += sent;
            if sent < frames.len() {
                all.bytes += frames.first(sent).byte_count();
                break;
            }
            all.bytes += bytes;
        }
        Ok(all)
    }

    /// Copies what waits in the memory of batches, so that it outlives them.
    pub fn keep(&mut self, lent: &[Lent<'_>]) {
        let Self { memory, waiting, .. } = self;
        let mut first = waiting.gone;
        for Stretch { place, end } in &mut waiting.stretches {
            let frames = first..*end;
            first = first.max(*end);
            let FramePlace::Batch(endpoint) = *place else { continue };
            for at in frames {
                let frame = &mut waiting.frames[at];
                let from = &memory_of(lent, endpoint)[frame.start..frame.start + frame.length];
                frame.start = at * SLOT_BYTES + HEADROOM;
                memory[frame.start..frame.start + frame.length].copy_from_slice(from);
            }
            *place = FramePlace::Own;
        }
    }
}

/// The memory of the batch of an endpoint.
pub(super) fn memory_of<'l>(lent: &'l [Lent<'_>], endpoint: usize) -> &'l [u8] {
    let lent = lent.iter().find(|lent| lent.endpoint.index() == endpoint);
    lent.map_or(&[], |lent| lent.batch.memory())
}

impl Waiting {
    pub fn count(&self) -> usize {
        self.frames.len() - self.gone
    }

    pub fn clear(&mut self) {
        self.frames.clear();
        self.stretches.clear();
        self.gone = 0;
    }

    /// Notes the frames that a run has produced with the first buffers, when nothing waits. `sides`
    /// is what that run was given at each endpoint.
    pub fn add(&mut self, produced: &[Buffer<'_>], sides: &[Side<'_>], timestamp_ns: u64) {
        if produced.is_empty() {
            // Something may wait, and its stretches end where they end.
            return;
        }
        let Self { frames, stretches, .. } = self;
        let mut last = None;
        frames.extend(produced.iter().enumerate().map(|(slot, buffer)| {
            let (place, start, length) = match buffer.placed() {
                Placed::Own { length: 0 } | Placed::Input { length: 0, .. } => {
                    (FramePlace::Nowhere, 0, 0)
                }
                Placed::Own { length } => (FramePlace::Own, slot * SLOT_BYTES + HEADROOM, length),
                Placed::Input { endpoint, frame, start, length } => {
                    (FramePlace::Batch(endpoint), sides[endpoint].place(frame, start), length)
                }
            };
            if last != Some(place) {
                last = Some(place);
                end_last(stretches, slot);
                stretches.push(Stretch { place, end: slot });
            }
            Frame { start, length, original_length: length, timestamp_ns }
        }));
        end_last(stretches, produced.len());
    }
}

/// The last stretch, if there is one, ends at frame `end`.
fn end_last(stretches: &mut [Stretch], end: usize) {
    if let Some(stretch) = stretches.last_mut() {
        stretch.end = end;
    }
}
