// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encodes values from text to bytes.

use super::Layout;

impl Layout {
    /// Encodes a value. It is a number (hexadecimal with a leading `0x`, octal with a leading `0`),
    /// the name of an enum value, `true` or `false`, all elements of an array, separated by commas,
    /// or a quoted string for an array of bytes, padded with zeros.
    ///
    /// # Errors
    /// The value does not fit the type.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, String> {
        match self {
            Self::Integer { bytes, .. } | Self::Enum { bytes, .. } => {
                let mut encoded = self.encode_bits(text, bytes * 8)?;
                encoded.truncate(*bytes as usize);
                Ok(encoded)
            }
            Self::Array { element, count } => {
                let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                if let Some(quoted) = quoted.filter(|_| element.bytes() == 1) {
                    return characters(quoted, *count);
                }
                let given: Vec<&str> = text.split(',').map(str::trim).collect();
                if given.len() != *count as usize {
                    return Err(format!("it has {count} elements, but {} are given", given.len()));
                }
                let bytes = given.into_iter().map(|text| element.encode(text));
                Ok(bytes.collect::<Result<Vec<_>, _>>()?.concat())
            }
            Self::Struct { .. } | Self::Opaque { .. } => Err(format!("it is {}", self.kind())),
        }
    }

    /// Encodes a number, or the name of an enum value, in at most 128 bits.
    pub(super) fn encode_bits(&self, text: &str, bits: u32) -> Result<Vec<u8>, String> {
        let is_signed = match self {
            Self::Integer { is_signed, .. } | Self::Enum { is_signed, .. } => *is_signed,
            _ => return Err(format!("it is {}", self.kind())),
        };
        if bits > 128 {
            return Err(format!("it is {}", number_kind(bits, is_signed)));
        }
        if let Self::Enum { names, .. } = self {
            if let Some((_, value)) = names.iter().find(|(name, _)| name == text) {
                return Ok(u128::from(*value).to_le_bytes().to_vec());
            }
            return number(text, bits, is_signed).map_err(|reason| {
                let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
                format!("{reason}, or one of {}", names.join(", "))
            });
        }
        number(text, bits, is_signed)
    }

    /// Describes the type in words.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Integer { bytes, is_signed } => number_kind(bytes * 8, *is_signed),
            Self::Enum { .. } => "an enum".into(),
            Self::Struct { .. } => {
                format!("a struct with the members {}", self.members().join(", "))
            }
            Self::Array { count, .. } => format!("an array of {count} elements"),
            Self::Opaque { bytes } => format!("{bytes} bytes without a type"),
        }
    }
}

fn number_kind(bits: u32, is_signed: bool) -> String {
    let kind = if is_signed { "a signed" } else { "an unsigned" };
    format!("{kind} number of {bits} bits")
}

/// Encodes a string, padded with at least one zero to the length of its array.
fn characters(text: &str, count: u32) -> Result<Vec<u8>, String> {
    let mut bytes = text.as_bytes().to_vec();
    if bytes.len() >= count as usize {
        return Err(format!(
            "a text of {} bytes and its final 0 do not fit in {count} bytes",
            bytes.len()
        ));
    }
    bytes.resize(count as usize, 0);
    Ok(bytes)
}

/// Encodes a number of this many bits as 128 bits.
fn number(text: &str, bits: u32, is_signed: bool) -> Result<Vec<u8>, String> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    let magnitude = match text {
        "true" => Some(1),
        "false" => Some(0),
        // A second sign is not allowed.
        _ if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) => None,
        _ => u128::from_str_radix(digits, radix).ok(),
    };
    let most = u128::MAX.checked_shr(128 - bits).unwrap_or(0);
    let half = most >> 1;
    let kind = || {
        let kind = number_kind(bits, is_signed);
        match is_signed {
            true => format!("{kind}, -{} to {half}", half + 1),
            false => format!("{kind}, 0 to {most}"),
        }
    };
    let magnitude = magnitude.ok_or_else(|| format!("`{text}` is not {}", kind()))?;
    let fits = match (is_signed, is_negative) {
        // A signed variable may be written as an unsigned bit pattern.
        (_, false) => magnitude <= most,
        (true, true) => magnitude <= half + 1,
        (false, true) => magnitude == 0,
    };
    if !fits {
        return Err(format!("{text} does not fit in {}", kind()));
    }
    let value = if is_negative { magnitude.wrapping_neg() } else { magnitude };
    Ok(value.to_le_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_become_bytes() {
        let integer = |bytes, is_signed| Layout::Integer { bytes, is_signed };
        assert_eq!(integer(4, false).encode("3"), Ok(vec![3, 0, 0, 0]));
        assert_eq!(integer(2, false).encode("0xff01"), Ok(vec![1, 0xff]));
        assert_eq!(integer(1, false).encode("017"), Ok(vec![15]));
        assert_eq!(integer(1, true).encode("-128"), Ok(vec![0x80]));
        assert_eq!(integer(16, true).encode("-1"), Ok(vec![0xff; 16]));
        assert_eq!(integer(1, false).encode("true"), Ok(vec![1]));
        let names = vec![("DROP".to_owned(), 1), ("PASS".to_owned(), 2)];
        let verdict = Layout::Enum { bytes: 4, is_signed: false, names };
        assert_eq!(verdict.encode("PASS"), Ok(vec![2, 0, 0, 0]));
        assert_eq!(verdict.encode("4"), Ok(vec![4, 0, 0, 0]));
        let pair = Layout::Array { element: Box::new(integer(2, false)), count: 2 };
        assert_eq!(pair.encode("1, 2"), Ok(vec![1, 0, 2, 0]));
        for (layout, text, reason) in [
            (
                integer(1, false),
                "256",
                "256 does not fit in an unsigned number of 8 bits, 0 to 255",
            ),
            (
                integer(1, true),
                "-129",
                "-129 does not fit in a signed number of 8 bits, -128 to 127",
            ),
            (integer(1, false), "-1", "-1 does not fit in an unsigned number of 8 bits, 0 to 255"),
            (
                integer(4, false),
                "three",
                "`three` is not an unsigned number of 32 bits, 0 to 4294967295",
            ),
            (integer(4, false), "+3", "`+3` is not an unsigned number of 32 bits, 0 to 4294967295"),
            (integer(4, false), "", "`` is not an unsigned number of 32 bits, 0 to 4294967295"),
            (pair, "1", "it has 2 elements, but 1 are given"),
            (
                verdict,
                "DENY",
                "`DENY` is not an unsigned number of 32 bits, 0 to 4294967295, or \
                one of DROP, PASS",
            ),
            (Layout::Opaque { bytes: 8 }, "1", "it is 8 bytes without a type"),
        ] {
            assert_eq!(layout.encode(text), Err(reason.to_owned()), "{text}");
        }
    }
}
