// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the bits of a variable are read: conversion between bits and the values people write.
//!
//! A number may be written in decimal, with a sign, as `0x1f` or `0b101`, as an IPv4 address or as
//! an Ethernet address (first byte highest, as in the language). A number that does not fit is an
//! error; it is never truncated.

use freeport_ir::{Bits, UnaryOp};
use serde_json::{Map, Value};
use std::net::Ipv6Addr;

/// Meaning of the bits of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Layout {
    /// An unsigned number of this many bits.
    Unsigned(u32),
    /// A signed number of this many bits, in two's complement.
    Signed(u32),
    /// Members at fixed positions.
    Struct {
        /// Total number of bits.
        bits: u32,
        /// Members in the order of declaration; those of a union overlap.
        members: Vec<Member>,
    },
    /// Consecutive values of one layout.
    Array {
        /// Layout of an element.
        element: Box<Layout>,
        /// Bits from one element to the next.
        stride_bits: u32,
        /// Number of elements, at least 1.
        count: u32,
    },
}

/// A member of a struct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Name of the member.
    pub name: String,
    /// Its lowest bit.
    pub lo: u32,
    /// Its layout.
    pub layout: Layout,
}

/// Reason why a value does not fit a layout.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ValueError {
    /// Not a number in any of the accepted forms.
    #[error("{0} is not a number")]
    NoNumber(String),
    /// A number that exceeds the width.
    #[error("{number} does not fit {bits} bits{}", if *.is_signed { " with a sign" } else { "" })]
    TooLarge {
        /// The number as written.
        number: String,
        /// The width.
        bits: u32,
        /// Whether one of the bits is a sign.
        is_signed: bool,
    },
    /// A number where an object of members is expected.
    #[error("a struct is written as an object of its members, not as {0}")]
    NoStruct(String),
    /// No such member.
    #[error("there is no member {name}; there are {}", .members.join(", "))]
    NoMember {
        /// The name as written.
        name: String,
        /// The members that exist.
        members: Vec<String>,
    },
    /// A number where a list of elements is expected.
    #[error("an array is written as a list, not as {0}")]
    NoArray(String),
    /// More elements than the array has.
    #[error("{given} elements for an array of {count}")]
    TooMany {
        /// Number of elements written.
        given: usize,
        /// Number of elements of the array.
        count: u64,
    },
}

impl Layout {
    /// Returns the number of bits of a value.
    pub fn bits(&self) -> u32 {
        match self {
            Layout::Unsigned(bits) | Layout::Signed(bits) | Layout::Struct { bits, .. } => *bits,
            Layout::Array { element, stride_bits, count } => {
                (count - 1) * stride_bits + element.bits()
            }
        }
    }

    /// Converts a value to bits; members and elements that are not mentioned are 0.
    ///
    /// # Errors
    /// A value of another shape, or a number that does not fit.
    pub fn parse(&self, value: &Value) -> Result<Bits, ValueError> {
        match self {
            Layout::Unsigned(bits) => number(value, *bits, false),
            Layout::Signed(bits) => number(value, *bits, true),
            Layout::Struct { bits, members } => {
                let Value::Object(given) = value else {
                    return Err(ValueError::NoStruct(value.to_string()));
                };
                let mut whole = Bits::zero(*bits);
                for (name, value) in given {
                    let member = members.iter().find(|member| member.name == *name);
                    let member = member.ok_or_else(|| ValueError::NoMember {
                        name: name.clone(),
                        members: members.iter().map(|member| member.name.clone()).collect(),
                    })?;
                    whole = whole.insert(member.lo, &member.layout.parse(value)?);
                }
                Ok(whole)
            }
            Layout::Array { element, stride_bits, count } => {
                let Value::Array(given) = value else {
                    return Err(ValueError::NoArray(value.to_string()));
                };
                if given.len() > *count as usize {
                    let count = u64::from(*count);
                    return Err(ValueError::TooMany { given: given.len(), count });
                }
                let mut whole = Bits::zero(self.bits());
                for (at, value) in (0..).zip(given) {
                    whole = whole.insert(at * stride_bits, &element.parse(value)?);
                }
                Ok(whole)
            }
        }
    }

    /// Converts bits to a value. A number beyond 64 bits becomes a string in hexadecimal.
    pub fn show(&self, bits: &Bits) -> Value {
        match self {
            Layout::Unsigned(_) => match bits.checked_u64() {
                Some(number) => number.into(),
                None => bits.to_string().into(),
            },
            Layout::Signed(width) if *width <= 64 => bits.to_i64().into(),
            Layout::Signed(_) if bits.is_negative() => {
                format!("-{}", Bits::unary(UnaryOp::Neg, bits)).into()
            }
            Layout::Signed(_) => bits.to_string().into(),
            Layout::Struct { members, .. } => {
                let show = |member: &Member| {
                    let part = bits.extract(member.lo, member.layout.bits());
                    (member.name.clone(), member.layout.show(&part))
                };
                Value::Object(members.iter().map(show).collect::<Map<_, _>>())
            }
            Layout::Array { element, stride_bits, count } => {
                let part = |at| bits.extract(at * stride_bits, element.bits());
                (0..*count).map(|at| element.show(&part(at))).collect()
            }
        }
    }
}

/// Reads a value as written in a command: JSON, or a number in one of the other forms.
pub fn value_of_text(text: &str) -> Value {
    parse_json(text.as_bytes()).unwrap_or_else(|_| Value::String(text.trim().to_owned()))
}

/// Parses JSON. A whole number of more than 64 bits, which a [`Value`] would only hold
/// approximately, becomes a string of its digits.
///
/// # Errors
/// A text that is not JSON.
pub(crate) fn parse_json(text: &[u8]) -> serde_json::Result<Value> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let (mut whole, mut at) = (vec![], 0);
    let mut is_in_string = false;
    while at < text.len() {
        let byte = text[at];
        let length = match byte {
            b'\\' if is_in_string => 2,
            b'"' => {
                is_in_string = !is_in_string;
                1
            }
            b'-' | b'0'..=b'9' if !is_in_string => {
                let is_part =
                    |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                text[at..].iter().take_while(|byte| is_part(byte)).count()
            }
            _ => 1,
        };
        let piece = &text[at..(at + length).min(text.len())];
        let digits = piece.strip_prefix(b"-").unwrap_or(piece);
        let is_whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let written = std::str::from_utf8(piece).unwrap_or_default();
        let fits = written.parse::<u64>().is_ok() || written.parse::<i64>().is_ok();
        match is_whole && !fits {
            true => whole.extend([b"\"", piece, b"\""].concat()),
            false => whole.extend(piece),
        }
        at += length;
    }
    serde_json::from_slice(&whole)
}

fn number(value: &Value, bits: u32, is_signed: bool) -> Result<Bits, ValueError> {
    let text = match value {
        Value::Bool(value) => u8::from(*value).to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return Err(ValueError::NoNumber(value.to_string())),
    };
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.as_str()),
    };
    let magnitude = magnitude(digits).ok_or_else(|| ValueError::NoNumber(value.to_string()))?;
    let significant = significant_bits(&magnitude);
    // The range is 0 to 2^n - 1, or with a sign -2^(n-1) to 2^(n-1) - 1.
    let room = if is_signed { bits - 1 } else { bits };
    let is_lowest = significant == room + 1 && (0..room).all(|at| !magnitude.bit(at));
    let fits = match (is_signed, is_negative) {
        (true, true) => significant <= room || is_lowest,
        (false, true) => significant == 0,
        (_, false) => significant <= room,
    };
    if !fits {
        return Err(ValueError::TooLarge { number: text.clone(), bits, is_signed });
    }
    let cut = magnitude.resize(bits);
    Ok(if is_negative { Bits::unary(UnaryOp::Neg, &cut) } else { cut })
}

/// Parses an unsigned number, with as many bits as it may need.
fn magnitude(text: &str) -> Option<Bits> {
    let digits = text.replace('_', "");
    let of = |digits: &str, radix| Bits::parse(4 * digits.len().max(1) as u32, digits, radix);
    if let Some(digits) = digits.strip_prefix("0x") {
        return of(digits, 16);
    }
    if let Some(digits) = digits.strip_prefix("0b") {
        return of(digits, 2);
    }
    if digits.contains('.') {
        return bytes(digits.split('.'), 10, 4);
    }
    if digits.contains(':') {
        let mac = || bytes(digits.split(':'), 16, 6);
        let of_ipv6 = |it: Ipv6Addr| Bits::from_u128(128, it.into());
        return mac().or_else(|| digits.parse().ok().map(of_ipv6));
    }
    of(&digits, 10)
}

/// Parses an address of `count` bytes, the first one highest.
fn bytes<'a>(parts: impl Iterator<Item = &'a str>, radix: u32, count: usize) -> Option<Bits> {
    let parts: Option<Vec<u8>> = parts.map(|part| u8::from_str_radix(part, radix).ok()).collect();
    let mut parts = parts.filter(|parts| parts.len() == count)?;
    parts.reverse();
    Some(Bits::from_le_bytes(8 * count as u32, &parts))
}

fn significant_bits(bits: &Bits) -> u32 {
    (0..bits.width()).rev().find(|at| bits.bit(*at)).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(layout: &Layout, text: &str) -> Result<Bits, ValueError> {
        layout.parse(&value_of_text(text))
    }

    const MOST_OF_1024_BITS: &str = "
        17976931348623159077293051907890247336179769789423065727343008115773267580550096
        31327084773224075360211201138798713933576587897688144166224928474306394741243777
        67893424865485276302219601246094119453082952085005768838150682342462881473913110
        540827237163350510684586298239947245938479716304835356329624224137215";

    #[test]
    fn numbers_may_be_written_in_many_forms() {
        let word = Layout::Unsigned(48);
        let forms = [
            ("31", 31),
            ("0x1F", 31),
            ("0b11111", 31),
            ("1_000", 1_000),
            ("10.0.0.1", 0x0a00_0001),
            ("02:00:00:00:00:0f", 0x0200_0000_000f),
            ("::5:ffff", 0x5_ffff),
            ("true", 1),
            ("281474976710655", (1 << 48) - 1),
        ];
        for (text, value) in forms {
            assert_eq!(parse(&word, text), Ok(Bits::from_u64(48, value)), "{text}");
        }
        let wide = Layout::Unsigned(1024);
        let most = Bits::unary(UnaryOp::Not, &Bits::zero(1024));
        let decimal = MOST_OF_1024_BITS.replace(char::is_whitespace, "");
        assert_eq!(parse(&wide, &decimal), Ok(most.clone()));
        assert_eq!(
            parse(&Layout::Signed(1025), &format!("-{decimal}")),
            Ok(Bits::unary(UnaryOp::Neg, &most.resize(1025)))
        );
        let more = format!("{}6", &decimal[..decimal.len() - 1]);
        assert!(matches!(parse(&wide, &more), Err(ValueError::TooLarge { .. })));
        let pair = Layout::Array { element: Box::new(wide), stride_bits: 1024, count: 2 };
        let both = parse(&pair, &format!("[ {decimal},1]")).expect("both fit");
        assert_eq!((both.extract(0, 1024), both.extract(1024, 8).to_u64()), (most, 1));
        let text = r#"{"a\"99999999999999999999": [99999999999999999999,18446744073709551615]}"#;
        let object = json!({"a\"99999999999999999999": ["99999999999999999999", u64::MAX]});
        assert_eq!(parse_json(text.as_bytes()).expect("it is JSON"), object);
        assert_eq!(parse_json("\u{feff}{}".as_bytes()).expect("a mark before it"), json!({}));
        for text in ["", "x", "0x", "1.5", "1.2.3", "1.2.3.256", "aa:bb", "null", "[1]", "--1"] {
            assert!(matches!(parse(&word, text), Err(ValueError::NoNumber(_))), "{text}");
        }
    }

    #[test]
    fn ranges_are_exact() {
        for bits in [1, 2, 7, 8, 13, 31, 63] {
            let (unsigned, signed) = (Layout::Unsigned(bits), Layout::Signed(bits));
            let fits = |layout: &Layout, number: i128| parse(layout, &number.to_string());
            let top = 1i128 << bits;
            assert_eq!(fits(&unsigned, top - 1), Ok(Bits::ones(bits)));
            assert!(fits(&unsigned, top).is_err() && fits(&unsigned, -1).is_err());
            let half = top / 2;
            let least = fits(&signed, -half).expect("the lowest number");
            assert_eq!(least.to_i64() as i128, -half);
            assert!(fits(&signed, half - 1).is_ok());
            assert!(fits(&signed, half).is_err() && fits(&signed, -half - 1).is_err());
        }
    }

    #[test]
    fn what_is_shown_parses_to_the_same() {
        let mut random = fastrand::Rng::with_seed(4);
        let layouts = [
            Layout::Unsigned(1),
            Layout::Unsigned(64),
            Layout::Unsigned(200),
            Layout::Signed(8),
            Layout::Signed(64),
            Layout::Signed(130),
        ];
        for layout in &layouts {
            for _ in 0..200 {
                let bytes: Vec<u8> = (0..25).map(|_| random.u8(..)).collect();
                let bits = Bits::from_le_bytes(layout.bits(), &bytes);
                assert_eq!(layout.parse(&layout.show(&bits)), Ok(bits));
            }
        }
    }

    fn rule() -> Layout {
        let ports =
            Layout::Array { element: Box::new(Layout::Unsigned(16)), stride_bits: 16, count: 2 };
        let member = |name: &str, lo, layout| Member { name: name.into(), lo, layout };
        Layout::Struct {
            bits: 96,
            members: vec![
                member("address", 0, Layout::Unsigned(32)),
                member("ports", 32, ports),
                member("priority", 64, Layout::Signed(8)),
            ],
        }
    }

    #[test]
    fn members_and_elements_have_their_places() {
        let value = json!({"address": "10.0.0.1", "ports": [80, 443], "priority": -1});
        let bits = rule().parse(&value).expect("it fits");
        assert_eq!(bits.to_u128(), 0xff_01bb_0050_0a00_0001);
        let shown = json!({"address": 0x0a00_0001, "ports": [80, 443], "priority": -1});
        assert_eq!(rule().show(&bits), shown);
        let part = rule().parse(&json!({"ports": [7]})).expect("the rest is 0");
        assert_eq!(part.to_u128(), 7 << 32);
    }

    #[test]
    fn another_shape_is_an_error_that_tells_the_right_one() {
        let error = |value: Value| rule().parse(&value).expect_err("wrong").to_string();
        let members = "there is no member port; there are address, ports, priority";
        assert_eq!(error(json!({"port": 1})), members);
        assert_eq!(error(json!(5)), "a struct is written as an object of its members, not as 5");
        assert_eq!(error(json!({"ports": 5})), "an array is written as a list, not as 5");
        assert_eq!(error(json!({"ports": [1, 2, 3]})), "3 elements for an array of 2");
        assert_eq!(error(json!({"ports": [65_536]})), "65536 does not fit 16 bits");
    }
}
