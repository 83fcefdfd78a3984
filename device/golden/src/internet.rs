// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of ICMP, and of TCP and UDP over IPv6: `icmp echo 10.0.0.1 > 10.0.0.2 id 7 seq 3`, and
//! `udp [2001:db8::1]:5 > [2001:db8::2]:6 len 64`.

use super::link;
use super::packet::{Fields, filled, flags, number};
use freeport_port::packet::checksum::Sum;
use freeport_port::packet::{ethernet, ipv4, tcp, udp};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6};

const IPV6: u16 = 0x86dd;
const IPV6_HEADER_BYTES: usize = 40;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const ICMP_HEADER_BYTES: usize = 8;

/// Source and destination addresses.
enum Ends {
    Four(Ipv4Addr, Ipv4Addr),
    Six(Ipv6Addr, Ipv6Addr),
}

impl Ends {
    /// Parses two addresses, those of IPv6 in brackets.
    fn parse(source: &str, target: &str) -> Result<Self, String> {
        let fails = |text: &str| format!("`{text}`: expected `10.0.0.1` or `[2001:db8::1]`");
        let six = |text: &str| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
        match (source.parse(), target.parse()) {
            (Ok(source), Ok(target)) => Ok(Self::Four(source, target)),
            (Ok(_), Err(_)) => Err(fails(target)),
            _ => {
                Ok(Self::Six(six(source).ok_or(fails(source))?, six(target).ok_or(fails(target))?))
            }
        }
    }

    fn transport_at(&self) -> usize {
        ethernet::HEADER_BYTES
            + match self {
                Self::Four(..) => ipv4::HEADER_BYTES,
                Self::Six(..) => IPV6_HEADER_BYTES,
            }
    }

    /// Writes the headers in front of the payload.
    fn emit(&self, frame: &mut [u8], protocol: u8, fields: &Fields<'_>) -> Result<(), String> {
        let payload_length = frame.len() - self.transport_at();
        let time_to_live = fields.number("ttl", 64, 255)? as u8;
        let ether_type = if matches!(self, Self::Four(..)) { ethernet::IPV4 } else { IPV6 };
        let (target, source) = (link::TARGET, link::SOURCE);
        ethernet::Header { target, source, ether_type }.emit(frame);
        let packet = &mut frame[ethernet::HEADER_BYTES..];
        match self {
            Self::Four(source, target) => ipv4::Header {
                source: u32::from(*source),
                target: u32::from(*target),
                protocol,
                time_to_live,
                identification: 0,
                payload_length,
            }
            .emit(packet),
            Self::Six(source, target) => {
                packet[..4].copy_from_slice(&[0x60, 0, 0, 0]);
                packet[4..6].copy_from_slice(&(payload_length as u16).to_be_bytes());
                packet[6..8].copy_from_slice(&[protocol, time_to_live]);
                packet[8..24].copy_from_slice(&source.octets());
                packet[24..40].copy_from_slice(&target.octets());
            }
        }
        Ok(())
    }

    /// Computes the checksum of the payload, whose own checksum field is 0.
    fn checksum(&self, protocol: u8, carried: &[u8]) -> u16 {
        let sum = Sum::default();
        let sum = match self {
            Self::Four(..) if protocol == ICMP => sum,
            Self::Four(source, target) => {
                let (source, target) = (u32::from(*source), u32::from(*target));
                sum.pseudo_header(source, target, protocol, carried.len())
            }
            Self::Six(source, target) => sum
                .bytes(&source.octets())
                .bytes(&target.octets())
                .bytes(&(carried.len() as u32).to_be_bytes())
                .bytes(&[0, protocol]),
        };
        sum.bytes(carried).finish()
    }
}

/// Builds a packet from `echo`, `reply` or `type/code`, addresses, and fields.
pub(super) fn icmp(text: &str) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [kind, source, ">", target, rest @ ..] = words.as_slice() else {
        return Err("expected `icmp echo 10.0.0.1 > 10.0.0.2 id 7 seq 3 len 64`".into());
    };
    let fields = Fields::parse(rest, &[&["len", "ttl", "id", "seq"], &link::TAGS[..]].concat())?;
    let ends = Ends::parse(source, target)?;
    let at = ends.transport_at();
    let mut frame = filled(&fields, at + ICMP_HEADER_BYTES)?;
    let protocol = if matches!(ends, Ends::Four(..)) { ICMP } else { ICMPV6 };
    ends.emit(&mut frame, protocol, &fields)?;
    let message = &mut frame[at..];
    message[..2].copy_from_slice(&type_and_code(kind, protocol)?);
    message[2..4].fill(0);
    message[4..6].copy_from_slice(&(fields.number("id", 1, 0xffff)? as u16).to_be_bytes());
    message[6..8].copy_from_slice(&(fields.number("seq", 1, 0xffff)? as u16).to_be_bytes());
    let sum = ends.checksum(protocol, message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    link::tagged(frame, &fields)
}

fn type_and_code(kind: &str, protocol: u8) -> Result<[u8; 2], String> {
    match (kind, protocol) {
        ("echo", ICMP) => Ok([8, 0]),
        ("echo", _) => Ok([128, 0]),
        ("reply", ICMP) => Ok([0, 0]),
        ("reply", _) => Ok([129, 0]),
        _ => {
            let wanted = || format!("`{kind}`: expected echo, reply or type/code");
            let byte = |text| number(text).ok().and_then(|it| u8::try_from(it).ok());
            let (kind, code) = kind.split_once('/').ok_or_else(wanted)?;
            Ok([byte(kind).ok_or_else(wanted)?, byte(code).ok_or_else(wanted)?])
        }
    }
}

/// Builds a segment or datagram over IPv6 from addresses in brackets with ports, and fields.
pub(super) fn over_ipv6(protocol: u8, text: &str) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [source, ">", target, rest @ ..] = words.as_slice() else {
        return Err("expected `tcp [2001:db8::1]:80 > [2001:db8::2]:9 len 80`".into());
    };
    let address = |text: &str| text.parse().map_err(|error| format!("`{text}`: {error}"));
    let (source, target): (SocketAddrV6, SocketAddrV6) = (address(source)?, address(target)?);
    let fields =
        Fields::parse(rest, &[&["len", "ttl", "flags", "seq", "ack"], &link::TAGS[..]].concat())?;
    let ends = Ends::Six(*source.ip(), *target.ip());
    let at = ends.transport_at();
    let is_tcp = protocol == ipv4::TCP;
    let mut frame = filled(&fields, at + if is_tcp { 20 } else { 8 })?;
    ends.emit(&mut frame, protocol, &fields)?;
    let carried = &mut frame[at..];
    // The headers compute checksums for IPv4, which are overwritten below.
    let place = if is_tcp {
        let header = tcp::Header {
            source: source.port(),
            target: target.port(),
            sequence: fields.number("seq", 1, u32::MAX.into())? as u32,
            acknowledgement: fields.number("ack", 0, u32::MAX.into())? as u32,
            flags: flags(fields.text("flags").unwrap_or("ack"))?,
            window: 0xffff,
        };
        header.emit(carried, 0, 0);
        tcp::field::CHECKSUM
    } else {
        udp::Header { source: source.port(), target: target.port() }.emit(carried, 0, 0);
        udp::field::CHECKSUM
    };
    carried[place.clone()].fill(0);
    let sum = match ends.checksum(protocol, carried) {
        0 if !is_tcp => 0xffff,
        sum => sum,
    };
    carried[place].copy_from_slice(&sum.to_be_bytes());
    link::tagged(frame, &fields)
}

#[cfg(test)]
mod tests {
    use super::super::packet::build;
    use freeport_port::packet::checksum::{self, Sum};
    use std::collections::BTreeMap;

    fn packet(text: &str) -> Vec<u8> {
        build(text, &BTreeMap::new()).unwrap()
    }

    #[test]
    fn echoes_have_their_fields_in_place() {
        let frame = packet("icmp echo 10.0.0.1 > 10.0.0.2 id 0x102 seq 3 len 51 ttl 9");
        assert_eq!((frame.len(), frame[22], frame[23]), (51, 9, 1));
        assert_eq!(frame[26..36], [10, 0, 0, 1, 10, 0, 0, 2, 8, 0]);
        assert_eq!(frame[38..42], [1, 2, 0, 3]);
        assert_eq!((checksum::of(&frame[14..34]), checksum::of(&frame[34..])), (0, 0));
        assert_eq!(packet("icmp reply 10.0.0.1 > 10.0.0.2")[34], 0);
        assert_eq!(packet("icmp 3/4 10.0.0.1 > 10.0.0.2")[34..36], [3, 4]);
    }

    #[test]
    fn addresses_of_ipv6_stand_in_brackets() {
        let over = |text: &str, next: u8| {
            let frame = packet(text);
            assert_eq!(frame[12..18], [0x86, 0xdd, 0x60, 0, 0, 0], "{text}");
            assert_eq!(usize::from(frame[19]), frame.len() - 54);
            assert_eq!((frame[20], frame[21]), (next, 9));
            assert_eq!((frame[22..26].to_vec(), frame[53]), (vec![0x20, 0x01, 0x0d, 0xb8], 2));
            let pseudo = Sum::default().bytes(&frame[22..54]).bytes(&[0, frame[19], 0, next]);
            assert_eq!(pseudo.bytes(&frame[54..]).finish(), 0, "{text}");
            frame
        };
        let tcp = over("tcp [2001:db8::1]:80 > [2001:db8::2]:9 len 81 ttl 9 flags syn", 6);
        assert_eq!((&tcp[54..58], tcp[67]), (&[0, 80, 0, 9][..], 2));
        over("udp [2001:db8::1]:80 > [2001:db8::2]:9 len 62 ttl 9", 17);
        let echo = over("icmp echo [2001:db8::1] > [2001:db8::2] id 7 seq 3 ttl 9", 58);
        assert_eq!((&echo[54..56], &echo[58..62]), (&[128, 0][..], &[0, 7, 0, 3][..]));
        assert_eq!(over("icmp reply [2001:db8::1] > [2001:db8::2] ttl 9", 58)[54], 129);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "icmp 10.0.0.1 > 10.0.0.2",
            "icmp nice 10.0.0.1 > 10.0.0.2",
            "icmp 256/0 10.0.0.1 > 10.0.0.2",
            "icmp echo 10.0.0.1 > [::1]",
            "icmp echo [::1] > 10.0.0.1",
            "icmp echo ::1 > ::2",
            "icmp echo 10.0.0.1 > 10.0.0.2 len 41",
            "icmp echo [::1] > [::2] len 61",
            "udp [::1]:80 > 10.0.0.1:9",
            "udp [::1] > [::2]:9",
            "udp [::1]:80 > [::2]:9 id 3",
            "tcp [::1]:80 > [::2]:9 len 73",
        ] {
            assert!(build(text, &BTreeMap::new()).is_err(), "{text}");
        }
    }
}
