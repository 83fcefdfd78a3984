// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What memory says that another process can write.
//!
//! Whoever reads such a word has a number that may be anything, and may be another one at the next
//! look. It comes as a type that cannot be calculated with or used as an index. So no word gets
//! past a check unnoticed: each method but [`raw`](Claimed::raw) is one, and whoever calls that
//! writes beside it, behind `CLAIM:`, what is done about a lie.

/// A word that another process may have written, read once.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
#[must_use]
pub struct Claimed(u64);

impl Claimed {
    /// What was read.
    #[inline]
    pub const fn new(word: u64) -> Self {
        Self(word)
    }

    /// Whether it is that.
    #[inline]
    pub const fn is(self, word: u64) -> bool {
        self.0 == word
    }

    /// Those of its bits that have a meaning to the reader.
    #[inline]
    pub const fn bits(self, known: u64) -> u64 {
        self.0 & known
    }

    /// The number, or the largest that it may be.
    #[inline]
    pub const fn at_most(self, most: u64) -> u64 {
        if self.0 < most { self.0 } else { most }
    }

    /// The number, if it is neither less nor more than it may be. What was there instead otherwise,
    /// to be told of.
    ///
    /// # Errors
    /// It is outside.
    #[inline]
    pub const fn within(self, least: u64, most: u64) -> Result<u64, Self> {
        if self.0 < least || self.0 > most { Err(self) } else { Ok(self.0) }
    }

    /// Whatever is there. Beside each use, a comment that begins with `CLAIM:` says what checks it,
    /// or why nothing follows from it.
    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_what_was_asked_for_comes_out() {
        for word in [0, 1, 6, 7, 8, 1 << 32, u64::MAX - 1, u64::MAX] {
            let claimed = Claimed::new(word);
            assert!(claimed.is(word) && !claimed.is(!word));
            assert_eq!(claimed.bits(6), word & 6);
            assert_eq!(claimed.at_most(7), word.min(7));
            match claimed.within(6, 8) {
                Ok(number) => assert!(number == word && (6..=8).contains(&word)),
                // CLAIM: compared only.
                Err(other) => assert!(other.raw() == word && !(6..=8).contains(&word)),
            }
        }
    }
}
