// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A word of a slab that is used as an atomic: whatever this side wrote there, the peer may have
//! written something else since then.

use core::sync::atomic::{AtomicU64, Ordering};
use freeport_ring::Claimed;

/// Such a word. What is read there is a [claim](Claimed), in words of this side's as well.
#[derive(Clone, Copy, Debug)]
pub struct SharedWord<'a>(&'a AtomicU64);

impl SharedWord<'_> {
    /// The one that begins there.
    ///
    /// # Safety
    /// It is aligned and stays mapped for as long as this is used, and everybody accesses it only
    /// as an atomic.
    pub const unsafe fn at(place: *mut u8) -> Self {
        // SAFETY: as the caller says.
        Self(unsafe { AtomicU64::from_ptr(place.cast()) })
    }

    /// What is there, behind all that this thread has stored.
    #[inline]
    pub fn load(self) -> Claimed {
        Claimed::new(self.0.load(Ordering::SeqCst))
    }

    /// What is there, in no order.
    #[inline]
    pub fn glance(self) -> Claimed {
        Claimed::new(self.0.load(Ordering::Relaxed))
    }

    /// Writes a word.
    #[inline]
    pub fn store(self, word: u64) {
        self.0.store(word, Ordering::SeqCst);
    }

    /// Writes a word, in no order.
    #[inline]
    pub fn note(self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }

    /// Writes a word and gives what was there: none of what this thread does behind it is done
    /// before.
    #[inline]
    pub fn swap(self, word: u64) -> Claimed {
        Claimed::new(self.0.swap(word, Ordering::SeqCst))
    }

    /// Writes a word if another one is there; whether it was.
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

    /// Adds to it, around the end.
    #[inline]
    pub fn add(self, by: u64) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }

    /// Takes from it, around the end.
    #[inline]
    pub fn sub(self, by: u64) {
        self.0.fetch_sub(by, Ordering::SeqCst);
    }
}
