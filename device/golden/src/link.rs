// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The link layer of packets described in a line of text: frames of any type, ARP, and VLAN tags.

use super::packet::{Fields, filled};
use freeport_port::packet::ethernet::{self, Address};
use std::net::Ipv4Addr;

/// Fields that add VLAN tags to any packet.
pub(super) const TAGS: [&str; 2] = ["vlan", "service"];

/// Default addresses of packets.
pub(super) const SOURCE: Address = Address([2, 0, 0, 0, 0, 1]);
pub(super) const TARGET: Address = Address([2, 0, 0, 0, 0, 2]);

const ARP: u16 = 0x0806;
const ARP_BYTES: usize = 28;
const TAG_BYTES: usize = 4;

/// Builds a frame from `MAC > MAC type 0x0800 len 64`.
pub(super) fn frame(text: &str) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [source, ">", target, rest @ ..] = words.as_slice() else {
        return Err("expected `eth MAC > MAC type 0x0800 len 64`".into());
    };
    let fields = Fields::parse(rest, &[&["type", "len"], &TAGS[..]].concat())?;
    let ether_type = fields.number("type", 0x88b5, 0xffff)? as u16;
    let mut frame = filled(&fields, ethernet::HEADER_BYTES)?;
    let link = ethernet::Header { target: mac(target)?, source: mac(source)?, ether_type };
    link.emit(&mut frame);
    tagged(frame, &fields)
}

/// Builds an ARP packet from `who-has ADDRESS tell ADDRESS from MAC` or `ADDRESS is-at MAC tell
/// ADDRESS to MAC`.
pub(super) fn arp(text: &str) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let address = |text: &str| {
        let address: Result<Ipv4Addr, _> = text.parse();
        address.map_err(|error| format!("`{text}`: {error}"))
    };
    let known = [&["from", "to", "len"], &TAGS[..]].concat();
    let (operation, sender, asked, fields) = match words.as_slice() {
        ["who-has", asked, "tell", sender, rest @ ..] => {
            let fields = Fields::parse(rest, &known)?;
            let from = fields.text("from").map_or(Ok(SOURCE), mac)?;
            (1, (from, address(sender)?), (Address::default(), address(asked)?), fields)
        }
        [sender, "is-at", at, "tell", asked, rest @ ..] => {
            let fields = Fields::parse(rest, &known)?;
            let to = fields.text("to").map_or(Ok(SOURCE), mac)?;
            (2, (mac(at)?, address(sender)?), (to, address(asked)?), fields)
        }
        _ => {
            return Err("expected `arp who-has ADDRESS tell ADDRESS` or `ADDRESS is-at MAC \
                         tell ADDRESS`"
                .into());
        }
    };
    let mut frame = filled(&fields, ethernet::HEADER_BYTES + ARP_BYTES)?;
    let all = Address([0xff; 6]);
    let target = if operation == 1 { all } else { asked.0 };
    let link = ethernet::Header {
        target: fields.text("to").map_or(Ok(target), mac)?,
        source: fields.text("from").map_or(Ok(sender.0), mac)?,
        ether_type: ARP,
    };
    link.emit(&mut frame);
    let mut bytes = vec![0, 1, 8, 0, 6, 4, 0, operation];
    for (mac, address) in [sender, asked] {
        bytes.extend(mac.0);
        bytes.extend(address.octets());
    }
    frame[ethernet::HEADER_BYTES..][..ARP_BYTES].copy_from_slice(&bytes);
    tagged(frame, &fields)
}

/// Returns the size in bytes of the tags that the fields request.
pub(super) fn tag_bytes(fields: &Fields<'_>) -> usize {
    TAGS.iter().filter(|name| fields.text(name).is_some()).count() * TAG_BYTES
}

/// Inserts the tags that the fields request, the service tag outermost.
pub(super) fn tagged(mut frame: Vec<u8>, fields: &Fields<'_>) -> Result<Vec<u8>, String> {
    for (name, ether_type) in [("vlan", ethernet::VLAN), ("service", 0x88a8)] {
        if fields.text(name).is_some() {
            let tag = fields.number(name, 0, 0xffff)? as u16;
            let at = ethernet::field::ETHER_TYPE.start;
            let bytes = [ether_type.to_be_bytes(), tag.to_be_bytes()].concat();
            frame.splice(at..at, bytes);
        }
    }
    Ok(frame)
}

/// Parses an Ethernet address.
pub(super) fn mac(text: &str) -> Result<Address, String> {
    let bytes: Result<Vec<u8>, _> =
        text.split(':').map(|part| u8::from_str_radix(part, 16)).collect();
    let bytes = bytes.ok().and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
    bytes.map(Address).ok_or(format!("`{text}` is not a MAC address"))
}

#[cfg(test)]
mod tests {
    use super::super::packet::build;
    use std::collections::BTreeMap;

    fn packet(text: &str) -> Vec<u8> {
        build(text, &BTreeMap::new()).unwrap()
    }

    #[test]
    fn ethernet_frames_name_the_source_first() {
        let frame = packet("eth 02:00:00:00:00:01 > 02:00:00:00:00:02 type 0x0806 len 60");
        assert_eq!(frame[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6]);
        assert_eq!(frame.len(), 60);
    }

    #[test]
    fn arp_asks_all_and_answers_one() {
        let asked = packet("arp who-has 10.0.0.2 tell 10.0.0.1 len 60");
        assert_eq!(asked[..14], [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6]);
        assert_eq!(asked[14..24], [0, 1, 8, 0, 6, 4, 0, 1, 2, 0]);
        assert_eq!(asked[24..42], [0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
        assert_eq!(asked.len(), 60);
        let reported = packet("arp 10.0.0.2 is-at 02:00:00:00:00:09 tell 10.0.0.1 len 42");
        assert_eq!(reported[..14], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 6]);
        assert_eq!(reported[20..32], [0, 2, 2, 0, 0, 0, 0, 9, 10, 0, 0, 2]);
        assert_eq!(reported[32..], [2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
    }

    #[test]
    fn tags_stand_before_the_type_and_count_in_the_length() {
        let plain = packet("udp 10.0.0.1:5 > 10.0.0.2:6 len 64");
        let tagged = packet("udp 10.0.0.1:5 > 10.0.0.2:6 len 72 vlan 0x6005 service 100");
        assert_eq!(tagged[12..20], [0x88, 0xa8, 0, 100, 0x81, 0, 0x60, 5]);
        assert_eq!([&tagged[..12], &tagged[20..]].concat(), plain);
        let arp = packet("arp who-has 10.0.0.2 tell 10.0.0.1 vlan 5");
        assert_eq!((&arp[12..18], arp.len()), (&[0x81, 0, 0, 5, 8, 6][..], 64));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "eth 1:2 > 3:4",
            "arp who-has 10.0.0.2",
            "arp who-has 10.0.0 tell 10.0.0.1",
            "arp 10.0.0.2 is-at nowhere tell 10.0.0.1",
            "arp who-has 10.0.0.2 tell 10.0.0.1 len 41",
            "arp who-has 10.0.0.2 tell 10.0.0.1 len 45 vlan 5",
            "udp 10.0.0.1:5 > 10.0.0.2:6 vlan 65536",
        ] {
            assert!(build(text, &BTreeMap::new()).is_err(), "{text}");
        }
    }
}
