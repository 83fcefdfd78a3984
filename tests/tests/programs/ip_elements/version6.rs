// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that check, parse and forward IPv6.

use super::frames::{TCP, UDP, be16, behind_tags, carried_by_ipv6, frames, ipv6};
use fastrand::Rng;
use freeport_tests::both::{Both, Counts};
use freeport_tests::oracle::seed;

/// Returns the parts of the IPv6 header and its extensions, or the counter for the reason.
fn found(frame: &[u8]) -> Result<super::frames::Carried, &'static str> {
    match behind_tags(frame) {
        None => Err("cut"),
        Some((0x86dd, ip)) => carried_by_ipv6(frame, ip),
        Some(_) => Err("others"),
    }
}

fn traffic(random: &mut Rng) -> Vec<Vec<u8>> {
    let mut all = frames(random, ipv6);
    for _ in 0..100 {
        // The payload ends early, by the length in the header.
        let mut frame = ipv6(random);
        if let Ok(it) = found(&frame) {
            let length = it.at + random.usize(..=it.end - it.at) - it.ip - 40;
            frame[it.ip + 4..it.ip + 6].copy_from_slice(&(length as u16).to_be_bytes());
        }
        all.push(frame);
    }
    all.extend((0..20).map(|_| super::frames::ipv4(random)));
    all
}

#[test]
fn checked_headers_can_be() {
    let frames = traffic(&mut Rng::with_seed(seed(41)));
    for least in [0, 2] {
        let (mut good, mut bad, mut counts) = (vec![], vec![], Counts::default());
        for frame in &frames {
            let has_addresses = |ip: usize| {
                let (source, target) = (&frame[ip + 8..ip + 24], &frame[ip + 24..ip + 40]);
                let loopback = [&[0; 15][..], &[1]].concat();
                source[0] != 0xff
                    && target != [0; 16]
                    && source != loopback.as_slice()
                    && target != loopback.as_slice()
            };
            let at = behind_tags(frame).map_or(0, |(_, at)| at);
            let counter = match found(frame) {
                Err("bad_extensions") | Ok(_) if !has_addresses(at) => "bad_addresses",
                Err(why) => why,
                Ok(it) if frame[it.ip + 7] < least => "expired",
                Ok(_) => "good",
            };
            counts.add(counter);
            if counter == "good" { &mut good } else { &mut bad }.push(frame.clone());
        }
        assert_eq!(counts.0.len(), if least == 0 { 6 } else { 7 }, "every reason occurs");
        let text = format!(
            "CheckIpv6<{least}> :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\ndut [bad] -> to_nic"
        );
        let found = Both::new(&text).run(&[], &[("from_tor", &frames)]);
        assert_eq!((&found.out["to_tor"], &found.out["to_nic"]), (&good, &bad));
        counts.check(&found.counters);
    }
}

/// Returns the 40 bytes of a tuple, and the counter of the packet.
fn tuple(frame: &[u8]) -> (Vec<u8>, &'static str) {
    let record = |source: &[u8], target: &[u8], ports: [usize; 2], protocol: u8, flags: u8| {
        let mut bytes: Vec<u8> = source.iter().rev().copied().collect();
        bytes.extend(target.iter().rev());
        ports.iter().for_each(|port| bytes.extend((*port as u16).to_le_bytes()));
        bytes.extend([protocol, flags]);
        bytes.extend((frame.len() as u16).to_le_bytes());
        bytes
    };
    let none = |why| (record(&[0; 16], &[0; 16], [0, 0], 59, 0), why);
    let it = match found(frame) {
        Ok(it) => it,
        Err(why) => return none(why),
    };
    let (source, target) = (&frame[it.ip + 8..it.ip + 24], &frame[it.ip + 24..it.ip + 40]);
    let least = match it.protocol {
        TCP => 20,
        UDP => 8,
        _ => 0,
    };
    if it.is_fragment {
        return (record(source, target, [0, 0], it.protocol, 0), "fragments");
    }
    let segment = &frame[it.at..it.end];
    if segment.len() < least {
        return none("cut_inside");
    }
    let ports = if least > 0 { [be16(segment, 0), be16(segment, 2)] } else { [0, 0] };
    let flags = if it.protocol == TCP { segment[13] } else { 0 };
    (record(source, target, ports, it.protocol, flags), "whole")
}

#[test]
fn tuples_are_what_is_behind_the_extension_headers() {
    let frames = traffic(&mut Rng::with_seed(seed(42)));
    let mut counts = Counts::default();
    let expected: Vec<_> = frames.iter().map(|frame| tuple(frame)).collect();
    expected.iter().for_each(|(_, counter)| counts.add(counter));
    assert_eq!(counts.0.len(), 7, "every reason occurs");
    let text = "ParseTuple6 :: dut\nfrom_tor -> dut\ndut [out] -> to_tor\ndut [tuple] -> to_nic";
    let found = Both::new(text).run(&[], &[("from_tor", &frames)]);
    assert_eq!(found.out["to_tor"], frames);
    for ((frame, found), (tuple, _)) in frames.iter().zip(&found.out["to_nic"]).zip(&expected) {
        assert_eq!(found, tuple, "{frame:02x?}");
    }
    assert_eq!(found.out["to_nic"].len(), frames.len());
    counts.check(&found.counters);
}

#[test]
fn routes_are_those_of_the_longest_prefixes() {
    let mut random = Rng::with_seed(seed(43));
    let mut prefixes: Vec<(u128, u32, u32)> = vec![];
    let mut calls = vec![];
    let near = |random: &mut Rng| {
        // Few bits differ, so that prefixes hide each other.
        let bits = 0x2001_0db8_u128 << 96 | u128::from(random.u8(..4)) << 90;
        bits | u128::from(random.u8(..4)) << 40 | u128::from(random.u8(..4))
    };
    let word = |number: u32| number.to_le_bytes().to_vec();
    for _ in 0..200 {
        let length = [0, 1, 32, 37, 38, 64, 88, 120, 127, 128][random.usize(..10)];
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let (address, hop) = (near(&mut random), random.u32(..4));
        if hop < 3 {
            prefixes.retain(|(old, bits, _)| (*old, *bits) != (address & mask, length));
            prefixes.push((address & mask, length, hop));
            let arguments = vec![address.to_le_bytes().to_vec(), word(length), word(hop)];
            calls.push(("insert", arguments));
        } else {
            prefixes.retain(|(old, bits, _)| (*old, *bits) != (address & mask, length));
            calls.push(("remove", vec![address.to_le_bytes().to_vec(), word(length)]));
        }
    }
    let mac = |number: u64| number.to_le_bytes().to_vec();
    calls.push(("set", vec![word(0), mac(0x0200_0000_0102), mac(0x0200_0000_0a0b)]));
    calls.push(("set", vec![word(1), mac(0x0200_0000_0202), mac(0x0200_0000_0a0b)]));
    let (mut tuples, mut routes, mut counts) = (vec![], vec![], Counts::default());
    for _ in 0..1_000 {
        let target = if random.u8(..10) > 0 { near(&mut random) } else { random.u128(..) };
        let mut tuple = vec![0; 16];
        tuple.extend(target.to_le_bytes());
        tuple.extend([0; 8]);
        tuples.push(tuple);
        let matching = prefixes.iter().filter(|(address, length, _)| {
            (target ^ address).checked_shr(128 - length).unwrap_or(0) == 0
        });
        let hop = matching.max_by_key(|(_, length, _)| *length).map(|(_, _, hop)| *hop);
        let mut route = vec![0; 24];
        if let Some(hop @ (0 | 1)) = hop {
            route[..6].copy_from_slice(&[2, 0, 0, 0, 1 + hop as u8, 2]);
            route[8..14].copy_from_slice(&[2, 0, 0, 0, 0x0a, 0x0b]);
            route[16] = 1;
        }
        counts.add(if route[16] == 1 { "found" } else { "missed" });
        routes.push(route);
    }
    assert_eq!(counts.0.len(), 2);
    let both = Both::new("RouteTable6 :: dut\nfrom_tor -> dut -> to_tor");
    let found = both.run(&calls, &[("from_tor", &tuples)]);
    assert_eq!(found.out["to_tor"], routes);
    counts.check(&found.counters);
}

#[test]
fn forwarded_packets_have_new_addresses_and_one_hop_less() {
    let mut random = Rng::with_seed(seed(44));
    let frames = traffic(&mut random);
    let (mut routes, mut good, mut bad) = (vec![], vec![], vec![]);
    let mut counts = Counts::default();
    for frame in &frames {
        let exists = random.u8(..5) > 0;
        let mut route: Vec<u8> = (0..24).map(|_| random.u8(..)).collect();
        [6, 7, 14, 15].into_iter().for_each(|at| route[at] = 0);
        route[16..].fill(0);
        route[16] = u8::from(exists);
        let is_ipv6 = frame.len() >= 54 && frame[12..14] == [0x86, 0xdd];
        let is_link_local = |at: usize| frame[at] == 0xfe && frame[at + 1] & 0xc0 == 0x80;
        let counter = match is_ipv6 {
            false => "others",
            true if frame[22..38] == [0; 16] || frame[38] == 0xff => "confined",
            true if is_link_local(22) || is_link_local(38) => "confined",
            true if !exists => "unrouted",
            true if frame[21] < 2 => "expired",
            true => "sent",
        };
        counts.add(counter);
        let mut changed = frame.clone();
        if counter == "sent" {
            changed[..6].copy_from_slice(&route[..6]);
            changed[6..12].copy_from_slice(&route[8..14]);
            changed[21] -= 1;
        }
        if counter == "sent" { &mut good } else { &mut bad }.push(changed);
        routes.push(route);
    }
    assert_eq!(counts.0.len(), 5, "every reason occurs");
    let text = "Forward6 :: dut\nfrom_tor -> [in] dut\nfrom_nic -> [route] dut
        dut [out] -> to_tor\ndut [bad] -> to_nic";
    let found = Both::new(text).run(&[], &[("from_tor", &frames), ("from_nic", &routes)]);
    assert_eq!((&found.out["to_tor"], &found.out["to_nic"]), (&good, &bad));
    counts.check(&found.counters);
}
