// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packet headers, one protocol per file, each in the same three parts: named byte ranges, a view
//! that is checked once and then read freely, and a plain value that parses and emits.
//!
//! A view never reads beyond what its check has validated: lengths inside a header are untrusted.

pub mod checksum;
pub mod ethernet;
pub mod flow_hash;
pub mod ipv4;
pub mod tcp;
pub mod udp;

/// Reason why bytes are not a valid header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the header has.
    #[error("the packet ends inside the header")]
    Truncated,
    /// A length field that contradicts the number of bytes, or is below the protocol's minimum.
    #[error("an invalid length field")]
    Length,
    /// Another version of the protocol.
    #[error("another version of the protocol")]
    Version,
    /// The checksum does not match.
    #[error("a wrong checksum")]
    Checksum,
}

fn word(bytes: &[u8], range: std::ops::Range<usize>) -> u16 {
    u16::from_be_bytes([bytes[range.start], bytes[range.start + 1]])
}

fn double_word(bytes: &[u8], range: std::ops::Range<usize>) -> u32 {
    u32::from(word(bytes, range.start..range.start + 2)) << 16
        | u32::from(word(bytes, range.start + 2..range.end))
}
