// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Histogram of times, with buckets 1/64 of a power of two wide: every time is accurate to 1 %, and
//! memory does not depend on the number of times.

use std::time::Duration;

/// Buckets per power of two.
const STEPS: u64 = 64;
/// Number of buckets: up to 2^40 ns, which is 18 minutes.
pub const BUCKETS: usize = bucket(1 << 40) + 1;

/// Number of occurrences of each time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
}

/// Returns the bucket of a time in nanoseconds; times beyond the last bucket are counted in it.
pub const fn bucket(nanoseconds: u64) -> usize {
    let ns = if nanoseconds > 1 << 40 { 1 << 40 } else { nanoseconds };
    if ns < 2 * STEPS {
        return ns as usize;
    }
    let shift = ns.ilog2() - STEPS.ilog2();
    (shift as u64 * STEPS + (ns >> shift)) as usize
}

/// Returns the middle of a bucket, in nanoseconds.
fn middle(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < 2 * STEPS {
        return bucket as f64;
    }
    let shift = bucket / STEPS - 1;
    let first = (bucket - shift * STEPS) << shift;
    first as f64 + ((1_u64 << shift) - 1) as f64 / 2.0
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS] }
    }
}

impl Histogram {
    /// Creates a histogram from the counts of its buckets.
    pub fn of_counts(counts: impl Iterator<Item = u64>) -> Self {
        let mut own = Self::default();
        own.counts.iter_mut().zip(counts).for_each(|(to, from)| *to = from);
        own
    }

    /// Counts a time.
    pub fn add(&mut self, time: Duration) {
        self.add_times(time, 1);
    }

    /// Counts a time that occurred `times` times.
    pub fn add_times(&mut self, time: Duration, times: u64) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)] += times;
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(to, from)| *to += from);
    }

    /// Number of times counted.
    pub fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Mean of all times in nanoseconds; NaN if there are none.
    pub fn mean(&self) -> f64 {
        let counted = self.counts.iter().enumerate();
        let sum: f64 = counted.map(|(bucket, count)| middle(bucket) * *count as f64).sum();
        sum / self.len() as f64
    }

    /// Returns the time in nanoseconds that the fraction `part` (0 to 1) of all times does not
    /// exceed; 0 if there are none.
    pub fn quantile(&self, part: f64) -> f64 {
        let rank = ((part * self.len() as f64).ceil() as u64).max(1);
        self.steps().find(|(_, reached)| *reached >= rank).map_or(0.0, |(time, _)| time)
    }

    /// For each time that occurred, in nanoseconds: the number of times that were not longer.
    pub fn steps(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let occurred = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        occurred.scan(0, |reached, (bucket, count)| {
            *reached += count;
            Some((middle(bucket), *reached))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_their_middles_are_in_them() {
        for at in 0..BUCKETS {
            assert_eq!(bucket(middle(at) as u64), at);
            assert!(at == 0 || middle(at) > middle(at - 1));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_off_by_at_most_one_percent() {
        let mut all = Histogram::default();
        (1..=100_000_u64).for_each(|at| all.add(Duration::from_nanos(17 * at)));
        for part in [0.001, 0.5, 0.99, 0.999, 1.0] {
            let exact = 17.0 * (part * 100_000.0_f64).ceil();
            let found = all.quantile(part);
            assert!((found / exact - 1.0).abs() < 0.01, "{part}: {found}, not {exact}");
        }
        assert_eq!(Histogram::default().quantile(0.5), 0.0);
    }

    #[test]
    fn two_together_have_what_both_have() {
        let mut one = Histogram::default();
        one.add(Duration::from_nanos(5));
        let mut other = Histogram::default();
        other.add(Duration::from_nanos(5));
        other.add(Duration::from_nanos(9));
        one.merge(&other);
        assert_eq!(one.steps().collect::<Vec<_>>(), [(5.0, 2), (9.0, 3)]);
        assert_eq!(Histogram::of_counts(one.counts.iter().copied()), one);
    }
}
