// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Output of the graph on its way to a port: where each frame lies, and how frames that have to
//! wait are kept.

use super::{Lent, RECORD_ROOM_BYTES, SLOT_BYTES, Side};
use freeport_ir::{Direction, Item};
use freeport_native::{Buffer, Buffers, Placed};
use freeport_port::{BATCH, Frame, Frames, HEADROOM, Pages, PortError, Sent, Transmit};

/// The buffers of an output endpoint, and the frames that wait there.
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
    /// Runs of frames that lie in the same memory, in order.
    pub stretches: Vec<Stretch>,
    /// Frames that have been sent.
    pub gone: usize,
    /// Packets without bytes among these, which were not sent.
    pub dropped: u64,
}

/// Frames of an output that lie in the same memory.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub place: FramePlace,
    /// Number of the output's frames up to the end of this stretch.
    pub end: usize,
}

/// Memory that a frame lies in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FramePlace {
    /// The output's own memory.
    Own,
    /// The batch of the endpoint with this number.
    Batch(usize),
    /// None: the frame has no bytes, and no port takes it.
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

    /// Creates the output of an endpoint without a port.
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
                // SAFETY: the buffers are never exchanged, and an output has these slots only.
                side.slots = unsafe { buffers.lend(memory, SLOT_BYTES, HEADROOM) };
            }
        }
        side.waiting = Some(waiting);
    }

    /// Sends the waiting frames to `port`, as far as it has room, from wherever they lie.
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

    /// Copies the frames that wait in the memory of batches, so that they outlive the batches.
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

/// Returns the memory of the batch of an endpoint.
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

    /// Records the frames that a run has written to the first buffers, when nothing waits. `sides`
    /// holds the run's arguments at each endpoint.
    pub fn add(&mut self, produced: &[Buffer<'_>], sides: &[Side<'_>], timestamp_ns: u64) {
        if produced.is_empty() {
            // Frames may be waiting, and their stretches stay as they are.
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

/// Ends the last stretch, if there is one, at frame `end`.
fn end_last(stretches: &mut [Stretch], end: usize) {
    if let Some(stretch) = stretches.last_mut() {
        stretch.end = end;
    }
}
