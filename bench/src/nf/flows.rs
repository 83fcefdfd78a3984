// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The frames of a case: a ring of 4,096 frames of one size, into which flows are stamped in turn,
//! so that any number of flows passes and all subjects see the same. At most as many flows as
//! frames are written into the frames once, before the measurement.
//!
//! All frames are IPv4 without options and have a valid header checksum. They carry UDP without a
//! checksum, or TCP, whose checksum is not maintained since no subject verifies it.

use freeport_ir::Bits;
use freeport_port::STAMP_BYTES;
use freeport_port::packet::{checksum, ethernet, ipv4};
use freeport_port::trace::TraceFrame;

/// Number of frames in the ring.
pub const RING_FRAMES: usize = 4_096;
/// Offset of a stamp in a frame: it begins with the time to live.
pub const STAMP_OFFSET: usize = ethernet::HEADER_BYTES + ipv4::field::TIME_TO_LIVE;
/// Seed of all random choices of the cases.
pub const SEED: u64 = 1;

const TIME_TO_LIVE: u8 = 64;
/// Time to live of frames that are not stamped: a router decrements it in each lap.
const LONGEST_TIME_TO_LIVE: u8 = 255;
/// Laps for which such frames last, until the time to live would reach 1.
pub const WRITTEN_LAPS: usize = 250;
const TRANSPORT: usize = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES;

/// A five-tuple.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tuple {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub target: u32,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub target_port: u16,
    /// IP protocol number: TCP or UDP.
    pub protocol: u8,
}

impl Tuple {
    /// Parses the tuple of a frame, if it is IPv4 with ports. The views check all bounds.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let link = ethernet::View::new(frame).ok()?;
        let view = ipv4::View::new(link.payload()).ok().filter(|_| {
            link.ether_type() == ethernet::IPV4 // other frames have no tuple
        })?;
        let ports = view.payload().get(..4)?;
        Some(Self {
            source: view.source(),
            target: view.target(),
            source_port: u16::from_be_bytes([ports[0], ports[1]]),
            target_port: u16::from_be_bytes([ports[2], ports[3]]),
            protocol: view.protocol(),
        })
    }

    /// Returns the library's record `Tuple`; bytes that no rule matches on are 0.
    pub fn record(&self) -> Bits {
        let mut bytes = [self.source.to_le_bytes(), self.target.to_le_bytes()].concat();
        bytes.extend([self.source_port.to_le_bytes(), self.target_port.to_le_bytes()].concat());
        bytes.extend([self.protocol, 0, 0, 0]);
        Bits::from_le_bytes(128, &bytes)
    }

    /// Returns the key of the kernel's maps: fields in network order, then the protocol as a word.
    pub fn kernel_key(&self) -> Vec<u8> {
        let mut key = [self.source.to_be_bytes(), self.target.to_be_bytes()].concat();
        key.extend([self.source_port.to_be_bytes(), self.target_port.to_be_bytes()].concat());
        key.extend(u32::from(self.protocol).to_le_bytes());
        key
    }

    /// Returns the bytes from the time to live to the ports, for frames of this size.
    fn stamp(&self, frame_bytes: usize, time_to_live: u8) -> [u8; STAMP_BYTES] {
        let header = ipv4::Header {
            source: self.source,
            target: self.target,
            protocol: self.protocol,
            time_to_live,
            payload_length: frame_bytes - TRANSPORT,
            ..ipv4::Header::default()
        };
        let mut bytes = [0; ipv4::HEADER_BYTES + 4];
        header.emit(&mut bytes);
        bytes[ipv4::HEADER_BYTES..][..2].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[ipv4::HEADER_BYTES + 2..].copy_from_slice(&self.target_port.to_be_bytes());
        let mut stamp = [0; STAMP_BYTES];
        stamp.copy_from_slice(&bytes[ipv4::field::TIME_TO_LIVE..]);
        stamp
    }
}

/// Frames of one size, and the stamps of their flows.
#[derive(Clone, Debug)]
pub struct Flows {
    /// Frames of the ring, without flows or with the flows written into them.
    pub ring: Vec<TraceFrame>,
    /// One stamp per flow, in order of arrival.
    pub stamps: Vec<[u8; STAMP_BYTES]>,
    /// Bytes per frame.
    pub frame_bytes: usize,
    /// Whether the flows are written into the ring, each into the same number of frames.
    pub is_written: bool,
}

impl Flows {
    /// Creates a ring of frames of one size for these flows.
    pub fn new(tuples: &[Tuple], frame_bytes: usize) -> Self {
        let is_written = (1..=RING_FRAMES).contains(&tuples.len());
        let time_to_live = if is_written { LONGEST_TIME_TO_LIVE } else { TIME_TO_LIVE };
        let stamps = tuples.iter().map(|tuple| tuple.stamp(frame_bytes, time_to_live)).collect();
        let whole =
            if is_written { RING_FRAMES / tuples.len() * tuples.len() } else { RING_FRAMES };
        let ring = (0..whole).map(|at| TraceFrame::of(template(at, frame_bytes))).collect();
        let mut flows = Self { ring, stamps, frame_bytes, is_written: false };
        if is_written {
            flows.ring = flows.frames().take(whole).map(TraceFrame::of).collect();
        }
        Self { is_written, ..flows }
    }

    /// Returns whether each frame is stamped with a flow when it is lent.
    pub fn is_stamped(&self) -> bool {
        !self.stamps.is_empty() && !self.is_written
    }

    /// Takes the frames of a trace as they are; nothing is stamped into them.
    pub fn fixed(ring: Vec<TraceFrame>, frame_bytes: usize) -> Self {
        Self { ring, stamps: vec![], frame_bytes, is_written: false }
    }

    /// Iterates endlessly over the frames, from the first.
    pub fn frames(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.ring.iter().cycle().enumerate().map(|(at, frame)| {
            let mut bytes = frame.bytes.clone();
            if let Some(stamp) = self.stamps.get(at % self.stamps.len().max(1)) {
                bytes[STAMP_OFFSET..][..STAMP_BYTES].copy_from_slice(stamp);
            }
            bytes
        })
    }
}

/// Returns a frame without a flow. As TCP it has no options, as UDP no checksum.
fn template(at: usize, frame_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; frame_bytes];
    let mut random = fastrand::Rng::with_seed(SEED.wrapping_add(at as u64));
    random.fill(&mut bytes);
    let link = ethernet::Header {
        target: ethernet::Address([2, 0, 1, 0, 0, 1]),
        source: ethernet::Address([2, 0, 1, 0, 0, 2]),
        ether_type: ethernet::IPV4,
    };
    link.emit(&mut bytes);
    let payload_length = frame_bytes - TRANSPORT;
    let network = ipv4::Header { payload_length, ..ipv4::Header::default() };
    network.emit(&mut bytes[ethernet::HEADER_BYTES..]);
    // As UDP: the length, and no checksum. As TCP: the sequence number, a header of twenty bytes,
    // ACK.
    bytes[TRANSPORT + 4..][..2].copy_from_slice(&(payload_length as u16).to_be_bytes());
    bytes[TRANSPORT + 6..][..2].copy_from_slice(&[0, 0]);
    bytes[TRANSPORT + 12..][..2].copy_from_slice(&[0x50, 0x10]);
    bytes
}

/// Returns whether the IPv4 header of a frame has a valid checksum.
pub fn is_header_sum_right(frame: &[u8]) -> bool {
    checksum::of(&frame[ethernet::HEADER_BYTES..TRANSPORT]) == 0
}

/// Returns `count` distinct tuples, at most 32 M, with destinations in 10.128.0.0/9, half of them
/// TCP.
pub fn different_tuples(count: usize, random: &mut fastrand::Rng) -> Vec<Tuple> {
    let hosts = if count > 1 << 24 { 0x01ff_ffff } else { 0x00ff_ffff };
    let tuple = |at: usize| Tuple {
        // The index is in the source address, so that no two tuples are equal; multiplication by an
        // odd factor scatters it, so that it is not easy for any hash function.
        source: 0x0b00_0000 & !hosts | (at as u32).wrapping_mul(0x9e37_79b1) & hosts,
        target: 0x0a80_0000 | random.u32(..0x0080_0000),
        source_port: random.u16(1_024..),
        target_port: [53, 80, 443, 8_080][random.usize(..4)],
        protocol: if random.bool() { ipv4::TCP } else { ipv4::UDP },
    };
    (0..count).map(tuple).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn stamped_frames_are_good_packets_of_their_flows() {
        let mut random = fastrand::Rng::with_seed(7);
        let tuples = different_tuples(5_000, &mut random);
        assert_eq!(tuples.iter().collect::<HashSet<_>>().len(), tuples.len());
        for frame_bytes in [60, 64, 1_500] {
            let flows = Flows::new(&tuples, frame_bytes);
            let expected = tuples.iter().chain(&tuples);
            for (frame, tuple) in flows.frames().zip(expected) {
                assert_eq!((frame.len(), Tuple::of(&frame)), (frame_bytes, Some(*tuple)));
                assert!(is_header_sum_right(&frame));
            }
        }
    }
}
