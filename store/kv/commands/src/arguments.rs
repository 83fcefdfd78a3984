// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers and words among the arguments of commands, with the errors of Redis.

use freeport_kv_types::number::parse_integer;

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

/// An argument is a word, in any case.
#[inline]
pub fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
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
    let seconds: f64 = text.parse().map_err(|_| NOT_A_FLOAT)?;
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
    fn a_timeout_of_zero_never_ends() {
        assert_eq!(deadline_ms(b"0", 5), Ok(None));
        assert_eq!(deadline_ms(b"0.5", 5), Ok(Some(505)));
        assert_eq!(deadline_ms(b"0.0001", 5), Ok(Some(6)));
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
