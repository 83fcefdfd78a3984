// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets described in a line of text, such as `tcp 10.0.0.1:80 > 10.0.0.2:9 len 64 flags syn`.
//! Lengths are those of the whole frame without its frame check sequence; checksums are computed.

use super::{internet, link};
use freeport_port::packet::{ethernet, ipv4, tcp, udp};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;

/// Builds the packet that `text` describes; `named` are the packets described earlier.
///
/// # Errors
/// A description of the expected syntax.
pub fn build(text: &str, named: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    if let Some(record) = super::record::build(word, rest) {
        return record;
    }
    match word {
        "hex" => hex(rest),
        "tcp" if rest.starts_with('[') => internet::over_ipv6(ipv4::TCP, rest),
        "udp" if rest.starts_with('[') => internet::over_ipv6(ipv4::UDP, rest),
        "tcp" => internet_packet(ipv4::TCP, rest),
        "udp" => internet_packet(ipv4::UDP, rest),
        "eth" => link::frame(rest),
        "arp" => link::arp(rest),
        "icmp" => internet::icmp(rest),
        name => {
            let mut bytes = named.get(name).ok_or(format!("there is no packet `{name}`"))?.clone();
            let patches = rest.trim();
            if !patches.is_empty() {
                let patches = patches.strip_prefix("with ").ok_or("`with` is expected")?;
                for patch in patches.split_whitespace() {
                    apply(&mut bytes, patch)?;
                }
            }
            Ok(bytes)
        }
    }
}

/// Returns the packets that `text` names, such as `a 3*b`.
///
/// # Errors
/// An unknown name.
pub fn list(text: &str, named: &BTreeMap<String, Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
    let mut packets = vec![];
    for word in text.split_whitespace() {
        let (count, name) = word.split_once('*').unwrap_or(("1", word));
        let packet = named.get(name).ok_or(format!("there is no packet `{name}`"))?;
        let count = usize::try_from(number(count)?).unwrap_or(usize::MAX).min(100_000);
        packets.extend(std::iter::repeat_n(packet.clone(), count));
    }
    Ok(packets)
}

/// Parses a decimal or hexadecimal (`0x`) number.
///
/// # Errors
/// The text is not a number.
pub fn number(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    value.map_err(|error| format!("`{text}`: {error}"))
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return Err("hex digits come in pairs".into());
    }
    let pair = |pair: &[u8]| {
        let text = String::from_utf8_lossy(pair);
        u8::from_str_radix(&text, 16).map_err(|error| format!("`{text}`: {error}"))
    };
    digits.chunks(2).map(pair).collect()
}

/// Overwrites the bytes from an offset on: `14=45c0`.
fn apply(bytes: &mut [u8], patch: &str) -> Result<(), String> {
    let (at, new) = patch.split_once('=').ok_or("a patch is offset=bytes")?;
    let (at, new) = (number(at)? as usize, hex(new)?);
    let place = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..new.len()));
    place.ok_or(format!("`{patch}` is beyond the end"))?.copy_from_slice(&new);
    Ok(())
}

/// `key value` pairs after the addresses.
pub(super) struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    pub(super) fn parse(words: &[&'a str], known: &[&str]) -> Result<Self, String> {
        let pairs = words.chunks(2).map(|pair| match pair {
            [key, value] if known.contains(key) => Ok((*key, *value)),
            [key, ..] => Err(format!("`{key}`: expected {} and a value", known.join(", "))),
            [] => Err("nothing".into()),
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    pub(super) fn number(&self, key: &str, otherwise: u64, most: u64) -> Result<u64, String> {
        let value = self.text(key).map_or(Ok(otherwise), number)?;
        if value > most { Err(format!("{key} is at most {most}")) } else { Ok(value) }
    }
}

fn internet_packet(protocol: u8, text: &str) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [source, ">", target, rest @ ..] = words.as_slice() else {
        return Err("expected `tcp 10.0.0.1:80 > 10.0.0.2:9 len 64`".into());
    };
    let address = |text: &str| text.parse().map_err(|error| format!("`{text}`: {error}"));
    let (source, target): (SocketAddrV4, SocketAddrV4) = (address(source)?, address(target)?);
    let known = ["len", "ttl", "id", "flags", "seq", "ack"];
    let fields = Fields::parse(rest, &[&known, &link::TAGS[..]].concat())?;
    let is_tcp = protocol == ipv4::TCP;
    let transport_at = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES;
    let header_bytes = if is_tcp { tcp::HEADER_BYTES } else { udp::HEADER_BYTES };
    let mut frame = filled(&fields, transport_at + header_bytes)?;
    let link =
        ethernet::Header { target: link::TARGET, source: link::SOURCE, ether_type: ethernet::IPV4 };
    let network = ipv4::Header {
        source: u32::from(*source.ip()),
        target: u32::from(*target.ip()),
        protocol,
        time_to_live: fields.number("ttl", 64, 255)? as u8,
        identification: fields.number("id", 0, 0xffff)? as u16,
        payload_length: frame.len() - transport_at,
    };
    link.emit(&mut frame);
    network.emit(&mut frame[ethernet::HEADER_BYTES..]);
    let segment = &mut frame[transport_at..];
    let ports = (source.port(), target.port());
    if is_tcp {
        let header = tcp::Header {
            source: ports.0,
            target: ports.1,
            sequence: fields.number("seq", 1, u32::MAX.into())? as u32,
            acknowledgement: fields.number("ack", 0, u32::MAX.into())? as u32,
            flags: flags(fields.text("flags").unwrap_or("ack"))?,
            window: 0xffff,
        };
        header.emit(segment, network.source, network.target);
    } else {
        let header = udp::Header { source: ports.0, target: ports.1 };
        header.emit(segment, network.source, network.target);
    }
    link::tagged(frame, &fields)
}

/// Parses TCP flags into a byte.
pub(super) fn flags(text: &str) -> Result<u8, String> {
    const NAMES: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
    text.split(',').try_fold(0, |flags, name| {
        let at = NAMES.iter().position(|known| *known == name);
        at.map(|at| flags | 1 << at).ok_or(format!("`{name}`: a flag is {}", NAMES.join(", ")))
    })
}

/// Returns a frame of the requested length, without its tags. Neighbouring bytes differ, so that a
/// misplaced byte is detected.
pub(super) fn filled(fields: &Fields<'_>, least: usize) -> Result<Vec<u8>, String> {
    let length = fields.number("len", 64, freeport_port::MAX_FRAME as u64)? as usize;
    let tags = link::tag_bytes(fields);
    if length < least + tags {
        return Err(format!("len is at least {}", least + tags));
    }
    let length = length - tags;
    Ok((0..length).map(|at| (at * 7 + 1) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(text: &str) -> Vec<u8> {
        build(text, &BTreeMap::new()).unwrap()
    }

    #[test]
    fn a_packet_has_its_fields_in_place() {
        let frame = packet("tcp 10.0.0.1:80 > 10.0.0.2:9 len 64 flags syn,ack ttl 9 id 0x102");
        assert_eq!(frame.len(), 64);
        assert_eq!(frame[12..14], [0x08, 0x00]);
        assert_eq!((frame[18], frame[19], frame[22], frame[23], frame[47]), (1, 2, 9, 6, 0x12));
        assert_eq!(frame[26..38], [10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0, 9]);
        let view = ipv4::View::new(&frame[14..]).unwrap();
        assert!(view.is_checksum_right());
        let segment = tcp::View::new(view.payload()).unwrap();
        assert!(segment.is_checksum_right(view.source(), view.target()));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "hex",
            "hex 012",
            "hex zz",
            "tcp 10.0.0.1 > 10.0.0.2:9",
            "tcp 10.0.0.1:80 > 10.0.0.2:9 len 53",
            "udp 10.0.0.1:80 > 10.0.0.2:9 len 10000",
            "udp 10.0.0.1:80 > 10.0.0.2:9 ttl 256",
            "udp 10.0.0.1:80 > 10.0.0.2:9 ttl",
            "tcp 10.0.0.1:80 > 10.0.0.2:9 flags nice",
            "nobody",
        ] {
            assert!(build(text, &BTreeMap::new()).is_err(), "{text}");
        }
    }
}
