// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers and words among the arguments of commands, with the errors of Redis.

use freeport_kv_types::number::parse_integer;

use crate::error::Error;

/// An integer of 64 bits.
///
/// # Errors
/// [`Error::NOT_AN_INTEGER`].
#[inline]
pub fn integer(argument: &[u8]) -> Result<i64, Error> {
    parse_integer(argument).ok_or(Error::NOT_AN_INTEGER)
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

/// Timeout of a command that waits, in seconds with a fraction; the time when it ends, in
/// milliseconds since 1970, or none if it never does.
///
/// # Errors
/// It is no number, negative, or out of range.
pub fn deadline_ms(argument: &[u8], now_ms: u64) -> Result<Option<u64>, Error> {
    const NOT_A_FLOAT: Error = Error::fixed("ERR timeout is not a float or out of range");
    const NEGATIVE: Error = Error::fixed("ERR timeout is negative");
    const OUT_OF_RANGE: Error = Error::fixed("ERR timeout is out of range");

    let text = std::str::from_utf8(argument).map_err(|_| NOT_A_FLOAT)?;
    let seconds: f64 = text.parse().map_err(|_| NOT_A_FLOAT)?;
    if seconds.is_nan() {
        return Err(NOT_A_FLOAT);
    }
    let milliseconds = (seconds * 1000.0).ceil();
    if milliseconds > i64::MAX as f64 {
        return Err(OUT_OF_RANGE);
    }
    match milliseconds {
        ..0.0 => Err(NEGATIVE),
        0.0 => Ok(None),
        _ => match (milliseconds as u64).checked_add(now_ms) {
            Some(at) if i64::try_from(at).is_ok() => Ok(Some(at)),
            _ => Err(OUT_OF_RANGE),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_of_zero_never_ends() {
        assert_eq!(deadline_ms(b"0", 5), Ok(None));
        assert_eq!(deadline_ms(b"0.5", 5), Ok(Some(505)));
        assert_eq!(deadline_ms(b"0.0001", 5), Ok(Some(6)));
    }

    #[test]
    fn cursors_are_read_as_the_c_library_does() {
        assert_eq!(cursor(b""), Ok(0));
        assert_eq!(cursor(b"+17"), Ok(17));
        assert_eq!(cursor(b"-1"), Ok(u64::MAX));
        assert_eq!(cursor(b"18446744073709551615"), Ok(u64::MAX));
        for wrong in [&b"18446744073709551616"[..], b"-", b"+", b" 1", b"1 ", b"0x1"] {
            assert!(cursor(wrong).is_err(), "{}", wrong.escape_ascii());
        }
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
