// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames that wait for a port: the queue between a producer and a transmitter that may be full.

use crate::arena::Arena;
use crate::port::{Batch, Frames, PortError, Transmit};

/// Copied frames in order; the first ones may have been sent already.
#[derive(Clone, Debug, Default)]
pub struct FrameQueue {
    arena: Arena,
    gone: usize,
}

/// Frames that left a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Number of frames.
    pub frames: usize,
    /// Bytes of these frames.
    pub bytes: u64,
}

impl FrameQueue {
    /// Copies a frame to the end.
    ///
    /// # Errors
    /// A frame that is empty or too long.
    pub fn push(
        &mut self,
        bytes: &[u8],
        original_length: usize,
        timestamp_ns: u64,
    ) -> Result<(), PortError> {
        self.forget_gone();
        self.arena.push(bytes, original_length, timestamp_ns)
    }

    /// Returns the number of frames that wait.
    pub fn waiting(&self) -> usize {
        self.arena.len() - self.gone
    }

    /// Lends up to `most` frames from the front and removes them.
    pub fn lend(&mut self, most: usize) -> Batch<'_> {
        let (first, count) = (self.gone, self.waiting().min(most));
        self.gone += count;
        self.arena.batch(first, count)
    }

    /// Returns the frames that wait, in order.
    pub fn frames(&self) -> Frames<'_> {
        self.arena.frames().behind(self.gone)
    }

    /// Sends waiting frames to `port`, as far as it has room, and returns what was sent.
    ///
    /// # Errors
    /// The port failed; the frames stay.
    pub fn send_to<P: Transmit + ?Sized>(&mut self, port: &mut P) -> Result<Sent, PortError> {
        if self.waiting() == 0 {
            return Ok(Sent::default());
        }
        let waiting = self.frames();
        let frames = port.transmit(waiting)?;
        let bytes = waiting.first(frames).byte_count();
        self.gone += frames;
        Ok(Sent { frames, bytes })
    }

    /// Drops the waiting frames and returns their number.
    pub fn discard(&mut self) -> usize {
        let waiting = self.waiting();
        self.gone = self.arena.len();
        waiting
    }

    /// Reuses the memory once everything in it has left.
    fn forget_gone(&mut self) {
        if self.waiting() == 0 {
            self.arena.clear();
            self.gone = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Sink;

    #[test]
    fn what_a_full_port_refuses_stays_in_order() {
        let mut queue = FrameQueue::default();
        let mut sink = Sink::keeping().with_room(2);
        for at in 0..5u8 {
            queue.push(&[at; 60], 60, 0).expect("it fits");
        }
        assert_eq!(queue.send_to(&mut sink).expect("memory"), Sent { frames: 2, bytes: 120 });
        queue.push(&[5; 60], 60, 0).expect("it fits");
        sink.make_room(9);
        assert_eq!(queue.send_to(&mut sink).expect("memory"), Sent { frames: 4, bytes: 240 });
        let firsts: Vec<u8> = sink.kept().iter().map(|frame| frame.bytes[0]).collect();
        assert_eq!((firsts, queue.waiting()), (vec![0, 1, 2, 3, 4, 5], 0));
    }

    #[test]
    fn lent_and_discarded_frames_have_left() {
        let mut queue = FrameQueue::default();
        for at in 0..3u8 {
            queue.push(&[at; 60], 60, 0).expect("it fits");
        }
        assert_eq!(queue.lend(1).bytes(0)[0], 0);
        assert_eq!((queue.discard(), queue.waiting()), (2, 0));
    }
}
