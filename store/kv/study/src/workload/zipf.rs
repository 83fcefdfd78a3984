// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ranks with a Zipf distribution: the probability of rank `i`, counted from 0, is nearly
//! proportional to `1 / (i + 1)^theta`.
//!
//! The method is that of Gray et al., "Quickly Generating Billion-Record Synthetic Databases"
//! (SIGMOD 1994), which YCSB uses too: one random number and one power for each draw, and no table.
//! It is exact for the first two ranks and inverts a continuous distribution for the others. Among
//! a billion ranks at a theta of 0.99, rank 2 is drawn 20 % too often, rank 9 4 %, and ranks from
//! 25 on differ by less than 1.5 %. [`Zipf::probability`] is the distribution that is drawn.
//!
//! The method needs the generalised harmonic number `zeta(n, theta)`, a sum of `n` terms. Here the
//! first thousand are added up, and the Euler-Maclaurin formula gives the rest. Records can
//! therefore be added at any time at the same small cost.

use fastrand::Rng;

/// Skew of the YCSB workloads; the "long tail" of the published evaluation (KV-Direct, hash table).
pub const THETA: f64 = 0.99;

/// Terms of zeta that are added up.
const TERMS: u64 = 1000;

/// The sum of `1 / i^theta` for `i` from 1 to `n`, for a `theta` of at least 0.
///
/// From `n` = 1000 on it is an approximation. The first neglected term of the Euler-Maclaurin
/// formula bounds its error: `theta (theta + 1) (theta + 2) / (720 * 1000^(theta + 3))`, below
/// 1e-12. Rounding of the largest sums adds a relative error below 1e-12.
pub fn zeta(n: u64, theta: f64) -> f64 {
    let head = (1..=n.min(TERMS)).rev().map(|i| (i as f64).powf(-theta)).sum::<f64>();
    if n <= TERMS { head } else { head + tail(n, theta) }
}

/// The terms of zeta from `TERMS` (exclusive) to `n`, by the Euler-Maclaurin formula.
fn tail(n: u64, theta: f64) -> f64 {
    let (from, to) = (TERMS as f64, n as f64);
    let integral = if theta == 1.0 {
        (to / from).ln()
    } else {
        (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta)
    };
    let ends = (to.powf(-theta) - from.powf(-theta)) / 2.0;
    let slopes = theta * (from.powf(-theta - 1.0) - to.powf(-theta - 1.0)) / 12.0;
    integral + ends + slopes
}

/// A generator of ranks with a Zipf distribution. Rank 0 is the most frequent one.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    theta: f64,
    /// The terms of zeta that any large `n` has in common.
    head: f64,
    /// Limits of the ranks 0 and 1, in random numbers from 0 to zeta.
    limits: [f64; 2],
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Ranks from 0 to `n` (exclusive) with skew `theta`; 0 is uniform.
    ///
    /// Returns `None` if `n` is 0, or if `theta` is not at least 0 and below 1, as the method
    /// needs.
    pub fn new(n: u64, theta: f64) -> Option<Zipf> {
        if n == 0 || !(0.0..1.0).contains(&theta) {
            return None;
        }
        let limits = [1.0, 1.0 + 0.5_f64.powf(theta)];
        let head = zeta(TERMS, theta);
        let alpha = 1.0 / (1.0 - theta);
        let mut zipf = Zipf { n, theta, head, limits, zeta: 0.0, alpha, eta: 0.0 };
        zipf.set_records(n);
        Some(zipf)
    }

    /// Number of ranks.
    pub fn records(&self) -> u64 {
        self.n
    }

    /// Sets the number of ranks in constant time. At least one remains.
    pub fn set_records(&mut self, n: u64) {
        self.n = n.max(1);
        self.zeta = if self.n <= TERMS {
            zeta(self.n, self.theta)
        } else {
            self.head + tail(self.n, self.theta)
        };
        // With fewer ranks than three, the limits decide alone.
        let ratio = (2.0 / self.n as f64).powf(1.0 - self.theta);
        let rest = 1.0 - self.limits[1] / self.zeta;
        self.eta = if self.n > 2 { (1.0 - ratio) / rest } else { 0.0 };
    }

    /// Draws a rank.
    #[inline]
    pub fn draw(&self, random: &mut Rng) -> u64 {
        self.rank(random.f64())
    }

    /// The rank at `share` of the distribution, from 0 to 1.
    #[inline]
    fn rank(&self, share: f64) -> u64 {
        let at = share * self.zeta;
        if at < self.limits[0] {
            return 0;
        }
        if at < self.limits[1] {
            return 1.min(self.n - 1);
        }
        let base = self.eta * share - self.eta + 1.0;
        ((self.n as f64 * base.powf(self.alpha)) as u64).min(self.n - 1)
    }

    /// Probability with which [`Zipf::draw`] returns `rank`.
    pub fn probability(&self, rank: u64) -> f64 {
        let share_below = |rank: u64| match rank {
            0 => 0.0,
            _ if rank >= self.n => 1.0,
            1 => self.limits[0] / self.zeta,
            _ => {
                let base = (rank as f64 / self.n as f64).powf(1.0 / self.alpha);
                (1.0 + (base - 1.0) / self.eta).max(self.limits[1] / self.zeta)
            }
        };
        share_below(rank + 1) - share_below(rank)
    }

    /// Probability of `rank` in an exact Zipf distribution.
    pub fn exact_probability(&self, rank: u64) -> f64 {
        ((rank + 1) as f64).powf(-self.theta) / self.zeta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_equals_the_sum_of_all_terms() {
        for (n, theta) in [(1, 0.99), (999, 0.5), (1000, 0.99), (1001, 0.99), (300_000, 0.99)] {
            let sum = (1..=n).rev().map(|i| (i as f64).powf(-theta)).sum::<f64>();
            let found = zeta(n, theta);
            assert!((found / sum - 1.0).abs() < 1e-12, "n {n}: {found} instead of {sum}");
        }
        assert_eq!(zeta(1 << 40, 0.0).round(), (1u64 << 40) as f64);
        // The constant that YCSB has for ten billion records.
        assert!((zeta(10_000_000_000, 0.99) - 26.469_028_201_783_02).abs() < 1e-6);
    }

    #[test]
    fn records_that_are_added_give_the_same_generator_as_records_from_the_start() {
        let mut grown = Zipf::new(3, THETA).expect("valid");
        for n in [1, 2, 5, 1000, 1001, 77_777, 1_000_000_000] {
            grown.set_records(n);
            let fresh = Zipf::new(n, THETA).expect("valid");
            for share in [0.0, 0.1, 0.35, 0.5, 0.77, 0.999, 1.0 - f64::EPSILON] {
                assert_eq!(grown.rank(share), fresh.rank(share), "{n} records, share {share}");
                assert!(fresh.rank(share) < n);
            }
        }
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for (n, theta) in [(0, 0.5), (5, 1.0), (5, -0.1), (5, f64::NAN)] {
            assert!(Zipf::new(n, theta).is_none(), "{n} {theta}");
        }
    }

    /// Pearson's statistic over the first ranks, and all others in powers of two.
    #[test]
    fn ranks_have_the_stated_probabilities() {
        const DRAWS: u64 = 1_000_000;
        for (n, theta) in [(10, 0.99), (1000, 0.99), (1_000_000_000, 0.99), (1000, 0.5), (50, 0.0)]
        {
            let zipf = Zipf::new(n, theta).expect("valid");
            let mut random = Rng::with_seed(7);
            let class = |rank: u64| match rank {
                0..16 => rank as usize,
                _ => 12 + rank.ilog2() as usize,
            };
            let classes = class(n - 1) + 1;
            let mut found = vec![0u64; classes];
            (0..DRAWS).for_each(|_| found[class(zipf.draw(&mut random))] += 1);
            let mut expected = vec![0.0; classes];
            (0..n.min(16)).for_each(|rank| expected[rank as usize] = zipf.probability(rank));
            for (at, share) in expected.iter_mut().enumerate().skip(16) {
                let (from, to) = (1u64 << (at - 12), (1u64 << (at - 11)).min(n));
                *share = span(&zipf, from, to);
            }
            assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{n}: all ranks");
            let statistic = found.iter().zip(&expected).map(|(&found, share)| {
                let mean = share * DRAWS as f64;
                (found as f64 - mean).powi(2) / mean
            });
            // Mean `classes - 1`, deviation its double's root: five deviations.
            let freedom = (classes - 1) as f64;
            let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
            let statistic = statistic.sum::<f64>();
            assert!(statistic < limit, "n {n}, theta {theta}: {statistic} of {limit}, {found:?}");
        }
    }

    /// Probability of the ranks from `from` to `to` (exclusive), from the ends alone.
    fn span(zipf: &Zipf, from: u64, to: u64) -> f64 {
        let below = |rank: u64| {
            if rank >= zipf.n {
                return 1.0;
            }
            let base = (rank as f64 / zipf.n as f64).powf(1.0 / zipf.alpha);
            1.0 + (base - 1.0) / zipf.eta
        };
        below(to) - below(from)
    }

    #[test]
    fn probabilities_differ_from_the_exact_distribution_as_documented() {
        let zipf = Zipf::new(1_000_000_000, THETA).expect("valid");
        let error = |rank| zipf.probability(rank) / zipf.exact_probability(rank) - 1.0;
        assert!(error(0).abs() < 1e-9 && error(1).abs() < 1e-9);
        assert!((0.20..0.21).contains(&error(2)), "{}", error(2));
        assert!((0.04..0.05).contains(&error(9)), "{}", error(9));
        assert!((25..10_000).all(|rank| error(rank).abs() < 0.015));
    }
}
