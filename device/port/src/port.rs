// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports: where frames come from and where they go.
//!
//! A port works on batches, so that what a call costs is spread over up to [`BATCH`] frames, and a
//! dynamic call, where there is one, is made once a batch and never once a frame.
//!
//! **Ownership.** A port owns its buffers. [`Receive::receive`] lends a batch of frames until the
//! next call; the borrower may change their bytes in place. [`Transmit::transmit`] reads the frames
//! it is given, or copies what it must keep: when it returns, the caller's memory is free again.
//! There is one exception. Ports on interfaces that were opened together share their memory, and a
//! frame of one of them that is handed to another may leave later, from where it lies. The receiver
//! knows, and does not use the buffer again before it has left. The borrower must not change the
//! bytes of a frame after it has handed it to a transmitter: nobody else would be harmed, but the
//! changed bytes might be sent. Handing it over several times is fine.
//!
//! **Head room.** At least [`HEADROOM`] writable bytes lie in front of every received frame and
//! belong to it alone, so that a header can be put in front without a copy. What lies between a
//! frame and the head room of the next one of the batch belongs to the frame too, or, where the
//! memory is cut into chunks, what is behind it in its chunk: [`Batch::split`] gives each frame
//! what it has.
//!
//! **Jumbo frames.** A frame has 1 to [`MAX_FRAME`] bytes, without the frame check sequence. It is
//! contiguous, whatever its size. A longer one is refused with an error, never cut.
//!
//! **Full ports.** A transmitter that has no room accepts fewer frames than it was given, from the
//! front. The rest is still the caller's: a full port makes its user wait and loses nothing.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

/// Bytes in front of every received frame that are the frame's own.
pub const HEADROOM: usize = 256;
/// Most bytes of a frame, without the frame check sequence.
pub const MAX_FRAME: usize = 9_216;
/// Frames of a batch that a worker asks for.
pub const BATCH: usize = 256;

/// Where a frame lies in the memory of its batch, and what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    /// Its first byte, counted from the start of the batch's memory.
    pub start: usize,
    /// Its bytes.
    pub length: usize,
    /// Bytes it had on the wire: more than `length` where a capture cut it.
    pub original_length: usize,
    /// When it was received, in nanoseconds since 1970; 0 where nobody knows.
    pub timestamp_ns: u64,
}

/// A batch lent by a receiver.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(crate) memory: &'a mut [u8],
    pub(crate) frames: &'a [Frame],
    /// Bytes of the chunks that frames have to themselves, if the memory is cut into such.
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
    /// Lends up to `most` frames, in order. None does not mean the end: see `is_ended`.
    ///
    /// # Errors
    /// What went wrong with the source. Frames before the fault have been lent already.
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError>;

    /// Whether no frame will ever come again.
    fn is_ended(&self) -> bool;

    /// A descriptor that `poll` finds readable when there may be frames; none where a port has
    /// nothing to wait for.
    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Frames that were on their way to this port and were lost before it could lend them.
    fn lost(&self) -> u64 {
        0
    }

    /// What is to be told of the source once a run has ended, a line each, such as that a capture
    /// has cut frames.
    fn remarks(&self) -> Vec<String> {
        vec![]
    }
}

/// The sending side of a port.
pub trait Transmit {
    /// Sends frames from the front; gives how many were accepted.
    ///
    /// # Errors
    /// What went wrong with the target, or a frame that is empty or too long.
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError>;

    /// Pushes out what the port still holds; gives whether nothing is left in it.
    ///
    /// # Errors
    /// What went wrong with the target.
    fn flush(&mut self) -> Result<bool, PortError>;

    /// A descriptor that `poll` finds writable when a full port may have room again; none where a
    /// port never has to be waited for.
    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Frames that this port accepted and could not send, such as those to an interface that is
    /// down.
    fn lost(&self) -> u64 {
        0
    }
}

/// What can go wrong at a port.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A frame that no port carries.
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
    /// A generator without anything to generate.
    #[error("the trace has no frame")]
    EmptyTrace,
    /// The file could not be opened, read or written.
    #[error("{}: {source}", file.display())]
    File {
        /// Which file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no capture file, or of a kind that holds no Ethernet frames.
    #[error("{}: {reason}", file.display())]
    Format {
        /// Which file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// A record of a capture file that cannot be read; nothing behind it can be found either.
    #[error("{}: record {record}: {reason}", file.display())]
    Record {
        /// Which file.
        file: PathBuf,
        /// Which record, counted from 1.
        record: u64,
        /// Why.
        reason: String,
    },
    /// An interface that cannot be opened or used.
    #[error("{interface}: {action}: {source}; {advice}")]
    Interface {
        /// Which interface.
        interface: String,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
        /// What to do next.
        advice: String,
    },
}

impl<'a> Batch<'a> {
    /// A batch of `frames` in `memory`.
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

    /// A batch of `frames` in memory that is cut into chunks, of which some are not the borrower's:
    /// a frame has its head room and what is behind it up to the end of its last chunk.
    ///
    /// # Safety
    /// No two frames have a chunk in common, from the start of their head room to their ends.
    ///
    /// # Panics
    /// As for [`new`](Self::new), or if a chunk has no bytes.
    pub unsafe fn in_chunks(memory: &'a mut [u8], frames: &'a [Frame], chunk_bytes: usize) -> Self {
        let chunk_bytes = NonZeroUsize::new(chunk_bytes).expect("a chunk has bytes");
        Self { chunk_bytes: Some(chunk_bytes), ..Self::new(memory, frames) }
    }

    /// A batch without frames.
    pub fn empty() -> Self {
        Self { memory: &mut [], frames: &[], chunk_bytes: None }
    }

    /// Where the frames are.
    pub fn frames(&self) -> &'a [Frame] {
        self.frames
    }

    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The bytes of frame `at`.
    pub fn bytes(&self, at: usize) -> &[u8] {
        let frame = &self.frames[at];
        &self.memory[frame.start..frame.start + frame.length]
    }

    /// The bytes of frame `at`, to change them.
    pub fn bytes_mut(&mut self, at: usize) -> &mut [u8] {
        let frame = &self.frames[at];
        &mut self.memory[frame.start..frame.start + frame.length]
    }

    /// The head room of frame `at`: the [`HEADROOM`] bytes in front of it.
    pub fn headroom_mut(&mut self, at: usize) -> &mut [u8] {
        let start = self.frames[at].start;
        &mut self.memory[start - HEADROOM..start]
    }

    /// Each frame from number `first` on as what `make` makes of the memory that is its alone, and
    /// of where in that the frame is; appended to `made`, in the order of the frames.
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

    /// The memory of the batch.
    pub fn memory(&self) -> &[u8] {
        self.memory
    }

    /// The memory of the batch, with the frames at their places.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.memory
    }

    /// The same frames, to be sent.
    pub fn as_frames(&self) -> Frames<'_> {
        Frames { memory: self.memory, frames: self.frames }
    }
}

/// Each frame as what `make` makes of its chunks. The batch was made with the promise that no other
/// frame has them.
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
        // SAFETY: within the memory, as the batch has checked of each frame.
        let place = unsafe { base.add(start) };
        // SAFETY: as above; no other frame has these chunks, as the batch's maker has promised.
        let piece = unsafe { std::slice::from_raw_parts_mut(place, end - start) };
        make(piece, HEADROOM..frame_end - start)
    })
}

/// What is left of the memory of a batch while its frames get theirs, in the order of their places.
struct Left<'s> {
    memory: &'s mut [u8],
    /// Bytes of the batch's memory in front of it.
    before: usize,
}

impl<'s> Left<'s> {
    /// Cuts off what the frame has for itself, up to byte `limit` of the batch's memory: behind the
    /// last frame there may be frames of other batches.
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
    /// A batch of `frames` in `memory`.
    ///
    /// # Errors
    /// A frame that is empty, too long, or not within the memory.
    pub fn new(memory: &'a [u8], frames: &'a [Frame]) -> Result<Self, PortError> {
        Ok(Self::counted(memory, frames)?.0)
    }

    /// As [`new`](Self::new), with the bytes of all frames together.
    ///
    /// # Errors
    /// As for `new`.
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

    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Where the frames are.
    pub fn frames(&self) -> &'a [Frame] {
        self.frames
    }

    /// The memory they are in.
    pub fn memory(&self) -> &'a [u8] {
        self.memory
    }

    /// The bytes of frame `at`.
    pub fn bytes(&self, at: usize) -> &'a [u8] {
        let frame = &self.frames[at];
        &self.memory[frame.start..frame.start + frame.length]
    }

    /// Each frame with its bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&'a Frame, &'a [u8])> {
        let memory = self.memory;
        self.frames.iter().map(move |frame| (frame, &memory[frame.start..][..frame.length]))
    }

    /// The first `count` frames, or all.
    pub fn first(&self, count: usize) -> Frames<'a> {
        Frames { frames: &self.frames[..count.min(self.frames.len())], ..*self }
    }

    /// The frames behind the first `count`.
    pub fn behind(&self, count: usize) -> Frames<'a> {
        Frames { frames: &self.frames[count.min(self.frames.len())..], ..*self }
    }

    /// The bytes of all frames together.
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
