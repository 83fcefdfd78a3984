// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stamps: a few bytes that a generator writes into each frame as it lends it, so that a ring of
//! few frames carries many flows.
//!
//! A stamp is 16 bytes long: in an IPv4 header without options, the bytes from the time to live to
//! the ports. It takes one load and one store for each frame. The time of a run through such a
//! generator includes stamping; measure stamping alone to subtract it.

use super::pages::Pages;
use crate::port::{Frame, PortError};

/// Bytes of a stamp.
pub const STAMP_BYTES: usize = 16;

/// The stamps of a generator, used in turn.
#[derive(Clone, Debug)]
pub(super) struct Stamps {
    offset: usize,
    bytes: Pages,
    count: usize,
    next: usize,
}

impl Stamps {
    /// Creates stamps for the bytes from `offset` on of each of these frames.
    ///
    /// # Errors
    /// No stamps, or a frame that is too short for them.
    pub fn new(
        offset: usize,
        stamps: &[[u8; STAMP_BYTES]],
        frames: &[Frame],
    ) -> Result<Self, PortError> {
        if stamps.is_empty() {
            return Err(PortError::EmptyTrace);
        }
        if let Some(frame) = frames.iter().find(|frame| frame.length < offset + STAMP_BYTES) {
            return Err(PortError::FrameLength(frame.length));
        }
        let mut bytes = Pages::new(stamps.len() * STAMP_BYTES);
        for (slot, stamp) in bytes.chunks_exact_mut(STAMP_BYTES).zip(stamps) {
            slot.copy_from_slice(stamp);
        }
        Ok(Self { offset, bytes, count: stamps.len(), next: 0 })
    }

    /// Writes the next stamps into these frames.
    pub fn write(&mut self, memory: &mut [u8], frames: &[Frame]) {
        for frame in frames {
            let (from, to) = (self.next * STAMP_BYTES, frame.start + self.offset);
            memory[to..to + STAMP_BYTES].copy_from_slice(&self.bytes[from..from + STAMP_BYTES]);
            self.next += 1;
            if self.next == self.count {
                self.next = 0;
            }
        }
    }

    /// Starts with the first stamp again.
    pub fn rewind(&mut self) {
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::STAMP_BYTES;
    use crate::conformance::plain;
    use crate::memory::{Generator, Replay};
    use crate::port::Receive;

    #[test]
    fn frames_carry_the_stamps_in_turn() {
        let trace = plain(&[vec![1; 60], vec![2; 60]]);
        let stamps: Vec<[u8; STAMP_BYTES]> = (7..10).map(|it| [it; STAMP_BYTES]).collect();
        let port = Generator::new(&trace, 2, 2_048, 5, Replay::InPlace).expect("it fits");
        let mut port = port.with_stamps(22, &stamps).expect("it fits");
        let mut seen = vec![];
        while !port.is_ended() {
            let batch = port.receive(2).expect("memory does not fail");
            for at in 0..batch.len() {
                let bytes = batch.bytes(at);
                assert_eq!((bytes[21], bytes[38]), (bytes[0], bytes[0]), "only the stamp changes");
                assert!(bytes[22..38].iter().all(|byte| *byte == bytes[22]));
                seen.push((bytes[0], bytes[22]));
            }
        }
        assert_eq!(seen, [(1, 7), (2, 8), (1, 9), (2, 7), (1, 8)]);
        port.rewind(2);
        let batch = port.receive(2).expect("memory does not fail");
        assert_eq!((batch.bytes(0)[22], batch.bytes(1)[22]), (7, 8));
    }

    #[test]
    fn a_frame_too_short_for_a_stamp_is_refused() {
        let port = || {
            let trace = plain(&[vec![1; 60], vec![2; 37]]);
            Generator::new(&trace, 2, 2_048, 5, Replay::InPlace).expect("it fits")
        };
        let error = port().with_stamps(22, &[[0; STAMP_BYTES]]).expect_err("37 bytes are too few");
        assert!(error.to_string().contains("37"), "{error}");
        assert!(port().with_stamps(22, &[]).is_err(), "there is nothing to write");
    }
}
