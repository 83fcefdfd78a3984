// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mixes of sizes: how many pairs have how many bytes.

/// Sizes with their shares. The size of a record depends on its rank alone, so that a value that is
/// read can be checked without knowledge of the write.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Bytes, and the share of records with at most that many; ascending, the last share is 1.
    up_to: Vec<(usize, f64)>,
}

impl Sizes {
    /// All records have `bytes`.
    pub fn fixed(bytes: usize) -> Sizes {
        Sizes { up_to: vec![(bytes, 1.0)] }
    }

    /// Sizes in bytes with their weights. Returns `None` if the weights do not have a positive sum,
    /// or one of them is negative or not a number. Sizes without weight are left out.
    pub fn weighted(weights: &[(usize, f64)]) -> Option<Sizes> {
        let sum: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        let are_valid = weights.iter().all(|&(_, weight)| weight >= 0.0);
        if !(are_valid && sum > 0.0 && sum.is_finite()) {
            return None;
        }
        let mut sorted: Vec<_> = weights.iter().filter(|&&(_, weight)| weight > 0.0).collect();
        sorted.sort_unstable_by_key(|&&(bytes, _)| bytes);
        let mut below = 0.0;
        let mut up_to: Vec<(usize, f64)> = vec![];
        for &&(bytes, weight) in &sorted {
            below += weight / sum;
            match up_to.last_mut() {
                Some(last) if last.0 == bytes => last.1 = below,
                _ => up_to.push((bytes, below)),
            }
        }
        up_to.last_mut().expect("a weight is positive").1 = 1.0;
        Some(Sizes { up_to })
    }

    /// Each size in bytes with its share of the records, ascending.
    pub fn shares(&self) -> impl Iterator<Item = (usize, f64)> {
        let below = std::iter::once(0.0).chain(self.up_to.iter().map(|&(_, share)| share));
        self.up_to.iter().zip(below).map(|(&(bytes, share), below)| (bytes, share - below))
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> f64 {
        self.shares().map(|(bytes, share)| bytes as f64 * share).sum()
    }

    /// Largest size in bytes.
    pub fn largest(&self) -> usize {
        self.up_to.last().expect("there is a size").0
    }

    /// The size if all records have the same.
    pub fn only(&self) -> Option<usize> {
        (self.up_to.len() == 1).then(|| self.largest())
    }

    /// Bytes of the record with this rank.
    #[inline]
    pub fn of(&self, rank: u64) -> usize {
        if let Some(bytes) = self.only() {
            return bytes;
        }
        let share = (mix(rank) >> 11) as f64 / (1u64 << 53) as f64;
        self.up_to
            .iter()
            .find(|&&(_, up_to)| share < up_to)
            .map_or(self.largest(), |&(bytes, _)| bytes)
    }
}

/// A number that looks random, the same one for the same input (the finaliser of SplitMix64).
#[inline]
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_drawn_by_their_weights() {
        let sizes = Sizes::weighted(&[(100, 1.0), (8, 2.0), (30, 0.0), (8, 1.0)]).expect("valid");
        assert_eq!(sizes.shares().collect::<Vec<_>>(), [(8, 0.75), (100, 0.25)]);
        assert_eq!((sizes.mean(), sizes.largest(), sizes.only()), (31.0, 100, None));
        let large = (0..10_000).filter(|&rank| sizes.of(rank) == 100).count();
        assert!((2300..2700).contains(&large), "{large} of 10000 have the larger size");
        assert_eq!(Sizes::fixed(10).only(), Some(10));
        assert_eq!(Sizes::fixed(10).of(77), 10);
    }

    #[test]
    fn weights_without_a_sum_are_refused() {
        for weights in [&[][..], &[(1, 0.0)], &[(1, 2.0), (2, -1.0)], &[(1, f64::NAN)]] {
            assert_eq!(Sizes::weighted(weights), None, "{weights:?}");
        }
    }
}
