// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints of a graph that lead to other workers: instead of a port, each has one end of a ring,
//! which the graph reads and writes in place. A full ring blocks only what leads to it; the rest of
//! the graph keeps running, because its channels may lead back from there.

use super::output::memory_of;
use super::{Lent, Side};
use crate::ring::{FrameReader, FrameWriter, MAX_PACKET, Note, SlotReader, SlotWriter};
use freeport_ir::{EndpointId, Item};
use freeport_native::{Buffer, Placed};
use freeport_port::MAX_FRAME;

/// This worker's end of a ring.
#[derive(Debug)]
pub(crate) enum LinkEnd {
    /// Receives flits or packets.
    FramesIn(FrameReader),
    /// Sends flits or packets.
    FramesOut(FrameWriter),
    /// Receives records.
    RecordsIn(SlotReader),
    /// Sends records.
    RecordsOut(SlotWriter),
}

/// Endpoints of a graph that are connected to rings.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Readers; a turn takes them out, because it borrows from them throughout.
    pub readers: Vec<(EndpointId, FrameReader)>,
    writers: Vec<Writer>,
    record_readers: Vec<(EndpointId, SlotReader)>,
    record_writers: Vec<(EndpointId, SlotWriter)>,
    /// Frames and records received or sent.
    pub moved: u64,
}

#[derive(Debug)]
struct Writer {
    endpoint: EndpointId,
    ring: FrameWriter,
    /// Bytes of the longest frame.
    longest: usize,
    produced: Vec<Produced>,
}

/// A frame that a run has written for a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Produced {
    note: Note,
    /// The endpoint whose batch holds the frame and its position there; none if it lies in its slot
    /// of the ring.
    from: Option<(usize, usize)>,
}

impl Links {
    pub fn attach(&mut self, endpoint: EndpointId, item: Item, end: LinkEnd) {
        match end {
            LinkEnd::FramesIn(ring) => self.readers.push((endpoint, ring)),
            LinkEnd::FramesOut(ring) => {
                // Flits are joined to frames for a port; packets may be longer inside the graph.
                let longest = if item == Item::Flit { MAX_FRAME } else { MAX_PACKET };
                self.writers.push(Writer { endpoint, ring, longest, produced: vec![] });
            }
            LinkEnd::RecordsIn(ring) => self.record_readers.push((endpoint, ring)),
            LinkEnd::RecordsOut(ring) => self.record_writers.push((endpoint, ring)),
        }
    }

    /// Gives a run the records of the rings, and room for records and frames.
    pub fn make_room<'r>(&'r mut self, sides: &mut [Side<'r>]) {
        for Writer { endpoint, ring, longest, produced } in &mut self.writers {
            let side = &mut sides[endpoint.index()];
            side.buffers.extend(ring.free().map(|place| Buffer::new(&mut place[..*longest])));
            side.produced = Some(produced);
        }
        for (endpoint, ring) in &mut self.record_readers {
            sides[endpoint.index()].records = ring.filled();
        }
        for (endpoint, ring) in &mut self.record_writers {
            sides[endpoint.index()].room = ring.free();
        }
    }

    /// Publishes the output of a run, and releases the records it has taken. `done` is their number
    /// at each endpoint.
    pub fn settle(&mut self, done: &[usize], lent: &[Lent<'_>]) {
        for Writer { ring, produced, .. } in &mut self.writers {
            if produced.is_empty() {
                continue;
            }
            let frames = produced.iter().map(|frame| {
                let bytes = frame.from.map(|(endpoint, start)| {
                    &memory_of(lent, endpoint)[start..start + frame.note.length]
                });
                (frame.note, bytes)
            });
            ring.fill(frames);
            self.moved += produced.len() as u64;
            produced.clear();
        }
        for (endpoint, ring) in &mut self.record_readers {
            ring.give_back(done[endpoint.index()]);
            self.moved += done[endpoint.index()] as u64;
        }
        for (endpoint, ring) in &mut self.record_writers {
            ring.publish(done[endpoint.index()]);
            self.moved += done[endpoint.index()] as u64;
        }
    }

    /// Releases the frames that a turn has taken: `taken` is the number for each reader.
    pub fn give_back(&mut self, taken: &[usize]) {
        for ((_, ring), count) in self.readers.iter_mut().zip(taken) {
            ring.give_back(*count);
            self.moved += *count as u64;
        }
    }

    /// Returns whether a turn could do something that the last one could not.
    pub fn has_news(&self) -> bool {
        self.readers.iter().any(|(_, ring)| ring.has_news())
            || self.writers.iter().any(|writer| writer.ring.has_news())
            || self.record_readers.iter().any(|(_, ring)| ring.has_news())
            || self.record_writers.iter().any(|(_, ring)| ring.has_news())
    }
}

impl Produced {
    /// Describes the output of a run in a buffer. `sides` holds the run's arguments at each
    /// endpoint.
    pub fn new(buffer: &Buffer<'_>, sides: &[Side<'_>], timestamp_ns: u64) -> Self {
        let (from, length) = match buffer.placed() {
            Placed::Own { length } => (None, length),
            Placed::Input { endpoint, frame, start, length } => {
                (Some((endpoint, sides[endpoint].place(frame, start))), length)
            }
        };
        // It lies between the head room and the longest packet, so it fits.
        let moved = buffer.moved() as i32;
        Self { note: Note { length, original_length: length, timestamp_ns, moved }, from }
    }
}
