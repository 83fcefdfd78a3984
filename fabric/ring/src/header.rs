// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The header of an entry: one word, so that one store publishes it completely.
//!
//! | bits | field |
//! |---|---|
//! | 0-31 | length of the payload in bytes |
//! | 32-39 | kind; 0 is unused, so a zero word is not a header |
//! | 40-47 | flags: bit 0 marks a valid header, the others are zero |
//! | 48-63 | the number of the entry, modulo 65,536 |
//!
//! The widths are our choice: SocksDirect 6.4.2 has one 8-byte header with a valid bit and leaves
//! the rest open.

use crate::{Claimed, Fault, Kind};

/// Flags of every valid header.
const VALID: u8 = 1;

/// A header as plain values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Kind of the entry.
    pub kind: Kind,
    /// Number of bytes of payload that follow.
    pub length: u32,
    /// Number of the entry since the start, modulo 65,536.
    pub sequence: u16,
}

impl Header {
    /// Returns the word that is stored in the ring; never zero.
    #[inline]
    pub const fn word(self) -> u64 {
        self.length as u64
            | (self.kind as u64) << 32
            | (VALID as u64) << 40
            | (self.sequence as u64) << 48
    }

    /// Parses a word that is not zero.
    ///
    /// # Errors
    /// The word is not one that [`Header::word`] returns.
    #[inline]
    pub fn parse(word: Claimed) -> Result<Self, Fault> {
        // CLAIM: checked field by field here; the ring compares the sequence and the length.
        let word = word.raw();
        let flags = (word >> 40) as u8;
        if flags != VALID {
            return Err(Fault::Flags(flags));
        }
        let number = (word >> 32) as u8;
        let kind = Kind::from_number(number).ok_or(Fault::UnknownKind(number))?;
        let length = word as u32;
        let fits = match kind {
            Kind::Data => true,
            Kind::Wrap | Kind::Shutdown => length == 0,
            Kind::Move => length == 8,
        };
        if !fits {
            return Err(Fault::LengthOfKind { kind, length });
        }
        Ok(Self { kind, length, sequence: (word >> 48) as u16 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(word: u64) -> Result<Header, Fault> {
        Header::parse(Claimed::new(word))
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for (kind, length) in
            [(Kind::Data, 0), (Kind::Data, u32::MAX), (Kind::Wrap, 0), (Kind::Move, 8)]
        {
            let header = Header { kind, length, sequence: 0xfedc };
            assert_ne!(header.word(), 0);
            assert_eq!(parse(header.word()), Ok(header));
        }
    }

    #[test]
    fn a_word_is_refused_or_is_exactly_that_header() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..100_000 {
            // Most random words have wrong flags, so half of them get the right ones.
            let word = random.u64(..);
            let word = if random.bool() { word & !(0xff << 40) | 1 << 40 } else { word };
            let word = if random.bool() { word & !(0xf0 << 32) } else { word };
            if let Ok(header) = parse(word) {
                assert_eq!(header.word(), word);
            }
        }
    }

    #[test]
    fn refusals_name_what_is_wrong() {
        let word = Header { kind: Kind::Data, length: 5, sequence: 0 }.word();
        assert_eq!(parse(word | 2 << 40), Err(Fault::Flags(3)));
        assert_eq!(parse(word & !(1 << 40)), Err(Fault::Flags(0)));
        assert_eq!(parse(word | 4 << 32 | 2 << 32), Err(Fault::UnknownKind(7)));
        let wrap = Header { kind: Kind::Wrap, length: 0, sequence: 0 }.word();
        let refused = Fault::LengthOfKind { kind: Kind::Wrap, length: 1 };
        assert_eq!(parse(wrap | 1), Err(refused));
    }
}
