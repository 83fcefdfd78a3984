// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets written in a line of text, such as `tcp 10.0.0.1:80 > 10.0.0.2:9 len 64 flags syn`.
//! Lengths are those of the whole frame without its check sequence; checksums come out right.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Builds the packet that `text` describes; `named` are those described before.
///
/// # Errors
/// What was expected instead.
pub fn build(text: &str, named: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "hex" => hex(rest),
        "tcp" => internet_packet(TCP, rest),
        "udp" => internet_packet(UDP, rest),
        "eth" => ethernet_frame(rest),
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

/// The packets that `text` names, such as `a 3*b`.
///
/// # Errors
/// A name that is not known.
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

/// A decimal or hexadecimal (`0x`) number.
///
/// # Errors
/// It is none.
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
    if digits.is_empty() || digits.len() % 2 != 0 {
        return Err("hex digits come in pairs".into());
    }
    let pair = |pair: &[u8]| {
        let text = String::from_utf8_lossy(pair);
        u8::from_str_radix(&text, 16).map_err(|error| format!("`{text}`: {error}"))
    };
    digits.chunks(2).map(pair).collect()
}

/// Changes the bytes from an offset on: `14=45c0`.
fn apply(bytes: &mut [u8], patch: &str) -> Result<(), String> {
    let (at, new) = patch.split_once('=').ok_or("a patch is offset=bytes")?;
    let (at, new) = (number(at)? as usize, hex(new)?);
    let place = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..new.len()));
    place.ok_or(format!("`{patch}` is beyond the end"))?.copy_from_slice(&new);
    Ok(())
}

/// `key value` pairs behind the addresses.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn parse(words: &[&'a str], known: &[&str]) -> Result<Self, String> {
        let pairs = words.chunks(2).map(|pair| match pair {
            [key, value] if known.contains(key) => Ok((*key, *value)),
            [key, ..] => Err(format!("`{key}`: expected {} and a value", known.join(", "))),
            [] => Err("nothing".into()),
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn number(&self, key: &str, otherwise: u64, most: u64) -> Result<u64, String> {
        let value = self.text(key).map_or(Ok(otherwise), number)?;
        if value > most { Err(format!("{key} is at most {most}")) } else { Ok(value) }
    }
}

fn ethernet_frame(text: &str) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [source, ">", target, rest @ ..] = words.as_slice() else {
        return Err("expected `eth MAC > MAC type 0x0800 len 64`".into());
    };
    let fields = Fields::parse(rest, &["type", "len"])?;
    let mut frame = [mac(target)?, mac(source)?].concat();
    frame.extend((fields.number("type", 0x88b5, 0xffff)? as u16).to_be_bytes());
    let length = fields.number("len", 64, 9_216)? as usize;
    fill(&mut frame, length)?;
    Ok(frame)
}

fn mac(text: &str) -> Result<Vec<u8>, String> {
    let bytes: Result<Vec<u8>, _> =
        text.split(':').map(|part| u8::from_str_radix(part, 16)).collect();
    bytes.ok().filter(|bytes| bytes.len() == 6).ok_or(format!("`{text}` is no MAC address"))
}

fn internet_packet(protocol: u8, text: &str) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [source, ">", target, rest @ ..] = words.as_slice() else {
        return Err("expected `tcp 10.0.0.1:80 > 10.0.0.2:9 len 64`".into());
    };
    let address = |text: &str| text.parse().map_err(|error| format!("`{text}`: {error}"));
    let (source, target): (SocketAddrV4, SocketAddrV4) = (address(source)?, address(target)?);
    let fields = Fields::parse(rest, &["len", "ttl", "tos", "id", "flags", "seq", "ack"])?;
    let header = if protocol == TCP { TCP_BYTES } else { UDP_BYTES };
    let least = ETHERNET_BYTES + IPV4_BYTES + header;
    let length = fields.number("len", 64, 9_216)? as usize;
    if length < least {
        return Err(format!("len is at least {least}"));
    }
    let mut segment = [source.port().to_be_bytes(), target.port().to_be_bytes()].concat();
    let segment_length = length - ETHERNET_BYTES - IPV4_BYTES;
    let checksum_at = if protocol == TCP {
        segment.extend((fields.number("seq", 1, u32::MAX.into())? as u32).to_be_bytes());
        segment.extend((fields.number("ack", 0, u32::MAX.into())? as u32).to_be_bytes());
        segment.extend([0x50, flags(fields.text("flags").unwrap_or("ack"))?]);
        segment.extend([0xff, 0xff, 0, 0, 0, 0]);
        16
    } else {
        segment.extend((segment_length as u16).to_be_bytes());
        segment.extend([0, 0]);
        6
    };
    fill(&mut segment, segment_length)?;
    let sum = checksum(&[&pseudo_header(&source, &target, protocol, segment_length), &segment]);
    // A UDP checksum of 0 means that there is none.
    let sum = if protocol == UDP && sum == 0 { 0xffff } else { sum };
    segment[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0x00];
    frame.extend(ipv4_header(&source, &target, protocol, length - ETHERNET_BYTES, &fields)?);
    frame.extend(segment);
    Ok(frame)
}

fn ipv4_header(
    source: &SocketAddrV4,
    target: &SocketAddrV4,
    protocol: u8,
    length: usize,
    fields: &Fields<'_>,
) -> Result<Vec<u8>, String> {
    let mut header = vec![0x45, fields.number("tos", 0, 255)? as u8];
    header.extend((length as u16).to_be_bytes());
    header.extend((fields.number("id", 0, 0xffff)? as u16).to_be_bytes());
    header.extend([0x40, 0, fields.number("ttl", 64, 255)? as u8, protocol, 0, 0]);
    header.extend(source.ip().octets());
    header.extend(target.ip().octets());
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    Ok(header)
}

fn pseudo_header(
    source: &SocketAddrV4,
    target: &SocketAddrV4,
    protocol: u8,
    length: usize,
) -> Vec<u8> {
    let octets = |address: &SocketAddrV4| Ipv4Addr::octets(address.ip());
    let mut header = [octets(source), octets(target)].concat();
    header.extend([0, protocol]);
    header.extend((length as u16).to_be_bytes());
    header
}

fn flags(text: &str) -> Result<u8, String> {
    const NAMES: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
    text.split(',').try_fold(0, |flags, name| {
        let at = NAMES.iter().position(|known| *known == name);
        at.map(|at| flags | 1 << at).ok_or(format!("`{name}`: a flag is {}", NAMES.join(", ")))
    })
}

/// Fills up with bytes that differ from their neighbours, so that a byte out of place shows.
fn fill(bytes: &mut Vec<u8>, length: usize) -> Result<(), String> {
    if length < bytes.len() {
        return Err(format!("len is at least {}", bytes.len()));
    }
    bytes.extend((0..length - bytes.len()).map(|at| (at * 7 + 1) as u8));
    Ok(())
}

/// The Internet checksum (RFC 1071) of parts of even length, but for the last.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u64 = words.map(word).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(text: &str) -> Vec<u8> {
        build(text, &BTreeMap::new()).unwrap()
    }

    #[test]
    fn a_packet_has_its_fields_in_place_and_right_checksums() {
        let frame = packet("tcp 10.0.0.1:80 > 10.0.0.2:9 len 64 flags syn,ack ttl 9");
        assert_eq!(frame.len(), 64);
        assert_eq!(frame[12..14], [0x08, 0x00]);
        assert_eq!((frame[22], frame[23], frame[47]), (9, TCP, 0x12));
        assert_eq!(frame[26..38], [10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0, 9]);
        assert_eq!(checksum(&[&frame[14..34]]), 0);
        let pseudo = [&frame[26..34], &[0, TCP, 0, 30]].concat();
        assert_eq!(checksum(&[&pseudo, &frame[34..]]), 0);
    }

    #[test]
    fn a_checksum_known_from_elsewhere_comes_out() {
        // RFC 1071, section 3: the sum of these is ddf2.
        assert_eq!(checksum(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
    }

    #[test]
    fn ethernet_frames_name_the_source_first() {
        let frame = packet("eth 02:00:00:00:00:01 > 02:00:00:00:00:02 type 0x0806 len 60");
        assert_eq!(frame[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6]);
        assert_eq!(frame.len(), 60);
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
            "eth 1:2 > 3:4",
            "nobody",
        ] {
            assert!(build(text, &BTreeMap::new()).is_err(), "{text}");
        }
    }
}
