// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stacks of a program and of the functions that it calls: 512 bytes for each.
//!
//! In the window of addresses frames have a gap between them, so whoever leaves the own frame by
//! either end meets nothing. A frame can reach those of its callers, by addresses that it was
//! given.

use crate::abi::{FRAME_BYTES, FRAMES_MAX};

/// Addresses from one frame to the next.
const SPACING: u64 = 1_024;

/// Frames, of which those in use can be reached.
pub(crate) struct Stack {
    bytes: Box<[u8; FRAMES_MAX * FRAME_BYTES]>,
    depth: usize,
}

impl Stack {
    /// No frame is in use.
    pub fn new() -> Self {
        Self { bytes: Box::new([0; FRAMES_MAX * FRAME_BYTES]), depth: 0 }
    }

    /// Begins again without a frame.
    pub fn clear(&mut self) {
        self.depth = 0;
    }

    /// Frames in use.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Puts a frame of zeros on top; gives where its end is in the window, unless there are too
    /// many.
    pub fn push(&mut self) -> Option<u64> {
        if self.depth == FRAMES_MAX {
            return None;
        }
        let start = self.depth * FRAME_BYTES;
        self.bytes[start..start + FRAME_BYTES].fill(0);
        self.depth += 1;
        Some(Self::frame_pointer(self.depth - 1))
    }

    /// The frame pointer of a frame, where its end is in the window; `depth` counts from 0.
    pub fn frame_pointer(depth: usize) -> u64 {
        (depth as u64 + 1) * SPACING + FRAME_BYTES as u64
    }

    /// Takes the frame on top away.
    pub fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// `size` bytes from `offset` of the window.
    #[inline]
    pub fn at(&self, offset: u64, size: usize) -> Option<&[u8]> {
        let start = self.inside(offset, size)?;
        self.bytes.get(start..start + size)
    }

    /// The same, to be changed.
    #[inline]
    pub fn at_mut(&mut self, offset: u64, size: usize) -> Option<&mut [u8]> {
        let start = self.inside(offset, size)?;
        self.bytes.get_mut(start..start + size)
    }

    #[inline]
    fn inside(&self, offset: u64, size: usize) -> Option<usize> {
        let (frame, within) = ((offset / SPACING) as usize, (offset % SPACING) as usize);
        // Frame 0 of the window is none, so that what is before the first one is a miss.
        if frame.wrapping_sub(1) >= self.depth || within + size > FRAME_BYTES {
            return None;
        }
        Some((frame - 1) * FRAME_BYTES + within)
    }

    /// How far `offset` is from the frame pointer of the frame that it is nearest to.
    pub fn from_frame_pointer(offset: u64) -> i64 {
        let base = SPACING - FRAME_BYTES as u64;
        let within = offset.wrapping_add(base / 2) % SPACING;
        within as i64 - (FRAME_BYTES as u64 + base / 2) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_512_bytes_and_meets_nothing_beyond() {
        let mut stack = Stack::new();
        let first = stack.push().expect("the first");
        let second = stack.push().expect("the second");
        for end in [first, second] {
            assert!(stack.at(end - 512, 8).is_some() && stack.at(end - 1, 1).is_some());
            assert!(stack.at(end - 513, 1).is_none() && stack.at(end, 1).is_none());
            assert!(stack.at(end - 4, 8).is_none() && stack.at(end - 513, 8).is_none());
            assert_eq!(Stack::from_frame_pointer(end - 513), -513);
            assert_eq!(Stack::from_frame_pointer(end + 3), 3);
        }
        assert!(stack.at(second + SPACING - 8, 8).is_none(), "a frame that is not in use");
        assert!(stack.at(u64::MAX, 8).is_none());
    }

    #[test]
    fn a_frame_begins_with_zeros() {
        let mut stack = Stack::new();
        let end = stack.push().expect("the first");
        stack.at_mut(end - 512, 512).expect("all of it").fill(1);
        stack.pop();
        assert!(stack.at(end - 8, 8).is_none());
        stack.push();
        assert_eq!(stack.at(end - 512, 512), Some(&[0; 512][..]));
        assert_eq!((1..).take_while(|_| stack.push().is_some()).count(), FRAMES_MAX - 1);
    }
}
