// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of SET and GETEX, and times of expiry.

use crate::arguments::{integer, is};
use crate::error::Error;

/// When SET stores the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always.
    None,
    /// There is no such key.
    IsNew,
    /// There is such a key.
    Exists,
}

/// How an expiry is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds from now.
    Seconds,
    /// Milliseconds from now.
    Milliseconds,
    /// Seconds since 1970.
    AtSeconds,
    /// Milliseconds since 1970.
    AtMilliseconds,
}

/// The part of a command that is about the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime<'a> {
    /// Nothing.
    Unsaid,
    /// It stays.
    Keep,
    /// It is removed.
    Persist,
    /// It is this one.
    Given(Unit, &'a [u8]),
}

/// Options after the key of GETEX, or the value of SET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    /// When the value is stored.
    pub condition: Condition,
    /// The old value is returned.
    pub returns_old: bool,
    /// The expiry.
    pub lifetime: Lifetime<'a>,
}

impl<'a> Options<'a> {
    /// Reads the options of SET.
    ///
    /// # Errors
    /// [`Error::SYNTAX`].
    #[inline]
    pub fn of_set(words: &[&'a [u8]]) -> Result<Self, Error> {
        Self::read(words, true)
    }

    /// Reads the options of GETEX.
    ///
    /// # Errors
    /// [`Error::SYNTAX`].
    pub fn of_getex(words: &[&'a [u8]]) -> Result<Self, Error> {
        Self::read(words, false)
    }

    /// As in Redis, the same option may be given twice; the last one counts.
    fn read(words: &[&'a [u8]], is_set: bool) -> Result<Self, Error> {
        use Lifetime::{Given, Keep, Persist, Unsaid};
        let mut options = Self { condition: Condition::None, returns_old: false, lifetime: Unsaid };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let (condition, lifetime) = (options.condition, options.lifetime);
            if is_set && is(word, "NX") && condition != Condition::Exists {
                options.condition = Condition::IsNew;
            } else if is_set && is(word, "XX") && condition != Condition::IsNew {
                options.condition = Condition::Exists;
            } else if is_set && is(word, "GET") {
                options.returns_old = true;
            } else if is_set && is(word, "KEEPTTL") && matches!(lifetime, Unsaid | Keep) {
                options.lifetime = Keep;
            } else if !is_set && is(word, "PERSIST") && matches!(lifetime, Unsaid | Persist) {
                options.lifetime = Persist;
            } else {
                let unit = Unit::named(word).ok_or(Error::SYNTAX)?;
                let is_allowed = match lifetime {
                    Unsaid => true,
                    Given(other, _) => other == unit,
                    Keep | Persist => false,
                };
                let argument = rest.next().filter(|_| is_allowed).ok_or(Error::SYNTAX)?;
                options.lifetime = Given(unit, argument);
            }
        }
        Ok(options)
    }
}

impl Unit {
    fn named(word: &[u8]) -> Option<Self> {
        let units = [
            ("EX", Self::Seconds),
            ("PX", Self::Milliseconds),
            ("EXAT", Self::AtSeconds),
            ("PXAT", Self::AtMilliseconds),
        ];
        units.into_iter().find(|(name, _)| is(word, name)).map(|(_, unit)| unit)
    }

    /// Reads the argument of an option of a command; the time of expiry in milliseconds since 1970.
    ///
    /// # Errors
    /// It is no integer, not positive, or out of range.
    pub fn expires_ms(self, argument: &[u8], now_ms: u64, command: &str) -> Result<u64, Error> {
        let number = integer(argument)?;
        let milliseconds = match self {
            Self::Seconds | Self::AtSeconds => number.checked_mul(1000),
            Self::Milliseconds | Self::AtMilliseconds => Some(number),
        };
        let start_ms = match self {
            Self::Seconds | Self::Milliseconds => i64::try_from(now_ms).ok(),
            Self::AtSeconds | Self::AtMilliseconds => Some(0),
        };
        let expires_ms = milliseconds
            .filter(|milliseconds| *milliseconds > 0)
            .zip(start_ms)
            .and_then(|(milliseconds, start_ms)| milliseconds.checked_add(start_ms))
            .and_then(|expires_ms| u64::try_from(expires_ms).ok());
        expires_ms
            .ok_or_else(|| Error::new(format!("ERR invalid expire time in '{command}' command")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, is_set: bool) -> Option<Options<'_>> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        Options::read(&words, is_set).ok()
    }

    #[test]
    fn options_that_exclude_each_other_are_refused() {
        for line in ["NX XX", "KEEPTTL EX 1", "EX 1 PX 1", "EX", "EX 1 KEEPTTL", "PERSIST", "x"] {
            assert_eq!(read(line, true), None, "{line}");
        }
        for line in ["NX", "XX", "GET", "KEEPTTL", "PERSIST EX 1", "PXAT 1 EXAT 1"] {
            assert_eq!(read(line, false), None, "{line}");
        }
        let options = read("px 5 xx get PX 6", true).expect("all are options of SET");
        assert_eq!((options.condition, options.returns_old), (Condition::Exists, true));
        assert_eq!(options.lifetime, Lifetime::Given(Unit::Milliseconds, b"6"));
        assert_eq!(read("persist", false).map(|it| it.lifetime), Some(Lifetime::Persist));
    }

    #[test]
    fn times_are_positive_and_in_range() {
        let at = |unit: Unit, text: &str| unit.expires_ms(text.as_bytes(), 500, "set").ok();
        assert_eq!(at(Unit::Seconds, "2"), Some(2_500));
        assert_eq!(at(Unit::Milliseconds, "2"), Some(502));
        assert_eq!(at(Unit::AtSeconds, "2"), Some(2_000));
        assert_eq!(at(Unit::AtMilliseconds, "2"), Some(2));
        for text in ["0", "-1", "9223372036854775807", "x"] {
            assert_eq!(at(Unit::Seconds, text), None, "{text}");
        }
        assert_eq!(at(Unit::Milliseconds, "9223372036854775807"), None);
        let error = Unit::Seconds.expires_ms(b"0", 0, "getex").expect_err("it is not positive");
        assert_eq!(error.text(), "ERR invalid expire time in 'getex' command");
    }
}
