// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Iterating over a sorted set in steps.

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::ZSet;
use freeport_kv_types::number::Digits;
use freeport_kv_types::pattern::matches;
use freeport_kv_types::zset::push_score;

use super::elements;
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::error::Error;

const CURSOR: Error = Error::fixed("ERR invalid cursor");

/// Elements of a step, unless the client gives their number.
const COUNT: usize = 10;

/// Words are not looked at if there is no such key, as in Redis. Scores are strings in both
/// versions of the protocol. Redis prints those of large sets with 17 digits; here all have the
/// fewest digits.
pub(super) fn zscan(call: &mut Call<'_>) -> Result<(), Error> {
    let cursor = parse_cursor(call.arguments[2])?;
    let (mut next, mut count, mut found) = (0, 0, vec![]);
    if let Some(set) = call.database.read::<ZSet>(call.arguments[1])? {
        let step = Step::parse(&call.arguments[3..])?;
        let mut writer = Writer::new(&mut found, call.reply.version());
        let mut text = vec![];
        next = set.scan(cursor, step.count, |member, score| {
            if member.with_bytes(|member| step.pattern.is_none_or(|one| matches(one, member))) {
                text.clear();
                push_score(score, &mut text);
                elements::write_member(&mut writer, member);
                writer.bulk(&text);
                count += 2;
            }
        });
    }
    call.reply.array(2);
    let next = i64::try_from(next).expect("cursors are numbers of members, below 2^32");
    call.reply.bulk(Digits::new(next).as_bytes());
    call.reply.array(count);
    call.reply.raw(&found);
    Ok(())
}

/// Reads a cursor as `strtoul` does: it may have a sign, and may be empty.
fn parse_cursor(argument: &[u8]) -> Result<u64, Error> {
    let (is_negative, digits) = match argument {
        [] => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    // The integer itself may begin with a sign.
    if !digits.first().is_some_and(u8::is_ascii_digit) {
        return Err(CURSOR);
    }
    let cursor: Option<u64> = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
    let cursor = cursor.ok_or(CURSOR)?;
    Ok(if is_negative { cursor.wrapping_neg() } else { cursor })
}

/// What a step is to return.
#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
}

impl<'a> Step<'a> {
    fn parse(words: &[&'a [u8]]) -> Result<Self, Error> {
        let mut step = Self { pattern: None, count: COUNT };
        for pair in words.chunks(2) {
            match *pair {
                // The matcher does not find an empty member by `*`.
                [word, b"*"] if is(word, "match") => step.pattern = None,
                [word, pattern] if is(word, "match") => step.pattern = Some(pattern),
                [word, count] if is(word, "count") => {
                    let count = integer(count)?;
                    step.count = usize::try_from(count)
                        .ok()
                        .filter(|count| *count > 0)
                        .ok_or(Error::SYNTAX)?;
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_redis_reads_them() {
        let cursors: [(&[u8], u64); 5] =
            [(b"", 0), (b"17", 17), (b"+5", 5), (b"-1", u64::MAX), (b"007", 7)];
        for (text, cursor) in cursors {
            assert_eq!(parse_cursor(text), Ok(cursor));
        }
        for text in [&b"-"[..], b"+-5", b" 5", b"5x", b"x", b"99999999999999999999"] {
            assert_eq!(parse_cursor(text), Err(CURSOR));
        }
    }
}
