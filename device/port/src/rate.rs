// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A decorator that counts frames and bytes and computes their rates.

use crate::port::{Batch, Frames, PortError, Receive, Transmit};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Traffic of a port in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Number of frames.
    pub frames: u64,
    /// Bytes of these frames, without the frame check sequence.
    pub bytes: u64,
    /// Calls that moved at least one frame.
    pub batches: u64,
    /// Time from the first batch to the end of the last one.
    pub elapsed: Duration,
}

impl Traffic {
    /// Returns the frames per second; 0 if no time has passed.
    pub fn frames_per_second(&self) -> f64 {
        per_second(self.frames as f64, self.elapsed)
    }

    /// Returns the bits per second, without check sequences, preambles and gaps; 0 if no time has
    /// passed.
    pub fn bits_per_second(&self) -> f64 {
        per_second(self.bytes as f64 * 8.0, self.elapsed)
    }
}

/// A port whose traffic is counted, in each direction.
#[derive(Clone, Debug)]
pub struct Rate<P> {
    inner: P,
    received: Meter,
    sent: Meter,
}

#[derive(Clone, Debug, Default)]
struct Meter {
    traffic: Traffic,
    since: Option<Instant>,
}

impl<P> Rate<P> {
    /// Counts the traffic of `inner`.
    pub fn new(inner: P) -> Self {
        Self { inner, received: Meter::default(), sent: Meter::default() }
    }

    /// Returns the traffic received.
    pub fn received(&self) -> Traffic {
        self.received.traffic
    }

    /// Returns the traffic sent.
    pub fn sent(&self) -> Traffic {
        self.sent.traffic
    }

    /// Returns the port below.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Returns the port below, without the counters.
    pub fn into_inner(self) -> P {
        self.inner
    }
}

impl<P: Receive> Receive for Rate<P> {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        let begin = Instant::now();
        let batch = self.inner.receive(most)?;
        self.received.count(batch.as_frames(), begin);
        Ok(batch)
    }

    fn is_ended(&self) -> bool {
        self.inner.is_ended()
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

impl<P: Transmit> Transmit for Rate<P> {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        let begin = Instant::now();
        let accepted = self.inner.transmit(frames)?;
        self.sent.count(frames.first(accepted), begin);
        Ok(accepted)
    }

    fn flush(&mut self) -> Result<bool, PortError> {
        self.inner.flush()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.inner.readiness()
    }

    fn lost(&self) -> u64 {
        self.inner.lost()
    }
}

impl Meter {
    fn count(&mut self, frames: Frames<'_>, begin: Instant) {
        if !frames.is_empty() {
            self.traffic.frames += frames.len() as u64;
            self.traffic.bytes += frames.byte_count();
            self.traffic.batches += 1;
            self.traffic.elapsed = self.since.get_or_insert(begin).elapsed();
        }
    }
}

fn per_second(amount: f64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { amount / elapsed.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{self, plain};
    use crate::memory::{Generator, Sink};

    #[test]
    fn it_conforms_on_both_sides() {
        conformance::check_receiver(|trace| Rate::new(Generator::once(trace).expect("good")));
        let kept = |it: &Rate<Sink>| it.inner.kept().to_vec();
        conformance::check_transmitter(|| Rate::new(Sink::keeping()), kept);
    }

    #[test]
    fn each_direction_counts_what_really_passed() {
        let trace = plain(&[vec![0; 60], vec![0; 100], vec![0; 1_500]]);
        let mut source = Rate::new(Generator::once(&trace).expect("good"));
        let mut sink = Rate::new(Sink::counting().with_room(2));
        while !source.is_ended() {
            let batch = source.receive(2).expect("frames");
            sink.transmit(batch.as_frames()).expect("it counts");
        }
        let (received, sent) = (source.received(), sink.sent());
        assert_eq!((received.frames, received.bytes, received.batches), (3, 1_660, 2));
        assert_eq!((sent.frames, sent.bytes, sent.batches), (2, 160, 1));
        assert_eq!(source.sent(), Traffic::default());
    }

    #[test]
    fn rates_are_per_second() {
        let elapsed = Duration::from_millis(500);
        let traffic = Traffic { frames: 10, bytes: 640, batches: 1, elapsed };
        assert_eq!(traffic.frames_per_second(), 20.0);
        assert_eq!(traffic.bits_per_second(), 10_240.0);
        assert_eq!(Traffic::default().frames_per_second(), 0.0);
    }
}
