// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that the host provides for a run at each endpoint: frames to read, buffers to write, or
//! records. The code reads and writes them in place; nothing is copied on input or output.
//!
//! An input frame is lent together with the memory around it, to be changed and forwarded. So an
//! output frame lies either in its own buffer or in the memory of an input frame; its buffer says
//! which ([`Placed`]).

use crate::abi;
use crate::manifest::ItemInfo;
use freeport_ir::interp::{HEAD_ROOM_BYTES, TAIL_LIMIT_BYTES};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

/// An input frame with exclusive memory around it. The run may write all of that memory; if a frame
/// is not consumed, its unread bytes are preserved. The code uses this structure directly as the
/// packet.
#[repr(C)]
#[derive(Debug)]
pub struct Frame<'a> {
    packet: abi::Packet,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> Frame<'a> {
    /// Creates a frame of these bytes, without room around it. An empty frame is a packet, but has
    /// no flits: where flits are read, it is skipped.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        let all = 0..bytes.len();
        Self::within(bytes, all)
    }

    /// Creates a frame in that range of `memory`.
    ///
    /// # Panics
    /// If the range is not within the memory.
    #[inline]
    pub fn within(memory: &'a mut [u8], range: Range<usize>) -> Self {
        let tail = memory.len() - range.end;
        let bytes = &memory[range.clone()];
        let length = bytes.len() as u64;
        // The pointer is derived from the whole memory, because all of it may be written.
        let data = memory.as_mut_ptr().wrapping_add(range.start);
        let [head_space, tail_space] =
            [range.start, tail].map(|room| room.min(u32::MAX as usize) as u32);
        let head_room = HEAD_ROOM_BYTES as u32;
        let tail_room = (TAIL_LIMIT_BYTES as u64).saturating_sub(length) as u32;
        let owner = abi::OWNER_HOST;
        let packet =
            abi::Packet { data, length, head_room, tail_room, head_space, tail_space, owner };
        Self { packet, memory: PhantomData }
    }

    /// Declares that the packet's start has moved by that many bytes since it entered the enclosing
    /// graph. Its remaining head room and tail room change accordingly.
    #[inline]
    pub fn set_moved(&mut self, by: i32) {
        (self.packet.head_room, self.packet.tail_room) = rooms(self.packet.length, by.into());
    }

    /// Returns by how much its start has moved.
    fn moved(&self) -> i64 {
        i64::from(self.packet.head_room) - HEAD_ROOM_BYTES as i64
    }

    /// Returns the frame's bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the range is within the slice of this lifetime that the frame was made from,
        // which it borrows exclusively.
        unsafe { std::slice::from_raw_parts(self.packet.data, self.packet.length as usize) }
    }

    /// Returns bytes of its memory, beginning `start` bytes after the frame's first one (or before
    /// it); `None` if they are not all within that memory.
    pub fn part(&self, start: i64, length: usize) -> Option<&[u8]> {
        let from = start.checked_add(i64::from(self.packet.head_space))?;
        let end = u64::try_from(from).ok()?.checked_add(length as u64)?;
        let abi::Packet { length: own, head_space, tail_space, .. } = self.packet;
        let room = u64::from(head_space) + own + u64::from(tail_space);
        if end > room {
            return None;
        }
        let first = self.packet.data.wrapping_offset(start as isize);
        // SAFETY: the range is within the slice that the frame was made from, as just checked.
        Some(unsafe { std::slice::from_raw_parts(first, length) })
    }
}

/// Returns the head room and tail room of a packet of that length whose start has moved by `moved`
/// since it entered.
fn rooms(length: u64, moved: i64) -> (u32, u32) {
    let end = moved.saturating_add_unsigned(length);
    let tail = (TAIL_LIMIT_BYTES as i64).saturating_sub(end).clamp(0, u32::MAX.into());
    ((HEAD_ROOM_BYTES as i64 + moved) as u32, tail as u32)
}

// SAFETY: a frame is an exclusive slice of bytes, which may be sent to another thread.
unsafe impl Send for Frame<'_> {}

/// A buffer for an output frame. A longer frame is dropped and counted.
#[repr(C)]
#[derive(Debug)]
pub struct Buffer<'a> {
    data: *mut u8,
    capacity: u64,
    length: u64,
    origin: u64,
    start: i64,
    room: PhantomData<&'a mut [u8]>,
}

/// Origin that marks a frame in its own buffer.
const OWN: u64 = u64::MAX;

/// Location of an output frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placed {
    /// At the start of its buffer.
    Own {
        /// Length in bytes.
        length: usize,
    },
    /// In the memory of an input frame of the same run.
    Input {
        /// Endpoint where the input frame arrived.
        endpoint: usize,
        /// Index of the frame there.
        frame: usize,
        /// Distance in bytes from the first byte of the input frame, plus the distance that the
        /// input frame had [moved](Frame::set_moved) already; may be negative.
        start: i64,
        /// Length in bytes.
        length: usize,
    },
}

impl<'a> Buffer<'a> {
    /// Creates a buffer with this room, which need not be cleared.
    #[inline]
    pub fn new(room: &'a mut [u8]) -> Self {
        let capacity = room.len() as u64;
        let data = room.as_mut_ptr();
        Self { data, capacity, length: 0, origin: OWN, start: 0, room: PhantomData }
    }

    /// Returns the location of the frame that the last run produced with this buffer.
    #[inline]
    pub fn placed(&self) -> Placed {
        let length = self.length as usize;
        match self.origin {
            OWN => Placed::Own { length },
            origin => Placed::Input {
                endpoint: (origin >> 32) as usize,
                frame: (origin & 0xffff_ffff) as usize,
                start: self.start,
                length,
            },
        }
    }

    /// Returns by how many bytes the start of the packet that the last run produced with this
    /// buffer has moved since it entered the graph.
    #[inline]
    pub fn moved(&self) -> i64 {
        self.start
    }

    /// Returns the first bytes of its own memory; `None` if it has fewer.
    pub fn own(&self, length: usize) -> Option<&[u8]> {
        if length as u64 > self.capacity {
            return None;
        }
        // SAFETY: the range is within the slice of this lifetime that the buffer was made from, as
        // just checked.
        Some(unsafe { std::slice::from_raw_parts(self.data, length) })
    }
}

/// Buffers over memory that is lent to run after run. They are created once: a run preserves their
/// addresses, and sets the other fields of those that it fills.
#[derive(Debug, Default)]
pub struct Buffers {
    made: Vec<Buffer<'static>>,
    memory: Range<usize>,
}

impl Buffers {
    /// Returns one buffer for each slot of `slot_bytes` bytes in `memory`; it begins `head_bytes`
    /// bytes after the start of its slot and extends to the slot's end.
    ///
    /// # Safety
    /// The caller must not exchange any of them for a buffer of other memory. For the same memory,
    /// the slots must be the same in every call.
    ///
    /// # Panics
    /// If there is no such slot, or a slot is smaller than its head.
    pub unsafe fn lend<'r>(
        &'r mut self,
        memory: &'r mut [u8],
        slot_bytes: usize,
        head_bytes: usize,
    ) -> &'r mut [Buffer<'r>] {
        let place = memory.as_ptr_range();
        let place = place.start as usize..place.end as usize;
        if self.memory != place {
            let slots = memory.chunks_exact_mut(slot_bytes);
            self.made.clear();
            self.made.extend(slots.map(|slot| {
                let Buffer { data, capacity, length, origin, start, .. } =
                    Buffer::new(&mut slot[head_bytes..]);
                Buffer { data, capacity, length, origin, start, room: PhantomData }
            }));
            self.memory = place;
        }
        let (made, count) = (self.made.as_mut_ptr().cast::<Buffer<'r>>(), self.made.len());
        // SAFETY: the types differ only in their lifetimes, and the buffers point into `memory`,
        // which is borrowed for the same lifetime.
        unsafe { std::slice::from_raw_parts_mut(made, count) }
    }
}

// SAFETY: a buffer is an exclusive slice of bytes, which may be sent to another thread.
unsafe impl Send for Buffer<'_> {}

/// Input or output of an endpoint for a run, and how much of it was used. Frames and buffers (of
/// lifetime `'b`) are lent for the run only (`'a`), so that the same ones can be used again.
#[derive(Debug)]
pub enum EndpointIo<'a, 'b> {
    /// Packets for an endpoint of flits or packets into the graph. A frame of which only some flits
    /// were taken is not consumed: the next run with frames has to begin with it.
    FramesIn {
        /// Frames in order.
        frames: &'a mut [Frame<'b>],
        /// Number of frames that the last run has consumed.
        consumed: usize,
    },
    /// Buffers for packets from an endpoint of flits or packets out of the graph.
    FramesOut {
        /// Buffers in order.
        buffers: &'a mut [Buffer<'b>],
        /// Number of buffers that the last run has filled.
        produced: usize,
    },
    /// Records for an endpoint into the graph.
    RecordsIn {
        /// Consecutive records, each padded to whole bytes, lowest byte first.
        records: &'a [u8],
        /// Number of records that the last run has consumed.
        consumed: usize,
    },
    /// Memory for records from an endpoint out of the graph.
    RecordsOut {
        /// Memory for records in the format of `RecordsIn`.
        room: &'a mut [u8],
        /// Number of records that the last run has written.
        produced: usize,
    },
}

impl<'a, 'b> EndpointIo<'a, 'b> {
    /// Creates an input of packets.
    pub fn frames_in(frames: &'a mut [Frame<'b>]) -> Self {
        Self::FramesIn { frames, consumed: 0 }
    }

    /// Creates an output of packets.
    pub fn frames_out(buffers: &'a mut [Buffer<'b>]) -> Self {
        Self::FramesOut { buffers, produced: 0 }
    }

    /// Creates an input of records.
    pub fn records_in(records: &'a [u8]) -> Self {
        Self::RecordsIn { records, consumed: 0 }
    }

    /// Creates an output of records.
    pub fn records_out(room: &'a mut [u8]) -> Self {
        Self::RecordsOut { room, produced: 0 }
    }

    /// Returns the number of frames or records that the last run has consumed or produced.
    #[inline]
    pub fn done(&self) -> usize {
        match self {
            Self::FramesIn { consumed: done, .. }
            | Self::FramesOut { produced: done, .. }
            | Self::RecordsIn { consumed: done, .. }
            | Self::RecordsOut { produced: done, .. } => *done,
        }
    }

    /// Returns the frames that the last run produced at endpoint `at`; `io` is all that it was
    /// given.
    ///
    /// # Panics
    /// If there is no endpoint `at`.
    pub fn produced(io: &[Self], at: usize) -> impl Iterator<Item = &[u8]> {
        let buffers: &[Buffer<'_>] = match &io[at] {
            Self::FramesOut { buffers, produced } => &buffers[..*produced],
            _ => &[],
        };
        buffers.iter().map(|buffer| {
            let bytes = match buffer.placed() {
                Placed::Own { length } => buffer.own(length),
                Placed::Input { endpoint, frame, start, length } => match io.get(endpoint) {
                    Some(Self::FramesIn { frames, .. }) => frames
                        .get(frame)
                        .and_then(|it| it.part(start.checked_sub(it.moved())?, length)),
                    _ => None,
                },
            };
            bytes.expect("the code writes frames into the memory it was given")
        })
    }

    /// Describes it for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::FramesIn { .. } => "frames in",
            Self::FramesOut { .. } => "frames out",
            Self::RecordsIn { .. } => "records in",
            Self::RecordsOut { .. } => "records out",
        }
    }

    /// Returns the structure for the code at endpoint `at`.
    pub(crate) fn raw(&mut self, at: usize, item: ItemInfo) -> abi::EndpointIo {
        let record_bytes = item.bits().map_or(1, |bits| bits.div_ceil(8) as usize);
        let (data, count): (*mut c_void, usize) = match self {
            Self::FramesIn { frames, .. } => {
                let owners = abi::OWNER_HOST + ((at as u64) << 32)..;
                if item == ItemInfo::Packet {
                    frames.iter_mut().zip(owners).for_each(|(it, owner)| it.packet.owner = owner);
                }
                (frames.as_mut_ptr().cast(), frames.len())
            }
            Self::FramesOut { buffers, .. } => (buffers.as_mut_ptr().cast(), buffers.len()),
            Self::RecordsIn { records, .. } => {
                (records.as_ptr().cast_mut().cast(), records.len() / record_bytes)
            }
            Self::RecordsOut { room, .. } => (room.as_mut_ptr().cast(), room.len() / record_bytes),
        };
        abi::EndpointIo { data, count: count as u64, done: 0 }
    }

    pub(crate) fn set_done(&mut self, count: u64) {
        match self {
            Self::FramesIn { consumed: done, .. }
            | Self::FramesOut { produced: done, .. }
            | Self::RecordsIn { consumed: done, .. }
            | Self::RecordsOut { produced: done, .. } => *done = count as usize,
        }
    }
}
