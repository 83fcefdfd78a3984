// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ACL LOG`: shows or forgets what clients were refused.

use freeport_kv_commands::Error;
use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_protocol::resp::reply::shared;

use super::{Context, Flow};
use crate::access::LogEntry;

/// Entries that are shown if no number is given.
const USUAL: usize = 10;

/// `ACL LOG [count | RESET]`.
pub(super) fn show(context: &mut Context<'_>) -> Result<Flow, Error> {
    let count = match context.arguments[2..] {
        [] => USUAL,
        [word] if is(word, "reset") => {
            context.core.shared.users.log.clear();
            context.reply().raw(shared::OK);
            return Ok(Flow::Continue);
        }
        [count] => usize::try_from(integer(count)?).unwrap_or(0),
        _ => return Err(Error::unknown_subcommand("ACL", context.arguments[1])),
    };
    let entries = context.core.shared.users.log.latest(count);
    let now_ms = context.core.now_ms;
    context.reply().array(entries.len());
    entries.iter().for_each(|entry| show_entry(context, entry, now_ms));
    Ok(Flow::Continue)
}

fn show_entry(context: &mut Context<'_>, entry: &LogEntry, now_ms: u64) {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut reply = context.reply();
    reply.map(10);
    reply.bulk(b"count");
    reply.integer(number(entry.count));
    for (name, value) in [
        ("reason", entry.reason.word().as_bytes()),
        ("context", entry.place.word().as_bytes()),
        ("object", &entry.object),
        ("username", &entry.user),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(value);
    }
    reply.bulk(b"age-seconds");
    reply.double(now_ms.saturating_sub(entry.updated_ms) as f64 / 1_000.0);
    reply.bulk(b"client-info");
    reply.bulk(entry.client.as_bytes());
    for (name, value) in [
        ("entry-id", entry.id),
        ("timestamp-created", entry.created_ms),
        ("timestamp-last-updated", entry.updated_ms),
    ] {
        reply.bulk(name.as_bytes());
        reply.integer(number(value));
    }
}
