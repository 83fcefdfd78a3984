// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames built from the inside out: a payload, with one header after the other put in front.

use super::hosts::{self, Flow};
use fastrand::Rng;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_IPV6: u8 = 58;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// The parts of a frame that do not depend on its payload.
pub struct Frame {
    tags: Vec<u16>,
    ttl: u8,
    tos: u8,
    options: usize,
    fragment: u16,
    /// A wrong checksum to use in place of the right ones.
    checksum: Option<u16>,
}

impl Frame {
    /// Chooses a mostly plain frame; some have VLAN tags or options, are fragments, or have an
    /// expiring time to live.
    pub fn new(random: &mut Rng) -> Self {
        let vlan = |random: &mut Rng| hosts::VLANS[random.usize(..hosts::VLANS.len())];
        let tags = match random.u32(..10) {
            0 | 1 => vec![vlan(random)],
            2 => vec![vlan(random), vlan(random)],
            _ => vec![],
        };
        let choose = |random: &mut Rng, chance: u32| random.u32(..chance) == 0;
        Self {
            tags,
            ttl: if choose(random, 12) { random.u8(..3) } else { random.u8(3..=255) },
            tos: if choose(random, 4) { random.u8(..) } else { 0 },
            options: if choose(random, 12) { 4 * random.usize(1..=10) } else { 0 },
            fragment: match random.u32(..24) {
                0 => random.u16(1..64),
                1 => 0x2000,
                2 => 0x4000,
                _ => 0,
            },
            checksum: [Some(0), Some(0xffff), Some(0x1234)]
                .get(random.usize(..24))
                .copied()
                .flatten(),
        }
    }

    /// Builds a segment. The first ones of a flow open the connection, and some close it.
    pub fn tcp(&self, random: &mut Rng, flow: &mut Flow, payload: &[u8]) -> Vec<u8> {
        let (flags, sender) = next_flags(random, flow);
        let payload = if payload.is_empty() { &filling(random)[..] } else { payload };
        let segment = segment(random, &sender, flags, payload);
        self.over_ipv4(&sender, TCP, segment, 16)
    }

    /// As `tcp`, over IPv6.
    pub fn tcp_ipv6(&self, random: &mut Rng, flow: &mut Flow) -> Vec<u8> {
        let (flags, sender) = next_flags(random, flow);
        let payload = filling(random);
        let segment = segment(random, &sender, flags, &payload);
        self.over_ipv6(
            hosts::ipv6(sender.hosts[0]),
            hosts::ipv6(sender.hosts[1]),
            &sender,
            TCP,
            segment,
            16,
        )
    }

    /// Builds a datagram of random bytes.
    pub fn udp(&self, random: &mut Rng, flow: &Flow) -> Vec<u8> {
        let payload = filling(random);
        self.datagram(random, flow, flow.ports[1], &payload)
    }

    /// Builds a datagram to a port.
    pub fn datagram(&self, random: &mut Rng, flow: &Flow, port: u16, payload: &[u8]) -> Vec<u8> {
        let flow = Flow { ports: [flow.ports[0], port], ..flow.clone() };
        let flow = if random.u32(..4) == 0 { flow.turned() } else { flow };
        self.over_ipv4(&flow, UDP, datagram(&flow, payload), 6)
    }

    /// Builds a datagram of random bytes over IPv6.
    pub fn udp_ipv6(&self, random: &mut Rng, flow: &Flow) -> Vec<u8> {
        let flow = if random.bool() { flow.turned() } else { flow.clone() };
        let (source, target) = (hosts::ipv6(flow.hosts[0]), hosts::ipv6(flow.hosts[1]));
        self.over_ipv6(source, target, &flow, UDP, datagram(&flow, &filling(random)), 6)
    }

    /// Builds an echo request, an echo reply, or a "packet too big" error for a packet of the flow.
    pub fn icmp(&self, random: &mut Rng, flow: &Flow) -> Vec<u8> {
        let (kind, code) = [(8, 0), (0, 0), (3, 4), (3, 4), (3, 1)][random.usize(..5)];
        let mut message = vec![kind, code, 0, 0, 0, 0, 5, 0xdc];
        if kind == 3 {
            // The quoted packet went in the opposite direction.
            let quoted = flow.turned();
            let protocol = if random.bool() { TCP } else { UDP };
            let inner = Frame {
                tags: vec![],
                options: 0,
                fragment: 0,
                checksum: None,
                ttl: self.ttl,
                tos: self.tos,
            };
            let quoted = inner.ipv4(&quoted, protocol, &datagram(&quoted, &[]));
            message.extend(quoted);
        } else {
            message.extend(filling(random));
        }
        self.over_ipv4(flow, ICMP, message, 2)
    }

    /// As `icmp`, over IPv6.
    pub fn icmp_ipv6(&self, random: &mut Rng, flow: &Flow) -> Vec<u8> {
        let kind = [128, 129, 2, 2, 1][random.usize(..5)];
        let mut message = vec![kind, 0, 0, 0, 0, 0, 5, 0];
        let (source, target) = (hosts::ipv6(flow.hosts[0]), hosts::ipv6(flow.hosts[1]));
        if kind < 3 {
            let quoted = datagram(&flow.turned(), &[]);
            let protocol = if random.bool() { TCP } else { UDP };
            message.extend(self.ipv6(target, source, protocol, &quoted));
        } else {
            message.extend(filling(random));
        }
        self.over_ipv6(source, target, flow, ICMP_IPV6, message, 2)
    }

    /// Builds a packet in a tunnel.
    pub fn tunnelled(&self, random: &mut Rng, flow: &Flow) -> Vec<u8> {
        let key = hosts::TUNNELS[random.usize(..hosts::TUNNELS.len())];
        let inner_flow = flow.turned();
        let inner = self.ipv4(&inner_flow, UDP, &datagram(&inner_flow, &filling(random)));
        match random.u32(..3) {
            0 => self.over_ipv4(flow, 4, inner, 0),
            1 => {
                let flags = [0u16, 0x2000, 0xb000, 0x8000, 0x3000, 0x4000][random.usize(..6)];
                let mut packet = [flags.to_be_bytes(), IPV4.to_be_bytes()].concat();
                for (flag, word) in [(0x8000, 0), (0x2000, key), (0x1000, random.u32(..))] {
                    if flags & flag != 0 {
                        packet.extend(word.to_be_bytes());
                    }
                }
                packet.extend(inner);
                self.over_ipv4(flow, 47, packet, 0)
            }
            _ => {
                let mut payload = vec![8, 0, 0, 0];
                payload.extend((key << 8).to_be_bytes());
                payload.extend(self.ethernet(&inner_flow, IPV4));
                payload.extend(inner);
                let flow = Flow { ports: [flow.ports[0], 4789], ..flow.clone() };
                self.over_ipv4(&flow, UDP, datagram(&flow, &payload), 6)
            }
        }
    }

    /// Builds a packet from IPv6 to IPv4 or back, with addresses that represent the other family.
    pub fn translated(&self, random: &mut Rng, flow: &Flow) -> Vec<u8> {
        let payload = filling(random);
        let (protocol, inner, sum) = if random.bool() {
            (TCP, segment(random, flow, 0x10, &payload), 16)
        } else {
            (UDP, datagram(flow, &payload), 6)
        };
        if random.bool() {
            return self.over_ipv4(flow, protocol, inner, sum);
        }
        let (source, target) = (hosts::ipv6(flow.hosts[0]), hosts::translated(flow.hosts[1]));
        self.over_ipv6(source, target, flow, protocol, inner, sum)
    }

    /// Builds a packet with extension headers between the IPv6 header and the segment.
    pub fn extended(&self, random: &mut Rng, flow: &Flow) -> Vec<u8> {
        let mut protocol = if random.bool() { TCP } else { UDP };
        let payload = filling(random);
        let mut packet = segment(random, flow, 0x10, &payload);
        for _ in 0..random.usize(..5) {
            let length = random.u8(..3);
            let mut header = vec![0; 8 + 8 * usize::from(length)];
            header[..2].copy_from_slice(&[protocol, length]);
            protocol = [0, 43, 60][random.usize(..3)];
            packet.splice(..0, header);
        }
        let (source, target) = (hosts::ipv6(flow.hosts[0]), hosts::ipv6(flow.hosts[1]));
        self.over_ipv6(source, target, flow, protocol, packet, 0)
    }

    /// Builds an Ethernet header with random bytes after it.
    pub fn other(&self, random: &mut Rng, protocol: u16) -> Vec<u8> {
        let flow = Flow::new(random);
        let mut bytes = self.ethernet(&flow, protocol);
        bytes.extend(filling(random));
        bytes
    }

    /// Adds an IPv4 header. `check` is the offset of the checksum over pseudo-header and payload; 0
    /// for none, 2 for the checksum over the payload alone.
    fn over_ipv4(&self, flow: &Flow, protocol: u8, mut inner: Vec<u8>, check: usize) -> Vec<u8> {
        let ends = [hosts::ipv4(flow.hosts[0]), hosts::ipv4(flow.hosts[1])].concat();
        self.fill_checksum(&ends, protocol, &mut inner, check);
        let mut bytes = self.ethernet(flow, IPV4);
        bytes.extend(self.ipv4(flow, protocol, &inner));
        bytes
    }

    fn over_ipv6(
        &self,
        source: [u8; 16],
        target: [u8; 16],
        flow: &Flow,
        protocol: u8,
        mut inner: Vec<u8>,
        check: usize,
    ) -> Vec<u8> {
        self.fill_checksum(&[source, target].concat(), protocol, &mut inner, check);
        let mut bytes = self.ethernet(flow, IPV6);
        bytes.extend(self.ipv6(source, target, protocol, &inner));
        bytes
    }

    fn fill_checksum(&self, ends: &[u8], protocol: u8, inner: &mut [u8], check: usize) {
        if check == 0 {
            return;
        }
        let mut all = inner.to_vec();
        if check != 2 {
            all.extend(ends);
            // Bytes are summed in pairs; an odd last byte is the first of its pair.
            if inner.len() % 2 == 1 {
                all.insert(inner.len(), 0);
            }
            all.extend([0, protocol]);
            all.extend((inner.len() as u16).to_be_bytes());
        }
        let sum = self.checksum.unwrap_or_else(|| complement_sum(&all));
        inner[check..check + 2].copy_from_slice(&sum.to_be_bytes());
    }

    fn ethernet(&self, flow: &Flow, protocol: u16) -> Vec<u8> {
        // Some frames are broadcast.
        let is_for_all = self.ttl % 16 == 5;
        let target = if is_for_all { [0xff; 6] } else { hosts::ethernet(flow.hosts[1]) };
        let mut bytes = [target, hosts::ethernet(flow.hosts[0])].concat();
        for (at, tag) in self.tags.iter().enumerate() {
            let outer = self.tags.len() == 2 && at == 0;
            bytes.extend(if outer { 0x88a8u16 } else { 0x8100 }.to_be_bytes());
            bytes.extend((tag | u16::from(self.tos & 7) << 13).to_be_bytes());
        }
        bytes.extend(protocol.to_be_bytes());
        bytes
    }

    fn ipv4(&self, flow: &Flow, protocol: u8, inner: &[u8]) -> Vec<u8> {
        let bytes = 20 + self.options;
        let mut header = vec![0x40 | (bytes / 4) as u8, self.tos];
        header.extend(((bytes + inner.len()) as u16).to_be_bytes());
        header.extend([0, 1]);
        header.extend(self.fragment.to_be_bytes());
        header.extend([self.ttl, protocol, 0, 0]);
        header.extend(hosts::ipv4(flow.hosts[0]));
        header.extend(hosts::ipv4(flow.hosts[1]));
        header.resize(bytes, 1);
        let sum = complement_sum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header.extend(inner);
        header
    }

    fn ipv6(&self, source: [u8; 16], target: [u8; 16], protocol: u8, inner: &[u8]) -> Vec<u8> {
        let mut header = vec![0x60 | self.tos >> 4, self.tos << 4, 0, 0];
        header.extend((inner.len() as u16).to_be_bytes());
        header.extend([protocol, self.ttl]);
        header.extend(source);
        header.extend(target);
        header.extend(inner);
        header
    }
}

/// Returns the next step of a connection and the direction of its segment: a three-way handshake,
/// some data, a close in two steps; occasionally flags that do not belong there.
fn next_flags(random: &mut Rng, flow: &mut Flow) -> (u8, Flow) {
    if random.u32(..8) == 0 {
        let flags = [0x02, 0x12, 0x10, 0x11, 0x04, 0x14, 0x18, 0x00][random.usize(..8)];
        return (flags, if random.bool() { flow.turned() } else { flow.clone() });
    }
    let step = flow.step;
    flow.step = (step + 1) % 10;
    match step {
        0 => (0x02, flow.clone()),
        1 => (0x12, flow.turned()),
        2 => (0x10, flow.clone()),
        8 => (0x11, flow.clone()),
        9 => (0x11, flow.turned()),
        _ => (0x18, if random.bool() { flow.turned() } else { flow.clone() }),
    }
}

fn segment(random: &mut Rng, flow: &Flow, flags: u8, payload: &[u8]) -> Vec<u8> {
    let options = if random.u32(..4) == 0 { 12 } else { 0 };
    let mut bytes = [flow.ports[0].to_be_bytes(), flow.ports[1].to_be_bytes()].concat();
    bytes.extend(random.u32(..).to_be_bytes());
    bytes.extend(random.u32(..).to_be_bytes());
    bytes.extend([(((20 + options) / 4) << 4) as u8, flags, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.resize(20 + options, 1);
    bytes.extend(payload);
    bytes
}

fn datagram(flow: &Flow, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [flow.ports[0].to_be_bytes(), flow.ports[1].to_be_bytes()].concat();
    bytes.extend((8 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

/// Returns random bytes, usually few.
fn filling(random: &mut Rng) -> Vec<u8> {
    let most = [1, 24, 24, 120, 120, 700, 3000][random.usize(..7)];
    let length = random.usize(..most);
    (0..length).map(|_| random.u8(..)).collect()
}

/// Returns the Internet checksum (RFC 1071).
fn complement_sum(bytes: &[u8]) -> u16 {
    let pair = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(pair).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
