// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measured times of a point.

use crate::point::Point;

/// Times of one visit of a point by one thread. A group has enough requests that the
/// clock's resolution and cost do not matter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Visit {
    /// Median over groups of the time of a request, in nanoseconds.
    pub median: f64,
    /// Mean of the same.
    pub mean: f64,
    /// 99th percentile over groups, in nanoseconds.
    pub p99: f64,
    /// Requests of a group.
    pub group: u64,
}

/// Quantile over visits: disturbances by other programs only add time.
const QUIET: f64 = 0.25;

/// Results of a point: a low quantile over all visits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// The point.
    pub point: Point,
    /// Time of a request of one thread, in nanoseconds: the lower quartile over visits of the
    /// median over groups.
    pub quiet_median: f64,
    /// Time of a request that 1 % of the groups of a visit exceed, in nanoseconds: the lower
    /// quartile over visits. A group's time is its mean, so single requests may take longer.
    pub group_p99: f64,
    /// Requests of a group.
    pub group: u64,
    /// Time between requests of all threads together, in nanoseconds.
    pub between: f64,
}

impl Visit {
    /// Summarises the times of groups.
    pub fn of(times: &mut [f64], group: u64) -> Self {
        let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
        Self { median: quantile(times, 0.5), mean, p99: quantile(times, 0.99), group }
    }
}

impl Sample {
    /// Summarises visits, each with the results of all threads. Rates follow from medians, which
    /// leave out the time in which other programs had the core. Where threads of the point share a
    /// core, that time belongs to the result, and rates follow from means.
    pub fn of(point: Point, visits: &[Vec<Visit>], shares_core: bool) -> Self {
        let all = || visits.iter().flatten();
        let mut medians: Vec<f64> = all().map(|visit| visit.median).collect();
        let mut p99s: Vec<f64> = all().map(|visit| visit.p99).collect();
        let time_of = |visit: &Visit| if shares_core { visit.mean } else { visit.median };
        let rate_of = |visit: &Vec<Visit>| visit.iter().map(|it| 1.0 / time_of(it)).sum::<f64>();
        let mut between: Vec<f64> = visits.iter().map(|visit| 1.0 / rate_of(visit)).collect();
        Self {
            point,
            quiet_median: quantile(&mut medians, QUIET),
            group_p99: quantile(&mut p99s, QUIET),
            group: all().map(|visit| visit.group).max().unwrap_or(1),
            between: quantile(&mut between, QUIET),
        }
    }

    /// Returns requests of all threads per second, in millions.
    pub fn rate(&self) -> f64 {
        1e3 / self.between
    }
}

/// Returns a quantile; 0 of nothing.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{Kind, Mode};

    #[test]
    fn rates_of_threads_add_up_and_rounds_have_a_median() {
        let kind = Kind::Read;
        let point = Point { kind, mode: Mode::Rate, bytes: 8, batch: 1, range: 4096, threads: 2 };
        let visit = |median| Visit { median, mean: 1.5 * median, p99: 2.0 * median, group: 16 };
        let rounds = [[10.0, 30.0], [20.0, 20.0], [1000.0, 1000.0], [500.0, 500.0], [40.0, 40.0]];
        let visits = rounds.map(|times| times.map(visit).to_vec());
        let sample = Sample::of(point, &visits, false);
        assert_eq!((sample.quiet_median, sample.group_p99, sample.group), (20.0, 40.0, 16));
        assert_eq!((sample.between, sample.rate()), (10.0, 100.0));
        assert_eq!(Sample::of(point, &visits, true).between, 15.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }
}
