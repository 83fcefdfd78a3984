// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ends of ranges of scores and of members, in the syntax of Redis.

use thiserror::Error;

use super::score::parse_double;

/// A text that is no end of a range. The texts are those of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BoundError {
    /// The end of a range of scores is not a number.
    #[error("min or max is not a float")]
    Score,
    /// The end of a range of members has no `[` or `(`.
    #[error("min or max not valid string range item")]
    Lex,
}

/// One end of a range of scores. Without an end, the score is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoreBound {
    /// The range has elements with this score.
    Inclusive(f64),
    /// The range has no elements with this score.
    Exclusive(f64),
}

/// A range of scores. It is empty if the minimum is above the maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// The lower end.
    pub min: ScoreBound,
    /// The upper end.
    pub max: ScoreBound,
}

/// One end of a range of members. Members are compared as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// Before all members (`-`).
    Lowest,
    /// After all members (`+`).
    Highest,
    /// The range has this member (`[member`).
    Inclusive(&'a [u8]),
    /// The range does not have this member (`(member`).
    Exclusive(&'a [u8]),
}

/// A range of members. It is empty if the minimum is above the maximum, and has a meaning only if
/// all members have the same score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexRange<'a> {
    /// The lower end.
    pub min: LexBound<'a>,
    /// The upper end.
    pub max: LexBound<'a>,
}

impl ScoreBound {
    /// Reads a number, or `(` and a number, as `strtod` does: spaces may come before the number,
    /// and an empty text is 0.
    ///
    /// # Errors
    /// [`BoundError::Score`] for every other text.
    pub fn parse(text: &[u8]) -> Result<Self, BoundError> {
        let (bound, text): (fn(f64) -> Self, _) = match text.strip_prefix(b"(") {
            Some(rest) => (Self::Exclusive, rest),
            None => (Self::Inclusive, text),
        };
        if text.is_empty() {
            return Ok(bound(0.0));
        }
        let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
        let start = text.iter().position(|byte| !is_space(byte)).ok_or(BoundError::Score)?;
        parse_double(&text[start..]).map(bound).ok_or(BoundError::Score)
    }
}

impl ScoreRange {
    /// All scores.
    pub const ALL: Self = Self {
        min: ScoreBound::Inclusive(f64::NEG_INFINITY),
        max: ScoreBound::Inclusive(f64::INFINITY),
    };

    /// Reads both ends.
    ///
    /// # Errors
    /// [`BoundError::Score`] if one is not a number.
    pub fn parse(min: &[u8], max: &[u8]) -> Result<Self, BoundError> {
        Ok(Self { min: ScoreBound::parse(min)?, max: ScoreBound::parse(max)? })
    }

    /// Whether elements with `score` come before the range.
    pub fn starts_after(&self, score: f64) -> bool {
        match self.min {
            ScoreBound::Inclusive(min) => score < min,
            ScoreBound::Exclusive(min) => score <= min,
        }
    }

    /// Whether elements with `score` come before the end of the range.
    pub fn ends_after(&self, score: f64) -> bool {
        match self.max {
            ScoreBound::Inclusive(max) => score <= max,
            ScoreBound::Exclusive(max) => score < max,
        }
    }
}

impl<'a> LexBound<'a> {
    /// Reads `-`, `+`, `[member` or `(member`.
    ///
    /// # Errors
    /// [`BoundError::Lex`] for every other text.
    pub fn parse(text: &'a [u8]) -> Result<Self, BoundError> {
        match text {
            b"-" => Ok(Self::Lowest),
            b"+" => Ok(Self::Highest),
            [b'[', member @ ..] => Ok(Self::Inclusive(member)),
            [b'(', member @ ..] => Ok(Self::Exclusive(member)),
            _ => Err(BoundError::Lex),
        }
    }
}

impl<'a> LexRange<'a> {
    /// Reads both ends.
    ///
    /// # Errors
    /// [`BoundError::Lex`] if one has another form.
    pub fn parse(min: &'a [u8], max: &'a [u8]) -> Result<Self, BoundError> {
        Ok(Self { min: LexBound::parse(min)?, max: LexBound::parse(max)? })
    }

    /// Whether `member` comes before the range.
    pub fn starts_after(&self, member: &[u8]) -> bool {
        match self.min {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(min) => member < min,
            LexBound::Exclusive(min) => member <= min,
        }
    }

    /// Whether `member` comes before the end of the range.
    pub fn ends_after(&self, member: &[u8]) -> bool {
        match self.max {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(max) => member <= max,
            LexBound::Exclusive(max) => member < max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn score_bounds_are_read_as_redis_reads_them() {
        use ScoreBound::{Exclusive, Inclusive};
        let cases = [
            ("1.5", Inclusive(1.5)),
            ("(1.5", Exclusive(1.5)),
            ("-inf", Inclusive(f64::NEG_INFINITY)),
            ("(+inf", Exclusive(f64::INFINITY)),
            ("1e999", Inclusive(f64::INFINITY)),
            ("", Inclusive(0.0)),
            ("(", Exclusive(0.0)),
            (" 5", Inclusive(5.0)),
            ("( 5", Exclusive(5.0)),
        ];
        for (text, bound) in cases {
            assert_eq!(ScoreBound::parse(text.as_bytes()), Ok(bound), "{text}");
        }
        for text in ["nan", "[1", "((1", "1x", " ", "5 "] {
            assert_eq!(ScoreBound::parse(text.as_bytes()), Err(BoundError::Score), "{text}");
        }
        assert_eq!(BoundError::Score.to_string(), "min or max is not a float");
    }

    #[test]
    fn lex_bounds_are_read_as_redis_reads_them() {
        use LexBound::{Exclusive, Highest, Inclusive, Lowest};
        let cases: [(&[u8], _); 6] = [
            (b"-", Lowest),
            (b"+", Highest),
            (b"[a", Inclusive(b"a")),
            (b"(a(", Exclusive(b"a(")),
            (b"[", Inclusive(b"")),
            (b"(", Exclusive(b"")),
        ];
        for (text, bound) in cases {
            assert_eq!(LexBound::parse(text), Ok(bound));
        }
        for text in ["", "a", "--", "+a", "-inf"] {
            assert_eq!(LexBound::parse(text.as_bytes()), Err(BoundError::Lex), "{text}");
        }
        assert_eq!(BoundError::Lex.to_string(), "min or max not valid string range item");
    }

    #[test]
    fn ranges_contain_what_lies_between_their_ends() {
        let range = ScoreRange::parse(b"(1", b"3").unwrap();
        let contains = |score| !range.starts_after(score) && range.ends_after(score);
        assert_eq!([1.0, 1.1, 3.0, 3.1].map(contains), [false, true, true, false]);
        let range = LexRange::parse(b"[b", b"(d").unwrap();
        let contains = |member: &str| {
            !range.starts_after(member.as_bytes()) && range.ends_after(member.as_bytes())
        };
        assert_eq!(["a", "b", "c", "cz", "d"].map(contains), [false, true, true, true, false]);
    }
}
