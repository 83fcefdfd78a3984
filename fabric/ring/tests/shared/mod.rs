// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shared queue in the memory of one process, with both of its sides.

use crate::memory::Memory;
use freeport_ring::Mapped;
use freeport_ring::shared_queue::{self, Cell, Limits, Notes, Record, Slot};

/// One side.
pub type End<'a> = shared_queue::End<'a, Mapped, Mapped>;

/// All memory of both sides.
pub struct Queue {
    limits: Limits,
    /// The rings to the first side and to the second.
    rings: [Memory; 2],
    notes: [Own; 2],
}

struct Own {
    records: Vec<Record>,
    slots: Vec<Slot>,
    cells: Vec<Cell>,
}

impl Queue {
    /// Creates a queue that has carried nothing.
    pub fn new(capacity: usize, limits: Limits) -> Self {
        let own = |()| Own {
            records: vec![Record::default(); limits.total().expect("limits") as usize],
            slots: vec![Slot::default(); Limits::slots(capacity)],
            cells: vec![Cell::default(); limits.cells().expect("limits")],
        };
        let rings = [(); 2].map(|()| Memory::new(&[capacity]));
        Self { limits, rings, notes: [(); 2].map(own) }
    }

    /// Returns both sides.
    pub fn ends(&mut self) -> [End<'_>; 2] {
        let [first, second] = &mut self.notes;
        let mut side = 0;
        [first, second].map(|own| {
            let end = new_end(&mut self.rings, self.limits, side, own);
            side += 1;
            end.expect("sizes that can be")
        })
    }

    /// Returns one side, if the limits are valid.
    pub fn try_end(&mut self, side: usize) -> Option<End<'_>> {
        new_end(&mut self.rings, self.limits, side, &mut self.notes[side])
    }
}

fn new_end<'a>(
    rings: &mut [Memory; 2],
    limits: Limits,
    side: usize,
    own: &'a mut Own,
) -> Option<End<'a>> {
    let sender = rings[1 - side].sender(0, Default::default());
    let receiver = rings[side].receiver(0, Default::default());
    let Own { records, slots, cells } = own;
    let notes = Notes { records, slots, cells };
    End::new(sender, receiver, limits, side, notes)
}
