// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether other processes keep the processors busy, which this process learns by losing turns.
//!
//! A thread that yields, or looks in a loop, is at the end of the queue if another one computes: it
//! runs again when that one's time slice is over, milliseconds later. A thread that sleeps in the
//! kernel is woken by a doorbell and runs before those. So after a lost turn the process sleeps at
//! once for a while; then it tries again, and if that turn is lost as well, the while is longer. A
//! turn costs up to 4 ms, so trying takes at most half a percent of the time.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Ticks after which a yield counts as a lost turn: another thread computed. A peer that answers is
/// quicker, and so are several waiting threads.
pub const LOST_TICKS: u64 = 1_200_000;
/// Ticks for which it sleeps at once after the first lost turn: about as long as that took, since
/// another thread may have wanted the processor just once.
const FIRST_TICKS: u64 = 12_000_000;
/// Number of times that this is doubled: to more than half a second.
const DOUBLED_MAX: u32 = 7;

/// Until when turns count as lost.
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// Number of turns lost in a row, about.
static LOST: AtomicU32 = AtomicU32::new(0);
/// Number of turns that were not lost since then, and the number that starts over. Beside busy
/// threads some turns are not lost: those that the peer gets.
static KEPT: AtomicU32 = AtomicU32::new(0);
const KEPT_FOR_GOOD: u32 = 1000;

/// Whether a turn would probably be lost at that time.
#[inline]
pub fn are_lost(now: u64) -> bool {
    now < UNTIL.load(Ordering::Relaxed)
}

/// Records a yield that took `ticks` until now. True: the turn was lost.
#[inline]
pub fn came_back(now: u64, ticks: u64) -> bool {
    let is_late = ticks > LOST_TICKS;
    if is_late {
        is_lost(now);
    } else if LOST.load(Ordering::Relaxed) != 0
        && KEPT.fetch_add(1, Ordering::Relaxed) >= KEPT_FOR_GOOD
    {
        LOST.store(0, Ordering::Relaxed);
    }
    is_late
}

/// Records a lost turn that ended now.
#[cold]
pub fn is_lost(now: u64) {
    let lost = LOST.load(Ordering::Relaxed).min(DOUBLED_MAX);
    LOST.store(lost + 1, Ordering::Relaxed);
    KEPT.store(0, Ordering::Relaxed);
    UNTIL.store(now.wrapping_add(FIRST_TICKS << lost), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_loses_turns_tries_less_and_less_often() {
        let mut now = 1_000_000_000_000;
        assert!(!are_lost(now) && !came_back(now, LOST_TICKS));
        let mut whiles = [0_u64; 10];
        for place in &mut whiles {
            assert!(came_back(now, LOST_TICKS + 1));
            let begun = now;
            while are_lost(now) {
                now += FIRST_TICKS / 4;
            }
            *place = (now - begun) / FIRST_TICKS;
        }
        assert_eq!(whiles, [1, 2, 4, 8, 16, 32, 64, 128, 128, 128]);
        // Those that came back in time, and it begins anew.
        assert!((0..=KEPT_FOR_GOOD).all(|_| !came_back(now, 1)));
        assert!(came_back(now, u64::MAX) && !are_lost(now + FIRST_TICKS));
    }
}
