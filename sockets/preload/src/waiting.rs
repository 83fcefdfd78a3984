// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a thread waits before it sleeps: it looks again, then lets others have the processor between
//! two looks (SocksDirect 8.2).
//!
//! Where the peer waited on the same core, it lets go of it at once: who looks without that keeps
//! the peer from doing what is waited for. Where others have enough to do for the processors, it
//! sleeps at once: see [`turns`].

pub mod barrier;
pub mod epoll;
pub mod patience;
pub mod polling;
pub mod select;
pub mod sleep;
mod turns;

use crate::kernel::raw;
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
    /// When it was looked last.
    last: u64,
    manner: Manner,
}

/// How it is waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// Looks, and yields between looks.
    Yields,
    /// Looks for a moment: others want the processor, but not that of the peer.
    Looks,
    /// Sleeps at once.
    Sleeps,
}

impl Wait {
    /// Begins to wait, at the first [`step`](Self::step).
    pub fn new() -> Self {
        Self { since: 0, last: 0, manner: Manner::Yields }
    }

    /// Waits a little. False: it is time to sleep. `shares_core` says whether the peer waited on
    /// this core.
    #[inline]
    pub fn step(&mut self, shares_core: impl FnOnce() -> bool) -> bool {
        let now = raw::ticks();
        if self.since == 0 {
            let is_shared = shares_core();
            self.since = if is_shared { now.wrapping_sub(SPIN_TICKS) } else { now };
            self.manner = match turns::are_lost(now) {
                false => Manner::Yields,
                true if !is_shared && turns::look_pays() => Manner::Looks,
                true => Manner::Sleeps,
            };
            self.last = now;
        }
        let waited = now.wrapping_sub(self.since);
        if waited < SPIN_TICKS && self.manner != Manner::Sleeps {
            if now.wrapping_sub(self.last) > turns::LOST_TICKS {
                self.manner = Manner::Sleeps;
                turns::is_lost(now);
            }
            hint::spin_loop();
            self.last = now;
        } else if waited < AWAKE_TICKS && self.manner == Manner::Yields {
            raw::yield_now();
            let after = raw::ticks();
            if turns::came_back(after, after.wrapping_sub(now)) {
                self.manner = Manner::Sleeps;
            }
        } else {
            if self.manner == Manner::Looks {
                turns::look_did_not_pay();
            }
            return false;
        }
        true
    }
}
