// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets for XDP programs, generated from a seed: recurring flows, so that state in maps matters,
//! in the protocols that the programs of the repository parse. Some packets are truncated at any
//! length, or corrupted.

mod frame;
pub mod hosts;
mod payload;

use crate::{Arrival, Departure};
use fastrand::Rng;
use frame::Frame;
use hosts::Flow;
use std::ops::Range;

/// Kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A TCP segment, usually in the right order of its connection.
    Tcp,
    /// The same over IPv6.
    TcpIpv6,
    /// A UDP datagram with random contents.
    Udp,
    /// The same over IPv6.
    UdpIpv6,
    /// Echo requests and errors that quote a packet of a flow.
    Icmp,
    /// The same over IPv6.
    IcmpIpv6,
    /// A DNS query.
    Dns,
    /// A datagram to one of the ports in [`hosts::KNOCKS`].
    Knock,
    /// An IPv4 packet in a GRE, IPIP or VXLAN tunnel.
    Tunnelled,
    /// A request of HTTP or memcached.
    Request,
    /// A QUIC packet, with a connection id of ours or without.
    Quic,
    /// IPv6 under the prefix that represents IPv4, or IPv4 to an address that represents IPv6.
    Translated,
    /// IPv6 with extension headers.
    Extended,
    /// A reply to the last packet that was sent: the acknowledgement of a segment.
    Reply,
    /// A frame with the experimental EtherType, as `counters.bpf.c` answers.
    Question,
    /// An Ethernet header and random bytes.
    Other,
}

/// A packet with its ingress device and queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Bytes from the Ethernet header on.
    pub bytes: Vec<u8>,
    /// Number of the device: 1 to 3.
    pub ingress_ifindex: u32,
    /// Receive queue of the device; the first device has one, the others have four.
    pub rx_queue_index: u32,
}

impl Packet {
    /// Returns the packet as a target takes it.
    pub fn arrival(&self) -> Arrival<'_> {
        let Self { bytes, ingress_ifindex, rx_queue_index } = self;
        let (ingress_ifindex, rx_queue_index) = (*ingress_ifindex, *rx_queue_index);
        Arrival { bytes, ingress_ifindex, rx_queue_index }
    }
}

/// Lengths at which packets are truncated, in ascending order.
const CUTS: Range<usize> = 14..400;

/// An endless sequence of packets.
pub struct Traffic {
    random: Rng,
    kinds: &'static [Kind],
    flows: Vec<Flow>,
    /// The last packet that a program sent.
    sent: Vec<u8>,
    cut: usize,
}

impl Traffic {
    /// Creates the sequence of a seed. Kinds listed more than once are more frequent.
    pub fn new(seed: u64, kinds: &'static [Kind]) -> Self {
        let mut random = Rng::with_seed(seed);
        let flows = (0..96).map(|_| Flow::new(&mut random)).collect();
        Self { random, kinds, flows, sent: vec![], cut: CUTS.start }
    }

    /// Generates the next packet.
    pub fn next_packet(&mut self) -> Packet {
        let kind = self.kinds[self.random.usize(..self.kinds.len())];
        let mut bytes = self.whole(kind);
        match self.random.u32(..100) {
            0..15 => {
                bytes.truncate(self.cut);
                self.cut = if self.cut + 1 < CUTS.end { self.cut + 1 } else { CUTS.start };
            }
            15..22 => self.break_a_byte(&mut bytes),
            _ => {}
        }
        self.arriving(bytes)
    }

    /// Generates a packet of a kind, neither truncated nor corrupted.
    pub fn whole_packet(&mut self, kind: Kind) -> Packet {
        let bytes = self.whole(kind);
        self.arriving(bytes)
    }

    fn arriving(&mut self, bytes: Vec<u8>) -> Packet {
        let ingress_ifindex = self.random.u32(1..4);
        let queues = if ingress_ifindex == 1 { 1 } else { 4 };
        Packet { bytes, ingress_ifindex, rx_queue_index: self.random.u32(..queues) }
    }

    /// Records the outcome of a packet, so that replies can be generated.
    pub fn observe(&mut self, departure: &Departure) {
        const XDP_TX: u32 = 3;
        if departure.verdict == XDP_TX {
            self.sent.clone_from(&departure.bytes);
        }
    }

    fn whole(&mut self, kind: Kind) -> Vec<u8> {
        if kind == Kind::Reply
            && let Some(reply) = payload::reply(&self.sent)
        {
            return reply;
        }
        let at = self.random.usize(..self.flows.len());
        let mut flow = self.flows[at].clone();
        let random = &mut self.random;
        let frame = Frame::new(random);
        let bytes = match kind {
            Kind::Tcp | Kind::Reply => frame.tcp(random, &mut flow, &[]),
            Kind::TcpIpv6 => frame.tcp_ipv6(random, &mut flow),
            Kind::Udp => frame.udp(random, &flow),
            Kind::UdpIpv6 => frame.udp_ipv6(random, &flow),
            Kind::Icmp => frame.icmp(random, &flow),
            Kind::IcmpIpv6 => frame.icmp_ipv6(random, &flow),
            Kind::Dns => {
                let query = payload::dns(random);
                frame.datagram(random, &flow, 53, &query)
            }
            Kind::Knock => {
                let port = hosts::KNOCKS[random.usize(..hosts::KNOCKS.len())];
                frame.datagram(random, &flow, port, &[])
            }
            Kind::Tunnelled => frame.tunnelled(random, &flow),
            Kind::Request => {
                let request = payload::request(random);
                frame.tcp(random, &mut flow, &request)
            }
            Kind::Quic => {
                let packet = payload::quic(random);
                frame.datagram(random, &flow, 443, &packet)
            }
            Kind::Translated => frame.translated(random, &flow),
            Kind::Extended => frame.extended(random, &flow),
            Kind::Question => frame.other(random, 0x88b5),
            Kind::Other => {
                let protocol = [0x0806, 0x9000, 0x0800, 0x86dd][random.usize(..4)];
                frame.other(random, protocol)
            }
        };
        self.flows[at] = flow;
        bytes
    }

    fn break_a_byte(&mut self, bytes: &mut [u8]) {
        for _ in 0..self.random.usize(1..4) {
            // Mostly within the headers.
            let end = if self.random.bool() { bytes.len().min(60) } else { bytes.len() };
            bytes[self.random.usize(..end)] ^= 1 << self.random.u32(..8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: &[Kind] = &[Kind::Tcp, Kind::Udp, Kind::Dns, Kind::Tunnelled, Kind::Extended];

    #[test]
    fn a_seed_gives_one_sequence_and_another_seed_another() {
        let take = |seed| {
            let mut traffic = Traffic::new(seed, KINDS);
            (0..200).map(|_| traffic.next_packet()).collect::<Vec<_>>()
        };
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn packets_are_cut_at_every_length_and_none_is_shorter_than_the_kernel_takes() {
        let mut traffic = Traffic::new(1, KINDS);
        let lengths: Vec<usize> = (0..6000).map(|_| traffic.next_packet().bytes.len()).collect();
        assert!((14..60).all(|length| lengths.contains(&length)));
        assert!(lengths.iter().all(|length| (14..=3520).contains(length)));
    }
}
