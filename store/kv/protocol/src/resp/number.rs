// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decimal numbers as RESP has them: integers in their only form, and doubles as Redis 7.2 prints
//! them.

use std::fmt::Write;

/// Bytes of the longest integer, `-9223372036854775808`, as a line with its type and end.
const LINE_BYTES: usize = 23;
/// Bytes of the longest integer.
const INTEGER_BYTES: usize = 20;
/// Bytes of the longest double, such as `-2.2250738585072014e-308`.
const DOUBLE_BYTES: usize = 32;

/// A number as text.
pub(super) struct Text<const SIZE: usize> {
    bytes: [u8; SIZE],
    start: usize,
    end: usize,
}

impl<const SIZE: usize> Text<SIZE> {
    const EMPTY: Self = Self::ending_at(0);

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    fn push_zeros(&mut self, count: usize) {
        self.bytes[self.end..self.end + count].fill(b'0');
        self.end += count;
    }
}

impl<const SIZE: usize> Write for Text<SIZE> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if text.len() > SIZE - self.end {
            return Err(std::fmt::Error);
        }
        self.push(text.as_bytes());
        Ok(())
    }
}

/// The digits of 0 to 99, so that a division gives two of them.
const PAIRS: [u8; 200] = {
    let (mut pairs, mut number) = ([0; 200], 0);
    while number < 100 {
        pairs[2 * number] = b'0' + (number / 10) as u8;
        pairs[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

impl<const SIZE: usize> Text<SIZE> {
    /// An empty text that grows to the left, from `end`.
    const fn ending_at(end: usize) -> Self {
        Self { bytes: [0; SIZE], start: end, end }
    }

    #[inline]
    fn prepend_integer(&mut self, number: i64) {
        let mut rest = number.unsigned_abs();
        while rest >= 100 {
            self.prepend_pair((rest % 100) as usize);
            rest /= 100;
        }
        if rest >= 10 {
            self.prepend_pair(rest as usize);
        } else {
            self.prepend(b'0' + rest as u8);
        }
        if number < 0 {
            self.prepend(b'-');
        }
    }

    #[inline]
    fn prepend(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[self.start] = byte;
    }

    #[inline]
    fn prepend_pair(&mut self, number: usize) {
        self.start -= 2;
        self.bytes[self.start..self.start + 2].copy_from_slice(&PAIRS[2 * number..2 * number + 2]);
    }
}

/// An integer in decimal.
pub(super) fn integer(number: i64) -> Text<INTEGER_BYTES> {
    let mut text = Text::ending_at(INTEGER_BYTES);
    text.prepend_integer(number);
    text
}

/// A line of RESP with a type and an integer, such as `:-12\r\n`.
#[inline]
pub(super) fn line(kind: u8, number: i64) -> Text<LINE_BYTES> {
    let mut text = Text::ending_at(LINE_BYTES);
    text.prepend(b'\n');
    text.prepend(b'\r');
    text.prepend_integer(number);
    text.prepend(kind);
    text
}

/// A double as `d2string` of Redis 7.2 prints it: the shortest digits that give the same double
/// again. Integers up to 2^62 are printed in full; other numbers have an exponent if they are large
/// or small (`1e+19`, `1e-7`), in the choice of fpconv, which Redis uses. Its digits come from
/// Grisu2, which for about one double of a thousand finds others than the shortest.
pub(super) fn double(number: f64) -> Text<DOUBLE_BYTES> {
    /// The largest double that Redis prints as an integer, rounded as it does.
    const INTEGER_MAX: f64 = (i64::MAX / 2) as f64;

    let mut text = Text::EMPTY;
    if number.is_nan() {
        text.push(b"nan");
    } else if number.is_infinite() {
        text.push(if number < 0.0 { b"-inf" } else { b"inf" });
    } else if number == 0.0 {
        text.push(if number.is_sign_negative() { b"-0" } else { b"0" });
    } else if number.abs() <= INTEGER_MAX && number.trunc() == number {
        text.push(integer(number as i64).as_bytes());
    } else {
        push_digits(number, &mut text);
    }
    text
}

/// Writes a number that is no integer, or a large one.
fn push_digits(number: f64, text: &mut Text<DOUBLE_BYTES>) {
    let (digits, scale) = shortest(number.abs());
    let digits = digits.as_bytes();
    let count = digits.len();
    // The exponent of the form with one digit before the point.
    let exponent = scale + count as i64 - 1;
    let magnitude = exponent.unsigned_abs() as usize;
    if number < 0.0 {
        text.push(b"-");
    }
    if scale >= 0 && magnitude < count + 7 {
        text.push(digits);
        text.push_zeros(scale as usize);
    } else if scale < 0 && (scale > -7 || magnitude < 4) {
        if exponent < 0 {
            text.push(b"0.");
            text.push_zeros(magnitude - 1);
            text.push(digits);
        } else {
            text.push(&digits[..magnitude + 1]);
            text.push(b".");
            text.push(&digits[magnitude + 1..]);
        }
    } else {
        text.push(&digits[..1]);
        if count > 1 {
            text.push(b".");
            text.push(&digits[1..]);
        }
        text.push(if exponent < 0 { b"e-" } else { b"e+" });
        text.push(integer(exponent.abs()).as_bytes());
    }
}

/// The shortest digits that give a positive double, and the power of ten by which they are scaled.
fn shortest(number: f64) -> (Text<INTEGER_BYTES>, i64) {
    /// Decimals that are worth a try. Scores have few.
    const DECIMALS_MAX: i64 = 4;
    /// Each decimal number of 15 digits gives another double.
    const DIGITS_LIMIT: f64 = 1e15;

    let mut factor = 1.0;
    for decimals in 1..=DECIMALS_MAX {
        factor *= 10.0;
        let digits = (number * factor).round();
        // Both are exact, therefore the quotient is the double of that decimal number. There are no
        // other digits of at most 15 for it, and no fewer, since each shorter scale was tried.
        if digits < DIGITS_LIMIT && digits / factor == number {
            return (integer(digits as i64), -decimals);
        }
    }
    // The form of std is `d.ddde-7`, with the shortest digits.
    let mut scientific = Text::<DOUBLE_BYTES>::EMPTY;
    write!(scientific, "{number:e}").expect("a double has at most 17 digits");
    let scientific = scientific.as_bytes();
    let mark = scientific.iter().position(|&byte| byte == b'e').expect("the form has an exponent");
    let exponent = parse_integer(&scientific[mark + 1..]).expect("an exponent is an integer");
    let mut digits = Text::EMPTY;
    scientific[..mark].split(|&byte| byte == b'.').for_each(|part| digits.push(part));
    let scale = exponent - (digits.as_bytes().len() as i64 - 1);
    (digits, scale)
}

/// Reads an integer in the only form that Redis accepts: no plus sign, no leading zeros, no `-0`.
pub(super) fn parse_integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match *text {
        [b'-', ref digits @ ..] => (true, digits),
        _ => (false, text),
    };
    match *digits {
        [b'0'] if !is_negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() < INTEGER_BYTES => {}
        _ => return None,
    }
    let mut number: i64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Negative numbers have the larger range.
        number = number.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))?;
    }
    if is_negative { Some(number) } else { number.checked_neg() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn shown(number: f64) -> String {
        String::from_utf8(double(number).as_bytes().to_vec()).expect("it is ASCII")
    }

    #[test]
    fn integers_are_written_and_read_as_std_does() {
        let mut numbers = vec![0, 1, -1, 9, 10, 99, 100, 101, 999, 1000, i64::MAX, i64::MIN];
        let mut random = Rng::with_seed(1);
        numbers.extend((0..10_000).map(|_| random.i64(..) >> random.u32(..64)));
        for number in numbers {
            let text = integer(number);
            assert_eq!(text.as_bytes(), number.to_string().as_bytes());
            assert_eq!(parse_integer(text.as_bytes()), Some(number));
        }
    }

    #[test]
    fn integers_have_one_form() {
        for text in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            "-01",
            "1 ",
            " 1",
            "1a",
            "0x1",
            "--1",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "1.",
            "00",
        ] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn doubles_are_printed_as_redis_prints_them() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (f64::NAN, "nan"),
            (-f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (3.0, "3"),
            (-17.0, "-17"),
            (3.5, "3.5"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-123.456, "-123.456"),
            (1e18, "1000000000000000000"),
            (4.611686018427388e18, "4611686018427387904"),
            (1e19, "1e+19"),
            (1.2345678901234e20, "123456789012340000000"),
            (1.234567890123e20, "1.234567890123e+20"),
            (1.8446744073709552e19, "18446744073709552000"),
            (-1.2345678901234567e30, "-1.2345678901234567e+30"),
            (1e22, "1e+22"),
            (1e100, "1e+100"),
            (1.5e300, "1.5e+300"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-5, "0.000015"),
            (1.5e-6, "1.5e-6"),
            (0.000123456789, "1.23456789e-4"),
            (0.00123456789, "0.00123456789"),
            (1234.56789012, "1234.56789012"),
            (12345.67890123, "1.234567890123e+4"),
            (1234567.8901234567, "1.2345678901234567e+6"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (-5e-324, "-5e-324"),
        ] {
            assert_eq!(shown(number), expected, "{number:e}");
        }
    }

    #[test]
    fn few_decimals_have_the_digits_of_std() {
        let mut random = Rng::with_seed(3);
        for _ in 0..50_000 {
            let digits = random.i64(0..) >> random.u32(8..62);
            let number = digits as f64 / 10_f64.powi(random.i32(0..8));
            if number.fract() != 0.0 && number > 1e-3 {
                let (digits, scale) = shortest(number);
                let digits = String::from_utf8(digits.as_bytes().to_vec()).expect("digits");
                let form = format!("{number:e}");
                let (mantissa, exponent) = form.split_once('e').expect("an exponent");
                assert_eq!(digits, mantissa.replace('.', ""), "{form}");
                let exponent: i64 = exponent.parse().expect("a number");
                assert_eq!(scale, exponent + 1 - digits.len() as i64, "{form}");
            }
        }
    }

    #[test]
    fn a_printed_double_is_read_as_the_same() {
        let mut random = Rng::with_seed(2);
        for _ in 0..20_000 {
            let bits = random.u64(..);
            let number = f64::from_bits(bits);
            if !number.is_nan() {
                let again: f64 = shown(number).parse().expect("it is a number");
                assert_eq!(again.to_bits(), bits, "{number:e}");
            }
            let small = (random.i64(-1_000_000..1_000_000) as f64) / 1_000.0;
            assert_eq!(shown(small), small.to_string(), "as std without exponent");
        }
    }
}
