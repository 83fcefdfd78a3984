// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packet headers, one protocol a file, each in the same three parts: named byte ranges, a view
//! that is checked once and then read freely, and a plain value that parses and emits.
//!
//! A view never looks beyond what its check has found: lengths inside a header are untrusted.

pub mod checksum;
pub mod ethernet;
pub mod flow_hash;
pub mod ipv4;
pub mod tcp;
pub mod udp;

/// Why bytes are not a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the header has.
    #[error("the packet ends inside the header")]
    Truncated,
    /// A length field that contradicts the bytes there are, or the protocol's least.
    #[error("a length field that cannot be right")]
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
