// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decimal numbers of requests, with all liberties of the original, which reads them with `strtol`
//! and `strtoul` of C: white space and a sign may come first, white space may follow together with
//! anything behind it, unsigned numbers wrap around when negated, and numbers that fit into 64 bits
//! are cut to 32.

/// Reads an unsigned number of 64 bits.
#[inline]
pub fn unsigned64(text: &[u8]) -> Option<u64> {
    let Parts { magnitude, is_negative } = Parts::of(text)?;
    let value = if is_negative { magnitude.wrapping_neg() } else { magnitude };
    // The original looks for a sign anywhere in the word, and only if the highest bit is set.
    let is_refused = value > i64::MAX as u64 && text.contains(&b'-');
    (!is_refused).then_some(value)
}

/// Reads an unsigned number of 64 bits, and keeps the low 32.
#[inline]
pub fn unsigned32(text: &[u8]) -> Option<u32> {
    unsigned64(text).map(|value| value as u32)
}

/// Reads a signed number of 64 bits, and keeps the low 32.
#[inline]
pub fn signed32(text: &[u8]) -> Option<i32> {
    let Parts { magnitude, is_negative } = Parts::of(text)?;
    let limit = i64::MAX as u64 + u64::from(is_negative);
    let low = magnitude as i32;
    (magnitude <= limit).then_some(if is_negative { low.wrapping_neg() } else { low })
}

/// Reads a stored value as the number that `incr`, `decr` and `ma` change. Numbers that became
/// shorter are padded with spaces, and the original accepts any text after white space.
pub fn stored_number(value: &[u8]) -> Option<u64> {
    unsigned64(value.split(|byte| *byte == 0).next()?)
}

struct Parts {
    magnitude: u64,
    is_negative: bool,
}

impl Parts {
    #[inline]
    fn of(text: &[u8]) -> Option<Self> {
        let mut rest = text;
        while let [first, after @ ..] = rest
            && is_space(*first)
        {
            rest = after;
        }
        let is_negative = rest.first() == Some(&b'-');
        if let [b'-' | b'+', after @ ..] = rest {
            rest = after;
        }
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(digits);
        if digits.is_empty() || after.first().is_some_and(|byte| !is_space(*byte)) {
            return None;
        }
        let mut magnitude = 0_u64;
        for digit in digits {
            let digit = u64::from(digit - b'0');
            // Up to 19 digits cannot overflow, but the check is cheap.
            magnitude = magnitude.checked_mul(10)?.checked_add(digit)?;
        }
        Some(Self { magnitude, is_negative })
    }
}

/// White space of C.
#[inline]
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (text, value) in [
            ("0", Some(0)),
            ("+7", Some(7)),
            ("\t\r7", Some(7)),
            ("7\tanything", Some(7)),
            ("007", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("-18446744073709551615", Some(1)),
            // The sign need not belong to the number.
            ("9223372036854775808\t-", None),
            ("9223372036854775807\t-", Some(i64::MAX as u64)),
            ("-0", Some(0)),
            ("", None),
            ("-", None),
            ("+-1", None),
            ("7a", None),
            ("0x10", None),
            ("- 1", None),
        ] {
            assert_eq!(unsigned64(text.as_bytes()), value, "{text:?}");
        }
    }

    #[test]
    fn stored_numbers_may_be_padded() {
        assert_eq!(stored_number(b"8  "), Some(8));
        assert_eq!(stored_number(b"8\r\nx"), Some(8));
        assert_eq!(stored_number(b"8\0x"), Some(8));
        assert_eq!(stored_number(b""), None);
        assert_eq!(stored_number(b"8x"), None);
    }

    #[test]
    fn numbers_of_32_bits_are_cut_and_not_refused() {
        assert_eq!(unsigned32(b"4294967295"), Some(u32::MAX));
        assert_eq!(unsigned32(b"4294967297"), Some(1));
        assert_eq!(signed32(b"-1"), Some(-1));
        assert_eq!(signed32(b"2147483648"), Some(i32::MIN));
        assert_eq!(signed32(b"4294967297"), Some(1));
        assert_eq!(signed32(b"-4294967297"), Some(-1));
        assert_eq!(signed32(b"9223372036854775807"), Some(-1));
        assert_eq!(signed32(b"9223372036854775808"), None);
        assert_eq!(signed32(b"-9223372036854775808"), Some(0));
        assert_eq!(signed32(b"-9223372036854775809"), None);
    }
}
