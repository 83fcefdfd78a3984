// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Longest common subsequence of two strings (LCS).
//!
//! A row of the usual table of lengths is a vector of bits: bit `j` of row `i` is 0 where the
//! length for `i` bytes of the first string and `j + 1` of the second exceeds that for `j`. A row
//! follows from the one before with a few operations on whole words (Hyyrö, "Bit-parallel
//! LCS-length computation revisited", 2004). The bits are also all that is needed to walk back
//! through the table as Redis does, which decides between several longest subsequences. So 64
//! cells are computed at once, and a cell takes 1 bit, not 32.

use crate::limits::Limits;
use std::ops::Range;
use thiserror::Error;

/// Bytes of a cell in the table of Redis, whose size is limited.
const CELL_BYTES: usize = 4;

/// Two strings are too long. The text is that of Redis, whose table is limited to the length of a
/// string; the limit is the same here, though less memory is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")]
pub struct TooLong;

/// A longest common subsequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subsequence {
    /// The subsequence.
    pub text: Vec<u8>,
    /// Ranges of consecutive equal bytes, from the end of the strings to their start.
    pub matches: Vec<Match>,
}

/// Equal ranges of both strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Bytes of the first string.
    pub first: Range<usize>,
    /// Bytes of the second string.
    pub second: Range<usize>,
}

/// Returns the length of the longest common subsequence (LCS with LEN).
///
/// # Errors
/// [`TooLong`].
pub fn length(limits: &Limits, first: &[u8], second: &[u8]) -> Result<usize, TooLong> {
    check_size(limits, first, second)?;
    let masks = Masks::new(first, second);
    let mut row = vec![u64::MAX; masks.words];
    for &byte in first {
        step(&mut row, masks.of(byte));
    }
    Ok(row.iter().map(|word| word.count_zeros() as usize).sum())
}

/// Returns the longest common subsequence, and its matches of at least `min_match_bytes`.
///
/// # Errors
/// [`TooLong`].
pub fn longest(
    limits: &Limits,
    first: &[u8],
    second: &[u8],
    min_match_bytes: usize,
) -> Result<Subsequence, TooLong> {
    check_size(limits, first, second)?;
    let masks = Masks::new(first, second);
    let mut row = vec![u64::MAX; masks.words];
    let mut rows = Vec::with_capacity(first.len() * masks.words);
    for &byte in first {
        step(&mut row, masks.of(byte));
        rows.extend_from_slice(&row);
    }
    let is_longer = |i: usize, j: usize| rows[i * masks.words + j / 64] >> (j % 64) & 1 == 0;
    let (mut i, mut j) = (first.len(), second.len());
    let mut text = vec![];
    let mut matches = vec![];
    while i > 0 && j > 0 {
        if first[i - 1] != second[j - 1] {
            // If the last byte of the second string adds to the length, all of it is needed.
            if is_longer(i - 1, j - 1) {
                i -= 1
            } else {
                j -= 1
            }
            continue;
        }
        let (first_end, second_end) = (i, j);
        while i > 0 && j > 0 && first[i - 1] == second[j - 1] {
            text.push(first[i - 1]);
            (i, j) = (i - 1, j - 1);
        }
        if first_end - i >= min_match_bytes {
            matches.push(Match { first: i..first_end, second: j..second_end });
        }
    }
    text.reverse();
    Ok(Subsequence { text, matches })
}

fn check_size(limits: &Limits, first: &[u8], second: &[u8]) -> Result<(), TooLong> {
    let cells = (first.len() + 1).checked_mul(second.len() + 1);
    let bytes = cells.and_then(|cells| cells.checked_mul(CELL_BYTES));
    bytes.filter(|&bytes| bytes <= limits.text_bytes).map(drop).ok_or(TooLong)
}

/// For each byte value of the first string, the positions in the second string that have it.
struct Masks {
    /// Words of a mask.
    words: usize,
    /// Start of the mask of each byte value.
    starts: [usize; 256],
    masks: Vec<u64>,
}

impl Masks {
    fn new(first: &[u8], second: &[u8]) -> Self {
        let words = second.len().div_ceil(64);
        let mut starts = [usize::MAX; 256];
        let mut size = 0;
        for &byte in first {
            let start = &mut starts[usize::from(byte)];
            if *start == usize::MAX {
                *start = size;
                size += words;
            }
        }
        let mut masks = vec![0; size];
        for (at, &byte) in second.iter().enumerate() {
            let start = starts[usize::from(byte)];
            if start != usize::MAX {
                masks[start + at / 64] |= 1 << (at % 64);
            }
        }
        Self { words, starts, masks }
    }

    /// Returns the mask of `byte`, which occurs in the first string.
    fn of(&self, byte: u8) -> &[u64] {
        let start = self.starts[usize::from(byte)];
        &self.masks[start..start + self.words]
    }
}

/// Computes the next row.
fn step(row: &mut [u64], mask: &[u64]) {
    let mut carry = false;
    for (word, &mask) in row.iter_mut().zip(mask) {
        let (sum, first) = word.overflowing_add(*word & mask);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        carry = first || second;
        *word = sum | (*word & !mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of Redis, and its walk back.
    fn plain(first: &[u8], second: &[u8]) -> (usize, Vec<u8>, Vec<Match>) {
        let mut table = vec![vec![0u32; second.len() + 1]; first.len() + 1];
        for i in 1..=first.len() {
            for j in 1..=second.len() {
                table[i][j] = if first[i - 1] == second[j - 1] {
                    table[i - 1][j - 1] + 1
                } else {
                    table[i - 1][j].max(table[i][j - 1])
                };
            }
        }
        let (mut i, mut j) = (first.len(), second.len());
        let (mut text, mut matches) = (vec![], vec![]);
        let mut open: Option<Match> = None;
        while i > 0 && j > 0 {
            if first[i - 1] == second[j - 1] {
                text.insert(0, first[i - 1]);
                (i, j) = (i - 1, j - 1);
                let found = open.get_or_insert(Match { first: i + 1..i + 1, second: j + 1..j + 1 });
                (found.first.start, found.second.start) = (i, j);
            } else {
                matches.extend(open.take());
                if table[i - 1][j] > table[i][j - 1] { i -= 1 } else { j -= 1 }
            }
        }
        matches.extend(open);
        (table[first.len()][second.len()] as usize, text, matches)
    }

    #[test]
    fn bits_give_what_the_table_gives() {
        let limits = Limits::default();
        for seed in 0..400 {
            let mut random = fastrand::Rng::with_seed(seed);
            let letters = random.u8(1..6);
            let mut string = || {
                let length = random.usize(0..200);
                (0..length).map(|_| b'a' + random.u8(0..letters)).collect::<Vec<u8>>()
            };
            let (first, second) = (string(), string());
            let (expected_length, text, matches) = plain(&first, &second);
            assert_eq!(length(&limits, &first, &second), Ok(expected_length), "seed {seed}");
            let found = longest(&limits, &first, &second, 0).unwrap();
            assert_eq!(found, Subsequence { text, matches: matches.clone() }, "seed {seed}");
            let long: Vec<_> = matches.into_iter().filter(|it| it.first.len() >= 3).collect();
            assert_eq!(longest(&limits, &first, &second, 3).unwrap().matches, long);
        }
    }

    /// The example of the command's reference page.
    #[test]
    fn my_text_is_common() {
        let limits = Limits::default();
        let found = longest(&limits, b"ohmytext", b"mynewtext", 0).unwrap();
        assert_eq!(found.text, b"mytext");
        let matches = [Match { first: 4..8, second: 5..9 }, Match { first: 2..4, second: 0..2 }];
        assert_eq!(found.matches, matches);
        assert_eq!(longest(&limits, b"", b"x", 0).unwrap().text, b"");
    }

    #[test]
    fn the_limit_is_that_of_redis() {
        let limits = Limits { text_bytes: 4 * 11 * 21, ..Limits::default() };
        assert_eq!(length(&limits, &[b'a'; 10], &[b'a'; 20]), Ok(10));
        assert_eq!(length(&limits, &[b'a'; 10], &[b'a'; 21]), Err(TooLong));
        assert_eq!(longest(&limits, &[b'a'; 11], &[b'a'; 20], 0), Err(TooLong));
    }
}
