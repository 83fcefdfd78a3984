// SPDX-License-Identifier: Apache-2.0 OR MIT
//! LCS: the longest common subsequence of two strings.

use std::ops::Range;

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::lcs::{Subsequence, length, longest};

use crate::arguments::{integer, is};
use crate::call::Call;
use crate::error::Error;

/// Form of the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    has_length: bool,
    has_ranges: bool,
    has_range_lengths: bool,
    min_match_bytes: usize,
}

impl Options {
    fn read(words: &[&[u8]]) -> Result<Self, Error> {
        const BOTH: Error =
            Error::fixed("ERR If you want both the length and indexes, please just use IDX.");
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if is(word, "IDX") {
                options.has_ranges = true;
            } else if is(word, "LEN") {
                options.has_length = true;
            } else if is(word, "WITHMATCHLEN") {
                options.has_range_lengths = true;
            } else if is(word, "MINMATCHLEN") {
                let least = integer(words.next().ok_or(Error::SYNTAX)?)?;
                options.min_match_bytes = usize::try_from(least).unwrap_or(0);
            } else {
                return Err(Error::SYNTAX);
            }
        }
        if options.has_length && options.has_ranges { Err(BOTH) } else { Ok(options) }
    }
}

/// `LCS key key [LEN] [IDX] [MINMATCHLEN bytes] [WITHMATCHLEN]`.
pub fn lcs(call: &mut Call<'_>) -> Result<(), Error> {
    const NOT_STRINGS: Error = Error::fixed("ERR The specified keys must contain string values");
    let database = &call.database;
    let strings = [call.arguments[1], call.arguments[2]].map(|key| database.string(key));
    let [Ok(first), Ok(second)] = strings else { return Err(NOT_STRINGS) };
    let (first, second) = (first.unwrap_or_default(), second.unwrap_or_default());
    let options = Options::read(&call.arguments[3..])?;
    let limits = database.limits(call.arguments[1]);
    if options.has_length {
        let length = length(limits, first, second).map_err(Error::of)?;
        call.reply.integer(length as i64);
        return Ok(());
    }
    let found = longest(limits, first, second, options.min_match_bytes).map_err(Error::of)?;
    if options.has_ranges {
        reply_with_ranges(&mut call.reply, &found, options.has_range_lengths);
    } else {
        call.reply.bulk(&found.text);
    }
    Ok(())
}

fn reply_with_ranges(reply: &mut Writer<'_>, found: &Subsequence, has_lengths: bool) {
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(found.matches.len());
    for found in &found.matches {
        reply.array(if has_lengths { 3 } else { 2 });
        reply_with_range(reply, &found.first);
        reply_with_range(reply, &found.second);
        if has_lengths {
            reply.integer(found.first.len() as i64);
        }
    }
    reply.bulk(b"len");
    reply.integer(found.text.len() as i64);
}

/// The first and the last index.
fn reply_with_range(reply: &mut Writer<'_>, range: &Range<usize>) {
    reply.array(2);
    reply.integer(range.start as i64);
    reply.integer(range.end as i64 - 1);
}
