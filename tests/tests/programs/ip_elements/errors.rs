// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements that report errors, and a stack that traces its route through a router.

use super::frames::{carried, fill_header_checksum, frames, ipv4, ipv6};
use super::stack::Host;
use fastrand::Rng;
use freeport_tests::both::{Both, Call, argument};
use freeport_tests::oracle::seed;
use freeport_tests::repository;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp::Endpoint;
use smoltcp::socket::udp;
use smoltcp::wire::{
    Icmpv4DstUnreachable, Icmpv4Packet, Icmpv4Repr, Icmpv4TimeExceeded, IpAddress, IpProtocol,
    Ipv4Address, Ipv4Packet, Ipv4Repr,
};

/// Returns the ICMP error of a type about a packet, as smoltcp writes it; `None` if there must not
/// be one.
fn error(frame: &[u8], kind: u8) -> Option<Vec<u8>> {
    let it = carried(frame).filter(|it| matches!(it.source, IpAddress::Ipv4(_)))?;
    let packet = &frame[it.ip..it.end];
    let header = Ipv4Packet::new_checked(packet).ok()?;
    let is_error = |kind: u8| [3, 4, 5, 11, 12].contains(&kind) || kind > 18;
    let (source, target) = (header.src_addr(), header.dst_addr());
    let is_quiet = !header.verify_checksum()
        || header.frag_offset() != 0
        || (frame[0] | frame[6]) & 1 == 1
        || [0, 127].contains(&source.octets()[0])
        || source.octets()[0] >= 224
        || target.octets()[0] >= 224
        || (it.protocol == 1 && frame[it.at..it.end].first().is_none_or(|kind| is_error(*kind)));
    if is_quiet {
        return None;
    }
    let quoted = &packet[..packet.len().min(548)];
    let address = Ipv4Address::new(192, 0, 2, 1);
    let mut message = vec![0; 8 + quoted.len()];
    message[8..].copy_from_slice(quoted);
    let mut icmp = Icmpv4Packet::new_unchecked(&mut message);
    match kind {
        11 => {
            icmp.set_msg_type(smoltcp::wire::Icmpv4Message::TimeExceeded);
            icmp.set_msg_code(Icmpv4TimeExceeded::TtlExpired.into());
        }
        _ => {
            icmp.set_msg_type(smoltcp::wire::Icmpv4Message::DstUnreachable);
            icmp.set_msg_code(Icmpv4DstUnreachable::FragRequired.into());
        }
    }
    if kind == 3 {
        message[6..8].copy_from_slice(&1_400u16.to_be_bytes());
    }
    Icmpv4Packet::new_unchecked(&mut message).fill_checksum();
    let ip = Ipv4Repr {
        src_addr: address,
        dst_addr: source,
        next_header: IpProtocol::Icmp,
        payload_len: message.len(),
        hop_limit: 64,
    };
    let mut reported = [&frame[6..12], &frame[..6], &frame[12..it.ip], &[0; 20]].concat();
    ip.emit(
        &mut Ipv4Packet::new_unchecked(&mut reported[it.ip..]),
        &ChecksumCapabilities::default(),
    );
    reported[it.ip + 1] = 0xc0;
    fill_header_checksum(&mut reported);
    reported.extend(message);
    Some(reported)
}

#[test]
fn errors_quote_what_they_are_about_and_are_never_about_errors() {
    let mut random = Rng::with_seed(seed(72));
    let mut all = frames(&mut random, ipv4);
    all.extend((0..20).map(|_| ipv6(&mut random)));
    for length in [547, 548, 549, 1_480] {
        let mut frame = ipv4(&mut random);
        while carried(&frame).is_none_or(|it| it.is_fragment || it.protocol == 1) {
            frame = ipv4(&mut random);
        }
        let it = carried(&frame).expect("it is IP");
        frame.resize(it.ip + length, 9);
        frame[it.ip + 2..it.ip + 4].copy_from_slice(&(length as u16).to_be_bytes());
        fill_header_checksum(&mut frame);
        all.push(frame);
    }
    let calls: [Call<'_>; 1] = [("set", vec![argument("192.0.2.1")])];
    for (kind, arguments) in [(11, "11, 0, 0, 0"), (3, "3, 4, 1400, 0")] {
        let errors: Vec<Vec<u8>> = all.iter().filter_map(|frame| error(frame, kind)).collect();
        let text = format!("IcmpError<{arguments}> :: dut\nfrom_tor -> dut -> to_tor");
        let found = Both::new(&text).run(&calls, &[("from_tor", &all)]);
        for (found, error) in found.out["to_tor"].iter().zip(&errors) {
            assert_eq!(found, error);
        }
        let reported = errors.len() as u64;
        assert!(reported > 100 && reported + 100 < all.len() as u64);
        assert_eq!(found.counters["sent"], reported);
        assert_eq!(found.counters["quiet"], all.len() as u64 - reported);
        assert_eq!(found.counters["refused"] + found.counters["limited"], 0);
    }
}

/// Sends a datagram with this hop limit to an address. Returns the type and code of the error that
/// the stack's socket received, and the number of frames forwarded to the next hop.
fn probe(router: &Both, hops: u8, target: Ipv4Address) -> (Option<(u8, u8)>, usize) {
    const PORT: u16 = 33_434;
    let gateway = Ipv4Address::new(10, 0, 0, 2);
    let mut host = Host::new(IpAddress::v4(10, 0, 0, 1));
    host.socket_bound_to(Endpoint::Udp(PORT.into()));
    host.route_over(gateway);
    let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 4], vec![0; 400]);
    let mut socket = udp::Socket::new(buffer(), buffer());
    socket.bind(PORT).unwrap();
    socket.set_hop_limit(Some(hops));
    socket.send_slice(b"where are you?", (IpAddress::from(target), 33_435)).unwrap();
    host.add(socket);
    let sent = host.turn(gateway.into());
    assert_eq!(sent.len(), 1);
    let found = router.run(&[], &[("from_tor", &sent)]);
    let is_back = |frame: &&Vec<u8>| frame[..6] == [2, 0, 0, 0, 0, 1];
    let (back, on): (Vec<_>, Vec<_>) = found.out["to_tor"].iter().partition(is_back);
    host.wire.to_stack.extend(back.into_iter().cloned());
    host.turn(gateway.into());
    let reported = host.socket().recv().ok().map(|(bytes, from)| {
        assert_eq!(from, IpAddress::from(gateway));
        let message = Icmpv4Packet::new_checked(bytes).unwrap();
        assert!(Icmpv4Repr::parse(&message, &ChecksumCapabilities::default()).is_ok());
        (bytes[0], bytes[1])
    });
    (reported, on.len())
}

#[test]
fn a_stack_traces_its_route_through_the_router() {
    let example = std::fs::read_to_string(repository().join("examples/router.cnp")).unwrap();
    let router = Both::new(&format!(
        "{example}
        .manager {{
            .init {{
                routes.insert(192.168.0.0, 16, 1, 1);
                hops.set(1, 02:00:00:00:01:01, 02:00:00:00:00:02);
                expired.set(10.0.0.2);
                unrouted.set(10.0.0.2);
            }}
        }}"
    ));
    let there = Ipv4Address::new(192, 168, 88, 11);
    assert_eq!(probe(&router, 1, there), (Some((11, 0)), 0));
    assert_eq!(probe(&router, 2, there), (None, 1));
    assert_eq!(probe(&router, 64, Ipv4Address::new(172, 16, 0, 1)), (Some((3, 0)), 0));
}
