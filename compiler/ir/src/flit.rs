// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flits: the unit of transfer on a packet stream (ClickNP 2.2), and how packets are cut into
//! flits.
//!
//! A flit is 64 bytes: 32 bytes of payload and a 32-byte header. The publication does not specify
//! the header's layout (its gap G1); ours, in bits of the 512-bit item:
//!
//! | bits | field |
//! |---|---|
//! | 255:0 | payload, byte k in bits 8k+7:8k |
//! | 256 | `sop`, first flit of a packet |
//! | 257 | `eop`, last flit of a packet |
//! | 265:258 | `pad`, filler bytes at the end of the last flit; 0 in every other |
//! | 319:266 | reserved, 0 |
//! | 511:320 | `meta`, 24 bytes of the application's own that travel with the flit |

use crate::Bits;

/// Bits in a flit.
pub const FLIT_BITS: u32 = 512;
/// Bytes in a flit.
pub const FLIT_BYTES: usize = 64;
/// Bytes of payload in a flit.
pub const PAYLOAD_BYTES: usize = 32;
/// The bit that marks the first flit of a packet.
pub const SOP_BIT: u32 = 256;
/// The bit that marks the last flit of a packet.
pub const EOP_BIT: u32 = 257;
/// Lowest bit of `pad`.
pub const PAD_BIT: u32 = 258;
/// Width of `pad`.
pub const PAD_BITS: u32 = 8;
/// Lowest bit of the application's metadata.
pub const META_BIT: u32 = 320;
/// Width of the application's metadata.
pub const META_BITS: u32 = 192;

/// Cuts a packet into flits. An empty packet has no flits.
pub fn cut(packet: &[u8]) -> Vec<Bits> {
    let count = packet.len().div_ceil(PAYLOAD_BYTES);
    packet
        .chunks(PAYLOAD_BYTES)
        .enumerate()
        .map(|(at, chunk)| {
            let mut bytes = [0; FLIT_BYTES];
            bytes[..chunk.len()].copy_from_slice(chunk);
            let pad = (PAYLOAD_BYTES - chunk.len()) as u16;
            let header = u16::from(at == 0) | u16::from(at + 1 == count) << 1 | pad << 2;
            bytes[PAYLOAD_BYTES..PAYLOAD_BYTES + 2].copy_from_slice(&header.to_le_bytes());
            Bits::from_le_bytes(FLIT_BITS, &bytes)
        })
        .collect()
}

/// The header fields of a flit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// First flit of a packet.
    pub sop: bool,
    /// Last flit of a packet.
    pub eop: bool,
    /// Number of filler bytes at the end of the payload.
    pub pad: u8,
}

impl Header {
    /// Returns the header of a flit.
    pub fn of(flit: &Bits) -> Self {
        Self {
            sop: flit.bit(SOP_BIT),
            eop: flit.bit(EOP_BIT),
            pad: flit.extract(PAD_BIT, PAD_BITS).to_u64() as u8,
        }
    }
}

/// An error in a stream of flits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// A packet began before the previous one ended.
    #[error("a flit with sop inside a packet")]
    NestedSop,
    /// A flit outside any packet.
    #[error("a flit without sop at the start of a packet")]
    MissingSop,
    /// `pad` is nonzero in a flit that is not the last, or leaves no payload byte.
    #[error("pad is {0}: it must be 0 before the last flit, and below 32 in it")]
    Pad(u8),
}

/// Tracks the packet boundaries of a stream of flits, and checks that it is well formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Whether a packet has begun and not ended, once known.
    inside: Option<bool>,
}

impl Default for Framing {
    fn default() -> Self {
        Self::resumed(false)
    }
}

impl Framing {
    /// Continues a stream, possibly inside a packet; if that is unknown, the next flit decides.
    pub fn resumed(is_inside: impl Into<Option<bool>>) -> Self {
        Self { inside: is_inside.into() }
    }

    /// Takes the header of the next flit.
    ///
    /// # Errors
    /// A flit that does not fit the stream; it is discarded, and the stream is outside a packet.
    pub fn accept(&mut self, header: Header) -> Result<(), Malformed> {
        let checked = self.check(header);
        self.inside = Some(checked.is_ok() && !header.eop);
        checked
    }

    /// Returns whether a packet has begun and not ended, if known.
    pub fn is_inside_packet(&self) -> Option<bool> {
        self.inside
    }

    fn check(&self, header: Header) -> Result<(), Malformed> {
        match (header.sop, self.inside.unwrap_or(!header.sop)) {
            (true, true) => Err(Malformed::NestedSop),
            (false, false) => Err(Malformed::MissingSop),
            _ if header.pad > 0 && !header.eop => Err(Malformed::Pad(header.pad)),
            _ if usize::from(header.pad) >= PAYLOAD_BYTES => Err(Malformed::Pad(header.pad)),
            _ => Ok(()),
        }
    }
}

/// Joins flits into packets, flit by flit, and checks that the stream is well formed.
#[derive(Clone, Debug, Default)]
pub struct Joiner {
    packet: Vec<u8>,
    framing: Framing,
}

impl Joiner {
    /// Continues inside a packet whose first bytes are `begun`.
    pub fn resumed(begun: Vec<u8>) -> Self {
        Self { packet: begun, framing: Framing::resumed(true) }
    }

    /// Returns the bytes received of an unfinished packet, if there is one.
    pub fn into_begun(self) -> Option<Vec<u8>> {
        self.is_inside_packet().then_some(self.packet)
    }

    /// Accepts the next flit; returns the packet if this is its last flit.
    ///
    /// # Errors
    /// A flit that does not fit the stream; it is discarded with the packet it broke.
    pub fn push(&mut self, flit: &Bits) -> Result<Option<Vec<u8>>, Malformed> {
        let header = Header::of(flit);
        self.framing.accept(header).inspect_err(|_| self.packet.clear())?;
        let bytes = flit.to_le_bytes();
        self.packet.extend_from_slice(&bytes[..PAYLOAD_BYTES - usize::from(header.pad)]);
        Ok(header.eop.then(|| std::mem::take(&mut self.packet)))
    }

    /// Returns whether a packet has begun and not ended.
    pub fn is_inside_packet(&self) -> bool {
        self.framing.is_inside_packet() == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_every_length_are_cut_and_joined_byte_exact() {
        for length in 1..=9_000usize {
            let packet: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
            let mut joiner = Joiner::default();
            let flits = cut(&packet);
            let (last, body) = flits.split_last().expect("a packet has a flit");
            assert_eq!(Header::of(last).pad as usize, length.wrapping_neg() % PAYLOAD_BYTES);
            for flit in body {
                assert_eq!(joiner.push(flit), Ok(None));
            }
            assert_eq!(joiner.push(last), Ok(Some(packet)));
        }
    }

    #[test]
    fn a_broken_stream_is_reported_and_the_next_packet_survives() {
        let flits = cut(&[1; 70]);
        let mut joiner = Joiner::default();
        assert_eq!(joiner.push(&flits[1]), Err(Malformed::MissingSop));
        assert_eq!(joiner.push(&flits[0]), Ok(None));
        assert_eq!(joiner.push(&flits[0]), Err(Malformed::NestedSop));
        let whole: Vec<_> = flits.iter().map(|flit| joiner.push(flit)).collect();
        assert_eq!(whole[2], Ok(Some(vec![1; 70])));
    }
}
