// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Choice of the stores by which long writes go into a ring: measured, since the distance to the
//! receiver is unknown.
//!
//! Ordinary stores leave bytes in caches, after taking the lines back from the receiver's. Where
//! both cores share a cache, nothing is faster. Where they do not, each line crosses the link
//! between them twice, with few in flight at once. Non-temporal stores go to memory, from which the
//! receiver's core prefetches many lines: between dies that is twice as fast, and half as fast
//! within one. The host of a virtual machine may move its processors from one case to the other at
//! any time. So both are compared repeatedly: less often the longer the outcome has been the same.

/// Shorter writes take no part in trials, and use ordinary stores.
pub(crate) const LONG_BYTES: usize = 4096;

/// Number of times that the ring's capacity is written while a trial measures, and before it does:
/// until then the receiver still reads bytes written by the other stores.
const MEASURED: u64 = 2;
const SETTLING: u64 = 1;
/// Number of times that the capacity is written between trials: the initial value, used again after
/// a different outcome, and the maximum; it doubles each time.
const PAUSE: (u64, u64) = (16, 2048);

/// Kind of stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stores {
    /// Ordinary stores.
    Ordinary,
    /// Stores that bypass the caches; see
    /// [`Remote::write_non_temporal`](crate::Remote::write_non_temporal).
    NonTemporal,
}

/// Current step of the measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Pause,
    MeasureOne,
    Settle,
    MeasureOther,
}

/// Limits of the time between two writes, in ticks and in multiples of the second write's own time.
/// A longer time belongs to the program, and is not counted: some tenth of a millisecond, or more
/// for long writes. A shorter time counts, because the receiver does its part in it.
const GAP_MAX: u64 = 1 << 18;
const GAP_WRITES_MAX: u64 = 8;

/// Bytes, and the ticks that they took including the gaps.
#[derive(Clone, Copy, Default, Debug)]
struct Pace {
    bytes: u64,
    ticks: u64,
}

impl Pace {
    /// Returns whether these bytes took at most four fifths of the time of the others: smaller
    /// differences are noise.
    fn is_faster_than(self, other: Self) -> bool {
        let own = u128::from(self.ticks) * u128::from(other.bytes);
        let others = u128::from(other.ticks) * u128::from(self.bytes);
        5 * own <= 4 * others
    }
}

/// The choice between both kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    stores: Stores,
    step: Step,
    pause: u64,
    pace: Pace,
    /// Pace of the stores that were measured first.
    one: Pace,
    /// Time at which the last write ended.
    ended: u64,
}

impl Default for Choice {
    fn default() -> Self {
        let (pace, one) = (Pace::default(), Pace::default());
        let (stores, step) = (Stores::Ordinary, Step::Pause);
        Self { stores, step, pause: PAUSE.0, pace, one, ended: 0 }
    }
}

impl Choice {
    /// Returns the kind of stores for long writes.
    pub(crate) fn stores(&self) -> Stores {
        self.stores
    }

    /// Records a long write that began and ended at these ticks, and put `bytes` into a ring of
    /// that capacity.
    pub(crate) fn has_written(
        &mut self,
        (began, ended): (u64, u64),
        bytes: usize,
        capacity: usize,
    ) {
        let (gap, own) = (began.saturating_sub(self.ended), ended.saturating_sub(began));
        let is_own = gap > GAP_MAX.max(own.saturating_mul(GAP_WRITES_MAX));
        self.pace.ticks += if is_own { own } else { own + gap };
        self.ended = ended;
        self.pace.bytes += bytes as u64;
        let laps = match self.step {
            Step::Pause => self.pause,
            Step::MeasureOne | Step::MeasureOther => MEASURED,
            Step::Settle => SETTLING,
        };
        if self.pace.bytes >= laps * capacity as u64 {
            self.end_step();
            self.pace = Pace::default();
        }
    }

    fn end_step(&mut self) {
        self.step = match self.step {
            Step::Pause => Step::MeasureOne,
            Step::MeasureOne => {
                self.one = self.pace;
                self.stores = self.other();
                Step::Settle
            }
            Step::Settle => Step::MeasureOther,
            Step::MeasureOther => {
                self.decide();
                Step::Pause
            }
        };
    }

    /// Ends a trial: the stores are now those that were measured second.
    fn decide(&mut self) {
        let (before, other) = (self.other(), self.stores);
        let is_far = match other {
            Stores::NonTemporal => self.pace.is_faster_than(self.one),
            Stores::Ordinary => self.one.is_faster_than(self.pace),
        };
        self.stores = if is_far { Stores::NonTemporal } else { Stores::Ordinary };
        let is_same = self.stores == before;
        self.pause = if is_same { PAUSE.1.min(2 * self.pause) } else { PAUSE.0 };
    }

    fn other(&self) -> Stores {
        match self.stores {
            Stores::Ordinary => Stores::NonTemporal,
            Stores::NonTemporal => Stores::Ordinary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, GAP_MAX, GAP_WRITES_MAX, PAUSE, Stores};

    const CAPACITY: usize = 1 << 16;
    const WRITE: usize = CAPACITY / 4;

    /// Makes some laps of long writes that take these numbers of ticks by each kind of stores, with
    /// gaps between them; returns the percentage of the last ones that were non-temporal.
    fn write(
        choice: &mut Choice,
        now: &mut u64,
        laps: usize,
        (ordinary, non_temporal): (u64, u64),
        gap: impl Fn(usize) -> u64,
    ) -> usize {
        let (all, mut count) = (4 * laps, 0);
        for number in 0..all {
            let ticks = match choice.stores() {
                Stores::Ordinary => ordinary,
                Stores::NonTemporal => non_temporal,
            };
            count += usize::from(number >= all / 2 && choice.stores() == Stores::NonTemporal);
            *now += gap(number);
            choice.has_written((*now, *now + ticks), WRITE, CAPACITY);
            *now += ticks;
        }
        200 * count / all
    }

    #[test]
    fn what_is_faster_is_used_but_for_trials() {
        let far = write(&mut Choice::default(), &mut 0, 4000, (4000, 1600), |_| 100);
        assert!((98..100).contains(&far), "{far} of 100");
        let near = write(&mut Choice::default(), &mut 0, 4000, (1000, 2000), |_| 100);
        assert!(near <= 1, "{near} of 100");
        let same = write(&mut Choice::default(), &mut 0, 4000, (1000, 900), |_| 100);
        assert!(same <= 1, "{same} of 100");
    }

    #[test]
    fn cores_that_are_moved_are_noticed() {
        let (mut choice, mut now) = (Choice::default(), 0);
        for laps in [3, 4 * PAUSE.1 as usize] {
            let far = write(&mut choice, &mut now, laps + 8000, (4000, 1600), |_| 100);
            assert!(far > 90, "{far} of 100");
            let near = write(&mut choice, &mut now, laps + 8000, (1000, 2000), |_| 100);
            assert!(near < 10, "{near} of 100");
        }
    }

    #[test]
    fn what_the_receiver_does_meanwhile_counts_and_a_pause_of_the_program_does_not() {
        // The stores take the same time, but the program is delayed longer after one kind.
        let mut choice = Choice::default();
        let (mut now, mut far) = (0, 0);
        for _ in 0..16_000 {
            let is_far = choice.stores() == Stores::NonTemporal;
            far += usize::from(is_far);
            now += if is_far { 1000 } else { 3000 };
            choice.has_written((now, now + 1000), WRITE, CAPACITY);
            now += 1000;
        }
        assert!(far > 15_000, "{far} of 16,000");
        let slow = write(&mut Choice::default(), &mut 0, 4000, (GAP_MAX, GAP_MAX / 2), |_| {
            GAP_WRITES_MAX * GAP_MAX / 2
        });
        assert!(slow <= 1, "{slow} of 100");
        let pauses = |number| if number % 3 == 0 { 2 * GAP_MAX } else { 100 };
        let far = write(&mut Choice::default(), &mut 0, 4000, (4000, 1600), pauses);
        assert!((98..100).contains(&far), "{far} of 100");
    }
}
