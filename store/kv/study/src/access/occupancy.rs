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
const THROWN_PAIRS: f64 = (1 << 15) as f64;

/// Occupancy of buckets: means over all buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// Mean number of buckets visited to reach a stored pair, `b`.
    pub buckets_to_hit: f64,
    /// Mean number of buckets visited to learn that a key is absent, `c`.
    pub buckets_to_miss: f64,
    /// Probability that a new pair needs a bucket more.
    pub appends: f64,
    /// Probability that a deletion leaves a chained bucket empty.
    pub unlinks: f64,
}

/// Sums over the chains of several buckets.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    chains: f64,
    pairs: f64,
    /// Buckets visited to reach each pair.
    visits: f64,
    buckets: f64,
    appends: f64,
    /// Chained buckets with one pair.
    singles: f64,
}

impl Occupancy {
    /// Occupancy of buckets with room for `pairs_in_bucket` pairs, when `mean_pairs` hash to each.
    pub fn poisson(mean_pairs: f64, pairs_in_bucket: usize) -> Occupancy {
        let mut sums = Sums::default();
        let mut visits = 0;
        for (pairs, probability) in Poisson::new(mean_pairs) {
            // The visits of a chain with `pairs`; the sum has those of its earlier pairs already.
            visits += if pairs == 0 { 0 } else { (pairs - 1) / pairs_in_bucket + 1 };
            let (full, rest) = (pairs / pairs_in_bucket, pairs % pairs_in_bucket);
            let singles = match pairs_in_bucket {
                1 => pairs.saturating_sub(1),
                _ => usize::from(full > 0 && rest == 1),
            };
            sums.chains += probability;
            sums.pairs += probability * pairs as f64;
            sums.visits += probability * visits as f64;
            sums.buckets += probability * pairs.div_ceil(pairs_in_bucket).max(1) as f64;
            sums.appends += if full > 0 && rest == 0 { probability } else { 0.0 };
            sums.singles += probability * singles as f64;
        }
        sums.occupancy()
    }

    /// Occupancy of buckets when `mean_pairs` hash to each, and the share `slots_shares[i]` of them
    /// takes `i` slots. The last share is that of pairs that fill a bucket.
    pub fn thrown(mean_pairs: f64, slots_shares: &[f64]) -> Occupancy {
        let mut random = Rng::with_seed(1);
        let chains = (THROWN_PAIRS / mean_pairs).clamp(64.0, THROWN_PAIRS);
        let mut sums = Sums::default();
        let (mut at_most, mut thrown) = (0.0, 0);
        let mut chain = vec![];
        for (pairs, probability) in Poisson::new(mean_pairs) {
            at_most += probability;
            // As many chains have this number of pairs as the distribution says, so that only the
            // sizes are left to chance.
            let up_to = (at_most * chains).round() as usize;
            for _ in thrown..up_to {
                sums.add_chain(pairs, slots_shares, &mut chain, &mut random);
            }
            thrown = up_to;
        }
        sums.occupancy()
    }
}

impl Sums {
    /// Adds a chain into which `pairs` are thrown. `chain` is scratch memory.
    fn add_chain(
        &mut self,
        pairs: usize,
        slots_shares: &[f64],
        chain: &mut Vec<(usize, usize)>,
        random: &mut Rng,
    ) {
        // Free slots and pairs of each bucket.
        let empty = (slots_shares.len() - 1, 0);
        chain.clear();
        chain.push(empty);
        for _ in 0..pairs {
            let slots = draw(slots_shares, random);
            let at = chain.iter().position(|&(free, _)| free >= slots).unwrap_or(chain.len());
            if at == chain.len() {
                chain.push(empty);
            }
            chain[at].0 -= slots;
            chain[at].1 += 1;
            self.visits += (at + 1) as f64;
        }
        let most_free = chain.iter().map(|&(free, _)| free).max().unwrap_or(0);
        self.chains += 1.0;
        self.pairs += pairs as f64;
        self.buckets += chain.len() as f64;
        self.appends += slots_shares[most_free + 1..].iter().sum::<f64>();
        self.singles += chain[1..].iter().filter(|&&(_, pairs)| pairs == 1).count() as f64;
    }

    fn occupancy(&self) -> Occupancy {
        let per_pair = |sum: f64| if self.pairs > 0.0 { sum / self.pairs } else { 0.0 };
        Occupancy {
            buckets_to_hit: per_pair(self.visits).max(1.0),
            buckets_to_miss: self.buckets / self.chains,
            appends: self.appends / self.chains,
            unlinks: per_pair(self.singles),
        }
    }
}

/// Numbers of pairs and their probabilities, up to negligible ones.
struct Poisson {
    mean: f64,
    pairs: usize,
    /// Logarithm, because the first terms of a large mean are below the smallest float.
    log_probability: f64,
}

impl Poisson {
    fn new(mean: f64) -> Poisson {
        Poisson { mean, pairs: 0, log_probability: -mean }
    }
}

impl Iterator for Poisson {
    type Item = (usize, f64);

    fn next(&mut self) -> Option<(usize, f64)> {
        let (pairs, log_probability) = (self.pairs, self.log_probability);
        if pairs as f64 > self.mean && log_probability < LEAST_LOG_PROBABILITY {
            return None;
        }
        self.pairs += 1;
        self.log_probability += (self.mean / self.pairs as f64).ln();
        Some((pairs, log_probability.exp()))
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
    fn chains_become_longer_and_shorter_at_the_same_rate() {
        // In a store of constant size an insert follows each deletion.
        for (mean, pairs_in_bucket) in [(0.5, 1), (3.0, 2), (4.0, 5), (12.0, 10)] {
            let Occupancy { appends, unlinks, .. } = Occupancy::poisson(mean, pairs_in_bucket);
            assert!(appends > 0.0 && unlinks > 0.0, "{mean} {pairs_in_bucket}");
            // Each pair of a single bucket is deleted at the rate `1 / mean` of inserts.
            let next = Occupancy::poisson(mean + 1e-6, pairs_in_bucket);
            let now = Occupancy::poisson(mean, pairs_in_bucket);
            let growth = (next.buckets_to_miss - now.buckets_to_miss) / 1e-6;
            assert!((growth - appends).abs() < 1e-3, "{mean} {pairs_in_bucket}: {growth}");
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
            assert!((thrown.appends - exact.appends).abs() < 0.05, "{mean} {slots}");
            assert!((thrown.unlinks - exact.unlinks).abs() < 0.01, "{mean} {slots}");
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
