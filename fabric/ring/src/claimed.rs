// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values read from memory that another process can write.
//!
//! Such a word may have any value, and may have another one when it is read again. It is returned
//! as a type that allows no arithmetic and no use as an index. So no word escapes a check
//! unnoticed: each method except [`raw`](Claimed::raw) is a check, and a caller of `raw` documents
//! beside it, after `CLAIM:`, how a false value is handled.

/// A word that another process may have written, read once.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
#[must_use]
pub struct Claimed(u64);

impl Claimed {
    /// Wraps a word that was read.
    #[inline]
    pub const fn new(word: u64) -> Self {
        Self(word)
    }

    /// Returns whether the word has this value.
    #[inline]
    pub const fn is(self, word: u64) -> bool {
        self.0 == word
    }

    /// Returns the bits that have a meaning to the reader.
    #[inline]
    pub const fn bits(self, known: u64) -> u64 {
        self.0 & known
    }

    /// Returns the number, limited to `most`.
    #[inline]
    pub const fn at_most(self, most: u64) -> u64 {
        if self.0 < most { self.0 } else { most }
    }

    /// Returns the number if it is in the permitted range, and otherwise the word, to report it.
    ///
    /// # Errors
    /// The number is out of range.
    #[inline]
    pub const fn within(self, least: u64, most: u64) -> Result<u64, Self> {
        if self.0 < least || self.0 > most { Err(self) } else { Ok(self.0) }
    }

    /// Returns the unchecked word. A comment that begins with `CLAIM:` beside each use states what
    /// checks it, or why a false value has no consequence.
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
