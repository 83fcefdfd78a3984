// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory of a ring between two threads: slots of equal size, filled by one and read by the
//! other. Each side works on the slots in place.

use super::progress::{Progress, Reader, Writer};
use freeport_port::Pages;
use std::sync::Arc;

/// State shared by both sides.
#[derive(Debug)]
struct Shared {
    progress: Progress,
    /// The first byte of the memory.
    start: *mut u8,
    slot_bytes: usize,
    /// Owned for the ring's lifetime, and accessed only through `start`.
    _memory: Pages,
}

// SAFETY: the memory is accessed only through `SlotWriter` and `SlotReader`, of which there is one
// each, and each accesses only the slots that `Progress` assigns to it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The side that fills slots.
#[derive(Debug)]
pub struct SlotWriter {
    shared: Arc<Shared>,
    state: Writer,
}

/// The side that reads slots.
#[derive(Debug)]
pub struct SlotReader {
    shared: Arc<Shared>,
    state: Reader,
}

/// Creates a ring of at least `slots` slots of `slot_bytes` bytes.
pub fn slot_ring(slots: usize, slot_bytes: usize) -> (SlotWriter, SlotReader) {
    let slots = slots.next_power_of_two();
    let mut memory = Pages::new(slots * slot_bytes);
    let start = memory.as_mut_ptr();
    let progress = Progress::new(slots as u64);
    let shared = Arc::new(Shared { progress, start, slot_bytes, _memory: memory });
    let writer = SlotWriter { shared: shared.clone(), state: Writer::default() };
    (writer, SlotReader { shared, state: Reader::default() })
}

impl SlotWriter {
    /// Returns the contiguous free slots; more may follow once these are published.
    pub fn free(&mut self) -> &mut [u8] {
        let (first, count) = self.state.free(&self.shared.progress);
        // SAFETY: free slots belong to the writer until it publishes them, which requires this
        // borrow to end.
        unsafe { self.shared.slots(first, count) }
    }

    /// Publishes the first `count` slots that `free` returned to the reader.
    ///
    /// # Panics
    /// If they are not free: a mistake of the caller.
    pub fn publish(&mut self, count: usize) {
        self.state.publish(&self.shared.progress, count as u64);
    }

    /// Returns whether it had no room at the last check, and has some now.
    pub fn has_news(&self) -> bool {
        self.state.has_news(&self.shared.progress)
    }
}

impl SlotReader {
    /// Returns the contiguous filled slots; the reader may change them.
    pub fn filled(&mut self) -> &mut [u8] {
        let (first, count) = self.state.filled(&self.shared.progress);
        // SAFETY: filled slots belong to the reader until it gives them back, which requires this
        // borrow to end.
        unsafe { self.shared.slots(first, count) }
    }

    /// Gives back the first `count` slots that `filled` returned.
    ///
    /// # Panics
    /// If they are not filled: a mistake of the caller.
    pub fn give_back(&mut self, count: usize) {
        self.state.give_back(&self.shared.progress, count as u64);
    }

    /// Returns whether there are more slots than at the last check.
    pub fn has_news(&self) -> bool {
        self.state.has_news(&self.shared.progress)
    }
}

impl Shared {
    /// Returns the bytes of slots.
    ///
    /// # Safety
    /// The caller is the side that these slots belong to, and lends them to one borrower at a time.
    #[allow(clippy::mut_from_ref)]
    unsafe fn slots(&self, first: u64, count: u64) -> &mut [u8] {
        debug_assert!(first + count <= self.progress.slots(), "slots of the ring");
        let (first, count) = (first as usize * self.slot_bytes, count as usize * self.slot_bytes);
        // SAFETY: within the memory, which has all slots of the ring.
        let start = unsafe { self.start.add(first) };
        // SAFETY: as above; the memory lives as long as `self` and is accessed in no other way, and
        // the caller guarantees that no other reference to these slots exists.
        unsafe { std::slice::from_raw_parts_mut(start, count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_with_stalls_pass_every_slot_once_and_in_order() {
        const SLOTS: u64 = 40_000;
        for (slots, seed) in [(1, 1), (8, 2), (64, 3)] {
            let (mut writer, mut reader) = slot_ring(slots, 24);
            let filler = std::thread::spawn(move || {
                let (mut random, mut next) = (fastrand::Rng::with_seed(seed), 0u64);
                while next < SLOTS {
                    let most = random.usize(1..=slots);
                    let mut count = 0;
                    for slot in writer.free().chunks_exact_mut(24).take(most) {
                        if next == SLOTS {
                            break;
                        }
                        slot.copy_from_slice(&next.to_le_bytes().repeat(3));
                        (next, count) = (next + 1, count + 1);
                    }
                    writer.publish(count);
                    stall(&mut random);
                }
            });
            let (mut random, mut next) = (fastrand::Rng::with_seed(seed + 9), 0u64);
            while next < SLOTS {
                let most = random.usize(1..=slots);
                let mut count = 0;
                for slot in reader.filled().chunks_exact_mut(24).take(most) {
                    assert_eq!(*slot, next.to_le_bytes().repeat(3));
                    slot.fill(0xff);
                    (next, count) = (next + 1, count + 1);
                }
                reader.give_back(count);
                stall(&mut random);
            }
            filler.join().expect("the writer ends");
            assert!(reader.filled().is_empty());
        }
    }

    fn stall(random: &mut fastrand::Rng) {
        match random.u8(..) {
            0 => std::thread::sleep(std::time::Duration::from_micros(50)),
            1..60 => std::thread::yield_now(),
            _ => {}
        }
    }

    #[test]
    fn news_are_told_once() {
        let (mut writer, mut reader) = slot_ring(2, 8);
        assert!(!reader.has_news() && !writer.has_news());
        assert_eq!(writer.free().len(), 16);
        writer.publish(2);
        assert!(reader.has_news());
        assert_eq!((reader.filled().len(), writer.free().len()), (16, 0));
        assert!(!reader.has_news() && !writer.has_news());
        reader.give_back(1);
        assert!(writer.has_news());
        assert_eq!((writer.free().len(), reader.filled().len()), (8, 8));
        assert!(!writer.has_news());
    }
}
