// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Identifiers of entries, and the forms in which clients write them.
//!
//! An id is a time in milliseconds and a sequence number, written `ms-seq`. Commands accept
//! different subsets of the forms: the ends of an interval may be `-`, `+`, or exclusive as in
//! `(5-1`; the id of a new entry may leave its sequence (`5-*`) or all of it (`*`) to the server.

use super::StreamError;
use std::fmt;

/// Identifier of an entry. Ids of a stream increase strictly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Time of the entry, in milliseconds since 1970.
    pub ms: u64,
    /// Distinguishes entries of the same millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The smallest id, `0-0`, which no entry has.
    pub const MIN: StreamId = StreamId::new(0, 0);
    /// The largest id.
    pub const MAX: StreamId = StreamId::new(u64::MAX, u64::MAX);

    /// The id `ms-seq`.
    pub const fn new(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    /// Returns the next larger id, if there is one.
    pub fn next(self) -> Option<StreamId> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId::new(self.ms, seq)),
            None => Some(StreamId::new(self.ms.checked_add(1)?, 0)),
        }
    }

    /// Returns the next smaller id, if there is one.
    pub fn previous(self) -> Option<StreamId> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId::new(self.ms, seq)),
            None => Some(StreamId::new(self.ms.checked_sub(1)?, u64::MAX)),
        }
    }

    /// Returns whether this is `0-0`.
    pub fn is_zero(self) -> bool {
        self == StreamId::MIN
    }

    /// Reads `ms-seq`, or `ms` with `missing_seq` as its sequence. Also `-` and `+`, the smallest
    /// and the largest id.
    ///
    /// # Errors
    /// `InvalidId`
    pub fn parse(text: &[u8], missing_seq: u64) -> Result<StreamId, StreamError> {
        match text {
            b"-" => Ok(StreamId::MIN),
            b"+" => Ok(StreamId::MAX),
            _ => StreamId::parse_strict(text, missing_seq),
        }
    }

    /// Reads `ms-seq`, or `ms` with `missing_seq` as its sequence.
    ///
    /// # Errors
    /// `InvalidId`, also for `-` and `+`
    pub fn parse_strict(text: &[u8], missing_seq: u64) -> Result<StreamId, StreamError> {
        let (ms, seq) = split(text)?;
        let seq = seq.map_or(Ok(missing_seq), number)?;
        Ok(StreamId::new(ms, seq))
    }

    /// Reads the start of an interval: an id, `-`, `+`, or `(` and an id, which is then excluded.
    /// Returns the first id inside.
    ///
    /// # Errors
    /// `InvalidId`; `InvalidStart` if no id lies behind the excluded one
    pub fn parse_start(text: &[u8]) -> Result<StreamId, StreamError> {
        match text {
            [b'(', id @ ..] if !id.is_empty() => {
                StreamId::parse_strict(id, 0)?.next().ok_or(StreamError::InvalidStart)
            }
            _ => StreamId::parse(text, 0),
        }
    }

    /// Reads the end of an interval: an id, `-`, `+`, or `(` and an id, which is then excluded.
    /// Returns the last id inside. An id without a sequence includes its whole millisecond.
    ///
    /// # Errors
    /// `InvalidId`; `InvalidEnd` if no id lies before the excluded one
    pub fn parse_end(text: &[u8]) -> Result<StreamId, StreamError> {
        match text {
            [b'(', id @ ..] if !id.is_empty() => {
                StreamId::parse_strict(id, u64::MAX)?.previous().ok_or(StreamError::InvalidEnd)
            }
            _ => StreamId::parse(text, u64::MAX),
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.ms, self.seq)
    }
}

/// Id of a new entry, as its producer gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewId {
    /// `*`: the time of the server, and the next sequence.
    Auto,
    /// `ms-*`: a time in milliseconds, and the next sequence.
    AutoSeq(u64),
    /// A complete id.
    Exact(StreamId),
}

impl NewId {
    /// Reads the id argument of `XADD`.
    ///
    /// # Errors
    /// `InvalidId`; `ZeroId` for `0-0`
    pub fn parse(text: &[u8]) -> Result<NewId, StreamError> {
        if text == b"*" {
            return Ok(NewId::Auto);
        }
        match split(text)? {
            (ms, Some(b"*")) => Ok(NewId::AutoSeq(ms)),
            (ms, seq) => match StreamId::new(ms, seq.map_or(Ok(0), number)?) {
                StreamId::MIN => Err(StreamError::ZeroId),
                id => Ok(NewId::Exact(id)),
            },
        }
    }

    /// Returns the id that follows `last`.
    ///
    /// # Errors
    /// `ZeroId`, `Exhausted`, `NotGreater`
    pub(super) fn resolve(self, last: StreamId, now_ms: u64) -> Result<StreamId, StreamError> {
        if self == NewId::Exact(StreamId::MIN) {
            return Err(StreamError::ZeroId);
        }
        let after_last = last.next().ok_or(StreamError::Exhausted)?;
        let id = match self {
            NewId::Auto if now_ms > last.ms => StreamId::new(now_ms, 0),
            NewId::Auto => after_last,
            NewId::AutoSeq(ms) if ms == last.ms => after_last,
            NewId::AutoSeq(ms) => StreamId::new(ms, 0),
            NewId::Exact(id) => id,
        };
        // The sequence of a given millisecond may be used up: the next id is then of a later one.
        let is_of_its_ms = !matches!(self, NewId::AutoSeq(ms) if ms != id.ms);
        if id > last && is_of_its_ms { Ok(id) } else { Err(StreamError::NotGreater) }
    }
}

/// Longest text of an id that a server looks at, in bytes.
const LONGEST_TEXT: usize = 127;

/// Splits `ms` and `ms-seq` and reads the time.
fn split(text: &[u8]) -> Result<(u64, Option<&[u8]>), StreamError> {
    if text.len() > LONGEST_TEXT {
        return Err(StreamError::InvalidId);
    }
    match text.iter().position(|byte| *byte == b'-') {
        Some(at) => Ok((number(&text[..at])?, Some(&text[at + 1..]))),
        None => Ok((number(text)?, None)),
    }
}

/// Reads a number as a server does: what `strtoull` reads, except plain negative numbers.
fn number(text: &[u8]) -> Result<u64, StreamError> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let spaces = text.iter().take_while(|byte| is_space(byte)).count();
    let unsigned = match &text[spaces..] {
        [b'+', digits @ ..] => digits,
        digits => digits,
    };
    if unsigned.is_empty() {
        return Err(StreamError::InvalidId);
    }
    unsigned
        .iter()
        .try_fold(0u64, |value, byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
            let value = value.checked_mul(10)?.checked_add(digit?)?;
            Some(value)
        })
        .ok_or(StreamError::InvalidId)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: u64, seq: u64) -> StreamId {
        StreamId::new(ms, seq)
    }

    #[test]
    fn ids_have_a_successor_and_a_predecessor() {
        assert_eq!(id(1, 2).next(), Some(id(1, 3)));
        assert_eq!(id(1, u64::MAX).next(), Some(id(2, 0)));
        assert_eq!(StreamId::MAX.next(), None);
        assert_eq!(id(1, 0).previous(), Some(id(0, u64::MAX)));
        assert_eq!(id(1, 7).previous(), Some(id(1, 6)));
        assert_eq!(StreamId::MIN.previous(), None);
        assert_eq!(id(12, 34).to_string(), "12-34");
    }

    #[test]
    fn ids_are_read() {
        assert_eq!(StreamId::parse(b"12-34", 9), Ok(id(12, 34)));
        assert_eq!(StreamId::parse(b"12", 9), Ok(id(12, 9)));
        assert_eq!(StreamId::parse(b"-", 9), Ok(StreamId::MIN));
        assert_eq!(StreamId::parse(b"+", 9), Ok(StreamId::MAX));
        assert_eq!(StreamId::parse(b"18446744073709551615-1", 0), Ok(id(u64::MAX, 1)));
        assert_eq!(StreamId::parse(b" +7-007", 0), Ok(id(7, 7)));
        let long = [b"0".repeat(128), b"1".to_vec()].concat();
        let invalid: [&[u8]; 11] = [
            b"",
            b"1-",
            b"-1",
            b"1-2-3",
            b"1--2",
            b"a",
            b"1-*",
            b"1 ",
            b"18446744073709551616",
            b"(1-1",
            &long,
        ];
        for text in invalid {
            assert_eq!(StreamId::parse(text, 0), Err(StreamError::InvalidId), "{text:?}");
        }
        assert_eq!(StreamId::parse_strict(b"-", 0), Err(StreamError::InvalidId));
        assert_eq!(StreamId::parse_strict(b"+", 0), Err(StreamError::InvalidId));
    }

    #[test]
    fn intervals_exclude_their_ends() {
        assert_eq!(StreamId::parse_start(b"5"), Ok(id(5, 0)));
        assert_eq!(StreamId::parse_end(b"5"), Ok(id(5, u64::MAX)));
        assert_eq!(StreamId::parse_start(b"(5"), Ok(id(5, 1)));
        assert_eq!(StreamId::parse_end(b"(5"), Ok(id(5, u64::MAX - 1)));
        assert_eq!(StreamId::parse_end(b"(5-0"), Ok(id(4, u64::MAX)));
        assert_eq!(StreamId::parse_start(b"-"), Ok(StreamId::MIN));
        assert_eq!(StreamId::parse_end(b"+"), Ok(StreamId::MAX));
        let largest = b"(18446744073709551615-18446744073709551615";
        assert_eq!(StreamId::parse_start(largest), Err(StreamError::InvalidStart));
        assert_eq!(StreamId::parse_end(b"(0-0"), Err(StreamError::InvalidEnd));
        assert_eq!(StreamId::parse_start(b"(-"), Err(StreamError::InvalidId));
        assert_eq!(StreamId::parse_start(b"("), Err(StreamError::InvalidId));
    }

    #[test]
    fn new_ids_are_read() {
        assert_eq!(NewId::parse(b"*"), Ok(NewId::Auto));
        assert_eq!(NewId::parse(b"5-*"), Ok(NewId::AutoSeq(5)));
        assert_eq!(NewId::parse(b"5"), Ok(NewId::Exact(id(5, 0))));
        assert_eq!(NewId::parse(b"0-1"), Ok(NewId::Exact(id(0, 1))));
        assert_eq!(NewId::parse(b"0-0"), Err(StreamError::ZeroId));
        assert_eq!(NewId::parse(b"0"), Err(StreamError::ZeroId));
        assert_eq!(NewId::parse(b"+"), Err(StreamError::InvalidId));
        assert_eq!(NewId::parse(b"5-**"), Err(StreamError::InvalidId));
    }

    #[test]
    fn new_ids_follow_the_last_one() {
        let last = id(10, 3);
        assert_eq!(NewId::Auto.resolve(last, 11), Ok(id(11, 0)));
        assert_eq!(NewId::Auto.resolve(last, 10), Ok(id(10, 4)));
        assert_eq!(NewId::Auto.resolve(last, 9), Ok(id(10, 4)));
        assert_eq!(NewId::Auto.resolve(id(10, u64::MAX), 10), Ok(id(11, 0)));
        assert_eq!(NewId::AutoSeq(10).resolve(last, 0), Ok(id(10, 4)));
        assert_eq!(NewId::AutoSeq(12).resolve(last, 0), Ok(id(12, 0)));
        assert_eq!(NewId::AutoSeq(9).resolve(last, 0), Err(StreamError::NotGreater));
        assert_eq!(NewId::AutoSeq(0).resolve(StreamId::MIN, 0), Ok(id(0, 1)));
        let full = id(10, u64::MAX);
        assert_eq!(NewId::AutoSeq(10).resolve(full, 0), Err(StreamError::NotGreater));
        assert_eq!(NewId::Exact(last).resolve(last, 0), Err(StreamError::NotGreater));
        assert_eq!(NewId::Exact(id(10, 4)).resolve(last, 0), Ok(id(10, 4)));
        assert_eq!(NewId::Auto.resolve(StreamId::MAX, 0), Err(StreamError::Exhausted));
        assert_eq!(NewId::Exact(StreamId::MIN).resolve(last, 0), Err(StreamError::ZeroId));
    }
}
