// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A growing memory that frames are copied into, one after the other, each with head room: for
//! ports that must keep frames of their own.

use crate::port::{Batch, Frame, Frames, HEADROOM, MAX_FRAME, PortError};

/// Frames with their memory. Once the memory has grown to the size that its user needs, it is no
/// longer reallocated.
#[derive(Clone, Debug, Default)]
pub struct Arena {
    memory: Vec<u8>,
    frames: Vec<Frame>,
    used: usize,
}

impl Arena {
    /// Copies a frame into the arena.
    ///
    /// # Errors
    /// A frame that is empty or too long.
    pub fn push(
        &mut self,
        bytes: &[u8],
        original_length: usize,
        timestamp_ns: u64,
    ) -> Result<(), PortError> {
        if !(1..=MAX_FRAME).contains(&bytes.len()) {
            return Err(PortError::FrameLength(bytes.len()));
        }
        let start = self.used + HEADROOM;
        let end = start + bytes.len();
        if self.memory.len() < end {
            self.memory.resize(end, 0);
        }
        self.memory[start..end].copy_from_slice(bytes);
        self.frames.push(Frame { start, length: bytes.len(), original_length, timestamp_ns });
        // The next frame starts on a cache line of its own.
        self.used = end.next_multiple_of(64);
        Ok(())
    }

    /// Removes every frame but keeps the memory.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.used = 0;
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Lends `count` frames from number `first` on.
    ///
    /// # Panics
    /// If there are fewer frames.
    pub fn batch(&mut self, first: usize, count: usize) -> Batch<'_> {
        Batch::new(&mut self.memory, &self.frames[first..first + count])
    }

    /// Returns all frames, to be sent.
    pub fn frames(&self) -> Frames<'_> {
        Frames { memory: &self.memory, frames: &self.frames }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_their_bytes_and_their_own_head_room() {
        let mut arena = Arena::default();
        for round in 0..2u8 {
            arena.clear();
            for length in [1usize, 64, 1500, MAX_FRAME] {
                arena.push(&vec![length as u8 ^ round; length], length, 7).expect("it fits");
            }
            let mut batch = arena.batch(0, 4);
            for at in 0..4 {
                batch.headroom_mut(at).fill(0xee);
            }
            for (at, length) in [1usize, 64, 1500, MAX_FRAME].into_iter().enumerate() {
                assert_eq!(batch.bytes(at), vec![length as u8 ^ round; length]);
            }
        }
    }

    #[test]
    fn lengths_that_no_port_carries_are_refused() {
        let mut arena = Arena::default();
        assert!(matches!(arena.push(&[], 0, 0), Err(PortError::FrameLength(0))));
        let long = vec![0; MAX_FRAME + 1];
        assert!(matches!(arena.push(&long, 0, 0), Err(PortError::FrameLength(9_217))));
        assert!(arena.is_empty());
    }
}
