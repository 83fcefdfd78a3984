// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stack frames of a program and of the functions that it calls: 512 bytes each.
//!
//! In the address window there is a gap between frames, so an access beyond either end of a frame
//! misses. A frame can access those of its callers, through addresses passed to it.

use crate::abi::{FRAME_BYTES, FRAMES_MAX};

/// Distance between frames in the window.
const SPACING: u64 = 1_024;

/// Frames, of which only the active ones can be accessed.
pub(crate) struct Stack {
    bytes: Box<[u8; FRAMES_MAX * FRAME_BYTES]>,
    depth: usize,
}

impl Stack {
    /// Creates a stack without active frames.
    pub fn new() -> Self {
        Self { bytes: Box::new([0; FRAMES_MAX * FRAME_BYTES]), depth: 0 }
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        self.depth = 0;
    }

    /// Returns the number of active frames.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Pushes a zeroed frame; returns the offset of its end in the window, or `None` if there are
    /// too many.
    pub fn push(&mut self) -> Option<u64> {
        if self.depth == FRAMES_MAX {
            return None;
        }
        let start = self.depth * FRAME_BYTES;
        self.bytes[start..start + FRAME_BYTES].fill(0);
        self.depth += 1;
        Some(Self::frame_pointer(self.depth - 1))
    }

    /// Returns the frame pointer of a frame, which is the offset of its end; `depth` counts from 0.
    pub fn frame_pointer(depth: usize) -> u64 {
        (depth as u64 + 1) * SPACING + FRAME_BYTES as u64
    }

    /// Pops the top frame.
    pub fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Returns `size` bytes from `offset` of the window.
    #[inline]
    pub fn at(&self, offset: u64, size: usize) -> Option<&[u8]> {
        let start = self.inside(offset, size)?;
        self.bytes.get(start..start + size)
    }

    /// As `at`, mutable.
    #[inline]
    pub fn at_mut(&mut self, offset: u64, size: usize) -> Option<&mut [u8]> {
        let start = self.inside(offset, size)?;
        self.bytes.get_mut(start..start + size)
    }

    #[inline]
    fn inside(&self, offset: u64, size: usize) -> Option<usize> {
        let (frame, within) = ((offset / SPACING) as usize, (offset % SPACING) as usize);
        // Frame 0 of the window does not exist, so that an access before the first frame misses.
        if frame.wrapping_sub(1) >= self.depth || within + size > FRAME_BYTES {
            return None;
        }
        Some((frame - 1) * FRAME_BYTES + within)
    }

    /// Returns the distance of `offset` from the frame pointer of the nearest frame.
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
