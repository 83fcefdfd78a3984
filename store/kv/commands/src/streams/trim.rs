// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of `XADD` and `XTRIM` that shorten a stream: `MAXLEN` or `MINID`, each exact (`=`) or in
//! whole nodes (`~`), which a `LIMIT` may bound.

use freeport_kv_types::stream::Trim;
use freeport_kv_types::{Limits, StreamId};

use crate::arguments::{integer, is};
use crate::error::Error;

/// How a stream is shortened.
#[derive(Clone, Copy, Debug)]
pub struct TrimOption {
    exact: Trim,
    is_approximate: bool,
    limit: Option<u64>,
}

impl TrimOption {
    /// Which entries it removes depends on where nodes begin.
    pub fn is_approximate(&self) -> bool {
        self.is_approximate
    }

    /// The rule for a stream with these limits, on which the usual bound of a trim depends.
    pub fn rule(&self, limits: &Limits) -> Trim {
        match (self.is_approximate, self.limit) {
            (false, _) => self.exact,
            (true, Some(limit)) => self.exact.approximately(limit),
            (true, None) => self.exact.approximately(Trim::default_limit(limits)),
        }
    }
}

/// The words of an exact trim that leaves a stream with this length.
pub fn exact_words(length: u64) -> [Vec<u8>; 3] {
    [b"MAXLEN".to_vec(), b"=".to_vec(), length.to_string().into_bytes()]
}

/// Reads options one after the other, in any order.
#[derive(Debug, Default)]
pub struct TrimReader {
    trim: Option<TrimOption>,
    limit: Option<u64>,
}

impl TrimReader {
    /// Reads the option at the front of `words`. Returns how many words it has; none: it is no
    /// option of trimming.
    ///
    /// # Errors
    /// Its value is wrong, or there were two rules.
    pub fn option(&mut self, words: &[&[u8]]) -> Result<Option<usize>, Error> {
        let [name, value, ..] = words else { return Ok(None) };
        let is_length = is(name, "maxlen");
        if is_length || is(name, "minid") {
            return self.rule(is_length, words).map(Some);
        }
        if is(name, "limit") {
            const NEGATIVE: Error = Error::fixed("ERR The LIMIT argument must be >= 0.");
            self.limit = Some(u64::try_from(integer(value)?).map_err(|_| NEGATIVE)?);
            return Ok(Some(2));
        }
        Ok(None)
    }

    fn rule(&mut self, is_length: bool, words: &[&[u8]]) -> Result<usize, Error> {
        const TWO_RULES: Error = Error::fixed(
            "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
        );
        const NEGATIVE: Error = Error::fixed("ERR The MAXLEN argument must be >= 0.");

        if self.trim.is_some() {
            return Err(TWO_RULES);
        }
        let is_exactness = |word: &[u8]| word == b"~" || word == b"=";
        let at = if words.len() > 2 && is_exactness(words[1]) { 2 } else { 1 };
        let exact = if is_length {
            Trim::to_length(u64::try_from(integer(words[at])?).map_err(|_| NEGATIVE)?)
        } else {
            Trim::to_id(StreamId::parse_strict(words[at], 0)?)
        };
        let is_approximate = at == 2 && words[1] == b"~";
        self.trim = Some(TrimOption { exact, is_approximate, limit: None });
        Ok(at + 1)
    }

    /// The rule, if there is one. `is_needed`: there has to be one.
    ///
    /// # Errors
    /// Options do not fit together.
    pub fn finish(self, is_needed: bool) -> Result<Option<TrimOption>, Error> {
        const LIMIT_ALONE: Error = Error::fixed(
            "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
        );
        const NONE: Error =
            Error::fixed("ERR syntax error, XTRIM must be called with a trimming strategy");
        const LIMIT_EXACT: Error =
            Error::fixed("ERR syntax error, LIMIT cannot be used without the special ~ option");

        let Self { trim, limit } = self;
        match trim {
            None if limit.is_some_and(|limit| limit > 0) => Err(LIMIT_ALONE),
            None if is_needed => Err(NONE),
            None if limit.is_some() => Err(LIMIT_EXACT),
            Some(trim) if limit.is_some() && !trim.is_approximate => Err(LIMIT_EXACT),
            trim => Ok(trim.map(|trim| TrimOption { limit, ..trim })),
        }
    }
}
