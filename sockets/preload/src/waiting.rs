// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a thread waits before it sleeps: it looks again in a loop, then yields the processor between
//! two looks (SocksDirect 8.2).
//!
//! If the peer waited on the same core, the thread yields at once: a loop would keep the peer from
//! running. If other threads keep the processors busy, it sleeps at once: see [`turns`].
//!
//! A yield that switches to another thread costs two context switches, a fraction of a doorbell.
//! One such yield followed by data is cheaper than sleeping; several without data cost more. So the
//! library [counts](habit) how often each of them paid, and sleeps where they did not.

pub mod deadline;
pub mod epoll;
mod habit;
pub mod looks;
pub mod patience;
pub mod readiness;
pub mod sleep;
mod turns;

use crate::kernel::{raw, switches};
use core::hint;
use habit::Habit;

/// [Ticks](raw::ticks) of looking without yielding the processor: a few microseconds.
const SPIN_TICKS: u64 = 12_000;
/// Ticks until the thread sleeps: a little more than a wake-up takes.
const AWAKE_TICKS: u64 = 300_000;

/// Ticks of a yield that may have switched to another thread: about a microsecond.
const SWITCH_TICKS: u64 = 2_500;
/// Yields tried after the first one without data, if that pays.
const MORE_YIELDS: u32 = 3;

/// Spinning for a moment before sleeping, although turns are lost: a peer with a processor of its
/// own answers sooner than a wake-up takes.
static LOOKING: Habit = Habit::new(4);
/// Yielding once. It pays if data follows at least two times in five.
static YIELDING: Habit = Habit::new(10);
/// Yielding again after a yield without data. It pays if data follows one time in three.
static YIELDING_AGAIN: Habit = Habit::new(11);

/// One wait.
#[derive(Debug)]
pub struct Wait {
    since: u64,
    /// When the last look was.
    last: u64,
    manner: Manner,
    /// Whether the last yield took long enough for a switch to another thread.
    may_have_switched: bool,
    /// Number of yields that switched to another thread and were not followed by data.
    in_vain: u32,
}

/// How the thread waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// Looks, and yields between looks.
    Yields,
    /// Looks for a moment: others want this processor, but not that of the peer.
    Looks,
    /// Sleeps at once.
    Sleeps,
}

impl Wait {
    /// A wait that begins at the first [`step`](Self::step).
    pub fn new() -> Self {
        Self { since: 0, last: 0, manner: Manner::Yields, may_have_switched: false, in_vain: 0 }
    }

    /// Waits a little. False: it is time to sleep. `shares_core` tells whether the peer waited on
    /// this core.
    #[inline]
    pub fn step(&mut self, shares_core: impl FnOnce() -> bool) -> bool {
        let now = raw::ticks();
        if self.since == 0 {
            let is_shared = shares_core();
            self.since = if is_shared { now.wrapping_sub(SPIN_TICKS) } else { now };
            self.manner = Self::manner(now, is_shared);
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
        } else if waited < AWAKE_TICKS && self.manner == Manner::Yields && self.continues() {
            self.yields(now);
        } else {
            match self.manner {
                Manner::Looks => LOOKING.did_not_pay(),
                Manner::Yields if self.in_vain > 0 => YIELDING_AGAIN.did_not_pay(),
                _ => {}
            }
            return false;
        }
        true
    }

    /// The manner of a wait that starts at `now`.
    fn manner(now: u64, is_shared: bool) -> Manner {
        if !turns::are_lost(now) && YIELDING.is_worth_it() {
            Manner::Yields
        } else if !is_shared && LOOKING.is_worth_it() {
            LOOKING.is_tried();
            Manner::Looks
        } else {
            Manner::Sleeps
        }
    }

    /// Yields the processor, and records whether the turn was lost.
    fn yields(&mut self, now: u64) {
        raw::yield_now();
        let after = raw::ticks();
        let ticks = after.wrapping_sub(now);
        self.may_have_switched = ticks > SWITCH_TICKS;
        if self.may_have_switched && self.in_vain == 0 {
            YIELDING.is_tried();
        }
        if turns::came_back(after, ticks) {
            self.manner = Manner::Sleeps;
        }
    }

    /// Whether to yield once more. Called when the last yield was not followed by data.
    fn continues(&mut self) -> bool {
        // Only yields without data pay for the system call that confirms the switch.
        if !self.may_have_switched || !switches::have_been() {
            return true;
        }
        self.in_vain += 1;
        match self.in_vain {
            1 => {
                YIELDING.did_not_pay();
                let continues = YIELDING_AGAIN.is_worth_it();
                if continues {
                    YIELDING_AGAIN.is_tried();
                } else {
                    self.manner = Manner::Sleeps;
                }
                continues
            }
            count => count <= MORE_YIELDS,
        }
    }
}
