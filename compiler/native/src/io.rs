// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the host gives a run at each endpoint: frames to read, buffers to write, or records. The
//! code reads and writes them in place; nothing is copied on the way in or out.

use std::ffi::c_void;
use std::marker::PhantomData;

/// A frame that comes in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    data: *const u8,
    length: u64,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Frame<'a> {
    /// A frame of these bytes. One without bytes is passed over.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { data: bytes.as_ptr(), length: bytes.len() as u64, bytes: PhantomData }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        // SAFETY: made from a slice of this lifetime, and never changed.
        unsafe { std::slice::from_raw_parts(self.data, self.length as usize) }
    }
}

// SAFETY: a frame is a shared slice, which can be sent and shared.
unsafe impl Send for Frame<'_> {}
// SAFETY: as above.
unsafe impl Sync for Frame<'_> {}

/// Room for a frame that goes out. A frame that is longer is dropped and counted.
#[repr(C)]
#[derive(Debug)]
pub struct Buffer<'a> {
    data: *mut u8,
    capacity: u64,
    length: u64,
    room: PhantomData<&'a mut [u8]>,
}

impl<'a> Buffer<'a> {
    /// A buffer of this room, which need not be cleared.
    pub fn new(room: &'a mut [u8]) -> Self {
        let capacity = room.len() as u64;
        Self { data: room.as_mut_ptr(), capacity, length: 0, room: PhantomData }
    }

    /// The frame that was written.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: made from a slice of this lifetime; the length is cut to the room of it.
        unsafe { std::slice::from_raw_parts(self.data, self.length.min(self.capacity) as usize) }
    }
}

// SAFETY: a buffer is an exclusive slice, which can be sent.
unsafe impl Send for Buffer<'_> {}

/// What an endpoint gets for a run, and how much of it was used. Frames and buffers (of lifetime
/// `'b`) are lent for the run only (`'a`), so that the same ones can be given again.
#[derive(Debug)]
pub enum EndpointIo<'a, 'b> {
    /// Packets for an endpoint of flits into the graph. A frame of which only some flits were taken
    /// is not consumed: the next run that has frames has to begin with it.
    FramesIn {
        /// In order.
        frames: &'a [Frame<'b>],
        /// How many the last run has consumed.
        consumed: usize,
    },
    /// Room for packets from an endpoint of flits out of the graph.
    FramesOut {
        /// In order.
        buffers: &'a mut [Buffer<'b>],
        /// How many the last run has filled.
        produced: usize,
    },
    /// Records for an endpoint into the graph.
    RecordsIn {
        /// One after the other, each in as many whole bytes as hold it, lowest byte first.
        records: &'a [u8],
        /// How many records the last run has consumed.
        consumed: usize,
    },
    /// Room for records from an endpoint out of the graph.
    RecordsOut {
        /// For records as in `RecordsIn`.
        room: &'a mut [u8],
        /// How many records the last run has written.
        produced: usize,
    },
}

impl<'a, 'b> EndpointIo<'a, 'b> {
    /// Packets into the graph.
    pub fn frames_in(frames: &'a [Frame<'b>]) -> Self {
        Self::FramesIn { frames, consumed: 0 }
    }

    /// Room for packets out of the graph.
    pub fn frames_out(buffers: &'a mut [Buffer<'b>]) -> Self {
        Self::FramesOut { buffers, produced: 0 }
    }

    /// Records into the graph.
    pub fn records_in(records: &'a [u8]) -> Self {
        Self::RecordsIn { records, consumed: 0 }
    }

    /// Room for records out of the graph.
    pub fn records_out(room: &'a mut [u8]) -> Self {
        Self::RecordsOut { room, produced: 0 }
    }

    /// Frames or records that the last run has consumed or produced.
    pub fn done(&self) -> usize {
        match self {
            Self::FramesIn { consumed: done, .. }
            | Self::FramesOut { produced: done, .. }
            | Self::RecordsIn { consumed: done, .. }
            | Self::RecordsOut { produced: done, .. } => *done,
        }
    }

    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::FramesIn { .. } => "frames in",
            Self::FramesOut { .. } => "frames out",
            Self::RecordsIn { .. } => "records in",
            Self::RecordsOut { .. } => "records out",
        }
    }

    /// As the code sees it, for records of that many bytes.
    pub(crate) fn raw(&mut self, record_bytes: usize) -> crate::abi::EndpointIo {
        let (data, count): (*mut c_void, usize) = match self {
            Self::FramesIn { frames, .. } => (frames.as_ptr().cast_mut().cast(), frames.len()),
            Self::FramesOut { buffers, .. } => (buffers.as_mut_ptr().cast(), buffers.len()),
            Self::RecordsIn { records, .. } => {
                (records.as_ptr().cast_mut().cast(), records.len() / record_bytes)
            }
            Self::RecordsOut { room, .. } => (room.as_mut_ptr().cast(), room.len() / record_bytes),
        };
        crate::abi::EndpointIo { data, count: count as u64, done: 0 }
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
