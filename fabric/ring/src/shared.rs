// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that two processes have mapped, with the kind of barrier that both have agreed on.
//!
//! A side that goes to sleep has to make the other side execute a memory barrier
//! ([`sleep`](crate::sleep)). `membarrier(2)` does that at no cost for the other side. If one of
//! the two may not call it, both execute a fence with each operation instead.

use crate::{Claimed, Local, Mapped, Remote};
use core::sync::atomic::{Ordering, fence};

/// A part of a mapping, and whether fences are used.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    at: Mapped,
    fenced: bool,
}

impl Shared {
    /// Creates a reference to memory there, with fences if both sides use them.
    pub const fn new(at: Mapped, fenced: bool) -> Self {
        Self { at, fenced }
    }

    /// Returns the memory.
    pub const fn at(self) -> Mapped {
        self.at
    }

    /// Returns whether fences are used.
    pub const fn is_fenced(self) -> bool {
        self.fenced
    }
}

impl Local for Shared {
    #[inline]
    unsafe fn load(&self, offset: usize) -> Claimed {
        // SAFETY: the caller upholds the contract of `load`.
        unsafe { self.at.load(offset) }
    }

    #[inline]
    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: the caller upholds the contract of `read`.
        unsafe { self.at.read(offset, into) }
    }
}

impl Remote for Shared {
    #[inline]
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller upholds the contract of `write`.
        unsafe { self.at.write(offset, bytes) }
    }

    #[inline]
    unsafe fn write_non_temporal(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller upholds the contract of `write_non_temporal`.
        unsafe { self.at.write_non_temporal(offset, bytes) }
    }

    #[inline]
    fn ticks(&self) -> Option<u64> {
        self.at.ticks()
    }

    #[inline]
    unsafe fn store(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds the contract of `store`.
        unsafe { self.at.store(offset, word) }
    }

    #[inline]
    unsafe fn set(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds the contract of `set`.
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
