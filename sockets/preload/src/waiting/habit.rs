// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A way of waiting that is tried as long as it pays, decided by a moving average of its success.

use core::sync::atomic::{AtomicU32, Ordering};

/// Average of a way that always paid.
const MAX: u32 = 1 << 10;
/// Average above which the way is always tried. Below it, one time of [`NOW_AND_THEN`] tries it.
const ENOUGH: u32 = MAX / 2;
const NOW_AND_THEN: u32 = 16;
/// Each success adds this fraction of the distance to [`MAX`].
const GAIN: u32 = 16;

/// One such way of waiting.
#[derive(Debug)]
pub struct Habit {
    /// Moving average of its success, up to [`MAX`].
    paid: AtomicU32,
    /// Number of times it was not tried since the average fell below [`ENOUGH`].
    passed_over: AtomicU32,
    /// Each failure subtracts this fraction of the average.
    loss: u32,
}

impl Habit {
    /// Starts with the highest average. The way is always tried while it pays in a share of at
    /// least `1 - loss / 16` of the tries, so an expensive way has a small `loss`.
    pub const fn new(loss: u32) -> Self {
        Self { paid: AtomicU32::new(MAX), passed_over: AtomicU32::new(0), loss }
    }

    /// Whether to try it now.
    #[inline]
    pub fn is_worth_it(&self) -> bool {
        self.paid.load(Ordering::Relaxed) >= ENOUGH
            || self.passed_over.fetch_add(1, Ordering::Relaxed).is_multiple_of(NOW_AND_THEN)
    }

    /// Counts a try as a success. [`did_not_pay`](Self::did_not_pay) corrects that.
    #[inline]
    pub fn is_tried(&self) {
        let paid = self.paid.load(Ordering::Relaxed);
        self.paid.store(paid + (MAX - paid) / GAIN, Ordering::Relaxed);
    }

    /// The last try failed.
    pub fn did_not_pay(&self) {
        let paid = self.paid.load(Ordering::Relaxed);
        self.paid.store(paid - paid / self.loss, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of tries in `times` waits, if `share` of 16 tries pay.
    fn tries_of(habit: &Habit, times: u32, share: u32) -> u32 {
        let mut tries = 0;
        for _ in 0..times {
            if habit.is_worth_it() {
                habit.is_tried();
                // 7 and 16 have no common divisor, which spreads the successes.
                if (tries * 7) % 16 >= share {
                    habit.did_not_pay();
                }
                tries += 1;
            }
        }
        tries
    }

    #[test]
    fn what_does_not_pay_becomes_rare_and_comes_back_when_it_does() {
        let habit = Habit::new(4);
        assert_eq!(tries_of(&habit, 1600, 16), 1600);
        assert!((100..130).contains(&tries_of(&habit, 1600, 0)));
        assert!(tries_of(&habit, 1600, 16) > 1300);
    }

    #[test]
    fn the_loss_decides_which_share_is_enough() {
        assert_eq!(tries_of(&Habit::new(8), 16_000, 12), 16_000);
        assert!(tries_of(&Habit::new(8), 16_000, 5) < 3000);
        assert!(tries_of(&Habit::new(4), 16_000, 10) < 6000);
    }
}
