// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that resolve Ethernet addresses, and answer such queries: against smoltcp's view of the
//! same bytes, whole, truncated at every length, and changed at random; and between hosts with its
//! stack.

mod next_hops;
mod stacks;

use fastrand::Rng;
use freeport_testbed::is_long;
use freeport_tests::both::{Both, Counts, argument};
use freeport_tests::oracle::seed;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv4Address, Ipv6Address, Ipv6Packet, Ipv6Repr,
    NdiscNeighborFlags, NdiscRepr,
};

const ETHERNET: usize = 14;

fn mac(last: u8) -> EthernetAddress {
    EthernetAddress([2, 0, 0, 0, 0, last])
}

/// Returns frames truncated at every length, and frames with some changed bytes.
fn variants(random: &mut Rng, mut frame: impl FnMut(&mut Rng) -> Vec<u8>) -> Vec<Vec<u8>> {
    let mut all = vec![];
    for _ in 0..if is_long() { 500 } else { 15 } {
        let whole = frame(random);
        all.extend((1..=whole.len()).map(|length| whole[..length].to_vec()));
        for _ in 0..40 {
            let mut changed = frame(random);
            if random.bool() {
                let at = random.usize(..changed.len());
                changed[at] =
                    if random.bool() { random.u8(..) } else { changed[at] ^ 1 << random.u8(..8) };
            }
            all.push(changed);
        }
    }
    all
}

fn ethernet(target: EthernetAddress, source: EthernetAddress, kind: EthernetProtocol) -> Vec<u8> {
    let mut bytes = vec![0; ETHERNET];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    frame.set_dst_addr(target);
    frame.set_src_addr(source);
    frame.set_ethertype(kind);
    bytes
}

fn arp_frame(target: EthernetAddress, source: EthernetAddress, arp: &ArpRepr) -> Vec<u8> {
    let mut bytes = ethernet(target, source, EthernetProtocol::Arp);
    let mut body = vec![0; arp.buffer_len()];
    arp.emit(&mut ArpPacket::new_unchecked(&mut body));
    bytes.extend(body);
    bytes
}

/// Returns requests and replies among 10.0.0.0 to 10.0.3.7, mostly not from the own addresses.
fn random_arp(random: &mut Rng) -> Vec<u8> {
    let address = |random: &mut Rng| Ipv4Address::new(10, 0, random.u8(..4), random.u8(..8));
    let is_probe = random.u8(..8) == 0;
    let source = mac(random.u8(0x10..0x14));
    let arp = ArpRepr::EthernetIpv4 {
        operation: if random.u8(..4) > 0 { ArpOperation::Request } else { ArpOperation::Reply },
        source_hardware_addr: source,
        source_protocol_addr: match is_probe {
            true => Ipv4Address::UNSPECIFIED,
            false => Ipv4Address::new(10, 0, random.u8(1..4), random.u8(..8)),
        },
        target_hardware_addr: EthernetAddress([0; 6]),
        target_protocol_addr: address(random),
    };
    let to = [EthernetAddress::BROADCAST, mac(1), mac(9)][random.usize(..3)];
    let mut bytes = arp_frame(to, source, &arp);
    bytes.extend((0..random.usize(..20)).map(|_| random.u8(..)));
    bytes
}

/// Own addresses 10.0.0.0 to 10.0.0.3 at 1, and prefixes answered for at 2 and 3, except for one
/// address. Returns the answer for an address, and whether it is an own one.
fn answer_for(address: Ipv4Address) -> Option<(EthernetAddress, bool)> {
    match address.octets() {
        [10, 0, 0, 0..4] => Some((mac(1), true)),
        [10, 0, 2, 5] => None,
        [10, 0, 2, _] => Some((mac(2), false)),
        [10, 0, 3, 4..6] => Some((mac(3), false)),
        _ => None,
    }
}

/// Returns the reply to a frame, or the counter for the reason that there is none; empty if none
/// counts.
fn arp_reply(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    let frame = EthernetFrame::new_checked(bytes).map_err(|_| "")?;
    if frame.ethertype() != EthernetProtocol::Arp {
        return Err("");
    }
    let packet = ArpPacket::new_checked(frame.payload()).map_err(|_| "malformed")?;
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: sender_mac,
        source_protocol_addr: sender,
        target_protocol_addr: asked,
        ..
    } = ArpRepr::parse(&packet).map_err(|_| "malformed")?
    else {
        unreachable!("smoltcp knows no other");
    };
    if !sender_mac.is_unicast() {
        return Err("malformed");
    }
    // Whether it is answered as a conflict depends on the time, which the goldens cover.
    assert!(!matches!(answer_for(sender), Some((_, true))), "the sender has an address of its own");
    let own = answer_for(asked);
    let (own_mac, is_own) = own.filter(|_| sender != asked).ok_or("")?;
    if operation != ArpOperation::Request {
        return Err("");
    }
    if sender.is_unspecified() && !is_own {
        return Err("probes");
    }
    if frame.dst_addr().is_unicast() && frame.dst_addr() != own_mac {
        return Err("");
    }
    let reply = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Reply,
        source_hardware_addr: own_mac,
        source_protocol_addr: asked,
        target_hardware_addr: sender_mac,
        target_protocol_addr: sender,
    };
    let mut expected = arp_frame(sender_mac, own_mac, &reply);
    expected.extend(&bytes[expected.len()..]);
    Ok(expected)
}

#[test]
fn requests_become_replies_and_all_else_passes() {
    let mut random = Rng::with_seed(seed(31));
    let mut frames = variants(&mut random, random_arp);
    frames.retain(|frame| !claims_own(frame));
    let (mut replies, mut passed, mut counts) = (vec![], vec![], Counts::default());
    for frame in &frames {
        match arp_reply(frame) {
            Ok(reply) => {
                counts.add("replies");
                replies.push(reply);
            }
            Err(counter) => {
                if !counter.is_empty() {
                    counts.add(counter);
                }
                passed.push(frame.clone());
            }
        }
    }
    assert_eq!(counts.0.len(), 3, "every reason occurs");
    let text = "ArpResponder :: dut\nfrom_tor -> dut\ndut [reply] -> to_tor\ndut [out] -> to_nic";
    let own = |address: &str, length: &str, mac: &str| [address, length, mac].map(argument);
    let calls = [
        own("10.0.0.0", "32", "02:00:00:00:00:01"),
        own("10.0.0.1", "32", "02:00:00:00:00:01"),
        own("10.0.0.2", "32", "02:00:00:00:00:01"),
        own("10.0.0.3", "32", "02:00:00:00:00:01"),
        own("10.0.2.0", "24", "02:00:00:00:00:02"),
        own("10.0.2.5", "32", "00:00:00:00:00:00"),
        own("10.0.3.4", "31", "02:00:00:00:00:03"),
    ];
    let calls = calls.map(|arguments| ("add", arguments.to_vec()));
    let found = Both::new(text).run(&calls, &[("from_tor", &frames)]);
    same(&found.out["to_tor"], &replies);
    same(&found.out["to_nic"], &passed);
    counts.check(&found.counters);
}

/// Whether a changed byte turned the sender into an own address.
fn claims_own(bytes: &[u8]) -> bool {
    let sender = bytes.get(28..32).map(|it| Ipv4Address::new(it[0], it[1], it[2], it[3]));
    sender.and_then(answer_for).is_some_and(|(_, is_own)| is_own)
}

fn same(found: &[Vec<u8>], expected: &[Vec<u8>]) {
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "packet {at}");
    }
    assert_eq!(found.len(), expected.len());
}

const OWN6: Ipv6Address = Ipv6Address::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
/// Multicast group of addresses with the same last bytes as the own one.
const SOLICITED: Ipv6Address = Ipv6Address::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 2);

fn icmpv6_frame(
    (target, source): (EthernetAddress, EthernetAddress),
    (from, to): (Ipv6Address, Ipv6Address),
    hop_limit: u8,
    message: &[u8],
) -> Vec<u8> {
    let mut bytes = ethernet(target, source, EthernetProtocol::Ipv6);
    let ip = Ipv6Repr {
        src_addr: from,
        dst_addr: to,
        next_header: IpProtocol::Icmpv6,
        payload_len: message.len(),
        hop_limit,
    };
    let mut header = vec![0; ip.buffer_len()];
    ip.emit(&mut Ipv6Packet::new_unchecked(&mut header));
    bytes.extend(header);
    let mut message = message.to_vec();
    Icmpv6Packet::new_unchecked(&mut message).fill_checksum(&from, &to);
    bytes.extend(message);
    bytes
}

/// Returns mostly solicitations for the own address, with options of any type.
fn random_solicitation(random: &mut Rng) -> Vec<u8> {
    let source = mac(random.u8(0x10..0x14));
    let is_nobody = random.u8(..4) == 0;
    let from = match is_nobody {
        true => Ipv6Address::UNSPECIFIED,
        false => Ipv6Address::new(0xfe80, 0, 0, 0, 0, 0, 0, random.u16(2..6)),
    };
    let target =
        Ipv6Address::new(0xfe80, 0, 0, 0, 0, 0, 0, if random.u8(..8) == 0 { 3 } else { 2 });
    let (to, to_mac) = match is_nobody || random.bool() {
        true => (SOLICITED, EthernetAddress([0x33, 0x33, 0xff, 0, 0, 2])),
        false => (target, mac([1, 9][usize::from(random.u8(..8) == 0)])),
    };
    let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    for _ in 0..random.usize(..3) {
        let (kind, words) = ([14, 5, 200][random.usize(..3)], random.u8(1..4));
        message.extend([kind, words]);
        message.extend((2..usize::from(words) * 8).map(|_| random.u8(..)));
    }
    if random.bool() && (!is_nobody || random.u8(..4) == 0) {
        message.extend([1, 1]);
        message.extend(mac(random.u8(0x20..0x24)).as_bytes());
    }
    let hops = if random.u8(..16) == 0 { 254 } else { 255 };
    let mut bytes = icmpv6_frame((to_mac, source), (from, to), hops, &message);
    bytes.extend((0..random.usize(..2) * random.usize(..20)).map(|_| random.u8(..)));
    bytes
}

/// Returns the source link-layer address among the options of a message, if they are well formed.
fn source_option(mut options: &[u8]) -> Result<Option<EthernetAddress>, &'static str> {
    let mut found = None;
    while !options.is_empty() {
        let length = options.get(1).map_or(0, |words| usize::from(*words) * 8);
        let option = options.get(..length).filter(|it| !it.is_empty()).ok_or("malformed")?;
        if option[0] == 1 {
            found = Some(EthernetAddress::from_bytes(&option[2..8]));
        }
        options = &options[length..];
    }
    Ok(found)
}

/// Returns the advertisement for a frame, or the counter for the reason that there is none.
fn advertisement(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    let frame = EthernetFrame::new_checked(bytes).map_err(|_| "")?;
    let ip = Ipv6Packet::new_unchecked(frame.payload());
    let is_solicitation = frame.ethertype() == EthernetProtocol::Ipv6
        && bytes.len() > 54
        && ip.version() == 6
        && ip.next_header() == IpProtocol::Icmpv6
        && bytes[54] == 135;
    if !is_solicitation {
        return Err("");
    }
    let length = usize::from(ip.payload_len());
    let message = bytes.get(54..54 + length).filter(|it| it.len() >= 24).ok_or("malformed")?;
    let (from, to) = (ip.src_addr(), ip.dst_addr());
    let packet = Icmpv6Packet::new_checked(message).map_err(|_| "malformed")?;
    let target = packet.target_addr();
    let is_right = ip.hop_limit() == 255
        && packet.verify_checksum(&from, &to)
        && packet.msg_code() == 0
        && !target.is_multicast()
        && !from.is_multicast();
    let option = source_option(&message[24..])?;
    let is_group = to.octets()[..13] == SOLICITED.octets()[..13];
    let can_be_nobody = !from.is_unspecified() || (option.is_none() && is_group);
    let asks = option.unwrap_or(frame.src_addr());
    let is_station = asks.as_bytes()[0] & 1 == 0 && asks != EthernetAddress([0; 6]);
    if !is_right || !can_be_nobody || !is_station {
        return Err("malformed");
    }
    let is_for_us = frame.dst_addr().as_bytes()[0] & 1 == 1 || frame.dst_addr() == mac(1);
    if target != OWN6 || from == OWN6 || !is_for_us {
        return Err("");
    }
    let mut flags = NdiscNeighborFlags::OVERRIDE;
    let (mut to_mac, mut to) =
        (EthernetAddress([0x33, 0x33, 0, 0, 0, 1]), Ipv6Address::new(0xff02, 0, 0, 0, 0, 0, 0, 1));
    if !from.is_unspecified() {
        flags |= NdiscNeighborFlags::SOLICITED;
        (to_mac, to) = (asks, from);
    }
    let reported = Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
        flags,
        target_addr: OWN6,
        lladdr: Some(mac(1).into()),
    });
    let mut message = vec![0; reported.buffer_len()];
    let sums = ChecksumCapabilities::default();
    reported.emit(&OWN6, &to, &mut Icmpv6Packet::new_unchecked(&mut message), &sums);
    Ok(icmpv6_frame((to_mac, mac(1)), (OWN6, to), 255, &message))
}

#[test]
fn solicitations_become_advertisements_and_all_else_passes() {
    let mut random = Rng::with_seed(seed(32));
    let frames = variants(&mut random, random_solicitation);
    let (mut replies, mut passed, mut counts) = (vec![], vec![], Counts::default());
    for frame in &frames {
        match advertisement(frame) {
            Ok(reply) => {
                counts.add("replies");
                replies.push(reply);
            }
            Err(counter) => {
                if !counter.is_empty() {
                    counts.add(counter);
                }
                passed.push(frame.clone());
            }
        }
    }
    assert!(replies.len() > 100 && counts.0.len() == 2, "every reason occurs");
    let text =
        "NeighbourResponder :: dut\nfrom_tor -> dut\ndut [reply] -> to_tor\ndut [out] -> to_nic";
    let calls = [("add", ["fe80::2", "02:00:00:00:00:01"].map(argument).to_vec())];
    let mut found = Both::new(text).run(&calls, &[("from_tor", &frames)]);
    found.counters.remove("is_router");
    same(&found.out["to_tor"], &replies);
    same(&found.out["to_nic"], &passed);
    counts.check(&found.counters);
}
