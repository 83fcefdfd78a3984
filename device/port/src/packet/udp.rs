// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UDP datagrams over IPv4 (RFC 768).

use super::checksum::Sum;
use super::{Malformed, ipv4, word};

/// Byte ranges of the fields.
pub mod field {
    use std::ops::Range;
    /// Source port.
    pub const SOURCE: Range<usize> = 0..2;
    /// Target port.
    pub const TARGET: Range<usize> = 2..4;
    /// Bytes of header and payload.
    pub const LENGTH: Range<usize> = 4..6;
    /// Checksum over pseudo header, header and payload; 0 for none.
    pub const CHECKSUM: Range<usize> = 6..8;
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = field::CHECKSUM.end;

/// A datagram whose length is within its bytes.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks the lengths, not the checksum.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] or [`Malformed::Length`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() < HEADER_BYTES {
            return Err(Malformed::Truncated);
        }
        match usize::from(word(bytes, field::LENGTH)) {
            length if length < HEADER_BYTES => Err(Malformed::Length),
            length if length > bytes.len() => Err(Malformed::Truncated),
            length => Ok(Self(&bytes[..length])),
        }
    }

    /// Returns the source port.
    pub fn source(&self) -> u16 {
        word(self.0, field::SOURCE)
    }

    /// Returns the target port.
    pub fn target(&self) -> u16 {
        word(self.0, field::TARGET)
    }

    /// Returns whether the checksum matches between these addresses, or is absent.
    pub fn is_checksum_right(&self, source: u32, target: u32) -> bool {
        let sum = Sum::default().pseudo_header(source, target, ipv4::UDP, self.0.len());
        word(self.0, field::CHECKSUM) == 0 || sum.bytes(self.0).finish() == 0
    }

    /// Returns the payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[HEADER_BYTES..]
    }
}

/// A header, with the addresses that its checksum covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Source port.
    pub source: u16,
    /// Target port.
    pub target: u16,
}

impl Header {
    /// Reads the header of a datagram between these addresses.
    ///
    /// # Errors
    /// [`Malformed::Checksum`].
    pub fn parse(view: &View<'_>, source: u32, target: u32) -> Result<Self, Malformed> {
        if !view.is_checksum_right(source, target) {
            return Err(Malformed::Checksum);
        }
        Ok(Self { source: view.source(), target: view.target() })
    }

    /// Writes the header, with its checksum, in front of the payload at the end of `datagram`.
    ///
    /// # Panics
    /// If `datagram` is shorter than [`HEADER_BYTES`] or longer than 65,535 bytes.
    pub fn emit(&self, datagram: &mut [u8], source: u32, target: u32) {
        let length = u16::try_from(datagram.len()).expect("a datagram has at most 65,535 bytes");
        datagram[field::SOURCE].copy_from_slice(&self.source.to_be_bytes());
        datagram[field::TARGET].copy_from_slice(&self.target.to_be_bytes());
        datagram[field::LENGTH].copy_from_slice(&length.to_be_bytes());
        datagram[field::CHECKSUM].fill(0);
        let pseudo = Sum::default().pseudo_header(source, target, ipv4::UDP, datagram.len());
        // A sum of 0 is sent as 0xffff, because 0 means that there is no checksum.
        let sum = match pseudo.bytes(datagram).finish() {
            0 => 0xffff,
            sum => sum,
        };
        datagram[field::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_emitted_parses_to_the_same() {
        let header = Header { source: 53, target: 4_096 };
        for length in HEADER_BYTES..300 {
            let mut datagram: Vec<u8> = (0..length).map(|at| at as u8).collect();
            header.emit(&mut datagram, 1, 2);
            let view = View::new(&datagram).expect("a good datagram");
            assert_eq!(Header::parse(&view, 1, 2), Ok(header));
            assert_eq!(view.payload().len(), length - HEADER_BYTES);
            assert_eq!(Header::parse(&view, 1, 3), Err(Malformed::Checksum));
        }
    }

    #[test]
    fn lengths_are_checked_and_no_checksum_is_right() {
        let mut datagram = [0; 12];
        Header { source: 1, target: 2 }.emit(&mut datagram, 3, 4);
        datagram[field::CHECKSUM].fill(0);
        assert!(View::new(&datagram).expect("good").is_checksum_right(9, 9));
        assert_eq!(View::new(&datagram[..11]).expect_err("cut"), Malformed::Truncated);
        assert_eq!(View::new(&datagram[..7]).expect_err("cut"), Malformed::Truncated);
        datagram[5] = 7;
        assert_eq!(View::new(&datagram).expect_err("too small"), Malformed::Length);
    }
}
