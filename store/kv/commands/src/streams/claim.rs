// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `XCLAIM` and `XAUTOCLAIM`: a consumer takes over pending entries of others.

use freeport_kv_types::stream::{AutoClaim, Claim, ClaimTime};
use freeport_kv_types::{Stream, StreamId};

use super::read::note_new_consumer;
use super::{reply, stream_with_group};
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::error::Error;

/// Most entries that `XAUTOCLAIM` may be asked for: it looks at ten times as many.
const MOST_CLAIMED: i64 = i64::MAX / 16;

/// `XCLAIM key group consumer min-idle-time id ... [IDLE ms] [TIME unix-ms] [RETRYCOUNT count]
/// [FORCE] [JUSTID] [LASTID id]`
pub fn xclaim(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group, consumer) = (call.arguments[1], call.arguments[2], call.arguments[3]);
    stream_with_group(&call.database, key, group)?;
    let min_idle_ms = number(call.arguments[4], "min-idle-time", "XCLAIM")?.max(0) as u64;
    let parsed = call.arguments[5..].iter().map_while(|word| StreamId::parse_strict(word, 0).ok());
    let ids: Vec<StreamId> = parsed.collect();
    let now_ms = call.now_ms();
    let claim = options(&call.arguments[5 + ids.len()..], min_idle_ms, now_ms)?;
    note_new_consumer(call, key, group, consumer)?;
    let (start, output) = (call.reply.len(), &mut call.reply);
    let mut claimed = 0;
    call.database.shrink(key, |stream: &mut Stream, _| {
        stream.claim(group, consumer, &ids, &claim, |entry| {
            claimed += 1;
            match claim.is_silent {
                true => reply::id(output, entry.id),
                false => reply::entry(output, entry),
            }
        })
    })??;
    call.reply.before(start, |reply| reply.array(claimed));
    call.database.changed_unwatched(key, None);
    Ok(())
}

fn options(words: &[&[u8]], min_idle_ms: u64, now_ms: u64) -> Result<Claim, Error> {
    let mut claim = Claim { min_idle_ms, now_ms, ..Claim::default() };
    let mut words = words;
    while let [word, rest @ ..] = words {
        words = match rest {
            rest if is(word, "force") => {
                claim.is_forced = true;
                rest
            }
            rest if is(word, "justid") => {
                claim.is_silent = true;
                rest
            }
            [value, rest @ ..] if is(word, "idle") => {
                claim.delivered = ClaimTime::Idle(number(value, "IDLE option", "XCLAIM")?);
                rest
            }
            [value, rest @ ..] if is(word, "time") => {
                claim.delivered = ClaimTime::At(number(value, "TIME option", "XCLAIM")?);
                rest
            }
            [value, rest @ ..] if is(word, "retrycount") => {
                let count = number(value, "RETRYCOUNT option", "XCLAIM")?;
                claim.deliveries = u64::try_from(count).ok();
                rest
            }
            [value, rest @ ..] if is(word, "lastid") => {
                claim.last_id = Some(StreamId::parse_strict(value, 0)?);
                rest
            }
            _ => {
                let option = Error::shown(word);
                return Err(Error::new(format!("ERR Unrecognized XCLAIM option '{option}'")));
            }
        };
    }
    Ok(claim)
}

/// A number that has its own words for a wrong one.
fn number(text: &[u8], what: &str, command: &str) -> Result<i64, Error> {
    integer(text).map_err(|_| Error::new(format!("ERR Invalid {what} argument for {command}")))
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`
pub fn xautoclaim(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group, consumer) = (call.arguments[1], call.arguments[2], call.arguments[3]);
    let claim = automatic_options(&call.arguments[4..], call.now_ms())?;
    stream_with_group(&call.database, key, group)?;
    note_new_consumer(call, key, group, consumer)?;
    call.reply.array(3);
    let (start, output) = (call.reply.len(), &mut call.reply);
    let mut claimed = 0;
    let done = call.database.shrink(key, |stream: &mut Stream, _| {
        stream.claim_idle(group, consumer, &claim, |entry| {
            claimed += 1;
            match claim.is_silent {
                true => reply::id(output, entry.id),
                false => reply::entry(output, entry),
            }
        })
    })??;
    call.reply.before(start, |reply| {
        reply::id(reply, done.next);
        reply.array(claimed);
    });
    call.reply.array(done.deleted.len());
    done.deleted.iter().for_each(|id| reply::id(&mut call.reply, *id));
    call.database.changed_unwatched(key, None);
    Ok(())
}

fn automatic_options(words: &[&[u8]], now_ms: u64) -> Result<AutoClaim, Error> {
    const NO_COUNT: Error = Error::fixed("ERR COUNT must be > 0");

    let min_idle_ms = number(words[0], "min-idle-time", "XAUTOCLAIM")?.max(0) as u64;
    let start = StreamId::parse_start(words[1])?;
    let mut claim = AutoClaim { min_idle_ms, start, count: 100, is_silent: false, now_ms };
    let mut words = &words[2..];
    while !words.is_empty() {
        words = match words {
            [word, value, rest @ ..] if is(word, "count") => {
                let count = integer(value).ok().filter(|count| (1..=MOST_CLAIMED).contains(count));
                claim.count = count.ok_or(NO_COUNT)? as u64;
                rest
            }
            [word, rest @ ..] if is(word, "justid") => {
                claim.is_silent = true;
                rest
            }
            _ => return Err(Error::SYNTAX),
        };
    }
    Ok(claim)
}
