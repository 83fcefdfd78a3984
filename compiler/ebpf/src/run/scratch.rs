// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a machine keeps for its runs so that none has to allocate, and what they leave behind.

use super::Frame;
use crate::abi::FRAMES_MAX;
use std::collections::VecDeque;

/// Lines of the trace that are kept; the oldest give way.
const LINES_MAX: usize = 4_096;

/// Memory for runs.
pub(crate) struct Scratch {
    /// A copy of a key or a value while its place is written.
    pub bytes: Vec<u8>,
    /// State of the random numbers.
    pub random: u64,
    /// Records of ring buffers that are reserved now.
    pub records_reserved: usize,
    /// Where the functions in use return to; what is left of earlier ones means nothing.
    pub frames: [Frame; FRAMES_MAX],
    trace: VecDeque<String>,
}

impl Scratch {
    /// For a machine whose random numbers begin with `seed`.
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
