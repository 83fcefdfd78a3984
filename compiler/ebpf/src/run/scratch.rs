// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State that a machine reuses for its runs, so that none allocates, and output that they leave.

use super::Frame;
use crate::abi::FRAMES_MAX;
use std::collections::VecDeque;

/// Maximum number of trace lines; the oldest are dropped.
const LINES_MAX: usize = 4_096;

/// Reused memory of runs.
pub(crate) struct Scratch {
    /// Copy of a key or a value while its destination is written.
    pub bytes: Vec<u8>,
    /// State of the random numbers.
    pub random: u64,
    /// Number of ring-buffer records that are currently reserved.
    pub records_reserved: usize,
    /// Return addresses of active functions; entries above the depth are stale.
    pub frames: [Frame; FRAMES_MAX],
    trace: VecDeque<String>,
}

impl Scratch {
    /// Creates the state for a machine whose random numbers begin with `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            bytes: vec![],
            random: seed,
            records_reserved: 0,
            frames: Default::default(),
            trace: VecDeque::new(),
        }
    }

    /// Appends a line to the trace.
    pub fn note(&mut self, line: String) {
        if self.trace.len() == LINES_MAX {
            self.trace.pop_front();
        }
        self.trace.push_back(line);
    }

    /// Takes the trace.
    pub fn take_trace(&mut self) -> Vec<String> {
        self.trace.drain(..).collect()
    }
}
