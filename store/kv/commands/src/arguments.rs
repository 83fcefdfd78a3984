// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers and words among the arguments of commands, with the errors of Redis.

use std::ops::RangeInclusive;

use freeport_kv_types::number::parse_integer;
use freeport_kv_types::zset::parse_score;

use crate::error::Error;

const NEGATIVE_TIMEOUT: Error = Error::fixed("ERR timeout is negative");
const TIMEOUT_OUT_OF_RANGE: Error = Error::fixed("ERR timeout is out of range");

/// An integer of 64 bits.
///
/// # Errors
/// [`Error::NOT_AN_INTEGER`].
#[inline]
pub fn integer(argument: &[u8]) -> Result<i64, Error> {
    parse_integer(argument).ok_or(Error::NOT_AN_INTEGER)
}

/// An integer of a range.
///
/// # Errors
/// `error`, if it is no integer or lies outside.
pub fn integer_in(argument: &[u8], range: RangeInclusive<i64>, error: Error) -> Result<i64, Error> {
    parse_integer(argument).filter(|value| range.contains(value)).ok_or(error)
}

/// A number that counts something, 0 or above.
///
/// # Errors
/// It is no integer, or negative.
pub fn count(argument: &[u8]) -> Result<i64, Error> {
    const NEGATIVE: Error = Error::fixed("ERR value is out of range, must be positive");
    integer_in(argument, 0..=i64::MAX, NEGATIVE)
}

/// An integer whose sign is a choice and whose magnitude is a number.
///
/// # Errors
/// [`Error::NOT_AN_INTEGER`], or it is the least integer, which has no magnitude.
pub fn signed_count(argument: &[u8]) -> Result<i64, Error> {
    const OUT_OF_RANGE: Error = Error::fixed(
        "ERR value is out of range, value must between \
         -9223372036854775807 and 9223372036854775807",
    );
    match integer(argument)? {
        i64::MIN => Err(OUT_OF_RANGE),
        number => Ok(number),
    }
}

/// A double, which may be infinite.
///
/// # Errors
/// [`Error::NOT_A_FLOAT`].
#[inline]
pub fn float(argument: &[u8]) -> Result<f64, Error> {
    parse_score(argument).ok_or(Error::NOT_A_FLOAT)
}

/// An argument is a word, in any case.
#[inline]
pub fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// A cursor of a scan, read as the C library reads an unsigned number.
///
/// # Errors
/// It is no number of 64 bits.
pub fn cursor(argument: &[u8]) -> Result<u64, Error> {
    const INVALID: Error = Error::fixed("ERR invalid cursor");
    let (is_negative, digits) = match argument {
        [] => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(INVALID);
    }
    let digits = str::from_utf8(digits).map_err(|_| INVALID)?;
    let number: u64 = digits.parse().map_err(|_| INVALID)?;
    Ok(if is_negative { number.wrapping_neg() } else { number })
}

/// Timeout of a command that waits, in whole milliseconds; the result as for [`deadline_ms`].
///
/// # Errors
/// It is no integer, negative, or out of range.
pub fn deadline_after_ms(argument: &[u8], now_ms: u64) -> Result<Option<u64>, Error> {
    const NOT_AN_INTEGER: Error = Error::fixed("ERR timeout is not an integer or out of range");

    let timeout = parse_integer(argument).ok_or(NOT_AN_INTEGER)?;
    if timeout == 0 {
        return Ok(None);
    }
    let timeout = u64::try_from(timeout).map_err(|_| NEGATIVE_TIMEOUT)?;
    match timeout.checked_add(now_ms) {
        Some(at) if i64::try_from(at).is_ok() => Ok(Some(at)),
        _ => Err(TIMEOUT_OUT_OF_RANGE),
    }
}

/// Timeout of a command that waits, in seconds with a fraction; the time when it ends, in
/// milliseconds since 1970, or none if it never does.
///
/// # Errors
/// It is no number, negative, or out of range.
pub fn deadline_ms(argument: &[u8], now_ms: u64) -> Result<Option<u64>, Error> {
    const NOT_A_FLOAT: Error = Error::fixed("ERR timeout is not a float or out of range");

    let text = std::str::from_utf8(argument).map_err(|_| NOT_A_FLOAT)?;
    // Redis reads hexadecimal numbers too.
    let seconds: f64 = text.parse().ok().or_else(|| parse_score(argument)).ok_or(NOT_A_FLOAT)?;
    if seconds.is_nan() {
        return Err(NOT_A_FLOAT);
    }
    let milliseconds = (seconds * 1000.0).ceil();
    if milliseconds > i64::MAX as f64 {
        return Err(TIMEOUT_OUT_OF_RANGE);
    }
    match milliseconds {
        ..0.0 => Err(NEGATIVE_TIMEOUT),
        0.0 => Ok(None),
        _ => match (milliseconds as u64).checked_add(now_ms) {
            Some(at) if i64::try_from(at).is_ok() => Ok(Some(at)),
            _ => Err(TIMEOUT_OUT_OF_RANGE),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_elements_have_their_ranges() {
        assert_eq!(count(b"9223372036854775807"), Ok(i64::MAX));
        for text in [&b"-1"[..], b"x", b"", b"9223372036854775808"] {
            let error = count(text).expect_err("no number of elements");
            assert_eq!(error.text(), "ERR value is out of range, must be positive");
        }
        assert_eq!(integer_in(b"3", 1..=3, Error::SYNTAX), Ok(3));
        assert_eq!(integer_in(b"4", 1..=3, Error::SYNTAX), Err(Error::SYNTAX));
        assert_eq!(signed_count(b"-9223372036854775807"), Ok(-i64::MAX));
        assert_eq!(signed_count(b"1.5"), Err(Error::NOT_AN_INTEGER));
        assert!(signed_count(b"-9223372036854775808").is_err());
    }

    #[test]
    fn cursors_are_read_as_the_c_library_does() {
        let right: [(&[u8], u64); 5] = [
            (b"", 0),
            (b"+17", 17),
            (b"0012", 12),
            (b"-1", u64::MAX),
            (b"18446744073709551615", u64::MAX),
        ];
        for (text, expected) in right {
            assert_eq!(cursor(text), Ok(expected));
        }
        for wrong in [&b"18446744073709551616"[..], b"-", b"+", b" 1", b"1x", b"--1"] {
            assert!(cursor(wrong).is_err(), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn doubles_are_read_as_c_reads_them() {
        assert_eq!(float(b"-1.5e3"), Ok(-1500.0));
        assert_eq!(float(b"+inf"), Ok(f64::INFINITY));
        assert_eq!(float(b"nan"), Err(Error::NOT_A_FLOAT));
    }

    #[test]
    fn a_timeout_of_zero_never_ends() {
        assert_eq!(deadline_ms(b"0", 5), Ok(None));
        assert_eq!(deadline_ms(b"0.5", 5), Ok(Some(505)));
        assert_eq!(deadline_ms(b"0.0001", 5), Ok(Some(6)));
        assert_eq!(deadline_ms(b"0x10", 5), Ok(Some(16_005)));
    }

    #[test]
    fn a_timeout_in_milliseconds_is_an_integer() {
        assert_eq!(deadline_after_ms(b"0", 5), Ok(None));
        assert_eq!(deadline_after_ms(b"500", 5), Ok(Some(505)));
        let error = |text: &[u8]| deadline_after_ms(text, 5).expect_err("none").text().to_owned();
        assert_eq!(error(b"0.5"), "ERR timeout is not an integer or out of range");
        assert_eq!(error(b"-1"), "ERR timeout is negative");
        assert_eq!(error(b"9223372036854775807"), "ERR timeout is out of range");
    }

    #[test]
    fn timeouts_out_of_range_are_refused() {
        let error = |text: &[u8]| deadline_ms(text, 5).expect_err("no timeout").text().to_owned();
        assert_eq!(error(b"x"), "ERR timeout is not a float or out of range");
        assert_eq!(error(b"nan"), "ERR timeout is not a float or out of range");
        assert_eq!(error(b"-1"), "ERR timeout is negative");
        assert_eq!(error(b"1e300"), "ERR timeout is out of range");
        assert_eq!(error(b"9223372036854775"), "ERR timeout is out of range");
    }
}
