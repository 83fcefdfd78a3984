// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bitmap of the units of one part of the address range, which joins neighbours by itself.

use std::ops::Range;

const WORD_BITS: usize = u64::BITS as usize;

/// A bit for each unit.
#[derive(Default)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    /// Makes it a bitmap of this many bits, rounded up to a word, none of them set.
    pub fn reset(&mut self, bits: usize) {
        self.words.clear();
        self.words.resize(bits.div_ceil(WORD_BITS), 0);
    }

    /// Number of words of a bitmap of this many bits.
    pub fn words(bits: usize) -> usize {
        bits.div_ceil(WORD_BITS)
    }

    /// Sets the bits of a range that is not empty.
    #[inline]
    pub fn set(&mut self, range: Range<usize>) {
        let (first, last) = (range.start / WORD_BITS, (range.end - 1) / WORD_BITS);
        let from = u64::MAX << (range.start % WORD_BITS);
        let to = u64::MAX >> (WORD_BITS - 1 - (range.end - 1) % WORD_BITS);
        if first == last {
            self.words[first] |= from & to;
            return;
        }
        self.words[first] |= from;
        self.words[first + 1..last].fill(u64::MAX);
        self.words[last] |= to;
    }

    /// Runs of set bits, ascending.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(at, false)?;
            at = self.next(start, true).unwrap_or(self.words.len() * WORD_BITS);
            Some(start..at)
        })
    }

    /// Position of the next set bit from `at` on, or of the next clear one.
    fn next(&self, at: usize, is_inverted: bool) -> Option<usize> {
        let invert = if is_inverted { u64::MAX } else { 0 };
        let first = at / WORD_BITS;
        let in_first = (self.words.get(first)? ^ invert) & (u64::MAX << (at % WORD_BITS));
        if in_first != 0 {
            return Some(first * WORD_BITS + in_first.trailing_zeros() as usize);
        }
        let rest = &self.words[first + 1..];
        let skipped = rest.iter().position(|&word| word != invert)?;
        let bit = (rest[skipped] ^ invert).trailing_zeros() as usize;
        Some((first + 1 + skipped) * WORD_BITS + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_was_set() {
        let mut bitmap = Bitmap::default();
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let bits = 64 * random.usize(1..10);
            bitmap.reset(bits);
            let mut model = vec![false; bits];
            for _ in 0..random.usize(..12) {
                let start = random.usize(..bits);
                let end = random.usize(start..bits) + 1;
                let end = if random.bool() { end } else { start + 1 };
                bitmap.set(start..end);
                model[start..end].fill(true);
            }
            let mut expected = Vec::new();
            for run in model.chunk_by(|one, next| one == next) {
                let start = run.as_ptr().addr() - model.as_ptr().addr();
                expected.extend(run[0].then_some(start..start + run.len()));
            }
            assert_eq!(bitmap.runs().collect::<Vec<_>>(), expected, "seed {seed}");
        }
    }
}
