// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The barrier that a thread makes all peers pass before it sleeps, and when it has to.
//!
//! It interrupts every processor that runs a program with this library, which takes longer than
//! all other steps of going to sleep. So all threads sleep lightly (`freeport_ring::sleep`): after
//! a side has announced that once, and made all peers pass a barrier since, it owes no more.

use crate::process;
use core::ops::BitOr;
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// Number of barriers that this process has begun, and the last one that all peers have passed. A
/// child of a fork continues both numbers.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static PASSED: AtomicU64 = AtomicU64::new(0);

/// Whether a barrier is owed before the look that precedes a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[must_use = "the barrier has to be passed before who sleeps looks for the last time"]
pub struct Owed(pub bool);

impl Owed {
    /// Makes all peers pass the barrier, if it is owed. After that all peers see what this thread
    /// announced before, and this thread sees what they did without having seen it.
    pub fn pass(self) {
        if self.0 {
            pass();
        } else {
            fence(Ordering::SeqCst);
        }
    }
}

impl BitOr for Owed {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Makes all peers pass a barrier.
pub fn pass() {
    let number = BEGUN.fetch_add(1, Ordering::SeqCst) + 1;
    if !process::pass_everywhere() {
        // Both sides pass fences in that case.
        fence(Ordering::SeqCst);
    }
    PASSED.fetch_max(number, Ordering::SeqCst);
}

/// The number of the first barrier that begins after a side of a connection has announced that it
/// sleeps lightly; 0: not known. Used with the lock of that side held.
#[derive(Debug)]
pub struct LightSince(AtomicU64);

impl LightSince {
    /// Resets it, for a new connection, or if others may have changed it.
    pub fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether a thread owes a barrier that has just announced a light sleep. `is_new`: the side
    /// did not sleep lightly before. If other processes hold the side as well, they may have begun
    /// and ended that, so nothing is known.
    pub fn owes(&self, is_new: bool, is_alone: bool) -> Owed {
        if !is_alone {
            self.forget();
            return Owed(true);
        }
        let since = self.0.load(Ordering::Relaxed);
        if is_new || since == 0 {
            self.0.store(BEGUN.load(Ordering::SeqCst) + 1, Ordering::Relaxed);
            return Owed(true);
        }
        Owed(PASSED.load(Ordering::SeqCst) < since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sleeps_lightly_owes_one_barrier_that_began_behind_the_announcement() {
        let since = LightSince(AtomicU64::new(0));
        assert_eq!(since.owes(true, true), Owed(true));
        assert_eq!(since.owes(false, true), Owed(true), "none has been passed since then");
        pass();
        assert_eq!(since.owes(false, true), Owed(false));
        assert_eq!(since.owes(true, true), Owed(true), "it was taken back meanwhile");
        pass();
        assert_eq!(since.owes(false, false), Owed(true), "others have the side");
        assert_eq!(since.owes(false, true), Owed(true), "and had it");
        pass();
        assert_eq!(since.owes(false, true), Owed(false));
        since.forget();
        assert_eq!(since.owes(false, true), Owed(true));
    }
}
