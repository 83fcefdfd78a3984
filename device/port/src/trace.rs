// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces: frames generated from a seed, for tests and measurements.
//!
//! A trace is a number of UDP and TCP flows over IPv4, interleaved at random, with chosen sizes and
//! a chosen share of faulty frames: a wrong checksum or a missing end. The same settings give the
//! same trace on every machine. Sizes are of whole frames without the frame check sequence.

use crate::packet::ethernet::{self, Address};
use crate::packet::{ipv4, tcp, udp};
use std::ops::RangeInclusive;

/// A frame of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceFrame {
    /// Bytes of the frame.
    pub bytes: Vec<u8>,
    /// Length in bytes before truncation.
    pub original_length: usize,
    /// Nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Number of its flow, counted from 0.
    pub flow: usize,
    /// The intentional fault, if any.
    pub flaw: Option<Flaw>,
}

impl TraceFrame {
    /// Creates a frame of which only the bytes matter.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { original_length: bytes.len(), bytes, ..Self::default() }
    }
}

/// An intentional fault of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// The checksum of the IPv4 header is wrong.
    NetworkChecksum,
    /// The checksum of UDP or TCP is wrong.
    TransportChecksum,
    /// The end is missing.
    Truncated,
}

/// Distribution of frame lengths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// All frames have this length.
    Fixed(usize),
    /// Any of these lengths, with equal probability.
    Uniform(RangeInclusive<usize>),
    /// The simple Internet mix: 7 of 64 bytes, 4 of 594 and 1 of 1,518 on the wire, which is 60,
    /// 590 and 1,514 without the frame check sequence.
    InternetMix,
}

/// Parameters of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of frames.
    pub frames: usize,
    /// Number of different flows, at least 1.
    pub flows: usize,
    /// Frame sizes; a size below [`LEAST_FRAME`] is raised to it.
    pub sizes: Sizes,
    /// Percentage of TCP flows; the rest is UDP.
    pub tcp_percent: u32,
    /// Frames per thousand with a wrong checksum, half of them in the IPv4 header.
    pub bad_checksum_permille: u32,
    /// Frames per thousand that are truncated.
    pub truncated_permille: u32,
    /// Nanoseconds from one frame to the next.
    pub gap_ns: u64,
}

/// Bytes of the shortest frame that holds every header: Ethernet, IPv4 and TCP.
pub const LEAST_FRAME: usize = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES + tcp::HEADER_BYTES;

impl Default for Trace {
    fn default() -> Self {
        Self {
            seed: 1,
            frames: 4_096,
            flows: 256,
            sizes: Sizes::Fixed(64),
            tcp_percent: 50,
            bad_checksum_permille: 0,
            truncated_permille: 0,
            gap_ns: 1_000,
        }
    }
}

/// A flow of a trace.
#[derive(Clone, Copy, Debug)]
struct Flow {
    link: ethernet::Header,
    network: ipv4::Header,
    ports: (u16, u16),
    sequence: u32,
}

impl Trace {
    /// Generates the frames.
    pub fn generate(&self) -> Vec<TraceFrame> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let flow = |at| self.flow(at, &mut random);
        let mut flows: Vec<Flow> = (0..self.flows.max(1)).map(flow).collect();
        let frame = |at: usize| {
            let flow = random.usize(..flows.len());
            let length = self.sizes.draw(&mut random).max(LEAST_FRAME);
            let mut bytes = flows[flow].emit(at, length, &mut random);
            let flaw = self.spoil(&mut bytes, &mut random);
            let timestamp_ns = 1_700_000_000_000_000_000 + at as u64 * self.gap_ns;
            TraceFrame { bytes, original_length: length, timestamp_ns, flow, flaw }
        };
        (0..self.frames).map(frame).collect()
    }

    fn flow(&self, at: usize, random: &mut fastrand::Rng) -> Flow {
        let [a, b, c] = [(at >> 16) as u8, (at >> 8) as u8, at as u8];
        let address = |side| Address([0x02, 0, side, a, b, c]);
        let is_tcp = random.u32(0..100) < self.tcp_percent;
        Flow {
            link: ethernet::Header {
                target: address(1),
                source: address(2),
                ether_type: ethernet::IPV4,
            },
            network: ipv4::Header {
                // The flow's number is in its source address, so no two flows are equal.
                source: 0x0a00_0000 | at as u32 & 0x00ff_ffff,
                target: 0xc0a8_0000 | random.u32(0..0x1_0000),
                protocol: if is_tcp { ipv4::TCP } else { ipv4::UDP },
                time_to_live: 64,
                ..ipv4::Header::default()
            },
            ports: (random.u16(1_024..), [53, 80, 443, 4_789][random.usize(..4)]),
            sequence: random.u32(..),
        }
    }

    fn spoil(&self, bytes: &mut Vec<u8>, random: &mut fastrand::Rng) -> Option<Flaw> {
        if random.u32(0..1_000) < self.truncated_permille {
            bytes.truncate(random.usize(1..bytes.len()));
            return Some(Flaw::Truncated);
        }
        if random.u32(0..1_000) >= self.bad_checksum_permille {
            return None;
        }
        let network = ethernet::HEADER_BYTES;
        let transport = network + ipv4::HEADER_BYTES;
        let (flaw, field) = match (random.bool(), bytes[network + ipv4::field::PROTOCOL]) {
            (true, _) => (Flaw::NetworkChecksum, network + ipv4::field::CHECKSUM.start),
            (_, ipv4::TCP) => (Flaw::TransportChecksum, transport + tcp::field::CHECKSUM.start),
            _ => (Flaw::TransportChecksum, transport + udp::field::CHECKSUM.start),
        };
        // One bit of the sum is flipped: the result is never valid, nor the 0 that means "no
        // checksum" in UDP.
        let bit = if bytes[field] == 1 << 6 && bytes[field + 1] == 0 { 5 } else { 6 };
        bytes[field] ^= 1 << bit;
        Some(flaw)
    }
}

impl Sizes {
    fn draw(&self, random: &mut fastrand::Rng) -> usize {
        match self {
            Sizes::Fixed(length) => *length,
            Sizes::Uniform(range) => random.usize(range.clone()),
            Sizes::InternetMix => match random.u32(0..12) {
                0..7 => 60,
                7..11 => 590,
                _ => 1_514,
            },
        }
    }
}

impl Flow {
    /// Generates the next frame of the flow, with `length` bytes in total.
    fn emit(&mut self, at: usize, length: usize, random: &mut fastrand::Rng) -> Vec<u8> {
        let mut bytes = vec![0; length];
        random.fill(&mut bytes);
        self.link.emit(&mut bytes);
        let packet = &mut bytes[ethernet::HEADER_BYTES..];
        let payload_length = packet.len() - ipv4::HEADER_BYTES;
        let network = ipv4::Header { identification: at as u16, payload_length, ..self.network };
        network.emit(packet);
        let transport = &mut packet[ipv4::HEADER_BYTES..];
        let (source, target) = self.ports;
        if network.protocol == ipv4::TCP {
            let sequence = self.sequence;
            let carried = transport.len() - tcp::HEADER_BYTES;
            self.sequence = sequence.wrapping_add(carried as u32);
            let (flags, window) = (tcp::flag::ACK, 0xffff);
            let header =
                tcp::Header { source, target, sequence, acknowledgement: 0, flags, window };
            header.emit(transport, network.source, network.target);
        } else {
            udp::Header { source, target }.emit(transport, network.source, network.target);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Malformed;
    use std::collections::BTreeSet;

    /// Classifies a frame as a strict checker would.
    fn judge(bytes: &[u8]) -> Result<(), Flaw> {
        let cut = |_: Malformed| Flaw::Truncated;
        let packet = ethernet::View::new(bytes).map_err(cut)?.payload();
        let view = ipv4::View::new(packet).map_err(cut)?;
        if !view.is_checksum_right() {
            return Err(Flaw::NetworkChecksum);
        }
        let (source, target) = (view.source(), view.target());
        let is_right = if view.protocol() == ipv4::TCP {
            tcp::View::new(view.payload()).map_err(cut)?.is_checksum_right(source, target)
        } else {
            udp::View::new(view.payload()).map_err(cut)?.is_checksum_right(source, target)
        };
        if is_right { Ok(()) } else { Err(Flaw::TransportChecksum) }
    }

    #[test]
    fn every_frame_is_as_good_as_its_trace_says() {
        let trace = Trace {
            frames: 3_000,
            sizes: Sizes::Uniform(64..=9_000),
            bad_checksum_permille: 100,
            truncated_permille: 100,
            ..Trace::default()
        };
        let frames = trace.generate();
        for (at, frame) in frames.iter().enumerate() {
            assert_eq!(judge(&frame.bytes).err(), frame.flaw, "frame {at}");
        }
        for flaw in [Flaw::NetworkChecksum, Flaw::TransportChecksum, Flaw::Truncated] {
            assert!(frames.iter().filter(|frame| frame.flaw == Some(flaw)).count() > 80);
        }
    }

    #[test]
    fn the_seed_decides() {
        let with = |seed| Trace { seed, frames: 50, ..Trace::default() }.generate();
        assert_eq!(with(3), with(3));
        assert_ne!(with(3), with(4));
    }

    #[test]
    fn the_internet_mix_has_its_proportions() {
        let sizes = Sizes::InternetMix;
        let frames = Trace { frames: 12_000, sizes, ..Trace::default() }.generate();
        for (length, expected) in [(60, 7_000i64), (590, 4_000), (1_514, 1_000)] {
            let count = frames.iter().filter(|frame| frame.bytes.len() == length).count() as i64;
            assert!((count - expected).abs() < 200, "{count} frames of {length} bytes");
        }
    }

    #[test]
    fn there_are_as_many_flows_and_both_protocols() {
        let frames = Trace { flows: 16, ..Trace::default() }.generate();
        let pairs = frames.iter().map(|frame| (frame.flow, frame.bytes[26..38].to_vec()));
        assert_eq!(pairs.collect::<BTreeSet<_>>().len(), 16, "a flow keeps its five-tuple");
        let protocols: BTreeSet<u8> = frames.iter().map(|frame| frame.bytes[23]).collect();
        assert_eq!(protocols, BTreeSet::from([ipv4::TCP, ipv4::UDP]));
    }
}
