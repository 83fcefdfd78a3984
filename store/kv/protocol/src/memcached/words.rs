// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words of a line. Only spaces separate them: tabs, carriage returns and all other bytes are part
//! of words, as in the original.

use super::scan::word_bytes;

/// Number of words that the original looks at, except for keys of a retrieval.
pub const WORDS_MAX: usize = 23;

/// Words of a line, or keys of a retrieval, in order. No word is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    /// All words of a line.
    #[inline]
    pub(super) fn of_line(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// Leaves out what comes after the given number of words.
    pub(super) fn cut(self, words_max: usize) -> Self {
        let mut after = self;
        let _ = after.by_ref().take(words_max).last();
        Self { rest: &self.rest[..self.rest.len() - after.rest.len()] }
    }

    /// The first `N` of the words that are left, and their number, which may exceed `N`.
    #[inline(always)]
    pub(super) fn first<const N: usize>(self) -> ([&'a [u8]; N], usize) {
        let (mut words, mut count) = ([&[][..]; N], 0);
        for word in self {
            if let Some(place) = words.get_mut(count) {
                *place = word;
            }
            count += 1;
        }
        (words, count)
    }

    /// Returns whether all words have at most `bytes_max` bytes.
    #[inline]
    pub(super) fn fit(mut self, bytes_max: usize) -> bool {
        self.rest.len() <= bytes_max || self.all(|word| word.len() <= bytes_max)
    }

    /// Returns whether no word is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.iter().all(|byte| *byte == b' ')
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
        if self.rest.is_empty() {
            return None;
        }
        let (word, rest) = self.rest.split_at(word_bytes(self.rest));
        self.rest = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_separate_words() {
        let words: Vec<_> = Words::of_line(b"  a\tb  \rc d\x01 ").collect();
        assert_eq!(words, [&b"a\tb"[..], b"\rc", b"d\x01"]);
        assert!(Words::of_line(b"   ").is_empty() && Words::of_line(b"").next().is_none());
    }

    #[test]
    fn the_rest_of_a_line_with_many_words_is_ignored() {
        let line = "a ".repeat(30);
        assert_eq!(Words::of_line(line.as_bytes()).count(), 30);
        assert_eq!(Words::of_line(line.as_bytes()).cut(WORDS_MAX).count(), 23);
        assert_eq!(Words::of_line(b" a b").cut(WORDS_MAX), Words::of_line(b" a b"));
        let (words, count) = Words::of_line(b"a b c").first::<2>();
        assert_eq!((words, count), ([&b"a"[..], b"b"], 3));
    }

    #[test]
    fn words_fit_if_the_longest_does() {
        assert!(Words::of_line(b"abc def abc").fit(3));
        assert!(!Words::of_line(b"abc defg abc").fit(3));
    }
}
