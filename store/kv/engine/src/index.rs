// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which bucket a hash belongs to.
//!
//! A fixed index has any number of buckets, and spreads hashes over them by multiplication. A
//! growing index is one of linear hashing (Litwin 1980): it grows by one bucket at a time, which
//! takes its pairs from one other bucket, so no operation ever waits for the whole index to be
//! copied. It takes consecutive memory, and the buckets below the *split* have twice as many
//! siblings as the others.

use crate::bucket::BUCKET_BYTES;
use crate::hash::{Hash, SECONDARY_BITS};

/// The number of buckets, and the function from hashes to buckets.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    buckets: usize,
    /// Mask of the round of linear hashing; none: a fixed index.
    round: Option<usize>,
}

impl Index {
    /// An index whose number of buckets does not change.
    pub fn fixed(buckets: usize) -> Self {
        Self { buckets, round: None }
    }

    /// An index that begins with `buckets`, a power of two.
    pub fn growing(buckets: usize) -> Self {
        debug_assert!(buckets.is_power_of_two(), "rounds begin at powers of two");
        Self { buckets, round: Some(buckets - 1) }
    }

    /// Number of buckets.
    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// Bytes of all buckets.
    pub fn bytes(&self) -> usize {
        self.buckets * BUCKET_BYTES
    }

    /// Number of the bucket that a hash belongs to.
    #[inline(always)]
    pub fn number(&self, hash: Hash) -> usize {
        match self.round {
            Some(mask) => {
                let bits = hash.bits as usize;
                let (near, far) = (bits & mask, bits & (mask << 1 | 1));
                if far < self.buckets { far } else { near }
            }
            // The top bits are the secondary hash's.
            None => {
                let bits = u128::from(hash.bits << SECONDARY_BITS);
                ((bits * self.buckets as u128) >> 64) as usize
            }
        }
    }

    /// Offset of the bucket that a hash belongs to.
    #[inline(always)]
    pub fn offset(&self, hash: Hash) -> usize {
        self.number(hash) * BUCKET_BYTES
    }

    /// As [`Index::offset`], for a hash whose bucket had the offset `before`; the index may have
    /// grown since.
    #[inline(always)]
    pub fn offset_since(&self, hash: Hash, before: usize) -> usize {
        match self.round {
            Some(_) => self.offset(hash),
            None => before,
        }
    }

    /// Number of the bucket whose pairs the next bucket takes; none in a fixed index.
    pub fn next_split(&self) -> Option<usize> {
        self.round.map(|mask| self.buckets - (mask + 1))
    }

    /// Adds a bucket; from now on, hashes belong to it.
    pub fn grow(&mut self) {
        let mask = self.round.as_mut().expect("only a growing index grows");
        self.buckets += 1;
        if self.buckets == 2 * (*mask + 1) {
            *mask = *mask << 1 | 1;
        }
    }

    /// The mask that numbers of buckets have at least; none in a fixed index. A cursor of a scan
    /// counts in the bits of it, from the top bit down, so that a bucket and those split from it
    /// are neighbours.
    pub fn round(&self) -> Option<usize> {
        self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(bits: u64) -> Hash {
        Hash { bits, head: 0 }
    }

    #[test]
    fn a_new_bucket_takes_hashes_from_the_split_bucket_alone() {
        let mut index = Index::growing(4);
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let before = index;
            let split = before.next_split().expect("it grows");
            index.grow();
            for _ in 0..100 {
                let hash = hash(random.u64(..));
                let (old, new) = (before.number(hash), index.number(hash));
                assert!(new == old || (old == split && new == before.buckets()));
                assert!(new < index.buckets());
            }
        }
    }

    #[test]
    fn a_fixed_index_uses_all_buckets_evenly() {
        let index = Index::fixed(1_000);
        let mut counts = vec![0_u32; 1_000];
        let mut random = fastrand::Rng::with_seed(4);
        (0..1_000_000).for_each(|_| counts[index.number(hash(random.u64(..)))] += 1);
        assert!(counts.iter().all(|&count| (800..1_200).contains(&count)));
    }
}
