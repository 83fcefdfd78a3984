// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that inspect packets, against Rust code for the same bytes: whole packets, truncated at
//! every length, and changed at random. No element reads beyond a packet.

use fastrand::Rng;
use freeport_port::packet::checksum;
use freeport_testbed::is_long;
use freeport_tests::both::{Both, Counts, Outcomes};
use freeport_tests::oracle::seed;

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;
const GRE: u8 = 47;

/// Runs one instance `dut` on both machines.
fn run(text: &str, input: &[(&str, &[Vec<u8>])]) -> Outcomes {
    Both::new(text).run(&[], input)
}

/// Returns a mostly valid frame with random tags, options, fragments, transports and padding.
fn frame(random: &mut Rng) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..12).map(|_| random.u8(..)).collect();
    for _ in 0..[0, 0, 0, 0, 1, 2, 3][random.usize(..7)] {
        bytes.extend([[0x81, 0x00], [0x88, 0xa8]][random.usize(..2)]);
        bytes.extend([random.u8(..), random.u8(..)]);
    }
    let types: [u16; 6] = [0x0800, 0x0800, 0x0800, 0x0800, 0x0806, 0x86dd];
    bytes.extend(types[random.usize(..6)].to_be_bytes());
    let protocol = [TCP, TCP, UDP, UDP, GRE, 1, 0][random.usize(..7)];
    let options = if random.bool() { 0 } else { 4 * random.usize(..11) };
    let payload = random.usize(..60);
    let header = 20 + options;
    let mut ip = vec![0x40 | (header / 4) as u8, random.u8(..)];
    ip.extend(((header + payload) as u16).to_be_bytes());
    ip.extend([random.u8(..), random.u8(..)]);
    let fragments: [u16; 6] = [0, 0, 0x4000, 0x8000, 0x2000, 0x0001];
    ip.extend(fragments[random.usize(..6)].to_be_bytes());
    ip.extend([random.u8(..5), protocol, 0, 0]);
    ip.extend((0..8 + options).map(|_| random.u8(..)));
    let sum = checksum::of(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(ip);
    bytes.extend((0..payload + random.usize(..3) * random.usize(..20)).map(|_| random.u8(..)));
    bytes
}

/// Returns frames truncated at every length, and frames with some changed header bytes.
fn frames(random: &mut Rng) -> Vec<Vec<u8>> {
    let mut all = vec![];
    for _ in 0..if is_long() { 2_000 } else { 40 } {
        let whole = frame(random);
        all.extend((1..=whole.len()).map(|length| whole[..length].to_vec()));
        for _ in 0..20 {
            let mut changed = frame(random);
            let at = random.usize(12..48.min(changed.len()));
            changed[at] =
                if random.bool() { random.u8(..) } else { changed[at] ^ 1 << random.u8(..8) };
            all.push(changed);
        }
    }
    all
}

fn be16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// Returns the offset of the IPv4 header, or the name of the counter for the reason.
fn ipv4_at(frame: &[u8]) -> Result<usize, &'static str> {
    let mut at = 12;
    for tags in 0.. {
        if frame.len() < at + 2 {
            return Err("cut");
        }
        match (be16(frame, at), tags) {
            (0x8100 | 0x88a8, 0 | 1) => at += 4,
            (0x0800, _) if frame.len() < at + 22 => return Err("cut"),
            (0x0800, _) => return Ok(at + 2),
            _ => return Err("others"),
        }
    }
    unreachable!()
}

/// Returns the header length and the payload of an IPv4 packet with valid lengths.
fn ipv4_parts(ip: &[u8]) -> Option<(usize, &[u8])> {
    let (header, total) = (usize::from(ip[0] & 15) * 4, be16(ip, 2));
    let can_be = ip[0] >> 4 == 4 && header >= 20 && header <= total && total <= ip.len();
    can_be.then(|| (header, &ip[header..total]))
}

/// Returns the 16 bytes of a tuple. `addresses`: both, as in the packet.
fn record(frame: &[u8], addresses: &[u8], ports: [usize; 2], protocol: u8, flags: u8) -> Vec<u8> {
    let (source, target) = addresses.split_at(4);
    let mut bytes: Vec<u8> = source.iter().rev().copied().collect();
    bytes.extend(target.iter().rev());
    ports.iter().for_each(|port| bytes.extend((*port as u16).to_le_bytes()));
    bytes.extend([protocol, flags]);
    bytes.extend((frame.len() as u16).to_le_bytes());
    bytes
}

/// Returns the 16 bytes of a tuple, and the counter of the packet.
fn tuple(frame: &[u8]) -> (Vec<u8>, &'static str) {
    let record = |addresses: &[u8], ports, protocol, flags| {
        record(frame, addresses, ports, protocol, flags) //
    };
    let none = |why| (record(&[0; 8], [0, 0], 0, 0), why);
    let ip = match ipv4_at(frame) {
        Ok(at) => &frame[at..],
        Err(why) => return none(why),
    };
    let Some((_, payload)) = ipv4_parts(ip) else { return none("bad_headers") };
    let (protocol, is_fragment) = (ip[9], be16(ip, 6) & 0x3fff != 0);
    let least = match protocol {
        0 => return none("others"),
        TCP => 20,
        UDP => 8,
        _ => 0,
    };
    if is_fragment {
        return (record(&ip[12..20], [0, 0], protocol, 0), "fragments");
    }
    if payload.len() < least {
        return none("cut_inside");
    }
    let ports = if least > 0 { [be16(payload, 0), be16(payload, 2)] } else { [0, 0] };
    let flags = if protocol == TCP { payload[13] } else { 0 };
    (record(&ip[12..20], ports, protocol, flags), "whole")
}

/// The same for a valid header, which counts whatever the payload.
fn tuple_of_good(frame: &[u8]) -> (Vec<u8>, &'static str) {
    let ip = &frame[ipv4_at(frame).expect("it is good")..];
    let bare = || record(frame, &ip[12..20], [0, 0], ip[9], 0);
    match tuple(frame) {
        (_, "others") => (bare(), if be16(ip, 6) & 0x3fff == 0 { "whole" } else { "fragments" }),
        (_, "cut_inside") => (bare(), "cut_inside"),
        found => found,
    }
}

#[test]
fn parsers_find_what_is_there_and_read_no_further() {
    let frames = frames(&mut Rng::with_seed(seed(11)));
    let mut counts = Counts::default();
    let expected: Vec<_> = frames.iter().map(|frame| tuple(frame)).collect();
    expected.iter().for_each(|(_, counter)| counts.add(counter));
    assert_eq!(counts.0.len(), 6, "every reason occurs");
    for (element, port, spare) in [("Parse", "match", 8), ("ParseTuple", "tuple", 0)] {
        let text = format!(
            "{element} :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\ndut [{port}] -> to_nic"
        );
        let found = run(&text, &[("from_tor", &frames)]);
        assert_eq!(found.out["to_tor"], frames);
        for ((frame, found), (tuple, _)) in frames.iter().zip(&found.out["to_nic"]).zip(&expected) {
            let record = [tuple.clone(), vec![0; spare]].concat();
            assert_eq!(*found, record, "{element}: {frame:02x?}");
        }
        assert_eq!(found.out["to_nic"].len(), frames.len());
        counts.check(&found.counters);
    }
}

#[test]
fn checked_headers_are_right() {
    let frames = frames(&mut Rng::with_seed(seed(12)));
    for least in [0, 2] {
        let (mut good, mut bad, mut counts) = (vec![], vec![], Counts::default());
        for frame in &frames {
            let counter = ipv4_at(frame).map_or_else(
                |why| why,
                |at| match ipv4_parts(&frame[at..]) {
                    None => "bad_headers",
                    Some((header, _)) if checksum::of(&frame[at..at + header]) != 0 => {
                        "bad_checksums"
                    }
                    Some(_) if frame[at + 8] < least => "expired",
                    Some(_) => "good",
                },
            );
            counts.add(counter);
            if counter == "good" { &mut good } else { &mut bad }.push(frame.clone());
        }
        assert_eq!(counts.0.len(), if least == 0 { 5 } else { 6 }, "every reason occurs");
        let text = format!(
            "CheckIpv4<{least}> :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\ndut [bad] -> to_nic"
        );
        let found = run(&text, &[("from_tor", &frames)]);
        assert_eq!((&found.out["to_tor"], &found.out["to_nic"]), (&good, &bad));
        counts.check(&found.counters);

        let expected: Vec<_> = good.iter().map(|frame| tuple_of_good(frame)).collect();
        counts.0.remove("good");
        expected.iter().for_each(|(_, counter)| counts.add(counter));
        let text = format!(
            "ParseIpv4<{least}> :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\n\
             dut [match] -> to_host\ndut [bad] -> to_nic"
        );
        let found = run(&text, &[("from_tor", &frames)]);
        assert_eq!((&found.out["to_tor"], &found.out["to_nic"]), (&good, &bad));
        let expected = expected.into_iter().map(|(tuple, _)| [tuple, vec![0; 8]].concat());
        assert_eq!(found.out["to_host"], expected.collect::<Vec<_>>());
        counts.check(&found.counters);
    }
}

#[test]
fn forwarded_packets_have_new_addresses_and_a_right_checksum() {
    let mut random = Rng::with_seed(seed(13));
    let frames = frames(&mut random);
    let (mut routes, mut good, mut bad) = (vec![], vec![], vec![]);
    let mut counts = Counts::default();
    for frame in &frames {
        let exists = random.u8(..5) > 0;
        let route: Vec<u8> = (0..24).map(|_| random.u8(..)).collect();
        let mut route = [&route[..6], &[0; 2], &route[8..14], &[0; 10]].concat();
        route[16] = u8::from(exists);
        let is_ipv4 = frame.len() >= 34 && frame[12..14] == [8, 0];
        let counter = match (is_ipv4, exists) {
            (false, _) => "others",
            (true, false) => "unrouted",
            (true, true) if frame[22] < 2 => "expired",
            (true, true) => "sent",
        };
        counts.add(counter);
        let mut changed = frame.clone();
        if counter == "sent" {
            changed[..6].copy_from_slice(&route[..6]);
            changed[6..12].copy_from_slice(&route[8..14]);
            changed[22] -= 1;
            let end = ETHERNET + usize::from(frame[14] & 15) * 4;
            let is_right = |frame: &[u8]| {
                end >= 34 && frame.get(14..end).is_some_and(|header| checksum::of(header) == 0)
            };
            if is_right(frame) {
                changed[24..26].fill(0);
                let sum = checksum::of(&changed[14..end]);
                changed[24..26].copy_from_slice(&sum.to_be_bytes());
            } else {
                // By the same difference, with the carry added back.
                let old = !be16(frame, 24) & 0xffff;
                let sum = old + 0xfeff;
                let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
                changed[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            good.push(changed);
        } else {
            bad.push(changed);
        }
        routes.push(route);
    }
    assert_eq!(counts.0.len(), 4, "every reason occurs");
    let text = "Forward :: dut\nfrom_tor -> [in] dut\nfrom_nic -> [route] dut
        dut [out] -> to_tor\ndut [bad] -> to_nic";
    let found = run(text, &[("from_tor", &frames), ("from_nic", &routes)]);
    assert_eq!((&found.out["to_tor"], &found.out["to_nic"]), (&good, &bad));
    counts.check(&found.counters);
}

/// Returns the frame inside the tunnel that the 32 bytes of a record describe.
fn outside(frame: &[u8], tunnel: &[u8]) -> Vec<u8> {
    let back = |range: std::ops::Range<usize>| tunnel[range].iter().rev().copied();
    let mut bytes = [&tunnel[..6], &tunnel[8..14], &[8, 0]].concat();
    let mut ip = vec![0x45, 0];
    ip.extend((frame.len() as u16 + 28).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, GRE, 0, 0]);
    ip.extend(back(16..20));
    ip.extend(back(20..24));
    let sum = checksum::of(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(ip);
    bytes.extend([0x20, 0, 0x65, 0x58]);
    bytes.extend(back(24..28));
    bytes.extend(frame);
    bytes
}

#[test]
fn tunnels_carry_frames_without_tags() {
    let mut random = Rng::with_seed(seed(14));
    let frames = frames(&mut random);
    let (mut tunnels, mut sent, mut counts) = (vec![], vec![], Counts::default());
    for frame in &frames {
        let mut tunnel: Vec<u8> = (0..32).map(|_| random.u8(..)).collect();
        tunnel[6..8].fill(0);
        tunnel[14..16].fill(0);
        tunnel[28..].fill(0);
        tunnel[28] = u8::from(random.u8(..8) > 0);
        let can_be = frame.len() >= 14 && ![0x8100, 0x88a8].contains(&be16(frame, 12));
        let counter = match (tunnel[28], can_be) {
            (0, _) => "unrouted",
            (_, false) => "refused",
            (_, true) => "sent",
        };
        counts.add(counter);
        if counter == "sent" {
            sent.push(outside(frame, &tunnel));
        }
        tunnels.push(tunnel);
    }
    let text = "NvgreEncap :: dut\nfrom_tor -> [in] dut\nfrom_nic -> [tunnel] dut\ndut -> to_tor";
    let found = run(text, &[("from_tor", &frames), ("from_nic", &tunnels)]);
    for (found, sent) in found.out["to_tor"].iter().zip(&sent) {
        assert_eq!(found, sent);
    }
    assert_eq!(found.out["to_tor"].len(), sent.len());
    counts.check(&found.counters);
}

/// Returns the content of an NVGRE frame: key and inner frame, or the counter for the reason.
fn inside(frame: &[u8]) -> Result<(Vec<u8>, Vec<u8>), &'static str> {
    if frame.len() < 34 || frame[12..14] != [8, 0] || frame[23] != GRE {
        return Err("others");
    }
    let header = usize::from(frame[14] & 15) * 4;
    let gre = frame.get(14 + header..14 + header + 8).unwrap_or_default();
    if be16(frame, 20) & 0x3fff != 0 || header < 20 || !gre.starts_with(&[0x20, 0, 0x65, 0x58]) {
        return Err("others");
    }
    let Some((_, payload)) = ipv4_parts(&frame[14..]) else { return Err("malformed") };
    match payload.get(8..).filter(|inner| inner.len() >= 14) {
        Some(inner) if ![0x8100, 0x88a8].contains(&be16(inner, 12)) => {
            Ok((gre[4..].iter().rev().copied().collect(), inner.to_vec()))
        }
        _ => Err("malformed"),
    }
}

#[test]
fn what_comes_out_of_a_tunnel_is_what_went_in() {
    let mut random = Rng::with_seed(seed(15));
    let mut frames = frames(&mut random);
    for frame in &mut frames {
        let tunnel: Vec<u8> = (0..32).map(|_| random.u8(..)).collect();
        let mut tunnelled = outside(frame, &tunnel);
        match random.u8(..8) {
            0 => tunnelled.truncate(random.usize(1..=tunnelled.len())),
            1 => {
                let at = random.usize(12..42);
                tunnelled[at] ^= 1 << random.u8(..8);
            }
            2 => tunnelled.extend((0..random.usize(..30)).map(|_| random.u8(..))),
            3 => {
                // Options.
                tunnelled[14] += 1;
                let total = be16(&tunnelled, 16) as u16 + 4;
                tunnelled[16..18].copy_from_slice(&total.to_be_bytes());
                tunnelled.splice(34..34, [1; 4]);
            }
            4 => continue,
            _ => {}
        }
        *frame = tunnelled;
    }
    let (mut inner, mut keys, mut others, mut counts) = (vec![], vec![], vec![], Counts::default());
    for frame in &frames {
        match inside(frame) {
            Ok((key, frame)) => {
                counts.add("received");
                keys.push(key);
                inner.push(frame);
            }
            Err(why) => {
                counts.add(why);
                if why == "others" {
                    others.push(frame.clone());
                }
            }
        }
    }
    assert_eq!(counts.0.len(), 3, "every reason occurs");
    let text = "NvgreDecap :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\ndut [key] -> to_nic
        dut [other] -> to_host";
    let found = run(text, &[("from_tor", &frames)]);
    for (found, inner) in found.out["to_tor"].iter().zip(&inner) {
        assert_eq!(found, inner);
    }
    assert_eq!(found.out["to_tor"].len(), inner.len());
    assert_eq!((&found.out["to_nic"], &found.out["to_host"]), (&keys, &others));
    counts.check(&found.counters);
}

#[test]
fn frames_pass_by_an_address() {
    let random = &mut Rng::with_seed(seed(17));
    let known = [10, 0, 0, 1];
    let mut all = frames(random);
    for frame in &mut all {
        if let Ok(at) = ipv4_at(frame)
            && random.bool()
        {
            let at = at + if random.bool() { 12 } else { 16 };
            frame[at..at + 4].copy_from_slice(&known);
        }
    }
    for (arguments, offset) in [("", 16), ("<8, 1>", 12)] {
        let text = format!(
            "AddressFilter{arguments} :: dut\nfrom_tor -> dut\ndut[out] -> to_tor\n\
             dut[others] -> to_nic\n.manager {{ .init {{ dut.add(10.0.0.1); }} }}\n"
        );
        let outcomes = run(&text, &[("from_tor", &all)]);
        let (mut counts, mut passed, mut others) = (Counts::default(), vec![], vec![]);
        for frame in &all {
            let (name, out) = match ipv4_at(frame) {
                Ok(at) if frame[at + offset..][..4] == known => ("passed", &mut passed),
                Ok(_) => ("foreign", &mut others),
                Err(_) => ("unknown", &mut others),
            };
            counts.add(name);
            out.push(frame.clone());
        }
        counts.check(&outcomes.counters);
        assert!(passed.len() > 100 && others.len() > 100);
        assert!(outcomes.out["to_tor"] == passed && outcomes.out["to_nic"] == others);
    }
}

/// Returns the type of a frame after at most `tags` tags.
fn type_of(frame: &[u8], tags: usize) -> Option<usize> {
    let has_tag = frame.len() >= 14 && matches!(be16(frame, 12), 0x8100 | 0x88a8);
    match tags {
        0 => (frame.len() >= 14).then(|| be16(frame, 12)),
        _ if has_tag => type_of(&[&frame[..12], frame.get(16..)?].concat(), tags - 1),
        _ => type_of(frame, 0),
    }
}

#[test]
fn frames_pass_by_their_type() {
    let all = frames(&mut Rng::with_seed(seed(18)));
    for tags in 0..=2 {
        let text = format!(
            "TypeFilter<{tags}> :: dut\nfrom_tor -> dut -> to_tor\n\
             .manager {{ .init {{ dut.set(0x0806, true); dut.set(0x86dd, true); }} }}\n"
        );
        let outcomes = run(&text, &[("from_tor", &all)]);
        let (mut counts, mut passed) = (Counts::default(), vec![]);
        for frame in &all {
            match type_of(frame, tags) {
                Some(0x0806 | 0x86dd) => {
                    counts.add("passed");
                    passed.push(frame.clone());
                }
                Some(_) => counts.add("dropped"),
                None => counts.add("cut"),
            }
        }
        counts.check(&outcomes.counters);
        assert!(passed.len() > 100);
        assert!(outcomes.out["to_tor"] == passed, "{tags} tags");
    }
}
