// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that two processes have mapped, with the barrier that both have agreed on.
//!
//! Who goes to sleep has to make the other side pass a memory barrier ([`sleep`](crate::sleep)).
//! `membarrier(2)` does that, and costs the other side nothing. Where one of the two may not call
//! it, both pass a fence with each operation instead.

use crate::{Claimed, Local, Mapped, Remote};
use core::sync::atomic::{Ordering, fence};

/// A part of a mapping, and whether there are fences.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    at: Mapped,
    fenced: bool,
}

impl Shared {
    /// Memory there, with fences if both sides use those.
    pub const fn new(at: Mapped, fenced: bool) -> Self {
        Self { at, fenced }
    }

    /// Where it is.
    pub const fn at(self) -> Mapped {
        self.at
    }

    /// Whether there are fences.
    pub const fn is_fenced(self) -> bool {
        self.fenced
    }
}

impl Local for Shared {
    #[inline]
    unsafe fn load(&self, offset: usize) -> Claimed {
        // SAFETY: as the caller says.
        unsafe { self.at.load(offset) }
    }

    #[inline]
    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: as the caller says.
        unsafe { self.at.read(offset, into) }
    }
}

impl Remote for Shared {
    #[inline]
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: as the caller says.
        unsafe { self.at.write(offset, bytes) }
    }

    #[inline]
    unsafe fn write_non_temporal(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: as the caller says.
        unsafe { self.at.write_non_temporal(offset, bytes) }
    }

    #[inline]
    fn ticks(&self) -> Option<u64> {
        self.at.ticks()
    }

    #[inline]
    unsafe fn store(&mut self, offset: usize, word: u64) {
        // SAFETY: as the caller says.
        unsafe { self.at.store(offset, word) }
    }

    #[inline]
    unsafe fn set(&mut self, offset: usize, word: u64) {
        // SAFETY: as the caller says.
        unsafe { self.at.set(offset, word) }
    }

    #[inline]
    fn will_write(&self, offset: usize) {
        self.at.will_write(offset);
    }

    #[inline]
    fn barrier(&self) {
        if self.fenced {
            fence(Ordering::SeqCst);
        } else {
            self.at.barrier();
        }
    }
}
