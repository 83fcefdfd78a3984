// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TCP segments over IPv4 (RFC 9293).

use super::checksum::Sum;
use super::{Malformed, double_word, ipv4, word};

/// Byte ranges of the fields.
pub mod field {
    use std::ops::Range;
    /// Source port.
    pub const SOURCE: Range<usize> = 0..2;
    /// Target port.
    pub const TARGET: Range<usize> = 2..4;
    /// Number of the first byte.
    pub const SEQUENCE: Range<usize> = 4..8;
    /// Number of the next byte expected.
    pub const ACKNOWLEDGEMENT: Range<usize> = 8..12;
    /// Header length in 32-bit words, in the high half.
    pub const DATA_OFFSET: usize = 12;
    /// Flags; see [`flag`](super::flag).
    pub const FLAGS: usize = 13;
    /// Bytes the sender has room for.
    pub const WINDOW: Range<usize> = 14..16;
    /// Checksum over pseudo header, header and payload.
    pub const CHECKSUM: Range<usize> = 16..18;
    /// End of urgent data.
    pub const URGENT: Range<usize> = 18..20;
}

/// Bits of the flags.
pub mod flag {
    /// The sender has no more data.
    pub const FIN: u8 = 1;
    /// Opens a connection.
    pub const SYN: u8 = 2;
    /// Resets a connection.
    pub const RST: u8 = 4;
    /// The receiver should deliver the data now.
    pub const PSH: u8 = 8;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 16;
}

/// Bytes of a header without options.
pub const HEADER_BYTES: usize = field::URGENT.end;

/// A segment whose header is within its bytes.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks the lengths, not the checksum. A segment ends where its packet ends.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] or [`Malformed::Length`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() < HEADER_BYTES {
            return Err(Malformed::Truncated);
        }
        let view = Self(bytes);
        match view.header_length() {
            length if length < HEADER_BYTES => Err(Malformed::Length),
            length if length > bytes.len() => Err(Malformed::Truncated),
            _ => Ok(view),
        }
    }

    /// Returns the bytes of the header with its options.
    pub fn header_length(&self) -> usize {
        usize::from(self.0[field::DATA_OFFSET] >> 4) * 4
    }

    /// Returns whether the checksum matches between these addresses.
    pub fn is_checksum_right(&self, source: u32, target: u32) -> bool {
        let sum = Sum::default().pseudo_header(source, target, ipv4::TCP, self.0.len());
        sum.bytes(self.0).finish() == 0
    }

    /// Returns the payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[self.header_length()..]
    }
}

/// A header without options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Source port.
    pub source: u16,
    /// Target port.
    pub target: u16,
    /// Number of the first byte.
    pub sequence: u32,
    /// Number of the next byte expected.
    pub acknowledgement: u32,
    /// Flags; see [`flag`].
    pub flags: u8,
    /// Bytes the sender has room for.
    pub window: u16,
}

impl Header {
    /// Reads the header of a segment between these addresses.
    ///
    /// # Errors
    /// [`Malformed::Checksum`].
    pub fn parse(view: &View<'_>, source: u32, target: u32) -> Result<Self, Malformed> {
        if !view.is_checksum_right(source, target) {
            return Err(Malformed::Checksum);
        }
        Ok(Self {
            source: word(view.0, field::SOURCE),
            target: word(view.0, field::TARGET),
            sequence: double_word(view.0, field::SEQUENCE),
            acknowledgement: double_word(view.0, field::ACKNOWLEDGEMENT),
            flags: view.0[field::FLAGS],
            window: word(view.0, field::WINDOW),
        })
    }

    /// Writes the header, with its checksum, in front of the payload at the end of `segment`.
    ///
    /// # Panics
    /// If `segment` is shorter than [`HEADER_BYTES`].
    pub fn emit(&self, segment: &mut [u8], source: u32, target: u32) {
        segment[..HEADER_BYTES].fill(0);
        segment[field::SOURCE].copy_from_slice(&self.source.to_be_bytes());
        segment[field::TARGET].copy_from_slice(&self.target.to_be_bytes());
        segment[field::SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        segment[field::ACKNOWLEDGEMENT].copy_from_slice(&self.acknowledgement.to_be_bytes());
        segment[field::DATA_OFFSET] = ((HEADER_BYTES / 4) << 4) as u8;
        segment[field::FLAGS] = self.flags;
        segment[field::WINDOW].copy_from_slice(&self.window.to_be_bytes());
        let pseudo = Sum::default().pseudo_header(source, target, ipv4::TCP, segment.len());
        let sum = pseudo.bytes(segment).finish();
        segment[field::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emitted_parses_to_the_same() {
        let header = Header {
            source: 80,
            target: 50_000,
            sequence: 0xdead_beef,
            acknowledgement: 1,
            flags: flag::PSH | flag::ACK,
            window: 1_024,
        };
        for length in HEADER_BYTES..300 {
            let mut segment: Vec<u8> = (0..length).map(|at| at as u8).collect();
            header.emit(&mut segment, 1, 2);
            let view = View::new(&segment).expect("a good segment");
            assert_eq!(Header::parse(&view, 1, 2), Ok(header));
            assert_eq!(view.payload().len(), length - HEADER_BYTES);
            segment[length - 1] ^= 1;
            let view = View::new(&segment).expect("lengths are right");
            assert_eq!(Header::parse(&view, 1, 2), Err(Malformed::Checksum));
        }
    }

    #[test]
    fn header_lengths_are_checked() {
        let mut segment = [0; 24];
        Header::default().emit(&mut segment, 1, 2);
        segment[field::DATA_OFFSET] = 0x40;
        assert_eq!(View::new(&segment).expect_err("too small"), Malformed::Length);
        segment[field::DATA_OFFSET] = 0x70;
        assert_eq!(View::new(&segment).expect_err("too large"), Malformed::Truncated);
        assert_eq!(View::new(&segment[..19]).expect_err("cut"), Malformed::Truncated);
    }
}
