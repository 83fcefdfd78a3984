// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The barrier that who goes to sleep makes all peers pass, wherever they are, and who owes it.
//!
//! It interrupts every processor that runs a program with this library, which takes longer than
//! all the rest of going to sleep. So all sleep lightly (`freeport_ring::sleep`): who has announced
//! that once, and made all pass a barrier since then, owes it no more.

use crate::process;
use core::ops::BitOr;
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// Barriers that this process has begun, and the last of those that all have passed. A fork's child
/// goes on with both: what all have passed before, they have passed.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static PASSED: AtomicU64 = AtomicU64::new(0);

/// Whether a barrier is owed before the look that precedes a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[must_use = "the barrier has to be passed before who sleeps looks for the last time"]
pub struct Owed(pub bool);

impl Owed {
    /// Makes all pass it, if it is owed. Behind that all see what was announced before, and what
    /// they did without having seen it is seen here.
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

/// Makes all others pass a barrier.
pub fn pass() {
    let number = BEGUN.fetch_add(1, Ordering::SeqCst) + 1;
    if !process::pass_everywhere() {
        // Both sides have fences then.
        fence(Ordering::SeqCst);
    }
    PASSED.fetch_max(number, Ordering::SeqCst);
}

/// Since which barrier a side of a connection is known to sleep lightly: the number of the first
/// that begins behind the announcement; 0: it is not known. Of this process, and used with the
/// lock of that side held.
#[derive(Debug)]
pub struct LightSince(AtomicU64);

impl LightSince {
    /// It is not known any more, or the connection is another one.
    pub fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// What is owed by who has just announced that he sleeps lightly. `is_new` says whether the
    /// side did not before; where other processes have the side as well, they may have begun and
    /// ended that, so nothing is known.
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
