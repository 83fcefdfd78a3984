// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Looking for what others are about to do: at first again and again, then between turns of theirs,
//! and then it is time to sleep.

use crate::kernel::raw;
use core::sync::atomic::{AtomicU32, Ordering};

/// Looks before others get the processor.
pub const LOOKS: u32 = 100;
/// Times that they get it, before who looks sleeps.
pub const YIELDS: u32 = 400;
/// Ticks after which it sleeps all the same, about a hundredth of a second: where many want the
/// processor, each of those may take that long.
const YIELD_TICKS: u64 = 24_000_000;

/// Looks for what others do.
pub struct Looks {
    /// How often that was done.
    pub done: u32,
    /// When others got the processor first, in [ticks](raw::ticks).
    since: u64,
}

impl Looks {
    /// Begins.
    pub fn new() -> Self {
        Self { done: 0, since: 0 }
    }

    /// Waits a little before the next look. False: it is time to sleep.
    pub fn again(&mut self) -> bool {
        self.done += 1;
        if self.done <= LOOKS {
            core::hint::spin_loop();
            return true;
        }
        let now = raw::ticks();
        if self.since == 0 {
            self.since = now;
        }
        if self.done <= LOOKS + YIELDS && now.wrapping_sub(self.since) > YIELD_TICKS {
            self.done = LOOKS + YIELDS + 1;
        }
        if self.done > LOOKS + YIELDS {
            return false;
        }
        raw::yield_now();
        true
    }
}

/// Whether nobody is in a call of the kernel any more, or soon.
pub fn are_out(calls: &AtomicU32) -> bool {
    let mut looks = Looks::new();
    loop {
        if calls.load(Ordering::SeqCst) == 0 {
            return true;
        }
        if !looks.again() {
            return false;
        }
    }
}
