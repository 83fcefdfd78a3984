// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `XPENDING`: entries that were delivered and not acknowledged, as numbers or one by one.

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::StreamId;
use freeport_kv_types::stream::{PendingQuery, PendingSummary};

use super::{reply, stream_with_group};
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::error::Error;

/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`
pub fn xpending(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group) = (call.arguments[1], call.arguments[2]);
    let query = match call.arguments.len() {
        3 => None,
        // Redis passes over words behind the consumer, up to this number.
        6..=9 => Some(query(&call.arguments[3..])?),
        _ => return Err(Error::SYNTAX),
    };
    let stream = stream_with_group(&call.database, key, group)?;
    let Some((query, count)) = query else {
        summary(&mut call.reply, &stream.pending_summary(group)?);
        return Ok(());
    };
    let now_ms = call.database.now_ms();
    let start = call.reply.len();
    let mut entries = 0;
    for entry in stream.pending(group, &query, now_ms)?.take(count) {
        call.reply.array(4);
        reply::id(&mut call.reply, entry.id);
        call.reply.bulk(entry.consumer);
        reply::count(&mut call.reply, now_ms.saturating_sub(entry.delivered_ms));
        reply::count(&mut call.reply, entry.deliveries);
        entries += 1;
    }
    call.reply.before(start, |reply| reply.array(entries));
    Ok(())
}

/// Reads `[IDLE min-idle-time] start end count [consumer]`: what is wanted, and at most how many.
fn query<'a>(words: &[&'a [u8]]) -> Result<(PendingQuery<'a>, usize), Error> {
    let (min_idle_ms, words) = match words {
        [name, idle, words @ ..] if is(name, "idle") => {
            (u64::try_from(integer(idle)?).unwrap_or(0), words)
        }
        words => (0, words),
    };
    let [first, last, count, words @ ..] = words else { return Err(Error::SYNTAX) };
    let count = usize::try_from(integer(count)?).unwrap_or(0);
    let (first, last) = (StreamId::parse_start(first)?, StreamId::parse_end(last)?);
    let consumer = words.first().copied();
    Ok((PendingQuery { first, last, min_idle_ms, consumer }, count))
}

fn summary(output: &mut Writer<'_>, summary: &PendingSummary<'_>) {
    output.array(4);
    reply::count(output, summary.count);
    let Some((first, last)) = summary.bounds else {
        output.null();
        output.null();
        output.null_array();
        return;
    };
    reply::id(output, first);
    reply::id(output, last);
    output.array(summary.consumers.len());
    for (name, count) in &summary.consumers {
        output.array(2);
        output.bulk(name);
        output.bulk(count.to_string().as_bytes());
    }
}
