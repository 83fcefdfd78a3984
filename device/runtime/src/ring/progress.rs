// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far the two sides of a ring are, and how one that has nothing to do is woken: all that two
//! threads share of a ring but its slots, and every memory ordering of it.
//!
//! Each side has a word that only it writes, on cache lines of its own, because a line there and
//! back is a quarter of a microsecond: the writer's tells how many slots it has filled since the
//! start, the reader's how many it has given back. Slots between the two are the reader's, all
//! others the writer's. A side publishes once a batch.
//!
//! Orderings: `publish` and `give_back` store with release what the other side loads with acquire.
//! So the reader sees what was written into the slots that it may read, and the writer overwrites
//! only what the reader has finished with.
//!
//! **Nobody sleeps through work.** One that wants to sleep sets its bell, passes a fence, and looks
//! for work once more; who has made work passes a fence and looks at the bell. Both fences are
//! sequentially consistent, so one comes first. Is it the sleeper's, the other finds the bell set
//! and wakes it; is it the other's, the sleeper finds the work.
//!
//! The words are a parameter, so that the tests can put those of a model checker in their place,
//! which goes through every order that the memory model allows.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// An atomic word.
pub trait Word: Send + Sync {
    /// A word of 0.
    fn new() -> Self;
    /// Its value.
    fn load(&self, order: Ordering) -> u64;
    /// Sets its value.
    fn store(&self, value: u64, order: Ordering);
    /// A sequentially consistent fence.
    fn fence();
}

impl Word for AtomicU64 {
    fn new() -> Self {
        Self::new(0)
    }

    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Something on cache lines of its own: two, because processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Apart<T>(T);

/// How far the sides of a ring are.
#[derive(Debug)]
pub struct Progress<W = AtomicU64> {
    filled: Apart<W>,
    given_back: Apart<W>,
    slots: u64,
}

/// What the writer of a ring knows.
#[derive(Debug, Default)]
pub struct Writer {
    filled: u64,
    /// As it was found last.
    given_back: u64,
}

/// What the reader of a ring knows.
#[derive(Debug, Default)]
pub struct Reader {
    given_back: u64,
    /// As it was found last.
    filled: u64,
}

impl<W: Word> Progress<W> {
    /// An empty ring of that many slots, a power of two.
    pub fn new(slots: u64) -> Self {
        assert!(slots.is_power_of_two(), "slots are found by masking");
        Self { filled: Apart(W::new()), given_back: Apart(W::new()), slots }
    }

    /// How many slots there are.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// How many slots the writer has filled since the start.
    pub fn filled(&self) -> u64 {
        self.filled.0.load(Ordering::Acquire)
    }

    /// How many slots the reader has given back since the start.
    pub fn given_back(&self) -> u64 {
        self.given_back.0.load(Ordering::Acquire)
    }
}

impl Writer {
    /// The free slots that lie one behind the other: the number of the first, and how many.
    pub fn free<W: Word>(&mut self, progress: &Progress<W>) -> (u64, u64) {
        self.given_back = progress.given_back();
        let at = self.filled & (progress.slots - 1);
        let free = progress.slots - (self.filled - self.given_back);
        (at, free.min(progress.slots - at))
    }

    /// Hands `count` free slots to the reader. They have to be written. What the reader gives back
    /// meanwhile is not looked at: it is news still.
    ///
    /// # Panics
    /// If there are not as many: a mistake of the caller.
    pub fn publish<W: Word>(&mut self, progress: &Progress<W>, count: u64) {
        self.filled += count;
        let is_within = self.filled - self.given_back <= progress.slots;
        assert!(is_within, "only slots that are free are filled");
        progress.filled.0.store(self.filled, Ordering::Release);
    }

    /// Whether the ring had no free slot when it was last looked at, and has one now.
    pub fn has_news<W: Word>(&self, progress: &Progress<W>) -> bool {
        self.filled - self.given_back == progress.slots && progress.given_back() != self.given_back
    }
}

impl Reader {
    /// The filled slots that lie one behind the other: the number of the first, and how many.
    pub fn filled<W: Word>(&mut self, progress: &Progress<W>) -> (u64, u64) {
        self.filled = progress.filled();
        let at = self.given_back & (progress.slots - 1);
        (at, (self.filled - self.given_back).min(progress.slots - at))
    }

    /// Gives `count` filled slots back to the writer. They are used no more. What the writer fills
    /// meanwhile is not looked at: it is news still.
    ///
    /// # Panics
    /// If there are not as many: a mistake of the caller.
    pub fn give_back<W: Word>(&mut self, progress: &Progress<W>, count: u64) {
        self.given_back += count;
        assert!(self.given_back <= self.filled, "only slots that are filled are given back");
        progress.given_back.0.store(self.given_back, Ordering::Release);
    }

    /// Whether more is filled than when the ring was last looked at.
    pub fn has_news<W: Word>(&self, progress: &Progress<W>) -> bool {
        progress.filled() != self.filled
    }
}

/// Tells whether somebody sleeps.
#[derive(Debug)]
pub struct Bell<W = AtomicU64> {
    is_set: Apart<W>,
}

impl<W: Word> Bell<W> {
    /// Nobody sleeps.
    pub fn new() -> Self {
        Self { is_set: Apart(W::new()) }
    }

    /// Says that its owner is about to sleep. It must look for work once more before it does.
    pub fn set(&self) {
        self.is_set.0.store(1, Ordering::Relaxed);
        W::fence();
    }

    /// Says that its owner is awake.
    pub fn unset(&self) {
        self.is_set.0.store(0, Ordering::Relaxed);
    }

    /// Whether its owner has to be woken by whoever has just made work for it.
    pub fn has_to_ring(&self) -> bool {
        W::fence();
        self.is_set.0.load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic;

    impl Word for atomic::AtomicU64 {
        fn new() -> Self {
            Self::new(0)
        }

        fn load(&self, order: Ordering) -> u64 {
            self.load(order)
        }

        fn store(&self, value: u64, order: Ordering) {
            self.store(value, order);
        }

        fn fence() {
            atomic::fence(Ordering::SeqCst);
        }
    }

    /// A ring of two slots, whose accesses the model checker watches for races.
    struct Ring {
        progress: Progress<atomic::AtomicU64>,
        slots: [UnsafeCell<u64>; 2],
    }

    // SAFETY: the model checker ends the test where two threads touch a slot at once.
    unsafe impl Sync for Ring {}
    // SAFETY: as above.
    unsafe impl Send for Ring {}

    impl Ring {
        fn new() -> Arc<Self> {
            let slots = [UnsafeCell::new(0), UnsafeCell::new(0)];
            Arc::new(Self { progress: Progress::new(2), slots })
        }

        /// Writes as many numbers from `next` on as there is room for, up to `end`.
        fn write(&self, writer: &mut Writer, next: u64, end: u64) -> u64 {
            let (first, free) = writer.free(&self.progress);
            let count = free.min(end - next);
            for at in 0..count {
                // SAFETY: free slots are the writer's.
                self.slots[(first + at) as usize].with_mut(|slot| unsafe { *slot = next + at });
            }
            writer.publish(&self.progress, count);
            next + count
        }

        /// Reads what is there, which has to be the numbers from `next` on.
        fn read(&self, reader: &mut Reader, next: u64) -> u64 {
            let (first, count) = reader.filled(&self.progress);
            for at in 0..count {
                // SAFETY: filled slots are the reader's.
                let value = self.slots[(first + at) as usize].with(|slot| unsafe { *slot });
                assert_eq!(value, next + at, "in order, whole, and once");
            }
            reader.give_back(&self.progress, count);
            next + count
        }
    }

    /// Each side has two looks at a ring that the writer fills with the first: so its second one
    /// finds no slot free, or one, or both, and the reader's likewise.
    #[test]
    fn in_every_order_what_is_read_was_written_and_nothing_is_overwritten() {
        loom::model(|| {
            let ring = Ring::new();
            let filler = {
                let ring = ring.clone();
                loom::thread::spawn(move || {
                    let mut writer = Writer::default();
                    (0..2).fold(0, |next, _| ring.write(&mut writer, next, u64::MAX))
                })
            };
            let mut reader = Reader::default();
            let next = (0..2).fold(0, |next, _| ring.read(&mut reader, next));
            let written = filler.join().expect("it ends");
            assert!((2..=4).contains(&written) && next <= written);
            // What is left lies around the end of the ring.
            let next = (0..2).fold(next, |next, _| ring.read(&mut reader, next));
            assert_eq!(next, written, "nothing is lost");
        });
    }

    #[test]
    fn in_every_order_one_that_sleeps_is_woken() {
        loom::model(|| {
            let ring = Ring::new();
            let bell = Arc::new(Bell::<atomic::AtomicU64>::new());
            let sleeper = {
                let (ring, bell) = (ring.clone(), bell.clone());
                loom::thread::spawn(move || {
                    let reader = Reader::default();
                    bell.set();
                    !reader.has_news(&ring.progress)
                })
            };
            ring.write(&mut Writer::default(), 1, 2);
            let rings = bell.has_to_ring();
            let sleeps = sleeper.join().expect("it ends");
            assert!(rings || !sleeps, "it sleeps, and nobody wakes it");
        });
    }

    #[test]
    fn in_every_order_a_writer_that_waits_for_room_is_woken() {
        loom::model(|| {
            let ring = Ring::new();
            let bell = Arc::new(Bell::<atomic::AtomicU64>::new());
            let mut writer = Writer::default();
            ring.write(&mut writer, 1, 3);
            writer.free(&ring.progress);
            let sleeper = {
                let (ring, bell) = (ring.clone(), bell.clone());
                loom::thread::spawn(move || {
                    bell.set();
                    !writer.has_news(&ring.progress)
                })
            };
            ring.read(&mut Reader::default(), 1);
            let rings = bell.has_to_ring();
            let sleeps = sleeper.join().expect("it ends");
            assert!(rings || !sleeps, "it sleeps, and nobody wakes it");
        });
    }
}
