// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The transmitting half of an AF_XDP port.
//!
//! A frame that lies in the memory of the ports is sent from there: its chunk is marked, so that
//! its receiver does not reuse it before the kernel has sent it. Any other frame is copied to a
//! chunk of the transmitter. A frame that reaches beyond its chunk is sent as several descriptors.

use super::memory::Memory;
use super::program::Entry;
use super::ring::{Consumer, Producer};
use super::socket::{Kick, Socket};
use crate::port::{Frames, PortError, Transmit};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Bytes of the shortest valid frame: an Ethernet header.
const LEAST_FRAME: usize = 14;

/// Counters of sent frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XdpSent {
    /// Frames sent from where they lay.
    pub in_place: u64,
    /// Frames copied to a chunk of the transmitter, because they lay elsewhere.
    pub copied: u64,
    /// Frames dropped: shorter than an Ethernet header, or longer than the interface accepts.
    pub refused: u64,
    /// Completions of chunks that were not in flight: ignored.
    pub invalid: u64,
}

/// The transmitting half of a port.
#[derive(Debug)]
pub struct XdpTransmitter {
    /// Name used in messages.
    name: String,
    ring: Producer<libc::xdp_desc>,
    completion: Consumer<u64>,
    /// Descriptors that are not yet completed.
    outstanding: u32,
    /// Maximum number of these: the size of the completion ring.
    most_outstanding: u32,
    /// Maximum number of bytes of a frame.
    most_bytes: usize,
    own: Own,
    sent: XdpSent,
    is_zero_copy: bool,
    socket: Arc<Socket>,
    // Some drivers send only while a program is attached to the interface.
    _entry: Option<Arc<Entry>>,
    // Last, so that the sockets are closed before the memory is unmapped.
    memory: Arc<Memory>,
}

/// The transmitter's own chunks.
#[derive(Debug)]
struct Own {
    chunks: Range<usize>,
    free: Vec<u32>,
    /// By chunk, counted from the first of these: whether it is in use.
    is_used: Vec<bool>,
}

/// Parts that a transmitter is made from.
pub(super) struct TransmitParts {
    pub name: String,
    pub ring: Producer<libc::xdp_desc>,
    pub completion: Consumer<u64>,
    pub most_outstanding: u32,
    pub most_bytes: usize,
    /// Its own chunks in the memory.
    pub chunks: Range<usize>,
    pub is_zero_copy: bool,
    pub socket: Arc<Socket>,
    pub entry: Option<Arc<Entry>>,
    pub memory: Arc<Memory>,
}

impl XdpTransmitter {
    pub(super) fn new(parts: TransmitParts) -> Self {
        let own = Own {
            free: (0..parts.chunks.len() as u32).rev().collect(),
            is_used: vec![false; parts.chunks.len()],
            chunks: parts.chunks,
        };
        Self {
            name: parts.name,
            ring: parts.ring,
            completion: parts.completion,
            outstanding: 0,
            most_outstanding: parts.most_outstanding,
            most_bytes: parts.most_bytes,
            own,
            sent: XdpSent::default(),
            is_zero_copy: parts.is_zero_copy,
            socket: parts.socket,
            _entry: parts.entry,
            memory: parts.memory,
        }
    }

    /// Returns the counters of sent frames.
    pub fn sent(&self) -> XdpSent {
        self.sent
    }

    /// Returns the number of frames or parts of frames that the kernel has not reported as sent.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Takes back the chunks that the kernel has sent.
    fn reap(&mut self) {
        let mut left = self.completion.available();
        while left > 0 {
            let chunk = self.memory.chunk_of(self.completion.peek());
            self.completion.pass();
            left -= 1;
            let is_known = self.own.take_back(chunk) || self.memory.unmark(chunk);
            if is_known {
                self.outstanding = self.outstanding.saturating_sub(1);
            } else {
                self.sent.invalid += 1;
            }
        }
        self.completion.give();
    }

    /// Makes the kernel send the frames in the ring, as far as it can now.
    fn push(&mut self) -> Result<(), PortError> {
        let mut waiting = self.ring.waiting();
        while waiting > 0 && self.ring.needs_wakeup() {
            let reported = self.socket.kick();
            let reported =
                reported.map_err(|source| super::error::lost_interface(&self.name, source))?;
            let left = self.ring.waiting();
            if reported == Kick::Down || left == waiting {
                break;
            }
            waiting = left;
        }
        Ok(())
    }

    /// Puts a frame into the ring; returns false if there is no room.
    #[inline]
    fn put(&mut self, place: Option<usize>, bytes: &[u8]) -> bool {
        let chunk_bytes = self.memory.chunk_bytes();
        let offset = place.map_or(0, |place| place & (chunk_bytes - 1));
        let parts = (offset + bytes.len()).div_ceil(chunk_bytes) as u32;
        let is_full = self.ring.room(parts) < parts
            || self.outstanding + parts > self.most_outstanding
            || place.is_none() && self.own.free.len() < parts as usize;
        if is_full {
            return false;
        }
        match place {
            Some(start) => self.put_in_place(start, bytes.len()),
            None => self.put_copy(bytes),
        }
        self.outstanding += parts;
        true
    }

    #[inline]
    fn put_in_place(&mut self, start: usize, length: usize) {
        let (mut at, end) = (start, start + length);
        while at < end {
            let chunk = self.memory.chunk_of(at as u64) as usize;
            let part_end = end.min((chunk + 1) * self.memory.chunk_bytes());
            self.memory.mark(chunk);
            self.ring.put(descriptor(at, part_end - at, part_end < end));
            at = part_end;
        }
        self.sent.in_place += 1;
    }

    fn put_copy(&mut self, bytes: &[u8]) {
        let chunk_bytes = self.memory.chunk_bytes();
        let mut left = bytes.len();
        for part in bytes.chunks(chunk_bytes) {
            let Some(chunk) = self.own.take() else { return };
            let start = chunk * chunk_bytes;
            left -= part.len();
            // SAFETY: the chunk is the transmitter's own, and free: the kernel does not have it.
            let room = unsafe { self.memory.bytes_mut(start..start + part.len()) };
            room.copy_from_slice(part);
            self.ring.put(descriptor(start, part.len(), left > 0));
        }
        self.sent.copied += 1;
    }
}

fn descriptor(start: usize, length: usize, continues: bool) -> libc::xdp_desc {
    let options = if continues { libc::XDP_PKT_CONTD } else { 0 };
    libc::xdp_desc { addr: start as u64, len: length as u32, options }
}

impl Transmit for XdpTransmitter {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        self.reap();
        let base = self.memory.offset_of(frames.memory());
        let mut accepted = 0;
        for (frame, bytes) in frames.iter() {
            if (LEAST_FRAME..=self.most_bytes).contains(&bytes.len()) {
                if !self.put(base.map(|base| base + frame.start), bytes) {
                    break;
                }
            } else {
                self.sent.refused += 1;
            }
            accepted += 1;
        }
        self.ring.show();
        self.push()?;
        Ok(accepted)
    }

    /// Returns whether the kernel has taken all frames; if the driver reads them from where they
    /// lie, whether they have been sent.
    fn flush(&mut self) -> Result<bool, PortError> {
        self.push()?;
        self.reap();
        Ok(self.ring.waiting() == 0 && (self.outstanding == 0 || !self.is_zero_copy))
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    /// Counts the frames that the port or the kernel refused.
    fn lost(&self) -> u64 {
        let by_kernel = self.socket.statistics().map_or(0, |it| it.tx_invalid_descs);
        self.sent.refused + by_kernel
    }
}

impl Own {
    /// Takes a free chunk and returns its position in the memory.
    fn take(&mut self) -> Option<usize> {
        let chunk = self.free.pop()? as usize;
        self.is_used[chunk] = true;
        Some(self.chunks.start + chunk)
    }

    /// Frees a chunk that the kernel has sent; returns false if it is none of these, or was free.
    #[inline]
    fn take_back(&mut self, chunk: u64) -> bool {
        let own = chunk.checked_sub(self.chunks.start as u64);
        let own = own.and_then(|own| usize::try_from(own).ok());
        match own.and_then(|own| Some((own, self.is_used.get_mut(own)?))) {
            Some((own, is_used)) if *is_used => {
                *is_used = false;
                self.free.push(own as u32);
                true
            }
            _ => false,
        }
    }
}
