// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random IPv4 and IPv6 frames, and their payloads, found independently of the elements.

use fastrand::Rng;
use freeport_testbed::is_long;
use smoltcp::wire::{
    Icmpv4Packet, Icmpv6Packet, IpAddress, Ipv4Packet, Ipv6Address, TcpPacket, UdpPacket,
};

pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMPV6: u8 = 58;

pub fn be16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// Returns the Ethernet type after at most two tags, and the offset of the payload.
pub fn behind_tags(frame: &[u8]) -> Option<(usize, usize)> {
    let places = [12, 16, 20].into_iter().take_while(|at| frame.len() >= at + 2);
    let mut types = places.map(|at| (be16(frame, at), at + 2));
    let is_tag = |kind: usize| kind == 0x8100 || kind == 0x88a8;
    types.find(|(kind, at)| !is_tag(*kind) || *at == 22)
}

/// Payload of IP in a frame.
#[derive(Clone, Debug)]
pub struct Carried {
    /// Offset of the IP header.
    pub ip: usize,
    pub at: usize,
    pub end: usize,
    pub protocol: u8,
    pub source: IpAddress,
    pub target: IpAddress,
    pub is_fragment: bool,
    /// Whether an IPv6 routing header lists further destinations.
    pub is_routed: bool,
}

/// Finds the payload; `None` if the frame is not IP, or its IP headers are invalid.
pub fn carried(frame: &[u8]) -> Option<Carried> {
    match behind_tags(frame)? {
        (0x0800, ip) => carried_by_ipv4(frame, ip),
        (0x86dd, ip) => carried_by_ipv6(frame, ip).ok(),
        _ => None,
    }
}

fn carried_by_ipv4(frame: &[u8], ip: usize) -> Option<Carried> {
    let packet = Ipv4Packet::new_checked(&frame[ip..]).ok()?;
    let header = usize::from(packet.header_len());
    let total = usize::from(packet.total_len());
    if packet.version() != 4 || header < 20 || header > total {
        return None;
    }
    Some(Carried {
        ip,
        at: ip + header,
        end: ip + total,
        protocol: frame[ip + 9],
        source: packet.src_addr().into(),
        target: packet.dst_addr().into(),
        is_fragment: packet.more_frags() || packet.frag_offset() != 0,
        is_routed: false,
    })
}

/// Finds the payload, or returns the name of the counter for the reason.
pub fn carried_by_ipv6(frame: &[u8], ip: usize) -> Result<Carried, &'static str> {
    let packet = &frame[ip..];
    if packet.len() < 40 {
        return Err("cut");
    }
    let end = 40 + be16(packet, 4);
    if packet[0] >> 4 != 6 || end > packet.len() {
        return Err("bad_headers");
    }
    let address = |at: usize| {
        let bytes: [u8; 16] = packet[at..at + 16].try_into().unwrap();
        IpAddress::from(Ipv6Address::from(bytes))
    };
    let (mut at, mut protocol) = (40, packet[6]);
    let (mut is_fragment, mut is_routed) = (false, false);
    let mut headers = 0;
    while [0, 43, 44, 51, 60, 135, 139, 140].contains(&protocol) && !is_fragment {
        let header = packet[at..end].get(..8).ok_or("bad_extensions")?;
        if headers == 8 || (protocol == 0 && headers > 0) {
            return Err("bad_extensions");
        }
        headers += 1;
        is_fragment = protocol == 44 && be16(header, 2) & 0xfff9 != 0;
        is_routed |= protocol == 43 && header[3] != 0;
        at += match protocol {
            44 => 8,
            51 => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        if at > end {
            return Err("bad_extensions");
        }
        protocol = header[0];
    }
    let (source, target) = (address(8), address(24));
    let (at, end) = (ip + at, ip + end);
    Ok(Carried { ip, at, end, protocol, source, target, is_fragment, is_routed })
}

/// Writes the checksum of a frame's payload, as smoltcp computes it.
pub fn fill_checksum(frame: &mut [u8]) {
    let Some(it) = carried(frame) else { return };
    let segment = &mut frame[it.at..it.end];
    match (it.protocol, it.source, it.target) {
        (TCP, ..) => TcpPacket::new_unchecked(segment).fill_checksum(&it.source, &it.target),
        (UDP, ..) => UdpPacket::new_unchecked(segment).fill_checksum(&it.source, &it.target),
        (ICMP, ..) => Icmpv4Packet::new_unchecked(segment).fill_checksum(),
        (ICMPV6, IpAddress::Ipv6(source), IpAddress::Ipv6(target)) => {
            Icmpv6Packet::new_unchecked(segment).fill_checksum(&source, &target);
        }
        _ => {}
    }
}

/// Writes the checksum of a frame's IPv4 header, as smoltcp computes it.
pub fn fill_header_checksum(frame: &mut [u8]) {
    if let Some((0x0800, ip)) = behind_tags(frame) {
        Ipv4Packet::new_unchecked(&mut frame[ip..]).fill_checksum();
    }
}

/// Returns a word, often one with which carries show.
pub fn word(random: &mut Rng) -> u16 {
    [0, 0xffff, 1, 0xfffe, random.u16(..), random.u16(..)][random.usize(..6)]
}

fn segment(random: &mut Rng, protocol: u8) -> Vec<u8> {
    let payload = random.usize(..40);
    let ports = |random: &mut Rng| [random.u16(1..), random.u16(1..)].map(u16::to_be_bytes);
    let mut bytes = vec![];
    match protocol {
        TCP => {
            bytes.extend(ports(random).as_flattened());
            bytes.extend((0..8).map(|_| random.u8(..)));
            let options = random.usize(..3);
            let flags = [0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x14, 0x38][random.usize(..8)];
            bytes.extend([((5 + options) << 4) as u8, flags, random.u8(..), random.u8(..)]);
            bytes.extend((0..4 + 4 * options).map(|_| random.u8(..)));
        }
        UDP => {
            bytes.extend(ports(random).as_flattened());
            bytes.extend((8 + payload as u16).to_be_bytes());
            bytes.extend([0, 0]);
        }
        ICMP => bytes.extend([[0, 8, 13, 40][random.usize(..4)], 0, 0, 0, 0, 1, 0, 2]),
        ICMPV6 => bytes.extend([[128, 129, 135, 200][random.usize(..4)], 0, 0, 0, 0, 1, 0, 2]),
        _ => {}
    }
    if random.bool() {
        bytes.extend((0..payload).map(|_| random.u8(..)));
    } else {
        bytes.extend(vec![[0, 0xff][random.usize(..2)]; payload]);
    }
    bytes
}

fn ethernet(random: &mut Rng, kind: u16) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..12).map(|_| random.u8(..)).collect();
    bytes[0] &= 0xfe;
    bytes[6] &= 0xfe;
    for _ in 0..[0, 0, 0, 0, 0, 1, 2, 3][random.usize(..8)] {
        bytes.extend([[0x81, 0x00], [0x88, 0xa8]][random.usize(..2)]);
        bytes.extend([random.u8(..), random.u8(..)]);
    }
    bytes.extend(kind.to_be_bytes());
    bytes
}

/// Returns a valid IPv4 frame.
pub fn ipv4(random: &mut Rng) -> Vec<u8> {
    let mut bytes = ethernet(random, 0x0800);
    let protocol = [TCP, UDP, ICMP, TCP, UDP, ICMP, 47, ICMPV6][random.usize(..8)];
    let options = if random.u8(..4) > 0 { 0 } else { 4 * random.usize(..11) };
    let segment = segment(random, protocol);
    let ip = bytes.len();
    bytes.extend([0x45 + (options / 4) as u8, random.u8(..)]);
    bytes.extend(((20 + options + segment.len()) as u16).to_be_bytes());
    bytes.extend(random.u16(..).to_be_bytes());
    let fragments: [u16; 8] = [0, 0, 0, 0, 0x4000, 0x8000, 0x2000, 0x0003];
    bytes.extend(fragments[random.usize(..8)].to_be_bytes());
    bytes.extend([random.u8(..4), protocol, 0, 0]);
    bytes.extend([10, 0, random.u8(..4), random.u8(1..5)]);
    bytes.extend(word(random).to_be_bytes());
    bytes.extend(word(random).to_be_bytes());
    bytes.extend((0..options).map(|_| random.u8(..)));
    bytes.extend(segment);
    fill_checksum(&mut bytes);
    Ipv4Packet::new_unchecked(&mut bytes[ip..]).fill_checksum();
    bytes.extend((0..random.usize(..3) * random.usize(..10)).map(|_| random.u8(..)));
    bytes
}

/// Returns extension headers, each with the number of the following one, and the number of the
/// first.
fn extensions(random: &mut Rng, carried: u8) -> (u8, Vec<u8>) {
    let kinds = [0, 43, 44, 51, 60, 135, 139, 140];
    let count = [0, 0, 0, 0, 1, 1, 2, 3, 8, 9][random.usize(..10)];
    let mut numbers: Vec<u8> = (0..count).map(|_| kinds[random.usize(1..8)]).collect();
    if count > 0 && random.bool() {
        let at = if random.u8(..8) > 0 { 0 } else { random.usize(..count) };
        numbers[at] = 0;
    }
    numbers.push(carried);
    let mut bytes = vec![];
    for pair in numbers.windows(2) {
        let units = random.u8(..3);
        let rest = match pair[0] {
            44 => 6,
            51 => 4 * usize::from(units) + 6,
            _ => 8 * usize::from(units) + 6,
        };
        bytes.extend([pair[1], units]);
        let begins = bytes.len();
        bytes.extend((0..rest).map(|_| random.u8(..)));
        let part = &mut bytes[begins..begins + 2];
        match pair[0] {
            44 if random.bool() => part.copy_from_slice(&[0, 0]),
            43 => part[1] = random.u8(..2),
            _ => {}
        }
    }
    (numbers[0], bytes)
}

fn ipv6_address(random: &mut Rng) -> [u8; 16] {
    let mut bytes = [0; 16];
    match random.u8(..10) {
        0 => {}
        1 => bytes[15] = 1,
        2 => bytes[..2].copy_from_slice(&[0xfe, 0x80 | random.u8(..64)]),
        3 => bytes[..2].copy_from_slice(&[0xff, 2]),
        _ => {
            bytes[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
            bytes[4..].iter_mut().for_each(|byte| *byte = random.u8(..4));
        }
    }
    bytes
}

/// Returns an IPv6 frame, mostly valid.
pub fn ipv6(random: &mut Rng) -> Vec<u8> {
    let mut bytes = ethernet(random, 0x86dd);
    let protocol = [TCP, UDP, ICMPV6, TCP, UDP, ICMPV6, 47, ICMP, 59][random.usize(..9)];
    let (first, extensions) = extensions(random, protocol);
    let segment = segment(random, protocol);
    bytes.extend([0x60 | random.u8(..16), random.u8(..), 0, 0]);
    bytes.extend(((extensions.len() + segment.len()) as u16).to_be_bytes());
    bytes.extend([first, random.u8(..4)]);
    bytes.extend(ipv6_address(random));
    bytes.extend(ipv6_address(random));
    bytes.extend(extensions);
    bytes.extend(segment);
    fill_checksum(&mut bytes);
    bytes.extend((0..random.usize(..3) * random.usize(..10)).map(|_| random.u8(..)));
    bytes
}

/// Returns frames unchanged, truncated at every length, and changed somewhere.
pub fn frames(random: &mut Rng, make: fn(&mut Rng) -> Vec<u8>) -> Vec<Vec<u8>> {
    let mut all = vec![];
    for _ in 0..if is_long() { 1_000 } else { 25 } {
        let whole = make(random);
        all.extend((1..=whole.len()).map(|length| whole[..length].to_vec()));
        all.extend((0..30).map(|_| make(random)));
        for _ in 0..30 {
            let mut changed = make(random);
            let at = random.usize(12..changed.len().min(120));
            changed[at] = if random.bool() { random.u8(..) } else { changed[at] ^ 1 };
            all.push(changed);
        }
    }
    all
}
