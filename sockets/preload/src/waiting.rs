// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a thread waits before it sleeps: it looks again, then lets others have the processor between
//! two looks (SocksDirect 8.2).
//!
//! Where the peer waited on the same core, it lets go of it at once: who looks without that keeps
//! the peer from doing what is waited for.

pub mod barrier;
pub mod epoll;
pub mod patience;
pub mod polling;
pub mod select;
pub mod sleep;

use crate::kernel::raw;
use core::hint;
use core::sync::atomic::{AtomicU64, Ordering};

/// [Ticks](raw::ticks) of looking without letting go of the processor: a few microseconds.
const SPIN_TICKS: u64 = 12_000;
/// Ticks until it is time to sleep: a little more than waking somebody up takes.
const AWAKE_TICKS: u64 = 300_000;

/// Ticks after which whoever got the processor by a yield is somebody who keeps it, having enough
/// to do: about a millisecond.
const KEPT_TICKS: u64 = 2_400_000;
/// Ticks for which a processor counts as wanted by such after that: about a tenth of a second.
const WANTED_TICKS: u64 = 240_000_000;
/// Until when others want the processor. Who sleeps gets it back as soon as a doorbell rings, who
/// yields it when their time is over; only where the peer is among those who get it, a yield is
/// the better way.
static WANTED_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Ticks between two questions to the kernel while there is something to do: about 50
/// microseconds.
pub const ASK_TICKS: u64 = 120_000;

/// One time of waiting.
#[derive(Debug)]
pub struct Wait {
    since: u64,
    yields: bool,
}

impl Wait {
    /// Begins to wait, at the first [`step`](Self::step).
    pub fn new() -> Self {
        Self { since: 0, yields: true }
    }

    /// Waits a little. False: it is time to sleep. `shares_core` says whether the peer waited on
    /// this core.
    #[inline]
    pub fn step(&mut self, shares_core: impl FnOnce() -> bool) -> bool {
        let now = raw::ticks();
        if self.since == 0 {
            let is_shared = shares_core();
            self.since = if is_shared { now.wrapping_sub(SPIN_TICKS) } else { now };
            self.yields = is_shared || now >= WANTED_UNTIL.load(Ordering::Relaxed);
        }
        let waited = now.wrapping_sub(self.since);
        if waited < SPIN_TICKS {
            hint::spin_loop();
        } else if waited < AWAKE_TICKS && self.yields {
            raw::yield_now();
            let after = raw::ticks();
            if after.wrapping_sub(now) > KEPT_TICKS {
                WANTED_UNTIL.store(after.wrapping_add(WANTED_TICKS), Ordering::Relaxed);
            }
        } else {
            return false;
        }
        true
    }
}
