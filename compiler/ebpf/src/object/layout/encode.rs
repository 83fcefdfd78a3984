// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values from text to bytes.

use super::Layout;

impl Layout {
    /// The bytes of a value. It is a number (hexadecimal with a leading `0x`, octal with a leading
    /// `0`), the name of an enum's value, `true` or `false`, or all elements of an array, separated
    /// by commas.
    ///
    /// # Errors
    /// A value that the type cannot hold.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, String> {
        match self {
            Self::Integer { bytes, is_signed } => number(text, *bytes, *is_signed),
            Self::Enum { bytes, is_signed, names } => {
                match names.iter().find(|(name, _)| name == text) {
                    Some((_, value)) => Ok(value.to_le_bytes()[..*bytes as usize].to_vec()),
                    None => number(text, *bytes, *is_signed),
                }
            }
            Self::Array { element, count } => {
                let given: Vec<&str> = text.split(',').map(str::trim).collect();
                if given.len() != *count as usize {
                    return Err(format!("it has {count} elements, and {} are given", given.len()));
                }
                let bytes = given.into_iter().map(|text| element.encode(text));
                Ok(bytes.collect::<Result<Vec<_>, _>>()?.concat())
            }
            Self::Struct { .. } => Err("it is a struct".into()),
            Self::Opaque { .. } => Err("it is no number".into()),
        }
    }
}

/// A number of that many bytes.
fn number(text: &str, bytes: u32, is_signed: bool) -> Result<Vec<u8>, String> {
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
        // Another sign is none of the language.
        _ if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) => None,
        _ => u128::from_str_radix(digits, radix).ok(),
    };
    let magnitude = magnitude.ok_or_else(|| format!("`{text}` is no number"))?;
    let bits = bytes * 8;
    let most = u128::MAX >> (128 - bits);
    let half = most >> 1;
    let fits = match (is_signed, is_negative) {
        // A signed variable may be written as the bits that it has.
        (_, false) => magnitude <= most,
        (true, true) => magnitude <= half + 1,
        (false, true) => magnitude == 0,
    };
    if !fits {
        let sign = if is_signed { "signed" } else { "unsigned" };
        return Err(format!("{text} does not fit in {bits} bits, {sign}"));
    }
    let value = if is_negative { magnitude.wrapping_neg() } else { magnitude };
    Ok(value.to_le_bytes()[..bytes as usize].to_vec())
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
            (integer(1, false), "256", "256 does not fit in 8 bits, unsigned"),
            (integer(1, true), "-129", "-129 does not fit in 8 bits, signed"),
            (integer(1, false), "-1", "-1 does not fit in 8 bits, unsigned"),
            (integer(4, false), "three", "`three` is no number"),
            (integer(4, false), "+3", "`+3` is no number"),
            (integer(4, false), "", "`` is no number"),
            (pair, "1", "it has 2 elements, and 1 are given"),
            (Layout::Struct { bytes: 0, members: vec![] }, "1", "it is a struct"),
        ] {
            assert_eq!(layout.encode(text), Err(reason.to_owned()), "{text}");
        }
    }
}
