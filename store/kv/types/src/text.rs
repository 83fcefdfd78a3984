// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings: the byte string is the value, as plain as the engine stores it. A key that does not
//! exist is an empty string to all functions here.

use crate::extended::Extended;
use crate::limits::Limits;
use crate::number::parse_integer;
use thiserror::Error;

/// Reasons why a string is not changed. The texts are those of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// The string would be longer than the limit.
    #[error("string exceeds maximum allowed size (proto-max-bulk-len)")]
    TooLong,
    /// The offset is negative.
    #[error("offset is out of range")]
    OffsetOutOfRange,
    /// The string is not the text of an `i64`.
    #[error("value is not an integer or out of range")]
    NotAnInteger,
    /// The sum is not an `i64`.
    #[error("increment or decrement would overflow")]
    Overflow,
    /// The decrement has no opposite.
    #[error("decrement would overflow")]
    DecrementOverflow,
    /// The string is not the text of a number.
    #[error("value is not a valid float")]
    NotAFloat,
    /// The sum is infinite or not a number.
    #[error("increment would produce NaN or Infinity")]
    NotFinite,
}

/// Appends `suffix` (APPEND).
///
/// # Errors
/// [`TextError::TooLong`]; the string is unchanged.
pub fn append(limits: &Limits, text: &mut Vec<u8>, suffix: &[u8]) -> Result<(), TextError> {
    check_size(limits, text.len(), suffix.len())?;
    text.extend_from_slice(suffix);
    Ok(())
}

/// Writes `bytes` over those from `offset`. Zeros fill a gap behind the old end (SETRANGE).
/// Without `bytes` nothing changes, and the string is not extended either.
///
/// # Errors
/// [`TextError::OffsetOutOfRange`] and [`TextError::TooLong`]; the string is unchanged.
pub fn set_range(
    limits: &Limits,
    text: &mut Vec<u8>,
    offset: i64,
    bytes: &[u8],
) -> Result<(), TextError> {
    let offset = usize::try_from(offset).map_err(|_| TextError::OffsetOutOfRange)?;
    if bytes.is_empty() {
        return Ok(());
    }
    let end = check_size(limits, offset, bytes.len())?;
    if text.len() < end {
        text.resize(end, 0);
    }
    text[offset..end].copy_from_slice(bytes);
    Ok(())
}

/// Returns the bytes from `start` to `end`, both included and negative ones counted from the end
/// (GETRANGE).
pub fn range(text: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    inclusive(text.len(), start, end).map_or(&[], |(first, last)| &text[first..=last])
}

/// Returns the first and the last index that `start` and `end` mean in `len` bytes or bits;
/// negative ones are counted from the end. `None` if there is nothing between.
pub(crate) fn inclusive(len: usize, start: i64, end: i64) -> Option<(usize, usize)> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_start = |index: i64| if index < 0 { (len + index).max(0) } else { index };
    let (first, last) = (from_start(start), from_start(end).min(len - 1));
    (first <= last).then_some((first as usize, last as usize))
}

/// Returns the integer that the string is, plus `increment` (INCR, INCRBY).
///
/// # Errors
/// [`TextError::NotAnInteger`] and [`TextError::Overflow`].
pub fn increment(text: Option<&[u8]>, increment: i64) -> Result<i64, TextError> {
    let old = match text {
        None => 0,
        Some(text) => parse_integer(text).ok_or(TextError::NotAnInteger)?,
    };
    old.checked_add(increment).ok_or(TextError::Overflow)
}

/// Returns the integer that the string is, minus `decrement` (DECR, DECRBY).
///
/// # Errors
/// [`TextError::DecrementOverflow`] for a decrement of `i64::MIN`, and those of [`increment`].
pub fn decrement(text: Option<&[u8]>, decrement: i64) -> Result<i64, TextError> {
    increment(text, decrement.checked_neg().ok_or(TextError::DecrementOverflow)?)
}

/// Returns the text of the number that the string is, plus `increment` (INCRBYFLOAT).
///
/// # Errors
/// [`TextError::NotAFloat`] and [`TextError::NotFinite`].
pub fn increment_float(text: Option<&[u8]>, increment: Extended) -> Result<String, TextError> {
    let old = match text {
        None => Extended::ZERO,
        Some(text) => Extended::parse(text).ok_or(TextError::NotAFloat)?,
    };
    Ok(old.checked_add(increment).ok_or(TextError::NotFinite)?.to_text())
}

/// Returns the sum of two sizes, if a string may have it.
///
/// # Errors
/// [`TextError::TooLong`].
pub fn check_size(limits: &Limits, one: usize, other: usize) -> Result<usize, TextError> {
    let sum = one.checked_add(other).filter(|sum| *sum <= limits.text_bytes);
    sum.ok_or(TextError::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_redis() {
        let cases: [(i64, i64, &str); 13] = [
            (0, 3, "This"),
            (-3, -1, "ing"),
            (0, -1, "This is a string"),
            (10, 100, "string"),
            (5, 3, ""),
            (-1, -3, ""),
            (-100, 3, "This"),
            (-100, -90, "T"),
            (20, 30, ""),
            (3, -100, ""),
            (0, -100, "T"),
            (i64::MIN, i64::MAX, "This is a string"),
            (i64::MAX, i64::MIN, ""),
        ];
        for (start, end, expected) in cases {
            let found = range(b"This is a string", start, end);
            assert_eq!(found, expected.as_bytes(), "{start} to {end}");
        }
        assert_eq!(range(b"", 0, -1), b"");
    }

    #[test]
    fn gaps_are_filled_with_zeros() {
        let limits = Limits { text_bytes: 10, ..Limits::default() };
        let mut text = b"ab".to_vec();
        assert_eq!(set_range(&limits, &mut text, 4, b"xy"), Ok(()));
        assert_eq!(text, b"ab\0\0xy");
        assert_eq!(set_range(&limits, &mut text, 1, b"__"), Ok(()));
        assert_eq!(text, b"a__\0xy");
        assert_eq!(set_range(&limits, &mut text, 100, b""), Ok(()));
        assert_eq!(set_range(&limits, &mut text, 9, b"xy"), Err(TextError::TooLong));
        assert_eq!(set_range(&limits, &mut text, i64::MAX, b"xy"), Err(TextError::TooLong));
        assert_eq!(set_range(&limits, &mut text, -1, b""), Err(TextError::OffsetOutOfRange));
        assert_eq!(append(&limits, &mut text, b"5 byt"), Err(TextError::TooLong));
        assert_eq!(append(&limits, &mut text, b"four"), Ok(()));
        assert_eq!(text, b"a__\0xyfour");
    }

    #[test]
    fn counters_overflow_as_in_redis() {
        assert_eq!(increment(None, 3), Ok(3));
        assert_eq!(increment(Some(b"10"), -11), Ok(-1));
        assert_eq!(increment(Some(b"9223372036854775807"), 1), Err(TextError::Overflow));
        assert_eq!(increment(Some(b" 1"), 1), Err(TextError::NotAnInteger));
        assert_eq!(increment(Some(b""), 1), Err(TextError::NotAnInteger));
        assert_eq!(decrement(None, i64::MAX), Ok(-i64::MAX));
        assert_eq!(decrement(None, i64::MIN), Err(TextError::DecrementOverflow));
        let number = |text: &[u8]| Extended::parse(text).unwrap();
        assert_eq!(increment_float(None, number(b"0.10")), Ok("0.1".into()));
        assert_eq!(increment_float(Some(b"3.0e3"), number(b"200")), Ok("3200".into()));
        assert_eq!(increment_float(Some(b"x"), number(b"1")), Err(TextError::NotAFloat));
        assert_eq!(increment_float(Some(b"inf"), number(b"1")), Err(TextError::NotFinite));
    }
}
