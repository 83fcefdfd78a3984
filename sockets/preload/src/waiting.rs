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
/// The same where others want the processor: a peer that is just answering does so in less.
const GLANCE_TICKS: u64 = 2_400;
/// Ticks until it is time to sleep: a little more than waking somebody up takes.
const AWAKE_TICKS: u64 = 300_000;

/// Ticks after which whoever got the processor by a yield is somebody who keeps it, having enough
/// to do: about a millisecond.
const KEPT_TICKS: u64 = 2_400_000;
/// Ticks for which a processor counts as wanted by such after that: about a tenth of a second.
const WANTED_TICKS: u64 = 240_000_000;
/// Until when others want the processor, and keep it. Who sleeps gets it back as soon as a doorbell
/// rings, who yields it when their time is over.
static WANTED_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Ticks of a yield to nobody: about two microseconds.
const YIELD_TICKS: u64 = 4_800;
/// Ticks for which somebody else is expected to have something to do, after a yield to him: about a
/// millisecond. To look without letting go of the processor keeps him from it.
const SHARED_TICKS: u64 = 2_400_000;
/// Until then.
static SHARED_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Ticks between two questions to the kernel while there is something to do: about 50
/// microseconds.
pub const ASK_TICKS: u64 = 120_000;

/// One time of waiting.
#[derive(Debug)]
pub struct Wait {
    /// When it began, in ticks; 0: it has not.
    since: u64,
    /// For how long it looks without letting go of the processor, in ticks, and for how long
    /// altogether.
    spins: u64,
    stays: u64,
}

impl Wait {
    /// Begins to wait, at the first [`step`](Self::step).
    pub fn new() -> Self {
        Self { since: 0, spins: 0, stays: 0 }
    }

    /// Waits a little. False: it is time to sleep. `shares_core` says whether the peer waited on
    /// this core.
    #[inline]
    pub fn step(&mut self, shares_core: impl FnOnce() -> bool) -> bool {
        let now = raw::ticks();
        if self.since == 0 {
            *self = Self::begun(now, shares_core());
        }
        let waited = now.wrapping_sub(self.since);
        if waited >= self.stays {
            return false;
        }
        if waited < self.spins {
            hint::spin_loop();
        } else {
            raw::yield_now();
            self.has_yielded(now, raw::ticks());
        }
        true
    }

    fn begun(since: u64, shares_core: bool) -> Self {
        let is_shared = shares_core || since < SHARED_UNTIL.load(Ordering::Relaxed);
        match since < WANTED_UNTIL.load(Ordering::Relaxed) {
            true if shares_core => Self { since, spins: 0, stays: 0 },
            true => Self { since, spins: GLANCE_TICKS, stays: GLANCE_TICKS },
            false if is_shared => Self { since, spins: 0, stays: AWAKE_TICKS - SPIN_TICKS },
            false => Self { since, spins: SPIN_TICKS, stays: AWAKE_TICKS },
        }
    }

    /// Takes note of how long others had the processor.
    #[inline]
    fn has_yielded(&mut self, before: u64, after: u64) {
        let others = after.wrapping_sub(before);
        if others > KEPT_TICKS {
            WANTED_UNTIL.store(after.wrapping_add(WANTED_TICKS), Ordering::Relaxed);
        } else if others > YIELD_TICKS {
            SHARED_UNTIL.store(after.wrapping_add(SHARED_TICKS), Ordering::Relaxed);
            // What they did meanwhile is no waste.
            self.since = self.since.wrapping_add(others - YIELD_TICKS);
        }
    }
}
