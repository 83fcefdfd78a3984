// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A way of waiting that is tried as long as it pays: how often it has done so of late decides.

use core::sync::atomic::{AtomicU32, Ordering};

/// What has always paid.
const MAX: u32 = 1 << 10;
/// From where on it is worth it always; below that, only now and then, to see.
const ENOUGH: u32 = MAX / 2;
const NOW_AND_THEN: u32 = 16;
/// How much of what is missing to [`MAX`] each time adds that has paid.
const GAIN: u32 = 16;

/// One such way.
#[derive(Debug)]
pub struct Habit {
    /// How much it has paid of late.
    paid: AtomicU32,
    /// How often it was not worth it since then.
    passed_over: AtomicU32,
    /// What part of it is lost each time that it did not pay.
    loss: u32,
}

impl Habit {
    /// One that is taken to pay until it did not. The more it costs in vain, the less is `loss`: it
    /// is worth it always from a share of `1 - loss / 16` of the times on.
    pub const fn new(loss: u32) -> Self {
        Self { paid: AtomicU32::new(MAX), passed_over: AtomicU32::new(0), loss }
    }

    /// Whether to try it.
    #[inline]
    pub fn is_worth_it(&self) -> bool {
        self.paid.load(Ordering::Relaxed) >= ENOUGH
            || self.passed_over.fetch_add(1, Ordering::Relaxed).is_multiple_of(NOW_AND_THEN)
    }

    /// It is tried. It is taken to have paid until it is said that it [did not](Self::did_not_pay).
    #[inline]
    pub fn is_tried(&self) {
        let paid = self.paid.load(Ordering::Relaxed);
        self.paid.store(paid + (MAX - paid) / GAIN, Ordering::Relaxed);
    }

    /// It was tried, and did not pay.
    pub fn did_not_pay(&self) {
        let paid = self.paid.load(Ordering::Relaxed);
        self.paid.store(paid - paid / self.loss, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often of so many times it is tried, if it pays in each of `share` times, in 16.
    fn tries_of(habit: &Habit, times: u32, share: u32) -> u32 {
        let mut tries = 0;
        for _ in 0..times {
            if habit.is_worth_it() {
                habit.is_tried();
                // A step that has no divisor in common with 16: the times are spread.
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
