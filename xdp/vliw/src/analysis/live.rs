// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liveness: the registers and the bytes of the frame that a region and its successors still read.

use crate::machine::FRAME_BYTES;
use std::ops::Range;

/// What is live where a region begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Live {
    /// Registers, by bits.
    pub registers: u16,
    /// Bytes of the frame, by bits.
    pub frame: [u64; FRAME_BYTES / 64],
}

impl Live {
    /// No register and no byte of the frame.
    pub const NOTHING: Self = Self { registers: 0, frame: [0; FRAME_BYTES / 64] };

    /// Whether any of these bytes of the frame is needed.
    pub fn has_any(&self, mut bytes: Range<usize>) -> bool {
        bytes.any(|byte| self.frame[byte / 64] >> (byte % 64) & 1 == 1)
    }
}
