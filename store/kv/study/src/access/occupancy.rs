// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Occupancy of chained buckets: how many of them an operation visits.
//!
//! Keys hash to buckets evenly, so the number of pairs that hash to one bucket is Poisson
//! distributed. If all pairs take the same number of slots, a bucket has room for `q` pairs, and
//! pair `i` of a chain (from 0) lies in its bucket `i / q`. Two means follow in closed form: `b`,
//! the buckets visited to reach a stored pair, and `c`, the buckets visited to learn that a key is
//! absent. If sizes differ, pairs are thrown into buckets at random, each into the first bucket of
//! the chain that has room.

use fastrand::Rng;

/// Numbers of pairs in a bucket that are less likely than this do not count; a natural logarithm.
const LEAST_LOG_PROBABILITY: f64 = -40.0;

/// Number of pairs thrown. The error of the means is below 1 %.
const THROWN_PAIRS: f64 = (1 << 17) as f64;

/// Occupancy of buckets: means over all buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// Mean number of buckets visited to reach a stored pair, `b`.
    pub buckets_to_hit: f64,
    /// Mean number of buckets visited to learn that a key is absent, `c`.
    pub buckets_to_miss: f64,
}

impl Occupancy {
    /// Occupancy of buckets with room for `pairs_in_bucket` pairs, when `mean_pairs` hash to each.
    pub fn poisson(mean_pairs: f64, pairs_in_bucket: usize) -> Occupancy {
        let (mut visits, mut chained) = (0.0, 0.0);
        // Logarithms, because the first terms of a large mean are below the smallest float.
        let mut log_probability = -mean_pairs;
        let mut at_most = 0.0;
        let mut pairs = 0usize;
        loop {
            at_most += log_probability.exp();
            let more = (1.0 - at_most).max(0.0);
            visits += more * (pairs / pairs_in_bucket + 1) as f64;
            if pairs > 0 && pairs.is_multiple_of(pairs_in_bucket) {
                chained += more;
            }
            pairs += 1;
            if pairs as f64 > mean_pairs && log_probability < LEAST_LOG_PROBABILITY {
                break;
            }
            log_probability += (mean_pairs / pairs as f64).ln();
        }
        let buckets_to_hit = if mean_pairs > 0.0 { visits / mean_pairs } else { 1.0 };
        Occupancy { buckets_to_hit, buckets_to_miss: 1.0 + chained }
    }

    /// Occupancy of buckets when `mean_pairs` hash to each, and the share `slots_shares[i]` of them
    /// takes `i` slots. The last share is that of pairs that fill a bucket.
    pub fn thrown(mean_pairs: f64, slots_shares: &[f64]) -> Occupancy {
        let mut random = Rng::with_seed(1);
        let bucket_slots = slots_shares.len() - 1;
        let buckets = (THROWN_PAIRS / mean_pairs).clamp(64.0, THROWN_PAIRS).ceil() as usize;
        // Free slots of each bucket of each chain.
        let mut chains = vec![vec![bucket_slots]; buckets];
        let pairs = (buckets as f64 * mean_pairs) as usize;
        let mut visits = 0;
        for _ in 0..pairs {
            let slots = draw(slots_shares, &mut random);
            let chain = &mut chains[random.usize(..buckets)];
            let at = chain.iter().position(|&free| free >= slots).unwrap_or_else(|| {
                chain.push(bucket_slots);
                chain.len() - 1
            });
            chain[at] -= slots;
            visits += at + 1;
        }
        let chained: usize = chains.iter().map(Vec::len).sum();
        Occupancy {
            buckets_to_hit: if pairs == 0 { 1.0 } else { visits as f64 / pairs as f64 },
            buckets_to_miss: chained as f64 / buckets as f64,
        }
    }
}

/// Draws an index by its share.
fn draw(shares: &[f64], random: &mut Rng) -> usize {
    let mut rest = random.f64();
    let drawn = shares.iter().position(|share| {
        rest -= share;
        rest < 0.0
    });
    // Rounding may leave a rest.
    drawn.unwrap_or(shares.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_of_one_pair_a_bucket_has_a_closed_form() {
        for mean in [0.01, 0.5, 0.8, 3.0, 40.0, 2000.0_f64] {
            let found = Occupancy::poisson(mean, 1);
            let miss = mean + (-mean).exp();
            assert!((found.buckets_to_hit / (1.0 + mean / 2.0) - 1.0).abs() < 1e-9, "{found:?}");
            assert!((found.buckets_to_miss / miss - 1.0).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn thrown_pairs_of_one_size_have_the_occupancy_of_the_closed_form() {
        for (mean, slots) in [(0.3, 5), (2.0, 2), (4.0, 2), (7.0, 1), (30.0, 3), (700.0, 1)] {
            let mut shares = [0.0; 11];
            shares[slots] = 1.0;
            let thrown = Occupancy::thrown(mean, &shares);
            let exact = Occupancy::poisson(mean, 10 / slots);
            let error = |found: f64, expected: f64| (found / expected - 1.0).abs();
            assert!(error(thrown.buckets_to_hit, exact.buckets_to_hit) < 0.01, "{mean} {slots}");
            assert!(error(thrown.buckets_to_miss, exact.buckets_to_miss) < 0.01, "{mean} {slots}");
        }
    }

    #[test]
    fn small_pairs_fill_the_gaps_that_large_ones_leave() {
        let mut shares = [0.0; 11];
        (shares[1], shares[7]) = (0.75, 0.25);
        // Ten slots a chain on average. Gaps of three slots would be lost without the small pairs.
        let mixed = Occupancy::thrown(4.0, &shares);
        let large = Occupancy::poisson(1.0, 1);
        assert!(mixed.buckets_to_miss < large.buckets_to_miss + 0.35, "{mixed:?} {large:?}");
    }
}
