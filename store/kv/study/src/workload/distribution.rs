// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Distributions of the records that operations choose, and tables of ranks drawn in advance.

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

/// Ranks drawn in advance, taken in turn again and again.
///
/// A draw is one load from consecutive memory, so that a measurement of tens of millions of
/// operations a second does not measure the generator. Tables of some millions of ranks do not
/// favour the records that they contain: they exceed the caches as the records do.
#[derive(Clone, Debug)]
pub struct Drawn {
    ranks: Vec<u32>,
    next: usize,
}

impl Drawn {
    /// Draws `2^log_count` ranks.
    ///
    /// # Panics
    /// If there are more than 2^32 records.
    pub fn new(ranks: &mut Ranks, log_count: u32) -> Drawn {
        assert!(ranks.records() <= 1 << 32, "ranks in tables have 32 bits");
        Drawn { ranks: (0..1usize << log_count).map(|_| ranks.draw() as u32).collect(), next: 0 }
    }

    /// The next rank.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        // The length is a power of two, which spares a division.
        let rank = self.ranks[self.next & (self.ranks.len() - 1)];
        self.next = self.next.wrapping_add(1);
        rank
    }

    /// Starts at another place of the table, for instance in each thread.
    pub fn skip_to(&mut self, place: usize) {
        self.next = place;
    }

    /// All ranks of the table.
    pub fn as_slice(&self) -> &[u32] {
        &self.ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Distribution; 4] = [
        Distribution::Uniform,
        Distribution::Zipf,
        Distribution::ScrambledZipf,
        Distribution::Latest,
    ];

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

    #[test]
    fn a_table_repeats_what_the_generator_draws() {
        for distribution in ALL {
            let mut table = Drawn::new(&mut Ranks::new(distribution, 1000, 4), 8);
            let mut ranks = Ranks::new(distribution, 1000, 4);
            let first: Vec<u32> = (0..256).map(|_| ranks.draw() as u32).collect();
            assert_eq!(table.as_slice(), first, "{}", distribution.name());
            let twice: Vec<u32> = (0..512).map(|_| table.draw()).collect();
            assert_eq!(twice, first.repeat(2), "{}", distribution.name());
            table.skip_to(255);
            assert_eq!([table.draw(), table.draw()], [first[255], first[0]]);
        }
    }
}
