// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Floating-point numbers with a mantissa of 64 bits: the x87 format, in which Redis computes
//! INCRBYFLOAT and HINCRBYFLOAT on x86-64. The digits that clients see depend on it, as 0.1 + 0.2
//! shows, so they are computed in the same format on every machine.

use crate::big::Big;
use std::cmp::Ordering;

/// Exponent of numbers too small for a full mantissa.
const MIN_EXPONENT: i32 = -16_445;
/// Exponent of the largest numbers.
const MAX_EXPONENT: i32 = 16_320;
/// Bytes of the longest text that is read, as in Redis.
const MAX_TEXT_BYTES: usize = 5 * 1024 - 1;
/// Decimal and binary exponents are limited to this before they are computed with.
const EXPONENT_LIMIT: i64 = 100_000;
/// Decimal places of texts.
const PLACES: usize = 17;

/// A number of 80 bits: sign, 64 bits of mantissa, 15 bits of exponent. It is not NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extended {
    is_negative: bool,
    /// With its highest bit set, unless the exponent is the smallest.
    mantissa: u64,
    /// The value is mantissa * 2^exponent; infinite above the largest exponent.
    exponent: i32,
}

impl Extended {
    /// The number 0.
    pub const ZERO: Self = Self { is_negative: false, mantissa: 0, exponent: MIN_EXPONENT };

    /// Reads a number as the C function `strtold` does, if it is the whole of `text`: decimal or
    /// hexadecimal, with an exponent or without, or `inf`. `None` for other texts, spaces before
    /// it, NaN, and numbers that would become infinite or zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let (is_negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(Self::infinity(is_negative));
        }
        let magnitude = match text {
            [b'0', b'x' | b'X', rest @ ..] => hexadecimal(rest)?,
            _ => decimal(text)?,
        };
        (!magnitude.is_infinite()).then_some(Self { is_negative, ..magnitude })
    }

    /// Whether it is an infinity.
    pub fn is_infinite(self) -> bool {
        self.exponent > MAX_EXPONENT
    }

    /// Returns the sum, rounded to the nearest number, or to the even one of two; `None` if it is
    /// infinite or not a number.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        if self.is_infinite() || other.is_infinite() {
            return None;
        }
        let (high, low) =
            if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        // 62 bits below the mantissa, and two above for the carry.
        let wide_high = u128::from(high.mantissa) << 62;
        let wide_low = u128::from(low.mantissa) << 62;
        let distance = (high.exponent - low.exponent) as u32;
        let aligned = wide_low.checked_shr(distance).unwrap_or(0);
        let has_rest = aligned.checked_shl(distance).unwrap_or(0) != wide_low;
        let exponent = high.exponent - 62;
        let sum = if high.is_negative == low.is_negative {
            round(high.is_negative, wide_high + aligned, has_rest, exponent)
        } else {
            // A rest of the smaller one makes the difference smaller by part of one unit.
            match wide_high.cmp(&aligned) {
                Ordering::Greater => {
                    let difference = wide_high - aligned - u128::from(has_rest);
                    round(high.is_negative, difference, has_rest, exponent)
                }
                Ordering::Less => round(low.is_negative, aligned - wide_high, false, exponent),
                Ordering::Equal => Self::ZERO,
            }
        };
        (!sum.is_infinite()).then_some(sum)
    }

    /// Returns the decimal text, rounded to 17 places, without zeros at the end: the form in which
    /// Redis stores the results of INCRBYFLOAT and HINCRBYFLOAT.
    pub fn to_text(self) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        if self.is_infinite() {
            return format!("{sign}inf");
        }
        if self.exponent >= 0 {
            let mut whole = Big::new(self.mantissa);
            whole.shift_left(self.exponent as usize);
            return format!("{sign}{}", whole.into_decimal());
        }
        let unit = 10u128.pow(PLACES as u32);
        let scaled = shift_right_rounding(u128::from(self.mantissa) * unit, -self.exponent, false);
        let text = format!("{sign}{}.{:017}", scaled / unit, scaled % unit);
        match text.trim_end_matches('0').trim_end_matches('.') {
            "-0" => "0".into(),
            short => short.into(),
        }
    }

    fn infinity(is_negative: bool) -> Self {
        Self { is_negative, mantissa: 1 << 63, exponent: MAX_EXPONENT + 1 }
    }
}

/// Returns the number nearest to `mantissa` * 2^`exponent`, plus part of one unit if `has_rest`.
fn round(is_negative: bool, mantissa: u128, has_rest: bool, exponent: i32) -> Extended {
    let bits = 128 - mantissa.leading_zeros() as i32;
    let dropped = (bits - 64).max(MIN_EXPONENT - exponent);
    let mut exponent = exponent + dropped;
    let mut rounded = if dropped > 0 {
        shift_right_rounding(mantissa, dropped, has_rest)
    } else {
        mantissa << -dropped.max(-127)
    };
    if rounded >> 64 != 0 {
        rounded >>= 1;
        exponent += 1;
    }
    if rounded == 0 {
        exponent = MIN_EXPONENT;
    }
    if exponent > MAX_EXPONENT {
        return Extended::infinity(is_negative);
    }
    Extended { is_negative, mantissa: rounded as u64, exponent }
}

/// Returns `value` / 2^`bits`, for at least one bit, rounded to the nearest integer, or to the even
/// one of two. `has_rest` makes the value larger by part of one unit.
fn shift_right_rounding(value: u128, bits: i32, has_rest: bool) -> u128 {
    // Values have less than 127 bits: shifted by more, they are below one half.
    if bits > 127 {
        return 0;
    }
    let quotient = value >> bits;
    let rest = value & ((1 << bits) - 1);
    let is_above = match rest.cmp(&(1 << (bits - 1))) {
        Ordering::Less => false,
        Ordering::Equal => has_rest || quotient & 1 == 1,
        Ordering::Greater => true,
    };
    quotient + u128::from(is_above)
}

/// Reads digits with a fraction and an exponent to the base ten.
fn decimal(text: &[u8]) -> Option<Extended> {
    let (digits, places, exponent) = split(text, 10, b'e')?;
    let significant = digits.iter().position(|&digit| digit != 0).map(|at| &digits[at..]);
    let Some(significant) = significant else {
        return Some(Extended::ZERO);
    };
    let exponent = exponent - places;
    // The number is 10^magnitude at most, and 10^(magnitude-1) at least.
    let magnitude = significant.len() as i64 + exponent;
    if !(-4960..=4940).contains(&magnitude) {
        return None;
    }
    if let Some(number) = short_decimal(significant, exponent) {
        return Some(number);
    }
    let mut numerator = whole(significant, 10);
    let mut denominator = Big::new(1);
    let part = if exponent < 0 { &mut denominator } else { &mut numerator };
    part.multiply_power_of_ten(exponent.unsigned_abs() as usize);
    nearest(numerator, denominator, 0)
}

/// Returns the number nearest to usual decimals, without numbers of any size: up to 38 digits, and
/// up to 18 decimal places.
fn short_decimal(digits: &[u8], exponent: i64) -> Option<Extended> {
    let places = u32::try_from(-exponent).ok().filter(|&places| places <= 18)?;
    if digits.len() > 38 {
        return None;
    }
    let value = digits.iter().fold(0, |value, &digit| value * 10 + u128::from(digit));
    let unused = value.leading_zeros();
    let unit = 10u128.pow(places);
    // The quotient has at least 68 bits, more than a mantissa.
    let (quotient, rest) = ((value << unused) / unit, (value << unused) % unit);
    Some(round(false, quotient, rest != 0, -(unused as i32)))
}

/// Reads hexadecimal digits with a fraction and an exponent to the base two.
fn hexadecimal(text: &[u8]) -> Option<Extended> {
    let (digits, places, exponent) = split(text, 16, b'p')?;
    let mantissa = whole(&digits, 16);
    if mantissa.is_zero() {
        return Some(Extended::ZERO);
    }
    nearest(mantissa, Big::new(1), (exponent - 4 * places) as i32)
}

/// Returns the natural number that the digits are to a base of at most 16.
fn whole(digits: &[u8], base: u64) -> Big {
    let mut whole = Big::new(0);
    for group in digits.chunks(15) {
        let value = group.iter().fold(0, |value, &digit| value * base + u64::from(digit));
        whole.multiply_add(base.pow(group.len() as u32), value);
    }
    whole
}

/// Splits a text into the values of its digits, the number of those behind the point, and the
/// exponent after `mark`. `None` without digits, or if there is more.
fn split(text: &[u8], base: u32, mark: u8) -> Option<(Vec<u8>, i64, i64)> {
    let is_mark = |byte: &u8| byte.eq_ignore_ascii_case(&mark);
    let end = text.iter().position(is_mark).unwrap_or(text.len());
    let (number, exponent) = text.split_at(end);
    let mut parts = number.splitn(2, |&byte| byte == b'.');
    let (whole, fraction) = (parts.next()?, parts.next().unwrap_or(&[]));
    let digit = |&byte: &u8| char::from(byte).to_digit(base).map(|digit| digit as u8);
    let digits = whole.iter().chain(fraction).map(digit).collect::<Option<Vec<u8>>>()?;
    if digits.is_empty() {
        return None;
    }
    let exponent = match exponent {
        [] => 0,
        [_, b'-', digits @ ..] => -exponent_of(digits)?,
        [_, b'+', digits @ ..] | [_, digits @ ..] => exponent_of(digits)?,
    };
    Some((digits, fraction.len() as i64, exponent))
}

fn exponent_of(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let next = |value: i64, &digit: &u8| value * 10 + i64::from(digit - b'0');
    Some(digits.iter().fold(0, |value, digit| next(value, digit).min(EXPONENT_LIMIT)))
}

/// Returns the number nearest to `numerator` / `denominator` * 2^`exponent`, neither 0; `None` if
/// that is zero.
fn nearest(mut numerator: Big, mut denominator: Big, exponent: i32) -> Option<Extended> {
    // The quotient gets 66 or 67 bits, more than a mantissa.
    let shift = 66 - (numerator.bits() as i32 - denominator.bits() as i32);
    let part = if shift < 0 { &mut denominator } else { &mut numerator };
    part.shift_left(shift.unsigned_abs() as usize);
    denominator.shift_left(66);
    let mut quotient = 0;
    for _ in 0..67 {
        quotient <<= 1;
        if numerator >= denominator {
            numerator.subtract(&denominator);
            quotient |= 1;
        }
        denominator.halve();
    }
    let number = round(false, quotient, !numerator.is_zero(), exponent - shift);
    (number.mantissa != 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Extended {
        Extended::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text} is no number"))
    }

    fn sum(one: &str, other: &str) -> String {
        number(one).checked_add(number(other)).expect("finite").to_text()
    }

    /// Results of redis-server 7.0 on x86-64.
    #[test]
    fn sums_have_the_digits_of_redis() {
        let cases = [
            ("0.1", "0.2", "0.3"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("3", "-3", "0"),
            ("-1", "1e-20", "-1"),
            ("0", "-1e-18", "0"),
            ("1e17", "0.5", "100000000000000000.5"),
            ("9007199254740993", "0", "9007199254740993"),
            ("18446744073709551615", "1", "18446744073709551616"),
            ("18446744073709551616", "1", "18446744073709551616"),
            ("0x1p-2", "0x.8", "0.75"),
        ];
        for (one, other, expected) in cases {
            assert_eq!(sum(one, other), expected, "{one} + {other}");
        }
        assert!(sum("1e4932", "0").starts_with("1000000000000000000"));
    }

    #[test]
    fn texts_that_are_no_numbers() {
        let texts = [
            "",
            " 1",
            "1 ",
            "1e",
            "1e+",
            "e5",
            ".",
            "-",
            "--1",
            "nan",
            "-nan",
            "0x",
            "0xp1",
            "1p3",
            "1..2",
            "1.2.3",
            "1e5000",
            "1e-5000",
            "1e99999999999999999999",
            "in",
            "infinit",
            "1\0",
        ];
        for text in texts {
            assert_eq!(Extended::parse(text.as_bytes()), None, "{text}");
        }
        for text in ["1.", ".5", "+1", "1E+3", "-0", "INFINITY", "0x1P+3", "0e99999999999"] {
            number(text);
        }
        assert_eq!(Extended::parse(&[b'1'; 5120]), None);
        assert!(number("-inf").is_infinite());
        assert_eq!(number("inf").checked_add(number("1")), None);
        assert_eq!(number("1e4932").checked_add(number("1e4932")), None);
    }

    /// A double has an exact decimal text, which must give the same double back.
    #[test]
    fn doubles_are_read_exactly() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let double = f64::from_bits(random.u64(..) & 0xbfff_ffff_ffff_ffff);
            let read = number(&format!("{double:.1100}"));
            let expected = f64::from_bits(double.to_bits());
            let value = read.mantissa as f64
                * 2f64.powi(read.exponent.max(-1000))
                * 2f64.powi((read.exponent + 1000).min(0));
            assert_eq!(if read.is_negative { -value } else { value }, expected);
        }
    }

    /// Zeros at the end make a decimal too long for the short way.
    #[test]
    fn short_decimals_are_read_like_all_others() {
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..5000 {
            let digits = (random.u128(..) >> random.u32(2..128)).to_string();
            let places = random.usize(0..19.min(digits.len()));
            let (whole, fraction) = digits.split_at(digits.len() - places);
            let short = number(&format!("{whole}.{fraction}"));
            let long = number(&format!("{whole}.{fraction}{}", "0".repeat(40)));
            assert_eq!(short, long, "{whole}.{fraction}");
        }
    }

    /// Sums of integers below 2^63 are exact.
    #[test]
    fn sums_of_integers_are_exact() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..5000 {
            let one = random.i64(..) >> random.u32(1..64);
            let other = random.i64(..) >> random.u32(1..64);
            assert_eq!(sum(&one.to_string(), &other.to_string()), (one + other).to_string());
        }
    }

    #[test]
    fn the_smallest_numbers_keep_what_fits() {
        let smallest = number("3.6451995318824746025e-4951");
        assert_eq!((smallest.mantissa, smallest.exponent), (1, MIN_EXPONENT));
        assert_eq!(Extended::parse(b"1e-4952"), None);
        assert_eq!(smallest.checked_add(smallest).map(|sum| sum.mantissa), Some(2));
        let half = number("0x1p-16383");
        assert_eq!((half.mantissa, half.exponent), (1 << 62, MIN_EXPONENT));
    }
}
