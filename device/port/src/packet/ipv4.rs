// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IPv4 packets (RFC 791).

use super::{Malformed, checksum, double_word, word};

/// Byte ranges of the fields.
pub mod field {
    use std::ops::Range;
    /// Version in the high half, header length in 32-bit words in the low half.
    pub const VERSION_LENGTH: usize = 0;
    /// Type of service.
    pub const SERVICE: usize = 1;
    /// Bytes of header and payload.
    pub const TOTAL_LENGTH: Range<usize> = 2..4;
    /// Number of the datagram that a fragment belongs to.
    pub const IDENTIFICATION: Range<usize> = 4..6;
    /// Flags and fragment offset.
    pub const FRAGMENT: Range<usize> = 6..8;
    /// Time to live.
    pub const TIME_TO_LIVE: usize = 8;
    /// Protocol of the payload.
    pub const PROTOCOL: usize = 9;
    /// Checksum of the header.
    pub const CHECKSUM: Range<usize> = 10..12;
    /// Source address.
    pub const SOURCE: Range<usize> = 12..16;
    /// Target address.
    pub const TARGET: Range<usize> = 16..20;
}

/// Bytes of a header without options.
pub const HEADER_BYTES: usize = field::TARGET.end;
/// The protocol number of TCP.
pub const TCP: u8 = 6;
/// The protocol number of UDP.
pub const UDP: u8 = 17;

/// A packet whose header and total length are within its bytes.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks version and lengths, not the checksum.
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::Version`] or [`Malformed::Length`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() < HEADER_BYTES {
            return Err(Malformed::Truncated);
        }
        let view = Self(bytes);
        if bytes[field::VERSION_LENGTH] >> 4 != 4 {
            return Err(Malformed::Version);
        }
        if view.header_length() < HEADER_BYTES || view.total_length() < view.header_length() {
            return Err(Malformed::Length);
        }
        if view.total_length() > bytes.len() {
            return Err(Malformed::Truncated);
        }
        Ok(view)
    }

    /// Returns the bytes of the header with its options.
    pub fn header_length(&self) -> usize {
        usize::from(self.0[field::VERSION_LENGTH] & 15) * 4
    }

    /// Returns the bytes of header and payload.
    pub fn total_length(&self) -> usize {
        usize::from(word(self.0, field::TOTAL_LENGTH))
    }

    /// Returns the protocol of the payload.
    pub fn protocol(&self) -> u8 {
        self.0[field::PROTOCOL]
    }

    /// Returns the number of hops left.
    pub fn time_to_live(&self) -> u8 {
        self.0[field::TIME_TO_LIVE]
    }

    /// Returns the source address.
    pub fn source(&self) -> u32 {
        double_word(self.0, field::SOURCE)
    }

    /// Returns the target address.
    pub fn target(&self) -> u32 {
        double_word(self.0, field::TARGET)
    }

    /// Returns whether the header's checksum matches.
    pub fn is_checksum_right(&self) -> bool {
        checksum::of(&self.0[..self.header_length()]) == 0
    }

    /// Returns the payload, without the padding after it.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[self.header_length()..self.total_length()]
    }
}

/// A header without options or fragments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Source address.
    pub source: u32,
    /// Target address.
    pub target: u32,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Hops left.
    pub time_to_live: u8,
    /// Number of the datagram.
    pub identification: u16,
    /// Bytes of the payload.
    pub payload_length: usize,
}

impl Header {
    /// Reads the header of a packet.
    ///
    /// # Errors
    /// [`Malformed::Checksum`].
    pub fn parse(view: &View<'_>) -> Result<Self, Malformed> {
        if !view.is_checksum_right() {
            return Err(Malformed::Checksum);
        }
        Ok(Self {
            source: view.source(),
            target: view.target(),
            protocol: view.protocol(),
            time_to_live: view.time_to_live(),
            identification: word(view.0, field::IDENTIFICATION),
            payload_length: view.payload().len(),
        })
    }

    /// Writes the header with its checksum to the front of a packet.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`HEADER_BYTES`], or the packet longer than 65,535 bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let header = &mut bytes[..HEADER_BYTES];
        let total = u16::try_from(HEADER_BYTES + self.payload_length);
        let total = total.expect("an IPv4 packet has at most 65,535 bytes");
        header.fill(0);
        header[field::VERSION_LENGTH] = 0x45;
        header[field::TOTAL_LENGTH].copy_from_slice(&total.to_be_bytes());
        header[field::IDENTIFICATION].copy_from_slice(&self.identification.to_be_bytes());
        header[field::TIME_TO_LIVE] = self.time_to_live;
        header[field::PROTOCOL] = self.protocol;
        header[field::SOURCE].copy_from_slice(&self.source.to_be_bytes());
        header[field::TARGET].copy_from_slice(&self.target.to_be_bytes());
        let sum = checksum::of(header);
        header[field::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        source: 0x0a00_0001,
        target: 0xc0a8_0002,
        protocol: UDP,
        time_to_live: 64,
        identification: 0x1234,
        payload_length: 3,
    };

    #[test]
    fn what_is_emitted_parses_to_the_same() {
        let mut bytes = [0; 30];
        HEADER.emit(&mut bytes);
        let view = View::new(&bytes).expect("a good packet");
        assert_eq!(Header::parse(&view), Ok(HEADER));
        assert_eq!(view.payload().len(), 3, "filler is no payload");
    }

    /// A header known from the literature on the checksum: 4500 0073 ... gives b861.
    #[test]
    fn the_checksum_of_a_known_header() {
        let known = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(checksum::of(&known), 0);
    }

    #[test]
    fn every_lie_of_a_header_is_found() {
        let mut good = [0; 23];
        HEADER.emit(&mut good);
        let with = |at: usize, value: u8| {
            let mut bytes = good;
            bytes[at] = value;
            View::new(&bytes).and_then(|view| Header::parse(&view))
        };
        assert_eq!(with(0, 0x65), Err(Malformed::Version));
        assert_eq!(with(0, 0x44), Err(Malformed::Length));
        assert_eq!(with(3, 19), Err(Malformed::Length));
        assert_eq!(with(3, 24), Err(Malformed::Truncated));
        assert_eq!(with(8, 63), Err(Malformed::Checksum));
        for length in 0..good.len() {
            assert!(View::new(&good[..length]).is_err());
        }
    }
}
