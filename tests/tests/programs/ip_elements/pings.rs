// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that answer pings: from a complete stack, and requests that are slightly wrong.

use super::frames::{be16, carried, fill_checksum, fill_header_checksum, frames, ipv4, ipv6};
use super::options;
use super::stack::Host;
use fastrand::Rng;
use freeport_tests::both::{Both, Counts, argument};
use freeport_tests::oracle::seed;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp::Endpoint;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress};

/// Sends echo requests of several sizes, and checks the payloads of the answers.
fn ping(host: &mut Host, responder: &Both, neighbour: IpAddress, payloads: &[Vec<u8>]) {
    let own = argument(&neighbour.to_string());
    host.socket_bound_to(Endpoint::Ident(7));
    let checksums = ChecksumCapabilities::default();
    for (at, data) in payloads.iter().enumerate() {
        let (ident, seq_no) = (7, at as u16);
        match neighbour {
            IpAddress::Ipv4(_) => {
                let echo = Icmpv4Repr::EchoRequest { ident, seq_no, data };
                let room = host.socket().send(echo.buffer_len(), neighbour).unwrap();
                echo.emit(&mut Icmpv4Packet::new_unchecked(room), &checksums);
            }
            IpAddress::Ipv6(ours) => {
                let echo = Icmpv6Repr::EchoRequest { ident, seq_no, data };
                let room = host.socket().send(echo.buffer_len(), neighbour).unwrap();
                // The socket writes the checksum, with the source that it selects.
                let mut message = Icmpv6Packet::new_unchecked(room);
                echo.emit(&ours, &ours, &mut message, &checksums);
            }
        }
    }
    let requests = host.turn(neighbour);
    assert_eq!(requests.len(), payloads.len());
    let found = responder.run(&[("add", vec![own])], &[("from_tor", &requests)]);
    assert_eq!(found.counters["answered"], payloads.len() as u64, "{:?}", found.counters);
    host.wire.to_stack.extend(found.out["to_tor"].iter().cloned());
    host.turn(neighbour);
    for (at, payload) in payloads.iter().enumerate() {
        let (bytes, from) = host.socket().recv().expect("an answer");
        assert_eq!(from, neighbour);
        let data = match neighbour {
            IpAddress::Ipv4(_) => {
                let message = Icmpv4Packet::new_checked(bytes).unwrap();
                let Ok(Icmpv4Repr::EchoReply { seq_no, data, .. }) =
                    Icmpv4Repr::parse(&message, &checksums)
                else {
                    panic!("no reply: {bytes:02x?}");
                };
                assert_eq!(usize::from(seq_no), at);
                data
            }
            IpAddress::Ipv6(_) => {
                assert_eq!((bytes[0], be16(bytes, 6)), (129, at));
                &bytes[8..]
            }
        };
        assert_eq!(data, payload.as_slice());
    }
}

fn payloads() -> Vec<Vec<u8>> {
    let lengths = [0, 1, 2, 3, 7, 8, 9, 56, 1_000, 1_400];
    let mut all: Vec<Vec<u8>> =
        lengths.iter().map(|length| (0..*length).map(|at| at as u8).collect()).collect();
    all.extend([vec![0; 32], vec![0xff; 32]]);
    all
}

#[test]
fn a_stack_that_pings_gets_its_answers() {
    let text = |element: &str| {
        format!("{element} :: dut\nfrom_tor -> dut\ndut [reply] -> to_tor\ndut [out] -> to_nic")
    };
    let four = IpAddress::v4(10, 0, 0, 2);
    let mut host = Host::new(IpAddress::v4(10, 0, 0, 1));
    ping(&mut host, &Both::new(&text("IcmpResponder")), four, &payloads());
    let six = IpAddress::v6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
    let mut host = Host::new(IpAddress::v6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
    ping(&mut host, &Both::new(&text("IcmpResponder6")), six, &payloads());
}

/// Returns the reply to a request to `own`, or the counter for the reason that there is none;
/// "timed" if it has its own time stamp.
fn reply(frame: &[u8], own: &[u8]) -> Result<Vec<u8>, &'static str> {
    let it = carried(frame).ok_or("passed")?;
    let is_ipv4 = matches!(it.source, IpAddress::Ipv4(_));
    let (protocol, kind, at, bytes) = if is_ipv4 { (1, 8, 12, 4) } else { (58, 128, 8, 16) };
    let places = [it.ip + at, it.ip + at + bytes].map(|at| at..at + bytes);
    let [source, target] = places.clone().map(|place| &frame[place]);
    let is_request = it.protocol == protocol
        && (is_ipv4 || it.at == it.ip + 40)
        && !it.is_fragment
        && it.end - it.at >= 8
        && frame[it.at..it.at + 2] == [kind, 0];
    let is_host = match it.source {
        IpAddress::Ipv4(address) => ![0, 127].contains(&source[0]) && address.octets()[0] < 224,
        IpAddress::Ipv6(address) => {
            !address.is_unspecified() && !address.is_loopback() && source[0] != 0xff
        }
    };
    let is_group = (frame[0] | frame[6]) & 1 == 1;
    if !is_request || target != own || source == own || !is_host || is_group {
        return Err("passed");
    }
    let options = if is_ipv4 { &frame[it.ip + 20..it.at] } else { &[] };
    let echoed = options::echoed(options, own, source).ok_or("passed")?;
    let mut right = frame.to_vec();
    fill_checksum(&mut right);
    fill_header_checksum(&mut right);
    // All ones is a valid checksum only if a sum of 0 is: nowhere here.
    if right != frame {
        return Err("bad_checksums");
    }
    if echoed.is_timed {
        return Err("timed");
    }
    let mut reply = [&frame[6..12], &frame[..6], &frame[12..]].concat();
    let (source, target) = (source.to_vec(), target.to_vec());
    reply[places[0].clone()].copy_from_slice(&target);
    reply[places[1].clone()].copy_from_slice(&echoed.target.unwrap_or(source));
    reply[it.at - options.len()..it.at].copy_from_slice(&echoed.options);
    reply[it.ip + if is_ipv4 { 8 } else { 7 }] = 64;
    reply[it.at] = if is_ipv4 { 0 } else { 129 };
    fill_checksum(&mut reply);
    fill_header_checksum(&mut reply);
    Ok(reply)
}

#[test]
fn only_good_requests_are_answered() {
    let mut random = Rng::with_seed(seed(71));
    let six = [&[0x20, 1, 0x0d, 0xb8][..], &[1; 12]].concat();
    type Make = fn(&mut Rng) -> Vec<u8>;
    let kinds: [(&str, Make, Vec<u8>, &str, u8); 2] = [
        ("IcmpResponder", ipv4, vec![10, 0, 1, 9], "10.0.1.9", 1),
        ("IcmpResponder6", ipv6, six, "2001:db8:101:101:101:101:101:101", 58),
    ];
    for (element, make, own, address, protocol) in kinds {
        let mut all = frames(&mut random, make);
        for _ in 0..1_500 {
            let mut frame = make(&mut random);
            let Some(it) = carried(&frame).filter(|it| it.protocol == protocol) else { continue };
            let place = if protocol == 1 { it.ip + 16 } else { it.ip + 24 };
            frame[place..place + own.len()].copy_from_slice(&own);
            frame[it.at] = if protocol == 1 { 8 } else { 128 };
            if protocol == 1 && random.u8(..4) > 0 {
                options::fill(&mut random, &mut frame[it.ip + 20..it.at]);
            }
            fill_checksum(&mut frame);
            fill_header_checksum(&mut frame);
            if random.u8(..4) == 0 {
                let at = random.usize(..frame.len());
                frame[at] ^= 1 << random.u8(..8);
            }
            all.push(frame);
        }
        all.retain(|frame| reply(frame, &own) != Err("timed"));
        let (mut replies, mut passed, mut counts) = (vec![], vec![], Counts::default());
        counts.0.extend([("per_second".into(), 0), ("spent".into(), 0)]);
        for frame in &all {
            match reply(frame, &own) {
                Ok(reply) => {
                    counts.add("answered");
                    replies.push(reply);
                }
                Err(why) => {
                    counts.add(why);
                    if why == "passed" {
                        passed.push(frame.clone());
                    }
                }
            }
        }
        assert_eq!(counts.0.len(), 5, "every reason occurs");
        let text = format!(
            "{element} :: dut\nfrom_tor -> dut\ndut [reply] -> to_tor\ndut [out] -> to_nic"
        );
        let calls = [("add", vec![argument(address)])];
        let found = Both::new(&text).run(&calls, &[("from_tor", &all)]);
        assert_eq!(found.out["to_tor"], replies, "{element}");
        assert_eq!(found.out["to_nic"], passed, "{element}");
        counts.check(&found.counters);
    }
}

/// The value of a time stamp is unknown, except for the bit that marks it as non-standard time.
#[test]
fn time_stamps_are_added() {
    let own = [10, 0, 0, 2];
    let other = [192, 0, 2, 1];
    let four = [&own[..], &[0; 4]].concat();
    let (empty, asked) = ([0; 8], [&other, &[0; 4], four.as_slice()].concat());
    // Options, offset of the stamp, and offset of the address before it.
    let cases = [
        ([&[68, 8, 5, 0][..], &empty[..4]].concat(), 4, None),
        ([&[68, 12, 9, 0x40][..], &[1, 2, 3, 4], &empty[..4]].concat(), 8, None),
        ([&[68, 12, 5, 1][..], &empty].concat(), 8, Some(4)),
        ([&[68, 20, 13, 3][..], &asked].concat(), 16, Some(12)),
    ];
    let mut requests = vec![];
    for (options, ..) in &cases {
        let length = (20 + options.len() + 8) as u8;
        let words = 0x45 + (options.len() / 4) as u8;
        let link = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let header = [words, 0, 0, length, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let mut frame = [&link, &header[..], options, &[8, 0, 0, 0, 0, 7, 0, 3]].concat();
        fill_checksum(&mut frame);
        fill_header_checksum(&mut frame);
        requests.push(frame);
    }
    let text = "IcmpResponder :: dut\nfrom_tor -> dut\ndut [reply] -> to_tor\ndut [out] -> to_nic";
    let program = Both::new(text);
    for mut machine in program.machines() {
        machine.call("add", &[argument("10.0.0.2")]).expect("a method");
        requests.iter().for_each(|it| machine.feed("from_tor", it).expect("an end"));
        machine.settle().expect("it comes to rest");
        let replies = machine.take("to_tor").expect("an end");
        assert_eq!(replies.len(), cases.len());
        for (reply, (options, stamp_at, address_at)) in replies.iter().zip(&cases) {
            let mut right = reply.clone();
            fill_header_checksum(&mut right);
            assert_eq!(*reply, right, "its checksum");
            let found = &reply[34..34 + options.len()];
            let mut expected = options.clone();
            expected[2] += if address_at.is_some() { 8 } else { 4 };
            if let Some(at) = *address_at {
                expected[at..at + 4].copy_from_slice(&own);
            }
            assert!(found[*stamp_at] >= 0x80, "{found:02x?}");
            expected[*stamp_at..stamp_at + 4].copy_from_slice(&found[*stamp_at..stamp_at + 4]);
            assert_eq!(found, expected);
        }
    }
}
