// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ends of lines and words, found eight bytes at a time. The search for the end of a line also
//! reports whether the line has a zero byte, which ends it as well: the original keeps lines as C
//! strings.

/// A complete line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEnd {
    /// Offset of the newline.
    pub newline: usize,
    /// The searched part of the line has a zero byte.
    pub has_zero: bool,
}

const ONES: u64 = u64::from_le_bytes([0x01; 8]);
const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
const NEWLINES: u64 = u64::from_le_bytes([b'\n'; 8]);
const SPACES: u64 = u64::from_le_bytes([b' '; 8]);

/// Finds the first newline at or after `from`.
#[inline]
pub fn line_end(bytes: &[u8], from: usize) -> Option<LineEnd> {
    let (words, rest) = bytes[from..].as_chunks::<8>();
    let mut at_word = from;
    let mut found_zeros = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let newlines = zeros(word ^ NEWLINES);
        if newlines != 0 {
            // Bits below the first newline.
            let before = (newlines & newlines.wrapping_neg()) - 1;
            let newline = at_word + newlines.trailing_zeros() as usize / 8;
            return Some(LineEnd { newline, has_zero: found_zeros | zeros(word) & before != 0 });
        }
        found_zeros |= zeros(word);
        at_word += 8;
    }
    let at = rest.iter().position(|byte| *byte == b'\n')?;
    let has_zero = found_zeros != 0 || rest[..at].contains(&0);
    Some(LineEnd { newline: at_word + at, has_zero })
}

/// Returns the length of the word at the begin of `bytes`, which ends with a space.
#[inline]
pub fn word_bytes(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let spaces = zeros(u64::from_le_bytes(*word) ^ SPACES);
        if spaces != 0 {
            return 8 * at + spaces.trailing_zeros() as usize / 8;
        }
    }
    let in_rest = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    8 * words.len() + in_rest
}

/// Sets the highest bit of each zero byte. Above the lowest zero byte, others may be set as well.
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use freeport_testbed::{seed, usual_or_long};

    #[test]
    fn lines_end_where_a_plain_search_says() {
        let first = seed();
        for seed in first..first + usual_or_long(20_000, 1_000_000) {
            let mut rng = Rng::with_seed(seed);
            // Neighbours of both bytes provoke carries between bytes of a word.
            let alphabet = [0, 1, 9, b'\n', 11, 31, b' ', b'!', 0x7f, 0x80, 0x8a, 0xff, b'a', b'b'];
            let bytes: Vec<u8> = (0..rng.usize(..40))
                .map(|_| alphabet[rng.usize(..alphabet.len()).max(rng.usize(..alphabet.len()))])
                .collect();
            let from = rng.usize(..=bytes.len());
            let plain = bytes[from..].iter().position(|byte| *byte == b'\n').map(|at| LineEnd {
                newline: from + at,
                has_zero: bytes[from..from + at].contains(&0),
            });
            assert_eq!(line_end(&bytes, from), plain, "FREEPORT_SEED={seed}: {bytes:?}");
            let plain = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
            assert_eq!(word_bytes(&bytes), plain, "FREEPORT_SEED={seed}: {bytes:?}");
        }
    }
}
