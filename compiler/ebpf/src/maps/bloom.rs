// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bloom filter: tests whether a value may have been pushed before. Bits are chosen by hashes with
//! different seeds; the map defines their number, five by default.

use super::hash::hash;

/// The filter's bits; their number is a power of two.
pub(crate) struct Bloom {
    words: Vec<u64>,
    hashes: u32,
    seed: u64,
}

impl Bloom {
    /// Returns the number of bits for `entries` values, or `None` if there are too many: entries
    /// times hashes times 7/5, which is slightly less than 1/ln 2, rounded up to a power of two.
    pub fn bits_for(entries: u32, hashes: u32) -> Option<u64> {
        let bits = u64::from(entries).checked_mul(u64::from(hashes))?.checked_mul(7)? / 5;
        (bits <= 1 << 31).then(|| bits.max(64).next_power_of_two())
    }

    /// Creates a filter of `bits` bits, a power of two of at least 64.
    pub fn new(bits: u64, hashes: u32, seed: u64) -> Self {
        Self { words: vec![0; (bits / 64) as usize], hashes, seed }
    }

    /// Adds `value`.
    pub fn push(&mut self, value: &[u8]) {
        for which in 0..self.hashes {
            let bit = self.bit(which, value);
            self.words[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Returns whether `value` may have been pushed; always true if it was.
    pub fn may_hold(&self, value: &[u8]) -> bool {
        (0..self.hashes).all(|which| {
            let bit = self.bit(which, value);
            self.words[bit / 64] >> (bit % 64) & 1 == 1
        })
    }

    fn bit(&self, which: u32, value: &[u8]) -> usize {
        let seed = self.seed.rotate_left(which * 7 + 1) ^ u64::from(which);
        hash(seed, value) as usize & (self.words.len() * 64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_found_and_hardly_anything_else() {
        let bits = Bloom::bits_for(1_000, 5).expect("a small one");
        assert_eq!(bits, 8_192);
        let mut bloom = Bloom::new(bits, 5, 0x1234_5678_9abc_def0);
        (0..1_000_u32).for_each(|value| bloom.push(&value.to_le_bytes()));
        assert!((0..1_000_u32).all(|value| bloom.may_hold(&value.to_le_bytes())));
        let wrong = (1_000..11_000_u32).filter(|value| bloom.may_hold(&value.to_le_bytes()));
        assert!(wrong.count() < 500, "about 2 in 100 for these sizes");
        assert_eq!(Bloom::bits_for(u32::MAX, 15), None);
    }
}
