// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A pseudo-random permutation of `0..n`, which scatters popular ranks over all records.
//!
//! YCSB hashes ranks for that. Hashes meet: some records then have the popularity of several ranks,
//! and more than a third have none. A permutation keeps the distribution as it is. It is made of
//! four rounds of a Feistel network over the next even number of bits; a result of `n` or more is
//! permuted again until it is below, fewer than four times on average.

use fastrand::Rng;

const ROUNDS: usize = 4;

/// A permutation of `0..n`, given by a seed.
#[derive(Clone, Debug)]
pub struct Scramble {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Scramble {
    /// A permutation of the numbers below `n`, which is at most 2^62.
    ///
    /// # Panics
    /// If `n` exceeds 2^62.
    pub fn new(n: u64, seed: u64) -> Scramble {
        assert!(n <= 1 << 62, "{n} records; at most 2^62");
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let mut random = Rng::with_seed(seed);
        Scramble {
            n,
            half_bits: bits.div_ceil(2).max(1),
            keys: [(); ROUNDS].map(|()| random.u64(..)),
        }
    }

    /// The number that `rank` is mapped to. Ranks of `n` or more are mapped to themselves.
    #[inline]
    pub fn record(&self, rank: u64) -> u64 {
        if rank >= self.n {
            return rank;
        }
        let mut record = self.permute(rank);
        while record >= self.n {
            record = self.permute(record);
        }
        record
    }

    #[inline]
    fn permute(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (left, right) = (right, left ^ (mixed >> 32 ^ mixed >> 11) & mask);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_one_rank() {
        for n in [0, 1, 2, 3, 4, 5, 16, 17, 1000, 65_537] {
            let scramble = Scramble::new(n, 3);
            let mut has_rank = vec![false; n as usize];
            for rank in 0..n {
                let record = scramble.record(rank) as usize;
                assert!(!std::mem::replace(&mut has_rank[record], true), "{n}: {record} twice");
            }
            assert_eq!(scramble.record(n), n);
        }
    }

    #[test]
    fn neighbouring_ranks_are_scattered() {
        let n = 1 << 20;
        let scramble = Scramble::new(n, 5);
        let mut in_eighth = [0u32; 8];
        (0..8000).for_each(|rank| in_eighth[(scramble.record(rank) * 8 / n) as usize] += 1);
        assert!(in_eighth.iter().all(|count| (850..1150).contains(count)), "{in_eighth:?}");
        let other = Scramble::new(n, 6);
        let same = (0..8000).filter(|&rank| scramble.record(rank) == other.record(rank)).count();
        assert!(same < 5, "{same} records are the same with another seed");
    }
}
