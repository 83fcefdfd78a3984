// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A word of a slab that is used as an atomic. The peer may overwrite it at any time.

use core::sync::atomic::{AtomicU64, Ordering};
use freeport_ring::Claimed;

/// Such a word. A value read from it is a [claim](Claimed), even in words of this side.
#[derive(Clone, Copy, Debug)]
pub struct SharedWord<'a>(&'a AtomicU64);

impl SharedWord<'_> {
    /// The word that begins there.
    ///
    /// # Safety
    /// It is aligned, stays mapped for as long as this is used, and is only accessed as an atomic.
    pub const unsafe fn at(place: *mut u8) -> Self {
        // SAFETY: the caller upholds it.
        Self(unsafe { AtomicU64::from_ptr(place.cast()) })
    }

    /// Reads the word, after all stores of this thread.
    #[inline]
    pub fn load(self) -> Claimed {
        Claimed::new(self.0.load(Ordering::SeqCst))
    }

    /// Reads the word without ordering.
    #[inline]
    pub fn glance(self) -> Claimed {
        Claimed::new(self.0.load(Ordering::Relaxed))
    }

    /// Writes the word.
    #[inline]
    pub fn store(self, word: u64) {
        self.0.store(word, Ordering::SeqCst);
    }

    /// Writes the word without ordering.
    #[inline]
    pub fn note(self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }

    /// Writes the word and returns the value before. Nothing that follows in this thread is moved
    /// before it.
    #[inline]
    pub fn swap(self, word: u64) -> Claimed {
        Claimed::new(self.0.swap(word, Ordering::SeqCst))
    }

    /// Writes `to` if the value is `from`; returns whether it was.
    #[inline]
    pub fn exchange(self, from: u64, to: u64) -> bool {
        self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Sets bits.
    #[inline]
    pub fn set(self, bits: u64) {
        self.0.fetch_or(bits, Ordering::SeqCst);
    }

    /// Clears bits.
    #[inline]
    pub fn clear(self, bits: u64) {
        self.0.fetch_and(!bits, Ordering::SeqCst);
    }

    /// Adds to the word, wrapping.
    #[inline]
    pub fn add(self, by: u64) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }

    /// Subtracts from the word, wrapping.
    #[inline]
    pub fn sub(self, by: u64) {
        self.0.fetch_sub(by, Ordering::SeqCst);
    }
}
