// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Integers as decimal text, as strictly as Redis reads them: a text is an integer only if
//! formatting the integer gives the text back. Values that look like integers are therefore
//! stored as integers everywhere.

/// Bytes of the longest text of an `i64`, `-9223372036854775808`.
pub const MAX_DIGITS: usize = 20;

/// Returns the integer that `text` is, if it is the shortest decimal text of an `i64`. Signs other
/// than one `-`, leading zeros, spaces, and `-0` make it none.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > MAX_DIGITS {
        return None;
    }
    let (is_negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    match digits {
        [b'0'] => return (!is_negative).then_some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    let mut magnitude: u64 = 0;
    for &digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(value))?;
    }
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { magnitude.try_into().ok() }
}

/// The decimal text of an integer, without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Digits {
    bytes: [u8; MAX_DIGITS],
    start: u8,
}

impl Digits {
    /// Formats `value`.
    pub fn new(value: i64) -> Self {
        let mut bytes = [0; MAX_DIGITS];
        let mut start = MAX_DIGITS;
        let mut rest = value.unsigned_abs();
        loop {
            start -= 1;
            bytes[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            start -= 1;
            bytes[start] = b'-';
        }
        Self { bytes, start: start as u8 }
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_that_come_back_are_integers() {
        for text in ["0", "7", "-1", "127", "9223372036854775807", "-9223372036854775808"] {
            let value = parse_integer(text.as_bytes()).expect("an integer");
            assert_eq!(value.to_string(), text);
        }
        let others = [
            "",
            "-",
            "-0",
            "00",
            "01",
            "-01",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "1e3",
            "0x1",
            "--1",
            "1-",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "99999999999999999999",
            "999999999999999999999",
        ];
        for text in others {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for shift in 0..64 {
            for value in [1i64 << shift, (1i64 << shift).wrapping_sub(1), i64::MIN >> shift] {
                let text = value.to_string();
                assert_eq!(Digits::new(value).as_bytes(), text.as_bytes());
                assert_eq!(parse_integer(text.as_bytes()), Some(value));
            }
        }
    }
}
