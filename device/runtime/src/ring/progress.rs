// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress of the two sides of a ring, and how a sleeping side is woken: everything that two
//! threads share of a ring except its slots, and every memory ordering of it.
//!
//! Each side has a word that only it writes, on cache lines of its own, because moving a line there
//! and back takes a quarter of a microsecond: the writer's counts the slots it has filled since the
//! start, the reader's those it has given back. Slots between the two belong to the reader, all
//! others to the writer. A side publishes once per batch.
//!
//! Orderings: `publish` and `give_back` store with release what the other side loads with acquire.
//! So the reader sees the contents of the slots that it may read, and the writer overwrites only
//! slots that the reader has finished with.
//!
//! **No side sleeps while it has work.** A side that is about to sleep sets its bell, executes a
//! fence, and checks for work once more; a side that has produced work executes a fence and checks
//! the bell. Both fences are sequentially consistent, so one comes first. If it is the sleeper's,
//! the other side finds the bell set and wakes it; otherwise the sleeper finds the work.
//!
//! The words are a type parameter, so that the tests can substitute those of a model checker, which
//! explores every order that the memory model allows.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// An atomic word.
pub trait Word: Send + Sync {
    /// Creates a word of 0.
    fn new() -> Self;
    /// Returns its value.
    fn load(&self, order: Ordering) -> u64;
    /// Sets its value.
    fn store(&self, value: u64, order: Ordering);
    /// Executes a sequentially consistent fence.
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

/// A value on cache lines of its own: two, because processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Apart<T>(T);

/// Progress of the two sides of a ring.
#[derive(Debug)]
pub struct Progress<W = AtomicU64> {
    filled: Apart<W>,
    given_back: Apart<W>,
    slots: u64,
}

/// State of the writer of a ring.
#[derive(Debug, Default)]
pub struct Writer {
    filled: u64,
    /// The reader's count, as last read.
    given_back: u64,
}

/// State of the reader of a ring.
#[derive(Debug, Default)]
pub struct Reader {
    given_back: u64,
    /// The writer's count, as last read.
    filled: u64,
}

impl<W: Word> Progress<W> {
    /// Creates an empty ring of this number of slots, a power of two.
    pub fn new(slots: u64) -> Self {
        assert!(slots.is_power_of_two(), "slots are found by masking");
        Self { filled: Apart(W::new()), given_back: Apart(W::new()), slots }
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns the number of slots that the writer has filled since the start.
    pub fn filled(&self) -> u64 {
        self.filled.0.load(Ordering::Acquire)
    }

    /// Returns the number of slots that the reader has given back since the start.
    pub fn given_back(&self) -> u64 {
        self.given_back.0.load(Ordering::Acquire)
    }
}

impl Writer {
    /// Returns the contiguous free slots: the number of the first, and their count.
    pub fn free<W: Word>(&mut self, progress: &Progress<W>) -> (u64, u64) {
        self.given_back = progress.given_back();
        let at = self.filled & (progress.slots - 1);
        let free = progress.slots - (self.filled - self.given_back);
        (at, free.min(progress.slots - at))
    }

    /// Publishes `count` free slots, which have to be written, to the reader. It does not check for
    /// slots that the reader gives back concurrently: they still count as news.
    ///
    /// # Panics
    /// If fewer slots are free: a mistake of the caller.
    pub fn publish<W: Word>(&mut self, progress: &Progress<W>, count: u64) {
        self.filled += count;
        let is_within = self.filled - self.given_back <= progress.slots;
        assert!(is_within, "only slots that are free are filled");
        progress.filled.0.store(self.filled, Ordering::Release);
    }

    /// Returns whether the ring had no free slot at the last check, and has one now.
    pub fn has_news<W: Word>(&self, progress: &Progress<W>) -> bool {
        self.filled - self.given_back == progress.slots && progress.given_back() != self.given_back
    }
}

impl Reader {
    /// Returns the contiguous filled slots: the number of the first, and their count.
    pub fn filled<W: Word>(&mut self, progress: &Progress<W>) -> (u64, u64) {
        self.filled = progress.filled();
        let at = self.given_back & (progress.slots - 1);
        (at, (self.filled - self.given_back).min(progress.slots - at))
    }

    /// Gives `count` filled slots, which are no longer used, back to the writer. It does not check
    /// for slots that the writer fills concurrently: they still count as news.
    ///
    /// # Panics
    /// If fewer slots are filled: a mistake of the caller.
    pub fn give_back<W: Word>(&mut self, progress: &Progress<W>, count: u64) {
        self.given_back += count;
        assert!(self.given_back <= self.filled, "only slots that are filled are given back");
        progress.given_back.0.store(self.given_back, Ordering::Release);
    }

    /// Returns whether more slots are filled than at the last check.
    pub fn has_news<W: Word>(&self, progress: &Progress<W>) -> bool {
        progress.filled() != self.filled
    }
}

/// A flag that is set while its owner sleeps.
#[derive(Debug)]
pub struct Bell<W = AtomicU64> {
    is_set: Apart<W>,
}

impl<W: Word> Bell<W> {
    /// Creates a bell whose owner is awake.
    pub fn new() -> Self {
        Self { is_set: Apart(W::new()) }
    }

    /// Announces that its owner is about to sleep. The owner must check for work once more before
    /// it does.
    pub fn set(&self) {
        self.is_set.0.store(1, Ordering::Relaxed);
        W::fence();
    }

    /// Announces that its owner is awake.
    pub fn unset(&self) {
        self.is_set.0.store(0, Ordering::Relaxed);
    }

    /// Returns whether its owner has to be woken; called after producing work for it.
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

    // SAFETY: the model checker fails the test if two threads access a slot at the same time.
    unsafe impl Sync for Ring {}
    // SAFETY: as above.
    unsafe impl Send for Ring {}

    impl Ring {
        fn new() -> Arc<Self> {
            let slots = [UnsafeCell::new(0), UnsafeCell::new(0)];
            Arc::new(Self { progress: Progress::new(2), slots })
        }

        /// Writes the numbers from `next` on, as many as there is room for, up to `end`.
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

        /// Reads the filled slots, which have to hold the numbers from `next` on.
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

    /// Each side checks a ring twice that the writer fills at its first check: so its second check
    /// finds no free slot, or one, or both, and likewise for the reader.
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
            // The remaining slots lie around the end of the ring.
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
            assert!(rings || !sleeps, "it sleeps and is never woken");
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
            assert!(rings || !sleeps, "it sleeps and is never woken");
        });
    }
}
