// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Polling for what others are about to do: first in a loop, then with yields in between, and then
//! it is time to sleep.

use crate::kernel::raw;
use core::sync::atomic::{AtomicU32, Ordering};

/// Number of looks before the processor is yielded.
pub const LOOKS: u32 = 100;
/// Number of yields before the caller sleeps.
pub const YIELDS: u32 = 400;
/// Ticks of yielding after which the caller sleeps anyway, about a hundredth of a second: if many
/// threads want the processor, each yield may take that long.
const YIELD_TICKS: u64 = 24_000_000;

/// A series of looks.
pub struct Looks {
    /// Number of looks.
    pub done: u32,
    /// When the processor was yielded first, in [ticks](raw::ticks).
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

/// Waits briefly until no thread is in these calls. False: some still are.
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
