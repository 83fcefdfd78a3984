// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Execution counts of instructions, recorded in the interpreter, to determine likely paths.

use freeport_ebpf::interpreter::{Observer, Point};

/// Execution counts of a program's instructions.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    program: usize,
    /// For each slot, the number of executions, and of those not followed by the next slot.
    counts: Vec<[u64; 2]>,
    last: usize,
}

impl Profile {
    /// Creates an empty profile of a program by its number in the object. It is filled as an
    /// observer of runs: see [`Machine::run_observed`].
    ///
    /// [`Machine::run_observed`]: freeport_ebpf::interpreter::Machine::run_observed
    pub fn new(program: usize) -> Self {
        Self { program, counts: vec![], last: 0 }
    }

    /// Returns the number of executions of the instruction in a slot.
    pub fn count(&self, slot: usize) -> u64 {
        self.counts.get(slot).map_or(0, |[count, _]| *count)
    }

    /// Returns the number of times that the jump in a slot was taken.
    pub fn taken(&self, slot: usize) -> u64 {
        self.counts.get(slot).map_or(0, |[_, taken]| *taken)
    }
}

impl Observer for Profile {
    fn before(&mut self, point: &Point<'_, '_>) {
        if point.program() != self.program {
            return;
        }
        let slot = point.slot();
        if slot >= self.counts.len() {
            self.counts.resize(slot + 1, [0; 2]);
        }
        if slot != self.last + 1 {
            // Counts after wide loads and at the start of a packet are never read.
            self.counts[self.last][1] += 1;
        }
        self.counts[slot][0] += 1;
        self.last = slot;
    }
}
