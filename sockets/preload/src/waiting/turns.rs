// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether others want the processors, as this process learns by losing its turns.
//!
//! Who yields, or looks again and again, is at the end of the queue when somebody has enough to do:
//! it is back when that one's time is over, milliseconds later. Who sleeps in the kernel is woken
//! by a doorbell and goes before those. So a turn that was lost is a reason to sleep at once for a
//! while; then one is tried again, and if that is lost as well, the while is longer. A turn costs
//! up to 4 ms, so that trying takes half a percent of the time at the most.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Ticks after which who has yielded has lost a turn: somebody else had enough to do. A peer that
/// answers is quicker, and so are several that wait as well.
pub const LOST_TICKS: u64 = 1_200_000;
/// Ticks for which it sleeps at once after the first turn that was lost: about as long as that
/// took, since somebody may have wanted the processor for once.
const FIRST_TICKS: u64 = 12_000_000;
/// How often that is doubled: to more than half a second.
const DOUBLED_MAX: u32 = 7;

/// Until when turns count as lost.
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// How many have been lost one after the other, about.
static LOST: AtomicU32 = AtomicU32::new(0);
/// How many were not lost since then; so many make it begin anew. Beside others that have enough to
/// do, some are not: those that the peer gets.
static KEPT: AtomicU32 = AtomicU32::new(0);
const KEPT_FOR_GOOD: u32 = 1000;

/// Whether a turn would be lost at that time, as far as is known.
#[inline]
pub fn are_lost(now: u64) -> bool {
    now < UNTIL.load(Ordering::Relaxed)
}

/// A yield has taken so many ticks, until now. True: the turn was lost.
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

/// A turn was lost that ended now.
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
