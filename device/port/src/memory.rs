// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports in memory: a generator that replays a trace, and a sink that counts, keeps or checks
//! frames.
//!
//! The generator lays its frames out once, at a fixed distance like a network card's buffers, and
//! lends the same buffers repeatedly. So a run touches as much memory as a ring with that number of
//! buffers would, and a measurement covers the work on the frames, not their generation.

use super::pages::Pages;
use super::stamp::{STAMP_BYTES, Stamps};
use crate::port::{Batch, Frame, Frames, HEADROOM, MAX_FRAME, PortError, Receive, Transmit};
use crate::trace::TraceFrame;

/// Default distance in bytes between the frames of a generator.
pub const DEFAULT_STRIDE_BYTES: usize = 2_048;

/// Contents of a frame that a generator lends again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// The frame as it is in the trace: it is copied again each time.
    Fresh,
    /// The frame as the last borrower left it: nothing is copied.
    InPlace,
}

/// A receiver that replays a trace.
#[derive(Clone, Debug)]
pub struct Generator {
    memory: Pages,
    frames: Vec<Frame>,
    original: Option<Pages>,
    stamps: Option<Stamps>,
    at: usize,
    left: u64,
}

impl Generator {
    /// Creates a generator that lends `total` frames in turn from a ring of `ring_frames` buffers,
    /// `stride` bytes apart, filled from `template`. Timestamps are the template's, and repeat in
    /// each lap.
    ///
    /// # Errors
    /// An empty template, or a frame that is empty, too long, or does not fit the stride.
    pub fn new(
        template: &[TraceFrame],
        ring_frames: usize,
        stride: usize,
        total: u64,
        replay: Replay,
    ) -> Result<Self, PortError> {
        if template.is_empty() || ring_frames == 0 {
            return Err(PortError::EmptyTrace);
        }
        let mut memory = Pages::new(ring_frames * stride);
        let mut frames = Vec::with_capacity(ring_frames);
        for (slot, item) in (0..ring_frames).zip(template.iter().cycle()) {
            let length = item.bytes.len();
            if !(1..=MAX_FRAME).contains(&length) {
                return Err(PortError::FrameLength(length));
            }
            if HEADROOM + length > stride {
                return Err(PortError::Stride { length, stride });
            }
            let start = slot * stride + HEADROOM;
            memory[start..start + length].copy_from_slice(&item.bytes);
            frames.push(Frame {
                start,
                length,
                original_length: item.original_length,
                timestamp_ns: item.timestamp_ns,
            });
        }
        let original = (replay == Replay::Fresh).then(|| memory.clone());
        Ok(Self { memory, frames, original, stamps: None, at: 0, left: total })
    }

    /// Creates a generator that lends each frame of a trace once, with the stride that the longest
    /// one needs.
    ///
    /// # Errors
    /// The errors of [`Generator::new`].
    pub fn once(trace: &[TraceFrame]) -> Result<Self, PortError> {
        let longest = trace.iter().map(|item| item.bytes.len()).max().unwrap_or(0);
        let stride = (HEADROOM + longest).next_multiple_of(64).max(DEFAULT_STRIDE_BYTES);
        Self::new(trace, trace.len(), stride, trace.len() as u64, Replay::Fresh)
    }

    /// Writes the next of these stamps into each frame that is lent, from byte `offset` on, cycling
    /// through them.
    ///
    /// # Errors
    /// No stamps, or a frame that is too short for them.
    pub fn with_stamps(
        mut self,
        offset: usize,
        stamps: &[[u8; STAMP_BYTES]],
    ) -> Result<Self, PortError> {
        self.stamps = Some(Stamps::new(offset, stamps, &self.frames)?);
        Ok(self)
    }

    /// Restarts at the first frame and the first stamp, to lend `total` frames.
    pub fn rewind(&mut self, total: u64) {
        (self.at, self.left) = (0, total);
        if let Some(stamps) = &mut self.stamps {
            stamps.rewind();
        }
    }

    /// Writes the frames of `template` into the ring again, discarding the changes of borrowers.
    ///
    /// # Errors
    /// An empty template, or one with other frames than the ring was made from.
    pub fn renew(&mut self, template: &[TraceFrame]) -> Result<(), PortError> {
        if template.is_empty() {
            return Err(PortError::EmptyTrace);
        }
        for (frame, item) in self.frames.iter().zip(template.iter().cycle()) {
            if frame.length != item.bytes.len() {
                return Err(PortError::FrameLength(item.bytes.len()));
            }
            self.memory[frame.start..][..frame.length].copy_from_slice(&item.bytes);
        }
        Ok(())
    }

    /// Makes the generator lend `total` more frames, from its current position.
    pub fn refill(&mut self, total: u64) {
        self.left = total;
    }
}

impl Receive for Generator {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        let in_ring = self.frames.len() - self.at;
        let count = most.min(in_ring).min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let frames = &self.frames[self.at..self.at + count];
        self.at = (self.at + count) % self.frames.len();
        self.left -= count as u64;
        if let Some(original) = &self.original {
            for frame in frames {
                let range = frame.start..frame.start + frame.length;
                self.memory[range.clone()].copy_from_slice(&original[range]);
            }
        }
        if let Some(stamps) = &mut self.stamps {
            stamps.write(&mut self.memory, frames);
        }
        Ok(Batch { memory: &mut self.memory, frames, chunk_bytes: None })
    }

    fn is_ended(&self) -> bool {
        self.left == 0
    }
}

/// A frame that a sink kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// Bytes of the frame.
    pub bytes: Vec<u8>,
    /// Length on the wire, in bytes.
    pub original_length: usize,
    /// Time of receipt, in nanoseconds since 1970.
    pub timestamp_ns: u64,
}

/// The first frame that a checking sink did not expect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Number of the frame, counted from 0.
    pub frame: u64,
    /// The frame sent.
    pub got: Vec<u8>,
    /// The frame expected; none after the last.
    pub expected: Option<Vec<u8>>,
}

/// A transmitter in memory.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    mode: Mode,
    frames: u64,
    bytes: u64,
    room: Option<u64>,
}

#[derive(Clone, Debug, Default)]
enum Mode {
    #[default]
    Count,
    Keep(Vec<Captured>),
    Check {
        expected: Vec<Vec<u8>>,
        mismatches: u64,
        first: Option<Mismatch>,
    },
}

impl Sink {
    /// Creates a sink that counts frames and bytes.
    pub fn counting() -> Self {
        Self::default()
    }

    /// Creates a sink that keeps every frame.
    pub fn keeping() -> Self {
        Self { mode: Mode::Keep(vec![]), ..Self::default() }
    }

    /// Creates a sink that compares each frame with the expected one.
    pub fn checking(expected: Vec<Vec<u8>>) -> Self {
        Self { mode: Mode::Check { expected, mismatches: 0, first: None }, ..Self::default() }
    }

    /// Limits the room to `frames` more, until [`Sink::make_room`].
    pub fn with_room(mut self, frames: u64) -> Self {
        self.room = Some(frames);
        self
    }

    /// Sets the room to `frames` more.
    pub fn make_room(&mut self, frames: u64) {
        self.room = Some(frames);
    }

    /// Returns the number of frames taken.
    pub fn frame_count(&self) -> u64 {
        self.frames
    }

    /// Returns the bytes of the frames taken.
    pub fn byte_count(&self) -> u64 {
        self.bytes
    }

    /// Returns the frames kept.
    pub fn kept(&self) -> &[Captured] {
        match &self.mode {
            Mode::Keep(kept) => kept,
            _ => &[],
        }
    }

    /// Returns the number of frames that differed from the expected ones.
    pub fn mismatch_count(&self) -> u64 {
        match &self.mode {
            Mode::Check { mismatches, .. } => *mismatches,
            _ => 0,
        }
    }

    /// Returns the first frame that differed.
    pub fn first_mismatch(&self) -> Option<&Mismatch> {
        match &self.mode {
            Mode::Check { first, .. } => first.as_ref(),
            _ => None,
        }
    }

    /// Returns whether a checking sink got exactly the frames that it expects.
    pub fn is_as_expected(&self) -> bool {
        match &self.mode {
            Mode::Check { expected, mismatches, .. } => {
                *mismatches == 0 && self.frames == expected.len() as u64
            }
            _ => true,
        }
    }
}

impl Transmit for Sink {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        let frames = match &mut self.room {
            Some(room) => {
                let taken = frames.first(usize::try_from(*room).unwrap_or(usize::MAX));
                *room -= taken.len() as u64;
                taken
            }
            None => frames,
        };
        let first = self.frames;
        self.frames += frames.len() as u64;
        self.bytes += frames.byte_count();
        self.mode.take(frames, first);
        Ok(frames.len())
    }

    fn flush(&mut self) -> Result<bool, PortError> {
        Ok(true)
    }
}

impl Mode {
    fn take(&mut self, frames: Frames<'_>, number: u64) {
        match self {
            Mode::Count => {}
            Mode::Keep(kept) => kept.extend(frames.iter().map(|(frame, bytes)| Captured {
                bytes: bytes.to_vec(),
                original_length: frame.original_length,
                timestamp_ns: frame.timestamp_ns,
            })),
            Mode::Check { expected, mismatches, first } => {
                for (frame, (_, got)) in (number..).zip(frames.iter()) {
                    let wanted = expected.get(frame as usize);
                    if wanted.is_none_or(|wanted| wanted != got) {
                        *mismatches += 1;
                        let expected = wanted.cloned();
                        first.get_or_insert(Mismatch { frame, got: got.to_vec(), expected });
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{self, plain};

    #[test]
    fn the_generator_conforms() {
        conformance::check_receiver(|trace| Generator::once(trace).expect("a good trace"));
    }

    #[test]
    fn the_sink_conforms() {
        conformance::check_transmitter(Sink::keeping, |sink| sink.kept().to_vec());
    }

    #[test]
    fn a_ring_repeats_the_template_to_the_total() {
        let trace = plain(&[vec![1; 60], vec![2; 61], vec![3; 62]]);
        let mut port = Generator::new(&trace, 4, 2_048, 10, Replay::Fresh).expect("it fits");
        let mut firsts = vec![];
        while !port.is_ended() {
            let batch = port.receive(3).expect("memory does not fail");
            firsts.extend((0..batch.len()).map(|at| batch.bytes(at)[0]));
        }
        // The ring holds 1 2 3 1, and is read two and a half times.
        assert_eq!(firsts, [1, 2, 3, 1, 1, 2, 3, 1, 1, 2]);
    }

    #[test]
    fn in_place_replay_shows_what_the_borrower_wrote() {
        let trace = plain(&[vec![1; 60]]);
        for (replay, second) in [(Replay::Fresh, 1), (Replay::InPlace, 9)] {
            let mut port = Generator::new(&trace, 1, 2_048, 2, replay).expect("it fits");
            port.receive(1).expect("a frame").bytes_mut(0)[0] = 9;
            assert_eq!(port.receive(1).expect("a frame").bytes(0)[0], second);
            port.renew(&trace).expect("the same frames");
            port.refill(1);
            assert_eq!(port.receive(1).expect("a frame").bytes(0)[0], 1);
            assert!(port.renew(&plain(&[vec![1; 61]])).is_err());
            assert!(port.renew(&[]).is_err());
        }
    }

    #[test]
    fn a_frame_that_does_not_fit_the_stride_is_refused() {
        let trace = plain(&[vec![0; 1_793]]);
        let error = Generator::new(&trace, 1, 2_048, 1, Replay::Fresh).expect_err("too long");
        assert!(error.to_string().contains("1793"), "{error}");
    }

    #[test]
    fn a_checking_sink_finds_the_first_difference() {
        let mut sink = Sink::checking(vec![vec![1; 60], vec![2; 60]]);
        let trace = plain(&[vec![1; 60], vec![3; 60], vec![4; 60]]);
        let mut port = Generator::once(&trace).expect("it fits");
        sink.transmit(port.receive(3).expect("frames").as_frames()).expect("it takes them");
        assert_eq!(sink.mismatch_count(), 2);
        let first = sink.first_mismatch().expect("there is one");
        assert_eq!((first.frame, first.got[0]), (1, 3));
        assert!(!sink.is_as_expected());
    }
}
