// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records described in a line of text, as their bytes in memory: tuples and matches of
//! `elements/records.cnp`, and any others by the widths of their fields.

use super::link::mac;
use super::packet::{Fields, flags, number};
use freeport_ir::Bits;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

/// Builds the record that `text` describes after its first word, `word`; returns `None` if `word`
/// is not a kind of record.
///
/// # Errors
/// A description of the expected syntax.
pub fn build(word: &str, text: &str) -> Option<Result<Vec<u8>, String>> {
    Some(match word {
        "tuple" => headers(text, &[]).map(|(bytes, _)| bytes),
        "match" => headers(text, &["action", "priority"]).and_then(|(mut bytes, fields)| {
            bytes.extend((fields.number("action", 0, u32::MAX.into())? as u32).to_le_bytes());
            bytes.extend((fields.number("priority", 0, 0xffff)? as u16).to_le_bytes());
            bytes.extend([0, 0]);
            Ok(bytes)
        }),
        "fields" => text
            .split_whitespace()
            .map(field)
            .collect::<Result<Vec<_>, _>>()
            .map(|fields| fields.concat()),
        _ => return None,
    })
}

/// Parses an argument or a result of a method: a record's name, a number or an address.
///
/// # Errors
/// The word is none of these.
pub fn value(word: &str, named: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, String> {
    if let Some(bytes) = named.get(word) {
        return Ok(bytes.clone());
    }
    if let Ok(address) = word.parse::<Ipv6Addr>() {
        return Ok(u128::from(address).to_le_bytes().to_vec());
    }
    let value = match (word.parse::<Ipv4Addr>(), mac(word)) {
        (Ok(address), _) => u32::from(address).into(),
        (_, Ok(mac)) => mac.0.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
        _ => number(word)?,
    };
    Ok(value.to_le_bytes().to_vec())
}

/// Converts bytes to a value of `width` bits.
///
/// # Errors
/// The bytes do not fit the width.
pub fn bits(bytes: &[u8], width: u32) -> Result<Bits, String> {
    let whole = Bits::from_le_bytes(bytes.len().max(1) as u32 * 8, bytes);
    let cut = whole.resize(width);
    match cut.resize(whole.width()) == whole {
        true => Ok(cut),
        false => Err(format!("{whole} does not fit {width} bits")),
    }
}

/// Returns the 16 bytes of a tuple, and the fields after the addresses.
fn headers<'t>(text: &'t str, more: &[&str]) -> Result<(Vec<u8>, Fields<'t>), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [source, ">", target, rest @ ..] = words.as_slice() else {
        return Err("expected `10.0.0.1:80 > 10.0.0.2:9 protocol 6`".into());
    };
    let known = [&["protocol", "flags", "length"], more].concat();
    let fields = Fields::parse(rest, &known)?;
    let address = |text: &str| text.parse().map_err(|error| format!("`{text}`: {error}"));
    let (source, target): (SocketAddrV4, SocketAddrV4) = (address(source)?, address(target)?);
    let mut bytes = vec![];
    bytes.extend(u32::from(*source.ip()).to_le_bytes());
    bytes.extend(u32::from(*target.ip()).to_le_bytes());
    bytes.extend(source.port().to_le_bytes());
    bytes.extend(target.port().to_le_bytes());
    bytes.push(fields.number("protocol", 6, 255)? as u8);
    bytes.push(fields.text("flags").map_or(Ok(0), flags)?);
    bytes.extend((fields.number("length", 64, 0xffff)? as u16).to_le_bytes());
    Ok((bytes, fields))
}

/// Parses `bits:number`.
fn field(text: &str) -> Result<Vec<u8>, String> {
    let wanted = || format!("`{text}`: a field is bits:number, of 8, 16, 32 or 64 bits");
    let (width, value) = text.split_once(':').ok_or_else(wanted)?;
    let width = number(width)?;
    if ![8, 16, 32, 64].contains(&width) {
        return Err(wanted());
    }
    Ok(bits(&self::value(value, &BTreeMap::new())?, width as u32)?.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> Result<Vec<u8>, String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        build(word, rest).unwrap()
    }

    #[test]
    fn records_have_their_fields_in_place() {
        let tuple = record("tuple 10.0.0.1:80 > 10.0.0.2:9 protocol 17 length 0x102").unwrap();
        assert_eq!(tuple, [1, 0, 0, 10, 2, 0, 0, 10, 80, 0, 9, 0, 17, 0, 2, 1]);
        let found = record("match 10.0.0.1:80 > 10.0.0.2:9 flags syn action 7 priority 3").unwrap();
        assert_eq!(found[12..], [6, 2, 64, 0, 7, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(record("fields 16:0x102 8:3 32:10.0.0.1").unwrap(), [2, 1, 3, 1, 0, 0, 10]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for text in [
            "tuple 10.0.0.1 > 10.0.0.2:9",
            "tuple 10.0.0.1:1 > 10.0.0.2:9 action 1",
            "match 10.0.0.1:1 > 10.0.0.2:9 priority 65536",
            "fields 8:256",
            "fields 12:1",
            "fields 5",
        ] {
            assert!(record(text).is_err(), "{text}");
        }
        assert!(build("nobody", "").is_none());
        assert_eq!(value("1::2", &BTreeMap::new()).unwrap()[..3], [2, 0, 0]);
        assert_eq!(bits(&[255, 1], 9).unwrap().to_u64(), 511);
        assert!(bits(&[255, 1], 8).is_err());
    }
}
