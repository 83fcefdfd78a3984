// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A decorator that simulates a bad network: it drops, duplicates, corrupts, reorders and delays
//! frames, driven by a seed, and counts each fault.
//!
//! Time is counted in frames: a delayed frame leaves after a number of later ones have passed, so
//! that a run with a given seed and input is the same on every machine. Frames still held when the
//! source ends, or when the port is flushed, are released then: only a drop loses a frame.

use crate::port::{Batch, Frame, Frames, PortError, Receive, Transmit};
use crate::queue::FrameQueue;
use std::os::fd::BorrowedFd;

/// Rate of each fault, in frames per million.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultRates {
    /// The frame is lost.
    pub drop_ppm: u32,
    /// The frame is delivered twice.
    pub duplicate_ppm: u32,
    /// One bit of the frame is flipped.
    pub corrupt_ppm: u32,
    /// The frame is delivered after the next one.
    pub reorder_ppm: u32,
    /// The frame is delivered `delay_frames` frames late.
    pub delay_ppm: u32,
    /// Length of a delay, in frames; see `delay_ppm`.
    pub delay_frames: u32,
}

/// Counters of the faults so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultCounters {
    /// Frames that arrived.
    pub seen: u64,
    /// Frames lost.
    pub dropped: u64,
    /// Frames that were delivered twice.
    pub duplicated: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
    /// Frames delivered after their successor.
    pub reordered: u64,
    /// Frames that were delayed.
    pub delayed: u64,
}

/// A port with faults.
pub struct Fault<P> {
    inner: P,
    model: Model,
    ready: FrameQueue,
}

/// The faults themselves, independent of the direction.
struct Model {
    rates: FaultRates,
    random: fastrand::Rng,
    counters: FaultCounters,
    held: Vec<Held>,
}

struct Held {
    /// Number of frames that still have to pass before this one leaves.
    passes: u32,
    bytes: Vec<u8>,
    original_length: usize,
    timestamp_ns: u64,
}

impl<P> Fault<P> {
    /// Adds faults to `inner`, determined by `seed`.
    pub fn new(inner: P, rates: FaultRates, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        let model = Model { rates, random, counters: FaultCounters::default(), held: vec![] };
        Self { inner, model, ready: FrameQueue::default() }
    }

    /// Returns the counters of the faults so far.
    pub fn counters(&self) -> FaultCounters {
        self.model.counters
    }

    /// Returns the port below.
    pub fn inner(&self) -> &P {
        &self.inner
    }
}

impl<P: Receive> Receive for Fault<P> {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        if self.ready.waiting() == 0 && most > 0 {
            let batch = self.inner.receive(most)?;
            for (frame, bytes) in batch.as_frames().iter() {
                self.model.pass(frame, bytes, &mut self.ready)?;
            }
            if self.inner.is_ended() {
                self.model.release_all(&mut self.ready)?;
            }
        }
        Ok(self.ready.lend(most))
    }

    fn is_ended(&self) -> bool {
        self.inner.is_ended() && self.ready.waiting() == 0 && self.model.held.is_empty()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.inner.readiness()
    }

    fn lost(&self) -> u64 {
        self.inner.lost()
    }

    fn remarks(&self) -> Vec<String> {
        self.inner.remarks()
    }
}

impl<P: Transmit> Transmit for Fault<P> {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        self.ready.send_to(&mut self.inner)?;
        if self.ready.waiting() > 0 {
            return Ok(0);
        }
        for (frame, bytes) in frames.iter() {
            self.model.pass(frame, bytes, &mut self.ready)?;
        }
        self.ready.send_to(&mut self.inner)?;
        Ok(frames.len())
    }

    fn flush(&mut self) -> Result<bool, PortError> {
        self.ready.send_to(&mut self.inner)?;
        self.model.release_all(&mut self.ready)?;
        self.ready.send_to(&mut self.inner)?;
        let is_empty_below = self.inner.flush()?;
        Ok(is_empty_below && self.ready.waiting() == 0)
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.inner.readiness()
    }

    fn lost(&self) -> u64 {
        self.inner.lost()
    }
}

impl Model {
    /// Takes a frame; the frames that leave because of it go to `out`.
    fn pass(&mut self, frame: &Frame, bytes: &[u8], out: &mut FrameQueue) -> Result<(), PortError> {
        self.counters.seen += 1;
        if self.happens(self.rates.drop_ppm) {
            self.counters.dropped += 1;
            return Ok(());
        }
        let mut bytes = bytes.to_vec();
        if self.happens(self.rates.corrupt_ppm) {
            self.counters.corrupted += 1;
            let bit = self.random.usize(0..bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let copies = if self.happens(self.rates.duplicate_ppm) {
            self.counters.duplicated += 1;
            2
        } else {
            1
        };
        let passes = if self.happens(self.rates.reorder_ppm) {
            self.counters.reordered += 1;
            1
        } else if self.rates.delay_frames > 0 && self.happens(self.rates.delay_ppm) {
            self.counters.delayed += 1;
            self.rates.delay_frames
        } else {
            0
        };
        for _ in 0..copies {
            if passes > 0 {
                let (original_length, timestamp_ns) = (frame.original_length, frame.timestamp_ns);
                let bytes = bytes.clone();
                // One more, because the frame itself counts as the first to pass.
                let passes = passes.saturating_add(1);
                self.held.push(Held { passes, bytes, original_length, timestamp_ns });
            } else {
                out.push(&bytes, frame.original_length, frame.timestamp_ns)?;
            }
        }
        self.held.iter_mut().for_each(|held| held.passes -= 1);
        self.release(out, |held| held.passes == 0)
    }

    fn release_all(&mut self, out: &mut FrameQueue) -> Result<(), PortError> {
        self.release(out, |_| true)
    }

    fn release(
        &mut self,
        out: &mut FrameQueue,
        leaves: impl Fn(&Held) -> bool,
    ) -> Result<(), PortError> {
        for held in self.held.extract_if(.., |held| leaves(held)) {
            out.push(&held.bytes, held.original_length, held.timestamp_ns)?;
        }
        Ok(())
    }

    fn happens(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.random.u32(0..1_000_000) < ppm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Capture;
    use crate::conformance::{self, plain};
    use crate::memory::{Generator, Sink};
    use crate::rate::Rate;

    const ALL: FaultRates = FaultRates {
        drop_ppm: 100_000,
        duplicate_ppm: 100_000,
        corrupt_ppm: 100_000,
        reorder_ppm: 100_000,
        delay_ppm: 100_000,
        delay_frames: 5,
    };

    fn numbered(count: u32) -> Vec<crate::trace::TraceFrame> {
        plain(&(0..count).map(|at| [at.to_le_bytes(); 16].concat()).collect::<Vec<_>>())
    }

    fn received(rates: FaultRates, seed: u64, batch: usize) -> (Vec<Vec<u8>>, FaultCounters) {
        let source = Generator::once(&numbered(2_000)).expect("good");
        let mut port = Fault::new(source, rates, seed);
        let frames = conformance::drain(&mut port, batch);
        (frames.into_iter().map(|frame| frame.bytes).collect(), port.counters())
    }

    fn numbers(frames: &[Vec<u8>]) -> Vec<u32> {
        let word = |frame: &Vec<u8>| [frame[0], frame[1], frame[2], frame[3]];
        frames.iter().map(|frame| u32::from_le_bytes(word(frame))).collect()
    }

    #[test]
    fn without_faults_it_conforms_on_both_sides() {
        let none = FaultRates::default();
        let source = |trace: &[_]| Generator::once(trace).expect("good");
        conformance::check_receiver(|trace| Fault::new(source(trace), none, 1));
        let make = || Fault::new(Sink::keeping(), none, 1);
        conformance::check_transmitter(make, |it| it.inner.kept().to_vec());
    }

    #[test]
    fn a_stack_of_decorators_conforms_on_both_sides() {
        let none = FaultRates::default();
        conformance::check_receiver(|trace| {
            let source = Rate::new(Generator::once(trace).expect("good"));
            let capture = Capture::new(source, vec![], "memory".into()).expect("memory");
            Fault::new(Rate::new(capture), none, 1)
        });
        let make = || {
            let capture = Capture::new(Sink::keeping(), vec![], "memory".into()).expect("memory");
            Rate::new(Fault::new(capture, none, 1))
        };
        conformance::check_transmitter(make, |it| it.inner().inner().inner().kept().to_vec());
    }

    #[test]
    fn the_seed_decides_and_the_batch_size_does_not() {
        let (frames, counters) = received(ALL, 7, 256);
        assert_eq!(received(ALL, 7, 3), (frames.clone(), counters));
        assert_ne!(received(ALL, 8, 256).0, frames);
    }

    #[test]
    fn the_counters_account_for_every_frame() {
        let (frames, counters) = received(ALL, 7, 32);
        let expected = counters.seen - counters.dropped + counters.duplicated;
        assert_eq!((counters.seen, frames.len() as u64), (2_000, expected));
        for count in [counters.dropped, counters.corrupted, counters.reordered, counters.delayed] {
            assert!((100..350).contains(&count), "about a tenth of 2,000: {counters:?}");
        }
    }

    #[test]
    fn a_reordered_frame_comes_behind_the_next_one() {
        let rates = FaultRates { reorder_ppm: 20_000, ..FaultRates::default() };
        let (frames, counters) = received(rates, 3, 256);
        let numbers = numbers(&frames);
        let late = |at: &u32| numbers[*at as usize] != *at;
        let moved = (0..2_000).filter(late).count() as u64;
        assert!(counters.reordered > 10 && moved >= counters.reordered, "{counters:?} {moved}");
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..2_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_delayed_frame_comes_that_many_frames_late() {
        let rates = FaultRates { delay_ppm: 2_000, delay_frames: 5, ..FaultRates::default() };
        let (frames, counters) = received(rates, 11, 256);
        let numbers = numbers(&frames);
        assert!(counters.delayed > 0);
        let late = |(at, number): (usize, &u32)| at as u32 == number + 5;
        let count = numbers.iter().enumerate().filter(|pair| late(*pair)).count() as u64;
        assert_eq!(count, counters.delayed);
    }

    #[test]
    fn a_full_port_below_loses_nothing() {
        let mut source = Generator::once(&numbered(500)).expect("good");
        let mut port = Fault::new(Sink::keeping().with_room(0), ALL, 5);
        let batch = source.receive(500).expect("frames");
        let frames = batch.as_frames();
        let mut sent = 0;
        for _ in 0..10_000 {
            sent += port.transmit(frames.behind(sent).first(20)).expect("memory");
            port.inner.make_room(3);
        }
        assert_eq!(sent, 500);
        while !port.flush().expect("memory") {
            port.inner.make_room(3);
        }
        let counters = port.counters();
        let expected = counters.seen - counters.dropped + counters.duplicated;
        assert_eq!(port.inner.frame_count(), expected);
    }
}
