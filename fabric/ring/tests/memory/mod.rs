// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory of rings in one direction, with an end for whoever asks.

use freeport_ring::layout::NOTES_BYTES;
use freeport_ring::{Mapped, Receiver, ReceiverCursor, Sender, SenderCursor};

/// The notes of both sides, and some rings.
pub struct Memory {
    capacities: Vec<usize>,
    words: Vec<u64>,
}

impl Memory {
    /// All zero, with rings of such capacities.
    pub fn new(capacities: &[usize]) -> Self {
        let bytes = 2 * NOTES_BYTES + capacities.iter().sum::<usize>();
        Self { capacities: capacities.to_vec(), words: vec![0; bytes / 8] }
    }

    /// A ring, and its capacity.
    pub fn ring(&mut self, number: usize) -> (Mapped, usize) {
        let before: usize = self.capacities[..number].iter().sum();
        (self.part(2 * NOTES_BYTES + before), self.capacities[number])
    }

    fn part(&mut self, at: usize) -> Mapped {
        // SAFETY: a test drops the memory after all that is in it.
        let start = unsafe { Mapped::new(self.words.as_mut_ptr().cast()) };
        // SAFETY: parts begin inside the memory, at multiples of 8.
        unsafe { start.behind(at) }
    }

    /// A sender that is in such a ring.
    pub fn sender(&mut self, ring: usize, cursor: SenderCursor) -> Sender<Mapped, Mapped> {
        let (to_sender, to_receiver) = (self.part(0), self.part(NOTES_BYTES));
        let (ring, capacity) = self.ring(ring);
        // SAFETY: each is as large as it has to be, and was zero.
        let sender = unsafe { Sender::new(ring, to_receiver, to_sender, capacity, cursor) };
        sender.expect("a capacity")
    }

    /// A receiver that is in such a ring.
    pub fn receiver(&mut self, ring: usize, cursor: ReceiverCursor) -> Receiver<Mapped, Mapped> {
        let (to_sender, to_receiver) = (self.part(0), self.part(NOTES_BYTES));
        let (ring, capacity) = self.ring(ring);
        // SAFETY: each is as large as it has to be, and was zero.
        let receiver = unsafe { Receiver::new(ring, to_sender, to_receiver, capacity, cursor) };
        receiver.expect("a capacity")
    }
}
