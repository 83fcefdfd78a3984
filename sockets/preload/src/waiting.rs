// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a thread waits before it sleeps: it looks again, then lets others have the processor between
//! two looks (SocksDirect 8.2).
//!
//! Where the peer waited on the same core, it lets go of it at once: who looks without that keeps
//! the peer from doing what is waited for.

use crate::raw;
use core::hint;

/// [Ticks](raw::ticks) of looking without letting go of the processor: a few microseconds.
const SPIN_TICKS: u64 = 12_000;
/// Ticks until it is time to sleep: a little more than waking somebody up takes.
const AWAKE_TICKS: u64 = 300_000;

/// Ticks between two questions to the kernel while there is something to do: about 50
/// microseconds.
pub const ASK_TICKS: u64 = 120_000;

/// One time of waiting.
#[derive(Debug)]
pub struct Wait {
    since: u64,
}

impl Wait {
    /// Begins to wait, at the first [`step`](Self::step).
    pub fn new() -> Self {
        Self { since: 0 }
    }

    /// Waits a little. False: it is time to sleep. `shares_core` says whether the peer waited on
    /// this core.
    #[inline]
    pub fn step(&mut self, shares_core: impl FnOnce() -> bool) -> bool {
        let now = raw::ticks();
        if self.since == 0 {
            self.since = if shares_core() { now.wrapping_sub(SPIN_TICKS) } else { now };
        }
        let waited = now.wrapping_sub(self.since);
        if waited < SPIN_TICKS {
            hint::spin_loop();
        } else if waited < AWAKE_TICKS {
            raw::yield_now();
        } else {
            return false;
        }
        true
    }
}
