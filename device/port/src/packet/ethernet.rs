// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ethernet II frames, without the frame check sequence.

use super::{Malformed, word};
use std::fmt;

/// Byte ranges of the fields.
pub mod field {
    use std::ops::{Range, RangeFrom};
    /// Target address.
    pub const TARGET: Range<usize> = 0..6;
    /// Source address.
    pub const SOURCE: Range<usize> = 6..12;
    /// Type of the payload.
    pub const ETHER_TYPE: Range<usize> = 12..14;
    /// Payload.
    pub const PAYLOAD: RangeFrom<usize> = 14..;
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = field::PAYLOAD.start;
/// The type of IPv4.
pub const IPV4: u16 = 0x0800;
/// The type of a VLAN tag.
pub const VLAN: u16 = 0x8100;

/// A station's address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct Address(pub [u8; 6]);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A frame that is long enough for its header.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks the length.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() < HEADER_BYTES { Err(Malformed::Truncated) } else { Ok(Self(bytes)) }
    }

    /// Returns the target address.
    pub fn target(&self) -> Address {
        self.address(field::TARGET)
    }

    /// Returns the source address.
    pub fn source(&self) -> Address {
        self.address(field::SOURCE)
    }

    /// Returns the type of the payload.
    pub fn ether_type(&self) -> u16 {
        word(self.0, field::ETHER_TYPE)
    }

    /// Returns the payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[field::PAYLOAD]
    }

    fn address(&self, range: std::ops::Range<usize>) -> Address {
        let mut address = [0; 6];
        address.copy_from_slice(&self.0[range]);
        Address(address)
    }
}

/// An Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Target address.
    pub target: Address,
    /// Source address.
    pub source: Address,
    /// Type of the payload.
    pub ether_type: u16,
}

impl Header {
    /// Reads the header of a frame.
    pub fn parse(view: &View<'_>) -> Self {
        Self { target: view.target(), source: view.source(), ether_type: view.ether_type() }
    }

    /// Writes the header to the front of a frame.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`HEADER_BYTES`].
    pub fn emit(&self, bytes: &mut [u8]) {
        bytes[field::TARGET].copy_from_slice(&self.target.0);
        bytes[field::SOURCE].copy_from_slice(&self.source.0);
        bytes[field::ETHER_TYPE].copy_from_slice(&self.ether_type.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_standard_puts_them() {
        let frame = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x08, 0x00, 0xaa];
        let view = View::new(&frame).expect("a whole header");
        assert_eq!(view.target().to_string(), "01:02:03:04:05:06");
        assert_eq!(view.source().to_string(), "07:08:09:0a:0b:0c");
        assert_eq!((view.ether_type(), view.payload()), (IPV4, &[0xaa][..]));
        let mut copy = [0; 14];
        Header::parse(&view).emit(&mut copy);
        assert_eq!(copy, frame[..14]);
    }

    #[test]
    fn a_short_frame_is_refused() {
        assert_eq!(View::new(&[0; 13]).expect_err("too short"), Malformed::Truncated);
    }
}
