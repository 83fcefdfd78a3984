// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Distributions of the records that operations choose.

use fastrand::Rng;

use super::{Scramble, THETA, Zipf};

/// The way in which operations choose records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Distribution {
    /// All records alike.
    Uniform,
    /// Zipf with a skew of 0.99: record 0 is the most popular one.
    Zipf,
    /// The same distribution, with popular records scattered among the others.
    ScrambledZipf,
    /// Zipf by age: the newest record is the most popular one.
    Latest,
}

impl Distribution {
    /// All distributions.
    pub const ALL: [Distribution; 4] = [
        Distribution::Uniform,
        Distribution::Zipf,
        Distribution::ScrambledZipf,
        Distribution::Latest,
    ];

    /// Name of the distribution in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Zipf => "zipf",
            Distribution::ScrambledZipf => "scrambled-zipf",
            Distribution::Latest => "latest",
        }
    }
}

/// A generator of ranks with one of the distributions.
#[derive(Clone, Debug)]
pub struct Ranks {
    distribution: Distribution,
    zipf: Zipf,
    scramble: Scramble,
    random: Rng,
}

impl Ranks {
    /// Ranks below `records`, of which there is at least one.
    pub fn new(distribution: Distribution, records: u64, seed: u64) -> Ranks {
        let records = records.max(1);
        Ranks {
            distribution,
            zipf: Zipf::new(records, THETA).expect("there are records, and the skew is below 1"),
            scramble: Scramble::new(records, seed),
            random: Rng::with_seed(seed),
        }
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.zipf.records()
    }

    /// Adds a record, and returns its rank. Records added later are not scattered among the others.
    pub fn add_record(&mut self) -> u64 {
        let rank = self.records();
        self.zipf.set_records(rank + 1);
        rank
    }

    /// Draws a rank.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        match self.distribution {
            Distribution::Uniform => self.random.u64(..self.records()),
            Distribution::Zipf => self.zipf.draw(&mut self.random),
            Distribution::ScrambledZipf => self.scramble.record(self.zipf.draw(&mut self.random)),
            Distribution::Latest => self.records() - 1 - self.zipf.draw(&mut self.random),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn histogram(distribution: Distribution, records: u64, draws: usize) -> Vec<u32> {
        let mut ranks = Ranks::new(distribution, records, 11);
        let mut counts = vec![0; records as usize];
        (0..draws).for_each(|_| counts[ranks.draw() as usize] += 1);
        counts
    }

    #[test]
    fn uniform_ranks_are_alike() {
        let counts = histogram(Distribution::Uniform, 100, 1_000_000);
        // Five deviations of a count around its mean of 10000.
        assert!(counts.iter().all(|count| (9500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn scrambled_and_latest_ranks_have_the_frequencies_of_zipf() {
        let mut zipf = histogram(Distribution::Zipf, 500, 100_000);
        let mut latest = histogram(Distribution::Latest, 500, 100_000);
        latest.reverse();
        // The same random numbers, so the same frequencies.
        assert_eq!(zipf, latest);
        let mut scrambled = histogram(Distribution::ScrambledZipf, 500, 100_000);
        assert_ne!(zipf, scrambled);
        zipf.sort_unstable();
        scrambled.sort_unstable();
        assert_eq!(zipf, scrambled);
    }

    #[test]
    fn the_newest_record_is_the_most_popular() {
        let mut ranks = Ranks::new(Distribution::Latest, 1, 2);
        for added in 1..2000 {
            assert_eq!(ranks.add_record(), added);
        }
        let newest = (0..10_000).filter(|_| ranks.draw() == 1999).count();
        let share = ranks.zipf.exact_probability(0);
        assert!((newest as f64 / 10_000.0 - share).abs() < 0.02, "{newest} of 10000, not {share}");
    }

    /// KV-Direct's engine executes an operation at once if one on the same key is among those in
    /// flight. A simulation of the published store gives 20 to 25 % at these numbers of records.
    #[test]
    fn popular_records_meet_among_operations_in_flight() {
        const IN_FLIGHT: usize = 256;
        for (records, expected) in [(3_000_000, 0.20..0.26), (50_000_000, 0.17..0.23)] {
            let mut ranks = Ranks::new(Distribution::ScrambledZipf, records, 6);
            let mut last = HashMap::new();
            let draws = 200_000;
            let merged = (0..draws)
                .filter(|&at| {
                    let before = last.insert(ranks.draw(), at);
                    before.is_some_and(|before: usize| at - before <= IN_FLIGHT)
                })
                .count();
            let share = merged as f64 / draws as f64;
            assert!(expected.contains(&share), "{records} records: {share}");
        }
    }
}
