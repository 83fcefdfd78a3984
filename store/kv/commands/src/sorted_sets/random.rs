// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random members.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::ZSet;

use super::elements;
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::error::Error;

/// Bytes of the largest reply with repeated members, whose number is the client's.
const MOST_BYTES: usize = 1 << 30;
/// Bytes that each member takes in a reply, at least.
const LEAST_BYTES: usize = 6;

const OUT_OF_RANGE: Error = Error::fixed("ERR value is out of range");
const NO_OPPOSITE: Error = Error::fixed(
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
);

pub(super) fn zrandmember(call: &mut Call<'_>) -> Result<(), Error> {
    let (count, has_scores) = match call.arguments {
        [_, _] => return reply_one(call),
        [_, _, count, words @ ..] => (parse_count(count, words)?, !words.is_empty()),
        _ => return Err(Error::SYNTAX),
    };
    match usize::try_from(count) {
        Ok(count) => reply_different(call, count, has_scores),
        Err(_) => reply_any(call, count.unsigned_abs(), has_scores),
    }
}

/// The number of members, with the words behind it.
fn parse_count(count: &[u8], words: &[&[u8]]) -> Result<i64, Error> {
    let count = integer(count)?;
    if count == i64::MIN {
        return Err(NO_OPPOSITE);
    }
    match words {
        [] => Ok(count),
        [word] if is(word, "withscores") => {
            let is_in_range = count.unsigned_abs() <= (i64::MAX / 2).unsigned_abs();
            is_in_range.then_some(count).ok_or(OUT_OF_RANGE)
        }
        _ => Err(Error::SYNTAX),
    }
}

fn choose(below: usize) -> usize {
    fastrand::usize(..below)
}

fn reply_one(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<ZSet>(call.arguments[1])?;
    match set.and_then(|set| set.random(&mut choose)) {
        Some((member, _)) => elements::write_member(&mut call.reply, member),
        None => call.reply.null(),
    }
    Ok(())
}

/// Replies with different members, or with all if there are fewer.
fn reply_different(call: &mut Call<'_>, count: usize, has_scores: bool) -> Result<(), Error> {
    let Some(set) = call.database.read::<ZSet>(call.arguments[1])? else {
        call.reply.raw(shared::EMPTY_ARRAY);
        return Ok(());
    };
    elements::write_header(&mut call.reply, count.min(set.len()), has_scores);
    set.random_distinct(count, &mut choose, |member, score| {
        elements::write_element(&mut call.reply, member, has_scores.then_some(score));
    });
    Ok(())
}

/// Replies with exactly this number of members, any of them repeatedly. Redis has no limit but the
/// memory for replies; here the number is refused that would exceed [`MOST_BYTES`].
fn reply_any(call: &mut Call<'_>, count: u64, has_scores: bool) -> Result<(), Error> {
    let Some(set) = call.database.read::<ZSet>(call.arguments[1])? else {
        call.reply.raw(shared::EMPTY_ARRAY);
        return Ok(());
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > MOST_BYTES / LEAST_BYTES {
        return Err(OUT_OF_RANGE);
    }
    let start = call.reply.len();
    elements::write_header(&mut call.reply, count, has_scores);
    for _ in 0..count {
        let (member, score) = set.random(&mut choose).expect("a stored set has members");
        elements::write_element(&mut call.reply, member, has_scores.then_some(score));
        if call.reply.len() - start > MOST_BYTES {
            return Err(OUT_OF_RANGE);
        }
    }
    Ok(())
}
