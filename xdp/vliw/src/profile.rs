// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often instructions were executed, as the interpreter has seen it: which ways are likely.

use freeport_ebpf::interpreter::{Observer, Point};

/// Counts of a program's instructions.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    program: usize,
    /// How often each slot was executed, and another one than the next after it.
    counts: Vec<[u64; 2]>,
    last: usize,
}

impl Profile {
    /// Of a program by its number in the object, of which nothing was executed yet. It looks on
    /// where packets are run: see [`Machine::run_observed`].
    ///
    /// [`Machine::run_observed`]: freeport_ebpf::interpreter::Machine::run_observed
    pub fn new(program: usize) -> Self {
        Self { program, counts: vec![], last: 0 }
    }

    /// How often the instruction in a slot was executed.
    pub fn count(&self, slot: usize) -> u64 {
        self.counts.get(slot).map_or(0, |[count, _]| *count)
    }

    /// How often the jump in a slot was taken.
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
            // Of instructions of two slots, and where packets begin, nobody asks.
            self.counts[self.last][1] += 1;
        }
        self.counts[slot][0] += 1;
        self.last = slot;
    }
}
