// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared memory with the barrier that both sides have agreed on.
//!
//! Who goes to sleep has to make the other side pass a memory barrier
//! ([`sleep`](freeport_ring::sleep)). `membarrier(2)` does that, and costs the other side nothing.
//! Where one of the two may not call it, both pass a fence with each operation instead.

use freeport_ring::{Local, Mapped, Remote};
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};

/// A part of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    at: Mapped,
    fenced: bool,
}

impl Memory {
    /// Memory there, with fences if both sides use those.
    pub(crate) fn new(at: Mapped, fenced: bool) -> Self {
        Self { at, fenced }
    }

    /// Where it is.
    pub(crate) fn at(self) -> Mapped {
        self.at
    }

    /// Whether there are fences.
    pub(crate) fn is_fenced(self) -> bool {
        self.fenced
    }
}

impl Local for Memory {
    #[inline]
    unsafe fn load(&self, offset: usize) -> u64 {
        // SAFETY: as the caller says.
        unsafe { self.at.load(offset) }
    }

    #[inline]
    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: as the caller says.
        unsafe { self.at.read(offset, into) }
    }
}

impl Remote for Memory {
    #[inline]
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: as the caller says.
        unsafe { self.at.write(offset, bytes) }
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

/// Whether this process can make others pass a barrier, and has said that it can be made to.
pub fn has_membarrier() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let register = libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    *REGISTERED.get_or_init(|| membarrier(register) && pass_everywhere())
}

/// Makes all registered processes pass a barrier, wherever they are. False: it is refused.
pub fn pass_everywhere() -> bool {
    membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED)
}

fn membarrier(command: i32) -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
