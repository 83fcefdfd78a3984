// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scores as text: how Redis 7.2 reads and prints doubles.
//!
//! A score is printed with the fewest digits that read back as the same double, and as an integer
//! if it is one of up to 2^62. Redis 7.0 and before print 17 digits. Redis 7.2 uses the algorithm
//! Grisu2, which for about one double in a thousand does not find the fewest digits.

use crate::number::Digits;

/// Reads a score as `ZADD` does: the whole text is a double of C (`strtod`, with hexadecimal
/// numbers and infinities), without spaces, not NaN, and within the range of a double. `None`
/// stands for Redis' error "value is not a valid float".
pub fn parse_score(text: &[u8]) -> Option<f64> {
    let score = parse_double(text)?;
    // Beyond the range of a double, C reads infinity or zero and reports an error.
    let digits = mantissa(text);
    let is_infinity = digits.first().is_some_and(u8::is_ascii_alphabetic);
    let has_digits = digits.iter().any(|digit| (b'1'..=b'9').contains(digit));
    let is_in_range = match score {
        0.0 => !has_digits || is_hexadecimal(text),
        _ => score.is_finite() || is_infinity,
    };
    is_in_range.then_some(score)
}

/// Reads a double as `strtod` does, if it takes the whole text, which does not begin with a space,
/// and if it is not NaN. Beyond the range of a double, it is infinity or zero.
pub(super) fn parse_double(text: &[u8]) -> Option<f64> {
    if is_hexadecimal(text) {
        return parse_hexadecimal(text);
    }
    // Rust reads the same texts as C, but for hexadecimal numbers and `nan(...)`.
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

fn unsigned(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text)
}

fn is_hexadecimal(text: &[u8]) -> bool {
    matches!(unsigned(text), [b'0', b'x' | b'X', ..])
}

/// The digits before the exponent.
fn mantissa(text: &[u8]) -> &[u8] {
    let text = unsigned(text);
    let is_decimal = text.first().is_some_and(|first| !first.is_ascii_alphabetic());
    let end = text.iter().position(|&byte| is_decimal && matches!(byte, b'e' | b'E'));
    &text[..end.unwrap_or(text.len())]
}

/// Reads `[sign] 0x hex digits [. hex digits] [p exponent]`. Digits beyond the first 15 are
/// truncated instead of rounded.
fn parse_hexadecimal(text: &[u8]) -> Option<f64> {
    let digits = unsigned(text).get(2..)?;
    let end = digits.iter().position(|byte| matches!(byte, b'p' | b'P'));
    let (digits, exponent) = digits.split_at(end.unwrap_or(digits.len()));
    let mut exponent: i32 = match exponent {
        [] => 0,
        [_, exponent @ ..] => std::str::from_utf8(exponent).ok()?.parse().ok()?,
    };
    let (mut value, mut has_point, mut count) = (0u64, false, 0);
    for &digit in digits {
        if digit == b'.' && !has_point {
            has_point = true;
            continue;
        }
        let digit = char::from(digit).to_digit(16)?;
        count += 1;
        // 60 bits hold all 53 of a double.
        let shift = if value >> 56 == 0 {
            value = value << 4 | u64::from(digit);
            if has_point { -4 } else { 0 }
        } else {
            if has_point { 0 } else { 4 }
        };
        exponent = exponent.checked_add(shift)?;
    }
    if count == 0 {
        return None;
    }
    // In two steps, so that the power alone does not leave the range.
    let exponent = exponent.clamp(-2400, 2400);
    let value = (value as f64) * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
    Some(if text[0] == b'-' { -value } else { value })
}

/// Appends the text of `score`, as Redis 7.2 sends it.
pub fn push_score(score: f64, out: &mut Vec<u8>) {
    if score.is_infinite() {
        return out.extend_from_slice(if score > 0.0 { b"inf" } else { b"-inf" });
    }
    if score == 0.0 && score.is_sign_negative() {
        return out.extend_from_slice(b"-0");
    }
    // The largest magnitude that Redis prints as an integer.
    const INTEGER: f64 = (1u64 << 62) as f64;
    if score.abs() <= INTEGER && score.trunc() == score {
        return out.extend_from_slice(Digits::new(score as i64).as_bytes());
    }
    push_shortest(score, out);
}

/// Appends the shortest digits of `score`, with or without an exponent. The limits between both
/// are those of fpconv, the library that Redis 7.2 prints with.
fn push_shortest(score: f64, out: &mut Vec<u8>) {
    if score < 0.0 {
        out.push(b'-');
    }
    let text = format!("{:e}", score.abs());
    let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is an integer");
    let digits: Vec<u8> = digits.bytes().filter(|&byte| byte != b'.').collect();
    // The score is `digits` times 10 to the power of `scale`.
    let count = digits.len() as i32;
    let scale = exponent - (count - 1);
    if scale >= 0 && exponent < count + 7 {
        out.extend_from_slice(&digits);
        out.resize(out.len() + scale as usize, b'0');
    } else if scale < 0 && (scale > -7 || exponent.abs() < 4) {
        if exponent < 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-1 - exponent) as usize, b'0');
            out.extend_from_slice(&digits);
        } else {
            let (whole, fraction) = digits.split_at(exponent as usize + 1);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
    } else {
        out.push(digits[0]);
        if let [_, fraction @ ..] = &digits[..]
            && !fraction.is_empty()
        {
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        out.extend_from_slice(Digits::new(i64::from(exponent.abs())).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(score: f64) -> String {
        let mut out = vec![];
        push_score(score, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn scores_print_as_redis_prints_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-17.0, "-17"),
            (3.1, "3.1"),
            (0.1, "0.1"),
            (-0.25, "-0.25"),
            (1.5e-5, "0.000015"),
            (0.000001, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-10, "1.25e-10"),
            (1e17, "100000000000000000"),
            (4e18, "4000000000000000000"),
            (1e19, "1e+19"),
            (1.5e300, "1.5e+300"),
            (123456789.125, "123456789.125"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1234.0 + 1.0 / 3.0, "1234.3333333333333"),
            (12345.0 + 1.0 / 3.0, "1.2345333333333334e+4"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
        ];
        for (score, expected) in cases {
            assert_eq!(text(score), expected);
            assert_eq!(parse_double(expected.as_bytes()), Some(score));
        }
    }

    #[test]
    fn printed_scores_read_back() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..20_000 {
            let score = f64::from_bits(random.u64(..));
            if !score.is_nan() {
                let text = text(score);
                assert_eq!(parse_score(text.as_bytes()), Some(score), "{text}");
            }
        }
    }

    #[test]
    fn texts_are_scores_where_c_reads_them() {
        let cases = [
            ("1", 1.0),
            ("+1.5", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x10", 16.0),
            ("-0X1.8p1", -3.0),
            ("0x.8", 0.5),
            ("0x10000000000000000000p-4", 2f64.powi(72)),
            ("0", 0.0),
            ("0e5", 0.0),
            ("0e999", 0.0),
            ("1e-310", 1e-310),
        ];
        for (text, score) in cases {
            assert_eq!(parse_score(text.as_bytes()), Some(score), "{text}");
        }
        let others = [
            "", " 1", "1 ", "nan", "-nan", "1e", "abc", "1e400", "-1e400", "1e-400", "0x", "0x1p",
            "0xg", "1_000", "0x1.2.3", "e5", "\u{ff11}", "infx",
        ];
        for text in others {
            assert_eq!(parse_score(text.as_bytes()), None, "{text}");
        }
    }
}
