// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A ring of frames. The reader lends frames from the ring's memory; the writer's frames are made
//! there or copied there once. A slot holds the largest packet that can be inside a graph, with
//! head room, preceded by a note about the frame:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | time of receipt, in nanoseconds since 1970 |
//! | 8..12 | length in bytes |
//! | 12..16 | length on the wire, in bytes |
//! | 16..20 | bytes by which its start has moved since it entered the graph, signed |

use super::slots::{SlotReader, SlotWriter, slot_ring};
use freeport_port::{Batch, Frame, Frames, HEADROOM, MAX_FRAME, PortError, Transmit};

/// Maximum number of bytes of a packet inside a graph: at most [`MAX_FRAME`] on entry, plus growth
/// into its head room.
pub const MAX_PACKET: usize = HEADROOM + MAX_FRAME;
/// Bytes of the note before the head room: a cache line, of which 20 bytes are used.
const NOTE_BYTES: usize = 64;
/// Offset of a frame in its slot.
const START: usize = NOTE_BYTES + HEADROOM;
/// Bytes of a slot: an odd number of cache lines, so that the slots' first lines lie in different
/// cache sets.
const SLOT_BYTES: usize = (START + MAX_PACKET).next_multiple_of(64);
const _: () = assert!(SLOT_BYTES / 64 % 2 == 1);

/// The side that writes frames.
#[derive(Debug)]
pub struct FrameWriter {
    slots: SlotWriter,
}

/// The side that reads frames.
#[derive(Debug)]
pub struct FrameReader {
    slots: SlotReader,
    /// Frames that are lent.
    frames: Vec<Frame>,
    moved: Vec<i32>,
}

/// Properties of a frame besides its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Note {
    /// Length in bytes.
    pub length: usize,
    /// Length on the wire, in bytes.
    pub original_length: usize,
    /// Time of receipt, in nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Number of bytes by which its start has moved since it entered the graph.
    pub moved: i32,
}

/// Creates a ring of at least this number of frames.
pub fn frame_ring(frames: usize) -> (FrameWriter, FrameReader) {
    let (writer, reader) = slot_ring(frames, SLOT_BYTES);
    (FrameWriter { slots: writer }, FrameReader { slots: reader, frames: vec![], moved: vec![] })
}

impl FrameWriter {
    /// Returns places for frames of up to [`MAX_PACKET`] bytes; more may follow once these are
    /// published.
    pub fn free(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.slots.free().chunks_exact_mut(SLOT_BYTES).map(|slot| &mut slot[START..])
    }

    /// Copies frames into the free places, as far as there are any, and returns their number. Where
    /// `bytes` is none, the contents of the place stay.
    pub fn fill<'f>(&mut self, frames: impl Iterator<Item = (Note, Option<&'f [u8]>)>) -> usize {
        let mut count = 0;
        for (slot, (note, bytes)) in self.slots.free().chunks_exact_mut(SLOT_BYTES).zip(frames) {
            note.write(slot);
            if let Some(bytes) = bytes {
                slot[START..START + bytes.len()].copy_from_slice(bytes);
            }
            count += 1;
        }
        self.slots.publish(count);
        count
    }

    /// Returns whether it had no room at the last check, and has some now.
    pub fn has_news(&self) -> bool {
        self.slots.has_news()
    }
}

impl Transmit for FrameWriter {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        let mut sent = 0;
        loop {
            let note = |(frame, bytes): (&Frame, _)| {
                let Frame { length, original_length, timestamp_ns, .. } = *frame;
                (Note { length, original_length, timestamp_ns, moved: 0 }, Some(bytes))
            };
            match self.fill(frames.behind(sent).iter().map(note)) {
                0 => return Ok(sent),
                count => sent += count,
            }
        }
    }

    fn flush(&mut self) -> Result<bool, PortError> {
        Ok(true)
    }
}

impl FrameReader {
    /// Lends up to `most` frames, with the number of bytes by which each start has moved. They stay
    /// in the ring until they are given back.
    pub fn lend(&mut self, most: usize) -> (Batch<'_>, &[i32]) {
        let Self { slots, frames, moved } = self;
        frames.clear();
        moved.clear();
        let memory = slots.filled();
        let starts = (0..).step_by(SLOT_BYTES);
        for (slot, start) in memory.chunks_exact(SLOT_BYTES).zip(starts).take(most) {
            let Note { length, original_length, timestamp_ns, moved: by } = Note::read(slot);
            frames.push(Frame { start: start + START, length, original_length, timestamp_ns });
            moved.push(by);
        }
        (Batch::new(memory, frames), moved)
    }

    /// Gives back the first `count` frames that are lent.
    pub fn give_back(&mut self, count: usize) {
        self.slots.give_back(count);
    }

    /// Returns whether there are more frames than when it last lent some.
    pub fn has_news(&self) -> bool {
        self.slots.has_news()
    }
}

impl Note {
    fn write(&self, slot: &mut [u8]) {
        slot[..8].copy_from_slice(&self.timestamp_ns.to_le_bytes());
        slot[8..12].copy_from_slice(&(self.length as u32).to_le_bytes());
        slot[12..16].copy_from_slice(&(self.original_length as u32).to_le_bytes());
        slot[16..20].copy_from_slice(&self.moved.to_le_bytes());
    }

    fn read(slot: &[u8]) -> Self {
        let word = |at: usize| [slot[at], slot[at + 1], slot[at + 2], slot[at + 3]];
        let number = |at| u32::from_le_bytes(word(at));
        Self {
            timestamp_ns: u64::from(number(0)) | u64::from(number(4)) << 32,
            length: number(8) as usize,
            original_length: number(12) as usize,
            moved: i32::from_le_bytes(word(16)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_port::{Captured, conformance};
    use std::cell::RefCell;

    /// A writer with the reader of the same ring.
    struct Port {
        writer: FrameWriter,
        reader: RefCell<FrameReader>,
    }

    impl Transmit for Port {
        fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
            self.writer.transmit(frames)
        }

        fn flush(&mut self) -> Result<bool, PortError> {
            self.writer.flush()
        }
    }

    #[test]
    fn frames_keep_bytes_notes_and_order_around_the_ring() {
        let (mut writer, mut reader) = frame_ring(4);
        let lengths = [0, 1, 64, MAX_FRAME, MAX_PACKET, 33];
        let (mut written, mut read) = (0u64, 0u64);
        let note = |at: u64| Note {
            length: lengths[at as usize % lengths.len()],
            original_length: 70_000 + at as usize,
            timestamp_ns: u64::MAX - at,
            moved: 7 - at as i32,
        };
        let bytes = |at: u64| vec![at as u8; note(at).length];
        for round in 0..20 {
            let given: Vec<_> = (written..written + 3).map(|at| (note(at), bytes(at))).collect();
            let given = given.iter().map(|(note, bytes)| (*note, Some(&bytes[..])));
            written += writer.fill(given) as u64;
            let (mut batch, moved) = reader.lend(1 + round % 3);
            let moved = moved.to_vec();
            for (at, moved) in moved.into_iter().enumerate() {
                let expected = note(read + at as u64);
                let Frame { length, original_length, timestamp_ns, .. } = batch.frames()[at];
                let got = Note { length, original_length, timestamp_ns, moved };
                assert_eq!((got, batch.bytes(at)), (expected, &bytes(read + at as u64)[..]));
                batch.headroom_mut(at).fill(0xee);
            }
            let count = batch.len();
            read += count as u64;
            reader.give_back(count);
        }
        let (rest, _) = reader.lend(4);
        assert!(read > 20 && written - read <= 4 && !rest.is_empty());
    }

    #[test]
    fn as_a_port_it_conforms() {
        conformance::check_transmitter(
            || {
                let (writer, reader) = frame_ring(64);
                Port { writer, reader: RefCell::new(reader) }
            },
            |port| {
                let mut reader = port.reader.borrow_mut();
                let (batch, _) = reader.lend(usize::MAX);
                let captured = |(frame, bytes): (&Frame, &[u8])| Captured {
                    bytes: bytes.to_vec(),
                    original_length: frame.original_length,
                    timestamp_ns: frame.timestamp_ns,
                };
                batch.as_frames().iter().map(captured).collect()
            },
        );
    }

    #[test]
    fn what_is_not_given_back_is_lent_again() {
        let (mut writer, mut reader) = frame_ring(2);
        let one = Note { length: 1, ..Note::default() };
        assert_eq!(writer.fill([(one, Some(&[1][..])); 3].into_iter()), 2);
        assert_eq!(writer.free().count(), 0);
        for _ in 0..2 {
            assert_eq!(reader.lend(9).0.len(), 2);
        }
        reader.lend(9).0.bytes_mut(1)[0] = 7;
        reader.give_back(1);
        assert_eq!(reader.lend(9).0.bytes(0), [7]);
    }
}
