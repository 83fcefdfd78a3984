// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers of Lua as text and back: the formats `%.14g` and `%.17g` of C, and the longest number
//! at the begin of a text, as `strtod` reads it.

/// Digits with which Lua and JSON write numbers.
pub(crate) const LUA_DIGITS: usize = 14;
/// Digits that keep each number.
pub(crate) const EXACT_DIGITS: usize = 17;

/// A number with the given significant digits, as C prints it with `%g`.
pub(crate) fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.into();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.into();
    }
    let scientific = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    if (-4..digits as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent) as usize;
        return without_zeros(&format!("{value:.decimals$}")).into();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

fn without_zeros(decimal: &str) -> &str {
    match decimal.contains('.') {
        true => decimal.trim_end_matches('0').trim_end_matches('.'),
        false => decimal,
    }
}

/// The integer that C has for a number: cut off, and the least one outside the range.
pub(crate) fn truncate(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// The number at the begin of `text`, and its length. `None` if there is none.
pub(crate) fn leading(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let negative = text.first() == Some(&b'-');
    let rest = &text[sign..];
    let (value, length) = named(rest).or_else(|| hexadecimal(rest)).or_else(|| decimal(rest))?;
    Some((if negative { -value } else { value }, sign + length))
}

fn named(text: &[u8]) -> Option<(f64, usize)> {
    let begins = |name: &str| {
        text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
    };
    match () {
        () if begins("infinity") => Some((f64::INFINITY, 8)),
        () if begins("inf") => Some((f64::INFINITY, 3)),
        () if begins("nan") => Some((f64::NAN, 3)),
        () => None,
    }
}

fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let [b'0', b'x' | b'X', digits @ ..] = text else { return None };
    let (mut value, mut scale, mut is_fraction, mut count, mut length) = (0.0, 1.0, false, 0, 2);
    for &byte in digits {
        match char::from(byte).to_digit(16) {
            Some(digit) => {
                value = value * 16.0 + f64::from(digit);
                scale *= if is_fraction { 16.0 } else { 1.0 };
                count += 1;
            }
            None if byte == b'.' && !is_fraction => is_fraction = true,
            None => break,
        }
        length += 1;
    }
    // The zero alone is a number.
    if count == 0 {
        return Some((0.0, 1));
    }
    let (power, taken) = exponent(&text[length..], *b"pP");
    Some((value / scale * 2f64.powi(power), length + taken))
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let count = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = count(text);
    let mut length = whole;
    let mut digits = whole;
    if text.get(whole) == Some(&b'.') {
        let fraction = count(&text[whole + 1..]);
        digits += fraction;
        length += 1 + fraction;
    }
    if digits == 0 {
        return None;
    }
    length += exponent(&text[length..], *b"eE").1;
    let number = std::str::from_utf8(&text[..length]).ok()?.parse().ok()?;
    Some((number, length))
}

/// Exponent at the begin of `text`, and its length, which is 0 without one.
fn exponent(text: &[u8], letters: [u8; 2]) -> (i32, usize) {
    let Some((letter, rest)) = text.split_first() else { return (0, 0) };
    let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
    let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !letters.contains(letter) || digits == 0 {
        return (0, 0);
    }
    let number = std::str::from_utf8(&rest[..sign + digits]).ok().and_then(|it| it.parse().ok());
    let limit = if rest[0] == b'-' { i32::MIN } else { i32::MAX };
    (number.unwrap_or(limit), 1 + sign + digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_in_c() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (0.1, "0.1"),
            (1e20, "1e+20"),
            (123_456_789_012_345_678.0, "1.2345678901235e+17"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (99_999_999_999_999.9, "1e+14"),
            (1e-300, "1e-300"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(general(value, LUA_DIGITS), expected);
        }
        assert_eq!(general(0.1, EXACT_DIGITS), "0.10000000000000001");
        assert_eq!(general(12.0, 1), "1e+01");
    }

    #[test]
    fn integers_are_cut_off() {
        assert_eq!([1.9, -1.9, 1e300, f64::NAN].map(truncate), [1, -1, i64::MIN, i64::MIN]);
    }

    #[test]
    fn the_longest_number_is_read() {
        for (text, expected) in [
            ("1.5e3x", Some((1500.0, 5))),
            ("1e", Some((1.0, 1))),
            ("-2.", Some((-2.0, 3))),
            (".5", Some((0.5, 2))),
            ("0x1F.8p1", Some((63.0, 8))),
            ("0x", Some((0.0, 1))),
            ("-inf", Some((f64::NEG_INFINITY, 4))),
            ("Infinity", Some((f64::INFINITY, 8))),
            ("-", None),
            (".", None),
            ("", None),
        ] {
            assert_eq!(leading(text.as_bytes()), expected, "{text}");
        }
        assert!(leading(b"nan").is_some_and(|(value, length)| value.is_nan() && length == 3));
    }
}
