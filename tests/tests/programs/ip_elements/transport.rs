// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that check TCP, UDP and ICMP.

use super::frames::{
    Carried, ICMP, ICMPV6, TCP, UDP, be16, carried, fill_checksum, fill_header_checksum, frames,
    ipv4, ipv6, word,
};
use fastrand::Rng;
use freeport_port::MAX_FRAME;
use freeport_tests::both::{Both, Counts};
use freeport_tests::oracle::seed;
use smoltcp::wire::{Icmpv4Packet, Icmpv6Packet, IpAddress, TcpPacket, UdpPacket};

/// Returns frames, some with invalid fields, mostly with a valid checksum.
fn traffic(random: &mut Rng) -> Vec<Vec<u8>> {
    let mut all = frames(random, ipv4);
    all.extend(frames(random, ipv6));
    for _ in 0..600 {
        let make = if random.bool() { ipv4 } else { ipv6 };
        let mut frame = make(random);
        let Some(it) = carried(&frame) else { continue };
        if it.end - it.at >= 14 {
            match random.u8(..5) {
                0 => frame[it.at + 2..it.at + 4].fill(0),
                1 => frame[it.at..it.at + 2].fill(0),
                2 if it.protocol == TCP => frame[it.at + 13] = random.u8(..),
                2 if it.protocol == UDP => frame[it.at + 4..it.at + 6].fill(0),
                2 => frame[it.at] = random.u8(..16),
                3 => frame[it.at + 12] = random.u8(..),
                _ => {}
            }
        }
        if it.end - it.at >= 20 {
            fill_checksum(&mut frame);
            if it.protocol == UDP && random.u8(..4) == 0 {
                frame[it.at + 6..it.at + 8].fill(0);
            }
        }
        all.push(frame);
    }
    all.extend([ipv4, ipv6].map(|make| long(random, make)));
    all
}

/// Returns a frame of the maximum length.
fn long(random: &mut Rng, make: fn(&mut Rng) -> Vec<u8>) -> Vec<u8> {
    loop {
        let mut frame = make(random);
        let Some(it) = carried(&frame) else { continue };
        if it.is_fragment || ![TCP, UDP].contains(&it.protocol) {
            continue;
        }
        frame.truncate(it.end);
        frame.extend((it.end..MAX_FRAME - 1).map(|_| random.u8(..)));
        let version6 = frame[it.ip] >> 4 == 6;
        let total = frame.len() - it.ip - if version6 { 40 } else { 0 };
        let place = it.ip + if version6 { 4 } else { 2 };
        frame[place..place + 2].copy_from_slice(&(total as u16).to_be_bytes());
        if it.protocol == UDP {
            let length = (frame.len() - it.at) as u16;
            frame[it.at + 4..it.at + 6].copy_from_slice(&length.to_be_bytes());
        }
        fill_checksum(&mut frame);
        fill_header_checksum(&mut frame);
        return frame;
    }
}

fn tcp(frame: &[u8], it: &Carried) -> &'static str {
    let Ok(segment) = TcpPacket::new_checked(&frame[it.at..it.end]) else { return "bad_headers" };
    if segment.header_len() < 20 {
        return "bad_headers";
    }
    if segment.src_port() == 0 || segment.dst_port() == 0 {
        return "bad_ports";
    }
    let is_sent = match (segment.syn(), segment.fin(), segment.rst()) {
        (true, false, false) | (false, false, true) => true,
        (false, _, false) => segment.ack(),
        _ => false,
    };
    match () {
        () if !is_sent => "bad_flags",
        () if segment.verify_checksum(&it.source, &it.target) => "good",
        () => "bad_checksums",
    }
}

fn udp(frame: &[u8], it: &Carried) -> &'static str {
    let bytes = &frame[it.at..it.end];
    if bytes.len() < 8 || !(8..=bytes.len()).contains(&be16(bytes, 4)) {
        return "bad_headers";
    }
    let datagram = UdpPacket::new_unchecked(bytes);
    if datagram.dst_port() == 0 {
        return "bad_ports";
    }
    let has_to = matches!(it.source, IpAddress::Ipv6(_));
    match datagram.checksum() {
        0 if has_to => "bad_checksums",
        _ if datagram.verify_checksum(&it.source, &it.target) => "good",
        _ => "bad_checksums",
    }
}

fn icmp(frame: &[u8], it: &Carried) -> &'static str {
    let bytes = &frame[it.at..it.end];
    match (it.protocol, it.source, it.target) {
        _ if bytes.len() < 8 => "bad_headers",
        (ICMP, IpAddress::Ipv4(_), _) => match bytes[0] {
            3 | 4 | 5 | 11 | 12 if bytes.len() < 28 => "bad_quotes",
            _ if Icmpv4Packet::new_unchecked(bytes).verify_checksum() => "good",
            _ => "bad_checksums",
        },
        (ICMPV6, IpAddress::Ipv6(source), IpAddress::Ipv6(target)) => match bytes[0] {
            0..128 if bytes.len() < 48 => "bad_quotes",
            _ if Icmpv6Packet::new_unchecked(bytes).verify_checksum(&source, &target) => "good",
            _ => "bad_checksums",
        },
        _ => "bad_headers",
    }
}

#[test]
fn checked_segments_can_be() {
    type Judge = fn(&[u8], &Carried) -> &'static str;
    let kinds: [(&str, &[u8], Judge, usize); 3] = [
        ("CheckTcp", &[TCP], tcp, 7),
        ("CheckUdp", &[UDP], udp, 6),
        ("CheckIcmp", &[ICMP, ICMPV6], icmp, 6),
    ];
    let frames = traffic(&mut Rng::with_seed(seed(51)));
    for (element, protocols, judge, reasons) in kinds {
        let (mut good, mut bad, mut counts) = (vec![], vec![], Counts::default());
        for frame in &frames {
            let counter = match carried(frame) {
                Some(it) if protocols.contains(&it.protocol) => {
                    if it.is_fragment || it.is_routed {
                        "unverified"
                    } else {
                        judge(frame, &it)
                    }
                }
                _ => "others",
            };
            counts.add(counter);
            if counter.starts_with("bad") { &mut bad } else { &mut good }.push(frame.clone());
        }
        assert_eq!(counts.0.len(), reasons, "every reason occurs: {:?}", counts.0);
        let text =
            format!("{element} :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\ndut [bad] -> to_nic");
        let found = Both::new(&text).run(&[], &[("from_tor", &frames)]);
        assert_eq!(found.out["to_nic"], bad, "{element}");
        assert_eq!(found.out["to_tor"], good, "{element}");
        counts.check(&found.counters);
    }
}

#[test]
fn fixed_checksums_are_right() {
    let mut random = Rng::with_seed(seed(52));
    let (mut spoiled, mut right, mut counts) = (vec![], vec![], Counts::default());
    for frame in traffic(&mut random) {
        let (mut before, mut after) = (frame.clone(), frame.clone());
        let it = carried(&frame);
        let place = it.as_ref().and_then(|it| {
            let length = it.end - it.at;
            let is_ipv4 = matches!(it.source, IpAddress::Ipv4(_));
            let may_be = !it.is_fragment && !it.is_routed;
            let (place, least) = match it.protocol {
                TCP => (16, 20),
                UDP => (6, 8),
                ICMP if is_ipv4 => (2, 8),
                ICMPV6 if !is_ipv4 => (2, 8),
                _ => return None,
            };
            let is_length_right = it.protocol != UDP
                || length >= 8 && (8..=length).contains(&be16(&frame, it.at + 4));
            (may_be && length >= least && is_length_right).then_some(it.at + place)
        });
        if let Some(it) = &it
            && matches!(it.source, IpAddress::Ipv4(_))
        {
            before[it.ip + 10..it.ip + 12].copy_from_slice(&word(&mut random).to_be_bytes());
            fill_header_checksum(&mut after);
        }
        if let Some(place) = place {
            before[place..place + 2].copy_from_slice(&word(&mut random).to_be_bytes());
            fill_checksum(&mut after);
        }
        counts.add(if place.is_some() { "fixed" } else { "others" });
        spoiled.push(before);
        right.push(after);
    }
    assert_eq!(counts.0.len(), 2);
    let both = Both::new("FixChecksums :: dut\nfrom_tor -> dut -> to_tor");
    let found = both.run(&[], &[("from_tor", &spoiled)]);
    for (found, right) in found.out["to_tor"].iter().zip(&right) {
        assert_eq!(found, right);
    }
    assert_eq!(found.out["to_tor"].len(), right.len());
    counts.check(&found.counters);
}
