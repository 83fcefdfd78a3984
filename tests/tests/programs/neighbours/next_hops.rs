// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets whose next hop is known, can be resolved, or does not exist; and replies that are
//! correct, or slightly wrong.

use super::{arp_frame, ethernet, mac, same};
use fastrand::Rng;
use freeport_golden::Variable;
use freeport_testbed::is_long;
use freeport_tests::both::{Both, Counts, argument};
use freeport_tests::oracle::seed;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, IpProtocol,
    Ipv4Address, Ipv4Packet, Ipv4Repr,
};

const OWN: Ipv4Address = Ipv4Address::new(10, 0, 0, 1);
const NONE: EthernetAddress = EthernetAddress([0; 6]);

fn ipv4_frame(to: EthernetAddress, target: Ipv4Address, payload: usize) -> Vec<u8> {
    let mut bytes = ethernet(to, mac(0x20), EthernetProtocol::Ipv4);
    let ip = Ipv4Repr {
        src_addr: Ipv4Address::new(10, 9, 9, 9),
        dst_addr: target,
        next_header: IpProtocol::Udp,
        payload_len: payload,
        hop_limit: 64,
    };
    let mut header = vec![0; ip.buffer_len()];
    ip.emit(&mut Ipv4Packet::new_unchecked(&mut header), &ChecksumCapabilities::default());
    bytes.extend(header);
    bytes.extend((0..payload).map(|at| at as u8 | 1));
    bytes
}

fn request(asked: Ipv4Address) -> Vec<u8> {
    let arp = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr: mac(1),
        source_protocol_addr: OWN,
        target_hardware_addr: NONE,
        target_protocol_addr: asked,
    };
    let mut bytes = arp_frame(EthernetAddress::BROADCAST, mac(1), &arp);
    bytes.resize(60, 0);
    bytes
}

/// Returns the address to which a packet is sent without a query; the stations 10.0.0.2 to 10.0.0.5
/// and the gateway 10.0.0.254 are configured.
fn known(target: Ipv4Address) -> Option<EthernetAddress> {
    match target.octets() {
        [10, 0, 255, 255] | [255, 255, 255, 255] => Some(EthernetAddress::BROADCAST),
        [224..240, b, c, d] => Some(EthernetAddress([0x01, 0x00, 0x5e, b & 0x7f, c, d])),
        [10, 0, 0, last @ 2..6] => Some(mac(last)),
        [10, 0, ..] => None,
        _ => Some(mac(254)),
    }
}

const TEXT: &str = "ArpQuerier :: dut
    from_tor -> [in] dut [out] -> to_tor
    from_nic -> [arp] dut [request] -> to_nic";

fn own_address() -> (&'static str, Vec<Vec<u8>>) {
    let arguments = ["10.0.0.1", "16", "02:00:00:00:00:01", "10.0.0.254"].map(argument);
    ("configure", arguments.to_vec())
}

#[test]
fn packets_are_sent_to_the_next_hop_or_ask_for_it() {
    let mut random = Rng::with_seed(seed(41));
    let (mut frames, mut sent, mut requests) = (vec![], vec![], vec![]);
    let mut counts = Counts::default();
    for at in 0..if is_long() { 10_000 } else { 1_500u16 } {
        let target = match random.u8(..8) {
            0 => [255, 255, 255, 255],
            1 => [10, 0, 255, 255],
            2 => [random.u8(224..240), random.u8(..), 2, 3],
            3 => [192, 168, random.u8(..), 1],
            4 => [10, 0, 0, random.u8(2..6)],
            5 => [[0, 0, 0, 0], OWN.octets()][random.usize(..2)],
            // Each is queried once, whatever the time.
            _ => [10, 0, 1 + (at >> 8) as u8, at as u8],
        };
        let target = Ipv4Address::from(target);
        let to = if random.u8(..8) == 0 { mac(7) } else { NONE };
        let mut frame = ipv4_frame(to, target, random.usize(..80));
        if random.u8(..4) == 0 {
            frame.truncate(random.usize(1..40));
        }
        let is_open = frame.len() >= 14 && to == NONE;
        let is_nowhere = frame.len() < 34 || target.is_unspecified() || target == OWN;
        match known(target) {
            _ if !is_open => sent.push(frame.clone()),
            _ if is_nowhere => counts.add("unreachable"),
            Some(to) => {
                counts.add("sent");
                let link = ethernet(to, mac(1), EthernetProtocol::Ipv4);
                sent.push([&link, &frame[14..]].concat());
            }
            None => {
                counts.add("requests");
                requests.push(request(target));
            }
        }
        frames.push(frame);
    }
    assert_eq!(counts.0.len(), 3, "every reason occurs");
    let neighbour = |last: u8| {
        let arguments = [format!("10.0.0.{last}"), format!("02:00:00:00:00:{last:02x}")];
        ("set", arguments.map(|text| argument(&text)).to_vec())
    };
    let calls = [&[own_address()][..], &[2, 3, 4, 5, 254].map(neighbour)].concat();
    let mut found = Both::new(TEXT).run(&calls, &[("from_tor", &frames), ("from_nic", &[])]);
    same(&found.out["to_tor"], &sent);
    same(&found.out["to_nic"], &requests);
    found.counters.retain(|name, _| {
        ["sent", "requests", "waiting", "unreachable", "learnt", "unasked"].contains(&&name[..])
    });
    counts.check(&found.counters);
}

/// Returns the protocol and Ethernet address of the station that replies to this port.
fn replier(frame: &[u8]) -> Option<(Ipv4Address, EthernetAddress)> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let packet = ArpPacket::new_checked(frame.payload()).ok()?;
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_hardware_addr,
        target_protocol_addr,
    } = ArpRepr::parse(&packet).ok()?
    else {
        return None;
    };
    let is_reply = frame.ethertype() == EthernetProtocol::Arp
        && operation == ArpOperation::Reply
        && target_protocol_addr == OWN
        && target_hardware_addr == mac(1)
        && source_hardware_addr.is_unicast();
    is_reply.then_some((source_protocol_addr, source_hardware_addr))
}

#[test]
fn only_replies_that_were_asked_for_are_learnt() {
    let both = Both::new(TEXT);
    for mut dut in both.machines() {
        let mut random = Rng::with_seed(seed(42));
        let (name, arguments) = own_address();
        dut.call(name, &arguments).unwrap();
        let (mut learnt, mut refused) = (0, 0);
        for at in 0..if is_long() { 5_000 } else { 500u16 } {
            let asked = Ipv4Address::new(10, 0, 1 + (at >> 8) as u8, at as u8);
            let open = ipv4_frame(NONE, asked, 20);
            dut.feed("from_tor", &open).unwrap();
            dut.settle().unwrap();
            assert_eq!(dut.take("to_nic").unwrap(), [request(asked)]);
            let reply = ArpRepr::EthernetIpv4 {
                operation: ArpOperation::Reply,
                source_hardware_addr: mac(random.u8(0x30..)),
                source_protocol_addr: asked,
                target_hardware_addr: mac(1),
                target_protocol_addr: OWN,
            };
            let mut reply = arp_frame(mac(1), mac(9), &reply);
            reply.resize(random.usize(42..64), 0xee);
            match random.u8(..6) {
                // This one was not queried. Earlier queries may still be pending.
                0 => reply[30] |= 0x80,
                1 => reply.truncate(random.usize(1..42)),
                2 => {
                    let at = [12..28, 32..42][random.usize(..2)].clone();
                    let at = random.usize(at);
                    reply[at] ^= 1 << random.u8(..8);
                }
                _ => {}
            }
            dut.feed("from_nic", &reply).unwrap();
            dut.settle().unwrap();
            dut.feed("from_tor", &open).unwrap();
            dut.settle().unwrap();
            let to = replier(&reply).filter(|(sender, _)| *sender == asked).map(|(_, to)| to);
            let expected = to.map(|to| {
                let link = ethernet(to, mac(1), EthernetProtocol::Ipv4);
                [&link, &open[14..]].concat()
            });
            assert_eq!(dut.take("to_tor").unwrap(), Vec::from_iter(expected), "{reply:02x?}");
            dut.take("to_nic").unwrap();
            *if to.is_some() { &mut learnt } else { &mut refused } += 1;
        }
        assert!(refused > 50);
        let counted = Variable { name: "learnt".into(), index: 0 };
        assert_eq!(dut.read(&counted), Ok(learnt));
    }
}
