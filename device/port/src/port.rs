// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports: the interfaces by which frames are received and sent.
//!
//! A port works on batches, so that the cost of a call is spread over up to [`BATCH`] frames. A
//! dynamic call, where there is one, is made once per batch and never once per frame.
//!
//! **Ownership.** A port owns its buffers. [`Receive::receive`] lends a batch of frames until the
//! next call; the borrower may change their bytes in place. [`Transmit::transmit`] reads the frames
//! it is given, or copies what it must keep: when it returns, the caller's memory is free again.
//! There is one exception. Ports on interfaces that were opened together share their memory, and a
//! frame received by one of them and passed to another may be sent later, from where it lies. The
//! receiver knows this, and does not reuse the buffer before the frame has been sent. The borrower
//! must not change the bytes of a frame after passing it to a transmitter: this would harm nothing
//! else, but the changed bytes might be sent. The same frame may be passed several times.
//!
//! **Head room.** At least [`HEADROOM`] writable bytes lie before every received frame and belong
//! to it alone, so that a header can be prepended without a copy. The bytes between a frame and the
//! head room of the next one in the batch also belong to the frame; where the memory is divided
//! into chunks, these are the bytes up to the end of its chunk. [`Batch::split`] gives each frame
//! its memory.
//!
//! **Jumbo frames.** A frame has 1 to [`MAX_FRAME`] bytes, without the frame check sequence. It is
//! contiguous, whatever its size. A longer one is refused with an error, never truncated.
//!
//! **Full ports.** A transmitter without room accepts fewer frames than it was given, from the
//! front. The rest still belongs to the caller: a full port applies back-pressure and loses
//! nothing.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

/// Bytes before every received frame that belong to the frame.
pub const HEADROOM: usize = 256;
/// Maximum number of bytes of a frame, without the frame check sequence.
pub const MAX_FRAME: usize = 9_216;
/// Maximum number of frames that a worker requests in a batch.
pub const BATCH: usize = 256;

/// Position of a frame in the memory of its batch, and its properties.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    /// Position of its first byte in the batch's memory.
    pub start: usize,
    /// Number of bytes.
    pub length: usize,
    /// Length on the wire, in bytes; more than `length` if a capture truncated the frame.
    pub original_length: usize,
    /// Time of receipt, in nanoseconds since 1970; 0 if unknown.
    pub timestamp_ns: u64,
}

/// A batch lent by a receiver.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(crate) memory: &'a mut [u8],
    pub(crate) frames: &'a [Frame],
    /// Bytes of a chunk, if the memory is divided into chunks that belong to one frame each.
    pub(crate) chunk_bytes: Option<NonZeroUsize>,
}

/// A batch handed to a transmitter.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    pub(crate) memory: &'a [u8],
    pub(crate) frames: &'a [Frame],
}

/// The receiving side of a port.
pub trait Receive {
    /// Lends up to `most` frames, in order. An empty batch does not mean the end: see `is_ended`.
    ///
    /// # Errors
    /// The source failed. Frames before the failure have already been lent.
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError>;

    /// Returns whether no further frame will ever arrive.
    fn is_ended(&self) -> bool;

    /// Returns a descriptor that `poll` reports as readable when there may be frames; none if the
    /// port never has to be waited for.
    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the number of frames that were lost before this port could lend them.
    fn lost(&self) -> u64 {
        0
    }

    /// Returns remarks about the source for the end of a run, one per line, such as that a capture
    /// has truncated frames.
    fn remarks(&self) -> Vec<String> {
        vec![]
    }
}

/// The sending side of a port.
pub trait Transmit {
    /// Sends frames from the front and returns how many were accepted.
    ///
    /// # Errors
    /// The target failed, or a frame is empty or too long.
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError>;

    /// Flushes the frames that the port still holds and returns whether it is empty.
    ///
    /// # Errors
    /// The target failed.
    fn flush(&mut self) -> Result<bool, PortError>;

    /// Returns a descriptor that `poll` reports as writable when a full port may have room again;
    /// none if the port never has to be waited for.
    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the number of frames that this port accepted but could not send, for example because
    /// the interface is down.
    fn lost(&self) -> u64 {
        0
    }
}

/// Errors of a port.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A frame that is empty or too long for any port.
    #[error("a frame of {0} bytes: a port carries 1 to {MAX_FRAME}")]
    FrameLength(usize),
    /// A frame that does not fit the space between two frames of a generator.
    #[error("a frame of {length} bytes does not fit {stride} bytes with {HEADROOM} of head room")]
    Stride {
        /// Bytes of the frame.
        length: usize,
        /// Bytes from one frame to the next.
        stride: usize,
    },
    /// A trace without frames, for a generator.
    #[error("the trace has no frames")]
    EmptyTrace,
    /// The file could not be opened, read or written.
    #[error("{}: {source}", file.display())]
    File {
        /// Path of the file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a capture file, or of a kind that holds no Ethernet frames.
    #[error("{}: {reason}", file.display())]
    Format {
        /// Path of the file.
        file: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A record of a capture file that cannot be read, so that the records after it cannot be
    /// found.
    #[error("{}: record {record}: {reason}", file.display())]
    Record {
        /// Path of the file.
        file: PathBuf,
        /// Number of the record, counted from 1.
        record: u64,
        /// Reason.
        reason: String,
    },
    /// An interface that cannot be opened or used.
    #[error("{interface}: {action}: {source}; {advice}")]
    Interface {
        /// The interface.
        interface: String,
        /// The action that failed.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
        /// Advice for the user.
        advice: String,
    },
}

impl<'a> Batch<'a> {
    /// Creates a batch of `frames` in `memory`.
    ///
    /// # Panics
    /// If a frame is not within the memory, or has no head room: a mistake in a port.
    pub fn new(memory: &'a mut [u8], frames: &'a [Frame]) -> Self {
        for frame in frames {
            let is_within = frame.start >= HEADROOM && frame.start + frame.length <= memory.len();
            assert!(is_within, "a port lends frames inside its memory, with head room");
        }
        Self { memory, frames, chunk_bytes: None }
    }

    /// Creates a batch of `frames` in memory that is divided into chunks, some of which do not
    /// belong to the borrower. A frame owns its head room and the memory after it, up to the end of
    /// its last chunk.
    ///
    /// # Safety
    /// No two frames may share a chunk, from the start of their head room to their ends.
    ///
    /// # Panics
    /// In the cases of [`new`](Self::new), or if `chunk_bytes` is 0.
    pub unsafe fn in_chunks(memory: &'a mut [u8], frames: &'a [Frame], chunk_bytes: usize) -> Self {
        let chunk_bytes = NonZeroUsize::new(chunk_bytes).expect("a chunk has bytes");
        Self { chunk_bytes: Some(chunk_bytes), ..Self::new(memory, frames) }
    }

    /// Creates a batch without frames.
    pub fn empty() -> Self {
        Self { memory: &mut [], frames: &[], chunk_bytes: None }
    }

    /// Returns the positions of the frames.
    pub fn frames(&self) -> &'a [Frame] {
        self.frames
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the bytes of frame `at`.
    pub fn bytes(&self, at: usize) -> &[u8] {
        let frame = &self.frames[at];
        &self.memory[frame.start..frame.start + frame.length]
    }

    /// Returns the bytes of frame `at` for writing.
    pub fn bytes_mut(&mut self, at: usize) -> &mut [u8] {
        let frame = &self.frames[at];
        &mut self.memory[frame.start..frame.start + frame.length]
    }

    /// Returns the head room of frame `at`: the [`HEADROOM`] bytes before it.
    pub fn headroom_mut(&mut self, at: usize) -> &mut [u8] {
        let start = self.frames[at].start;
        &mut self.memory[start - HEADROOM..start]
    }

    /// Splits the batch: calls `make` for each frame from number `first` on, with the memory that
    /// belongs to that frame alone and the frame's range in it, and appends the results to `made`,
    /// in the order of the frames.
    ///
    /// # Panics
    /// If frames share memory: a mistake in a port.
    pub fn split<'s, T>(
        &'s mut self,
        first: usize,
        made: &mut Vec<T>,
        make: impl Fn(&'s mut [u8], Range<usize>) -> T,
    ) {
        let frames = &self.frames[first.min(self.frames.len())..];
        if let Some(chunk_bytes) = self.chunk_bytes {
            let memory = &mut *self.memory;
            return made.extend(in_their_chunks(memory, frames, chunk_bytes, make));
        }
        let Some((last, others)) = frames.split_last() else { return };
        let mut left = Left { memory: self.memory, before: 0 };
        made.reserve(frames.len());
        if frames.is_sorted_by_key(|frame| frame.start) {
            made.extend(others.iter().zip(&frames[1..]).map(|(frame, next)| {
                let (memory, range) = left.piece(frame, next.start - HEADROOM);
                make(memory, range)
            }));
            let (memory, range) = left.piece(last, last.start + last.length);
            made.push(make(memory, range));
            return;
        }
        let mut sorted: Vec<(usize, &Frame)> = frames.iter().enumerate().collect();
        sorted.sort_by_key(|(_, frame)| frame.start);
        let mut parts = vec![];
        for (place, (at, frame)) in sorted.iter().enumerate() {
            let next = sorted.get(place + 1).map(|(_, next)| next.start - HEADROOM);
            let (memory, range) = left.piece(frame, next.unwrap_or(frame.start + frame.length));
            parts.push((*at, make(memory, range)));
        }
        parts.sort_by_key(|(at, _)| *at);
        made.extend(parts.into_iter().map(|(_, part)| part));
    }

    /// Returns the memory of the batch.
    pub fn memory(&self) -> &[u8] {
        self.memory
    }

    /// Returns the memory of the batch for writing, with the frames at their positions.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.memory
    }

    /// Returns the same frames, to be sent.
    pub fn as_frames(&self) -> Frames<'_> {
        Frames { memory: self.memory, frames: self.frames }
    }
}

/// Calls `make` for each frame with its chunks. The creator of the batch guarantees that no two
/// frames share a chunk.
fn in_their_chunks<'s, T>(
    memory: &'s mut [u8],
    frames: &'s [Frame],
    chunk_bytes: NonZeroUsize,
    make: impl Fn(&'s mut [u8], Range<usize>) -> T,
) -> impl Iterator<Item = T> {
    let (base, length) = (memory.as_mut_ptr(), memory.len());
    frames.iter().map(move |frame| {
        let start = frame.start - HEADROOM;
        let frame_end = frame.start + frame.length;
        let end = frame_end.next_multiple_of(chunk_bytes.get()).min(length);
        // SAFETY: within the memory, as the batch has checked for each frame.
        let place = unsafe { base.add(start) };
        // SAFETY: as above; no other frame has these chunks, as the creator of the batch
        // guarantees.
        let piece = unsafe { std::slice::from_raw_parts_mut(place, end - start) };
        make(piece, HEADROOM..frame_end - start)
    })
}

/// The part of a batch's memory that is not yet given to frames, which get theirs in the order of
/// their positions.
struct Left<'s> {
    memory: &'s mut [u8],
    /// Bytes of the batch's memory before this part.
    before: usize,
}

impl<'s> Left<'s> {
    /// Cuts off the memory of the frame, up to byte `limit` of the batch's memory: after the last
    /// frame there may be frames of other batches.
    #[inline(always)]
    fn piece(&mut self, frame: &Frame, limit: usize) -> (&'s mut [u8], Range<usize>) {
        let (start, end) = (frame.start - HEADROOM, frame.start + frame.length);
        let is_alone = self.before <= start && end <= limit;
        assert!(is_alone, "a port lends frames that share no memory");
        let memory = std::mem::take(&mut self.memory);
        let (piece, rest) = memory.split_at_mut(limit - self.before);
        let piece = &mut piece[start - self.before..];
        (self.memory, self.before) = (rest, limit);
        (piece, HEADROOM..end - start)
    }
}

impl<'a> Frames<'a> {
    /// Creates a batch of `frames` in `memory`.
    ///
    /// # Errors
    /// A frame that is empty, too long, or not within the memory.
    pub fn new(memory: &'a [u8], frames: &'a [Frame]) -> Result<Self, PortError> {
        Ok(Self::counted(memory, frames)?.0)
    }

    /// Like [`new`](Self::new), and also returns the total number of bytes.
    ///
    /// # Errors
    /// The errors of `new`.
    pub fn counted(memory: &'a [u8], frames: &'a [Frame]) -> Result<(Self, u64), PortError> {
        let is_good = |frame: &Frame| {
            let end = frame.start.checked_add(frame.length);
            (1..=MAX_FRAME).contains(&frame.length) && end.is_some_and(|end| end <= memory.len())
        };
        let mut bytes = 0;
        for frame in frames {
            if !is_good(frame) {
                return Err(PortError::FrameLength(frame.length));
            }
            bytes += frame.length as u64;
        }
        Ok((Self { memory, frames }, bytes))
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the positions of the frames.
    pub fn frames(&self) -> &'a [Frame] {
        self.frames
    }

    /// Returns the memory that the frames lie in.
    pub fn memory(&self) -> &'a [u8] {
        self.memory
    }

    /// Returns the bytes of frame `at`.
    pub fn bytes(&self, at: usize) -> &'a [u8] {
        let frame = &self.frames[at];
        &self.memory[frame.start..frame.start + frame.length]
    }

    /// Iterates over the frames with their bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&'a Frame, &'a [u8])> {
        let memory = self.memory;
        self.frames.iter().map(move |frame| (frame, &memory[frame.start..][..frame.length]))
    }

    /// Returns the first `count` frames, or all if there are fewer.
    pub fn first(&self, count: usize) -> Frames<'a> {
        Frames { frames: &self.frames[..count.min(self.frames.len())], ..*self }
    }

    /// Returns the frames after the first `count`.
    pub fn behind(&self, count: usize) -> Frames<'a> {
        Frames { frames: &self.frames[count.min(self.frames.len())..], ..*self }
    }

    /// Returns the total number of bytes of the frames.
    pub fn byte_count(&self) -> u64 {
        self.frames.iter().map(|frame| frame.length as u64).sum()
    }
}

impl<P: Receive + ?Sized> Receive for Box<P> {
    fn remarks(&self) -> Vec<String> {
        (**self).remarks()
    }

    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        (**self).receive(most)
    }

    fn is_ended(&self) -> bool {
        (**self).is_ended()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        (**self).readiness()
    }

    fn lost(&self) -> u64 {
        (**self).lost()
    }
}

impl<P: Transmit + ?Sized> Transmit for Box<P> {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        (**self).transmit(frames)
    }

    fn flush(&mut self) -> Result<bool, PortError> {
        (**self).flush()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        (**self).readiness()
    }

    fn lost(&self) -> u64 {
        (**self).lost()
    }
}
