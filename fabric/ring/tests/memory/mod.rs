// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory of rings in one direction, from which tests create both ends.

use freeport_ring::layout::NOTES_BYTES;
use freeport_ring::{Mapped, Receiver, ReceiverCursor, Sender, SenderCursor};

/// The notes of both sides, and some rings.
pub struct Memory {
    capacities: Vec<usize>,
    words: Vec<u64>,
}

impl Memory {
    /// Creates memory of zeros, with rings of these capacities.
    pub fn new(capacities: &[usize]) -> Self {
        let bytes = 2 * NOTES_BYTES + capacities.iter().sum::<usize>();
        Self { capacities: capacities.to_vec(), words: vec![0; bytes / 8] }
    }

    /// Returns a ring, and its capacity.
    pub fn ring(&mut self, number: usize) -> (Mapped, usize) {
        let before: usize = self.capacities[..number].iter().sum();
        (self.part(2 * NOTES_BYTES + before), self.capacities[number])
    }

    fn part(&mut self, at: usize) -> Mapped {
        // SAFETY: a test drops the memory after all users of it.
        let start = unsafe { Mapped::new(self.words.as_mut_ptr().cast()) };
        // SAFETY: parts begin inside the memory, at multiples of 8.
        unsafe { start.behind(at) }
    }

    /// Creates a sender in this ring.
    pub fn sender(&mut self, ring: usize, cursor: SenderCursor) -> Sender<Mapped, Mapped> {
        let (to_sender, to_receiver) = (self.part(0), self.part(NOTES_BYTES));
        let (ring, capacity) = self.ring(ring);
        // SAFETY: each part has the required size, and was zero.
        let sender = unsafe { Sender::new(ring, to_receiver, to_sender, capacity, cursor) };
        sender.expect("a capacity")
    }

    /// Creates a receiver in this ring.
    pub fn receiver(&mut self, ring: usize, cursor: ReceiverCursor) -> Receiver<Mapped, Mapped> {
        let (to_sender, to_receiver) = (self.part(0), self.part(NOTES_BYTES));
        let (ring, capacity) = self.ring(ring);
        // SAFETY: each part has the required size, and was zero.
        let receiver = unsafe { Receiver::new(ring, to_sender, to_receiver, capacity, cursor) };
        receiver.expect("a capacity")
    }
}
