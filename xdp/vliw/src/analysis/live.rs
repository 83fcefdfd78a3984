// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liveness: the registers and the bytes of the frame that a region and its successors still read.

use crate::machine::FRAME_BYTES;
use std::ops::Range;

/// Registers and bytes that are live at the start of a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Live {
    /// Registers, as a bit mask.
    pub registers: u16,
    /// Bytes of the frame, as a bit mask.
    pub frame: [u64; FRAME_BYTES / 64],
}

impl Live {
    /// No register and no byte of the frame is live.
    pub const NOTHING: Self = Self { registers: 0, frame: [0; FRAME_BYTES / 64] };

    /// Returns whether any of these bytes of the frame is live.
    pub fn has_any(&self, mut bytes: Range<usize>) -> bool {
        bytes.any(|byte| self.frame[byte / 64] >> (byte % 64) & 1 == 1)
    }
}
