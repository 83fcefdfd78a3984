// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first word of each entry: its connection, and its meaning.
//!
//! | bits | field |
//! |---|---|
//! | 0-31 | number of the connection |
//! | 32-39 | kind |
//! | 40-47 | number of openings of that connection number, modulo 256 |
//! | 48-63 | cells given back, of a credit; else zero |

use crate::Fault;

/// Bytes of a label in an entry.
pub(super) const LABEL_BYTES: usize = 8;

/// Kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum What {
    /// A connection is opened.
    Open = 1,
    /// A message, which is the rest of the entry.
    Message = 2,
    /// The sender has closed the connection: it sends and reads nothing more on it.
    Close = 3,
    /// The sender has read messages of a number of cells.
    Credit = 4,
}

/// A label as plain values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label {
    pub(super) what: What,
    pub(super) connection: u32,
    pub(super) generation: u8,
    pub(super) amount: u16,
}

impl Label {
    /// Returns the word that is stored in the entry.
    #[inline]
    pub(super) const fn word(self) -> u64 {
        self.connection as u64
            | (self.what as u64) << 32
            | (self.generation as u64) << 40
            | (self.amount as u64) << 48
    }

    /// Returns the connection that a word names, which may not exist.
    #[inline]
    pub(super) const fn connection_of(word: u64) -> u32 {
        word as u32
    }

    /// Parses the word at the beginning of an entry, which `behind` bytes follow.
    ///
    /// # Errors
    /// The word is not one that [`word`](Self::word) returns, or not valid for such an entry.
    #[inline]
    pub(super) fn parse(word: u64, behind: u32) -> Result<Self, Fault> {
        let what = match (word >> 32) as u8 {
            1 => What::Open,
            2 => What::Message,
            3 => What::Close,
            4 => What::Credit,
            _ => return Err(Fault::Label(word)),
        };
        let amount = (word >> 48) as u16;
        let has_right_length = behind == 0 || what == What::Message;
        let has_right_amount = (amount != 0) == (what == What::Credit);
        if !has_right_length || !has_right_amount {
            return Err(Fault::Label(word));
        }
        Ok(Self { what, connection: word as u32, generation: (word >> 40) as u8, amount })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_refused_or_is_exactly_that_label() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut read = 0;
        for _ in 0..100_000 {
            // Most random words are not labels.
            let word = random.u64(..) & !(0xf8 << 32);
            let word = if random.bool() { word & u64::MAX >> 16 } else { word };
            if let Ok(label) = Label::parse(word, 0) {
                assert_eq!(label.word(), word);
                read += 1;
            }
        }
        assert!(read > 10_000, "{read}");
    }

    #[test]
    fn only_messages_have_bytes_and_only_credits_an_amount() {
        let label = |what, amount| Label { what, connection: 3, generation: 9, amount };
        for (what, amount, behind, is_right) in [
            (What::Open, 0, 0, true),
            (What::Open, 0, 1, false),
            (What::Open, 1, 0, false),
            (What::Message, 0, 1, true),
            (What::Message, 0, 0, true),
            (What::Message, 1, 1, false),
            (What::Close, 0, 8, false),
            (What::Credit, 0, 0, false),
            (What::Credit, 5, 0, true),
            (What::Credit, 5, 1, false),
        ] {
            let word = label(what, amount).word();
            let expected = if is_right { Ok(label(what, amount)) } else { Err(Fault::Label(word)) };
            assert_eq!(Label::parse(word, behind), expected);
        }
    }
}
