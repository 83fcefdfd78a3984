// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Assignment of packets to the copies of a graph: a flow hash that is the same in both directions.
//!
//! The hash skips up to two VLAN tags and covers:
//!
//! | packet | hashed |
//! |---|---|
//! | TCP or UDP over IPv4, or directly after an IPv6 header | addresses, ports, the protocol |
//! | other IPv4 and IPv6, and every fragment | both addresses |
//! | everything else, and packets that end too early | nothing: 0 |
//!
//! All fragments of a packet go to the same copy, which may differ from that of the unfragmented
//! packets of their flow: only the first fragment has ports.
//!
//! The two ends, each an address with its port, are mixed separately and added, so that their order
//! does not matter. Network cards are often configured to use an exclusive or (or a Toeplitz hash
//! with a repeating key) instead; unlike these, a sum of mixed ends separates flows whose ends are
//! alike.

use super::ethernet;
use super::ipv4;

/// Type of a provider's VLAN tag, which stands before a customer's.
const PROVIDER_VLAN: u16 = 0x88a8;
const IPV6: u16 = 0x86dd;
const IPV6_BYTES: usize = 40;
/// Mask of the fragment field: more fragments follow, or an offset other than 0.
const FRAGMENT_MASK: u16 = 0x3fff;

/// Returns the hash of the flow of an Ethernet frame.
pub fn flow_hash(frame: &[u8]) -> u64 {
    let Some((ether_type, packet)) = behind_tags(frame) else { return 0 };
    let hash = match ether_type {
        ethernet::IPV4 => of_ipv4(packet),
        IPV6 => of_ipv6(packet),
        _ => None,
    };
    hash.unwrap_or(0)
}

/// Returns which of `copies` a frame goes to.
pub fn copy_of(frame: &[u8], copies: usize) -> usize {
    // The hash's upper half as a fraction of all copies.
    (((flow_hash(frame) >> 32) * copies as u64) >> 32) as usize
}

fn behind_tags(frame: &[u8]) -> Option<(u16, &[u8])> {
    let mut at = 12;
    for _ in 0..=2 {
        let ether_type = half(frame, at)?;
        if ether_type != ethernet::VLAN && ether_type != PROVIDER_VLAN {
            return Some((ether_type, frame.get(at + 2..)?));
        }
        at += 4;
    }
    None
}

fn of_ipv4(packet: &[u8]) -> Option<u64> {
    let header_bytes = usize::from(packet.first()? & 15) * 4;
    let fragment = half(packet, ipv4::field::FRAGMENT.start)?;
    let protocol = *packet.get(ipv4::field::PROTOCOL)?;
    let ends = [ipv4::field::SOURCE, ipv4::field::TARGET].map(|range| packet.get(range));
    let [Some(source), Some(target)] = ends else { return None };
    let has_ports = fragment & FRAGMENT_MASK == 0 && header_bytes >= ipv4::HEADER_BYTES;
    let transport = if has_ports { packet.get(header_bytes..) } else { None };
    Some(of_ends(source, target, protocol, transport))
}

fn of_ipv6(packet: &[u8]) -> Option<u64> {
    let (source, target) = (packet.get(8..24)?, packet.get(24..IPV6_BYTES)?);
    // A fragment has a fragment header here, so its protocol is not TCP or UDP.
    Some(of_ends(source, target, packet[6], packet.get(IPV6_BYTES..)))
}

fn of_ends(source: &[u8], target: &[u8], protocol: u8, transport: Option<&[u8]>) -> u64 {
    let has_ports = protocol == ipv4::TCP || protocol == ipv4::UDP;
    let ports = transport.filter(|_| has_ports).and_then(|it| Some((half(it, 0)?, half(it, 2)?)));
    match ports {
        Some((from, to)) => {
            let sum = of_end(source, from).wrapping_add(of_end(target, to));
            mix(sum.wrapping_add(u64::from(protocol)))
        }
        None => mix(of_end(source, 0).wrapping_add(of_end(target, 0))),
    }
}

fn of_end(address: &[u8], port: u16) -> u64 {
    let words = address.chunks_exact(4).map(|it| u32::from_be_bytes([it[0], it[1], it[2], it[3]]));
    words.fold(u64::from(port) + 1, |hash, word| mix(hash ^ u64::from(word) << 17))
}

/// Applies the finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result depends
/// on every bit of the word.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contents of a test frame.
    #[derive(Clone)]
    struct Packet {
        tags: usize,
        source: Vec<u8>,
        target: Vec<u8>,
        ports: (u16, u16),
        protocol: u8,
        fragment: u16,
    }

    impl Packet {
        fn random(random: &mut fastrand::Rng) -> Self {
            let bytes = if random.bool() { 4 } else { 16 };
            let mut address = || (0..bytes).map(|_| random.u8(..)).collect::<Vec<u8>>();
            let (source, target) = (address(), address());
            Self {
                tags: random.usize(..=2),
                source,
                target,
                ports: (random.u16(..), random.u16(..)),
                protocol: [ipv4::TCP, ipv4::UDP][random.usize(..2)],
                fragment: 0,
            }
        }

        fn back(&self) -> Self {
            Self {
                source: self.target.clone(),
                target: self.source.clone(),
                ports: (self.ports.1, self.ports.0),
                ..self.clone()
            }
        }

        fn frame(&self) -> Vec<u8> {
            let mut frame = vec![2; 12];
            for tag in 0..self.tags {
                let kind = if tag == 0 && self.tags == 2 { PROVIDER_VLAN } else { ethernet::VLAN };
                frame.extend(kind.to_be_bytes());
                frame.extend([0, 7]);
            }
            if self.source.len() == 4 {
                frame.extend(ethernet::IPV4.to_be_bytes());
                frame.extend([0x46, 0, 0, 60, 0, 1]);
                frame.extend(self.fragment.to_be_bytes());
                frame.extend([64, self.protocol, 0, 0]);
            } else {
                frame.extend(IPV6.to_be_bytes());
                frame.extend([0x60, 0, 0, 0, 0, 20, self.protocol, 64]);
            }
            frame.extend(&self.source);
            frame.extend(&self.target);
            if self.source.len() == 4 {
                frame.extend([1, 1, 1, 0]);
            }
            frame.extend(self.ports.0.to_be_bytes());
            frame.extend(self.ports.1.to_be_bytes());
            frame.extend([9; 16]);
            frame
        }
    }

    #[test]
    fn both_directions_of_a_flow_are_alike_and_tags_do_not_matter() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2_000 {
            let packet = Packet::random(&mut random);
            let hash = flow_hash(&packet.frame());
            assert_eq!(flow_hash(&packet.back().frame()), hash);
            assert_eq!(flow_hash(&Packet { tags: 0, ..packet.clone() }.frame()), hash);
            let other = Packet { ports: (packet.ports.0 ^ 1, packet.ports.1), ..packet.clone() };
            assert_ne!(flow_hash(&other.frame()), hash);
            // The ports belong to their ends.
            let crossed = Packet { ports: (packet.ports.1, packet.ports.0), ..packet };
            assert_ne!(flow_hash(&crossed.frame()), hash);
        }
    }

    #[test]
    fn fragments_and_other_protocols_go_by_their_addresses() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut packet = Packet::random(&mut random);
        (packet.source, packet.target) = (vec![10, 0, 0, 1], vec![10, 0, 0, 2]);
        let by_address = Packet { protocol: 1, ..packet.clone() };
        let hash = flow_hash(&by_address.frame());
        assert_eq!(flow_hash(&by_address.back().frame()), hash);
        for fragment in [0x2000, 0x2001, 185] {
            let piece = Packet { fragment, ports: (random.u16(..), 1), ..packet.clone() };
            assert_eq!(flow_hash(&piece.frame()), hash);
        }
        // The flag "don't fragment" does not make a packet a fragment.
        let whole = flow_hash(&packet.frame());
        assert_ne!(whole, hash);
        assert_eq!(flow_hash(&Packet { fragment: 0x4000, ..packet }.frame()), whole);
    }

    #[test]
    fn anything_else_is_0_and_no_length_is_too_short() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let frame = Packet::random(&mut random).frame();
            for length in 0..frame.len() {
                flow_hash(&frame[..length]);
            }
            assert_eq!(flow_hash(&frame[..20]), 0);
        }
        let arp = [[2; 12].as_slice(), &[8, 6], &[1; 28]].concat();
        assert_eq!((flow_hash(&arp), copy_of(&arp, 7)), (0, 0));
    }

    #[test]
    fn flows_are_spread_evenly_even_if_they_are_alike() {
        for copies in [2, 3, 8] {
            let mut counts = vec![0; copies];
            for at in 0..8_000u16 {
                let packet = Packet {
                    tags: 0,
                    source: vec![10, 0, 0, (at % 4) as u8],
                    target: vec![10, 0, 1, 1],
                    ports: (1_024 + at / 4, 80),
                    protocol: ipv4::TCP,
                    fragment: 0,
                };
                counts[copy_of(&packet.frame(), copies)] += 1;
            }
            let mean = 8_000 / copies;
            let is_near = |count: &usize| count.abs_diff(mean) < mean / 8;
            assert!(counts.iter().all(is_near), "{counts:?}");
        }
    }
}
