// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `XINFO`: streams, groups and consumers in numbers.

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::stream::{
    ConsumerInfo, FullConsumer, FullGroup, GroupInfo, PendingEntry, StreamEntry, StreamInfo,
};
use freeport_kv_types::{Stream, StreamRef};

use super::{no_group, reply, specs};
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::command::{Flags, Spec};
use crate::database::Database;
use crate::error::Error;
use crate::subcommand::{self, Subcommand};

const NAME: &str = "XINFO";

const SUBCOMMANDS: [Subcommand; 4] = [
    Subcommand { name: "stream", arity: -3, run: stream },
    Subcommand { name: "groups", arity: 3, run: groups },
    Subcommand { name: "consumers", arity: 4, run: consumers },
    Subcommand { name: "help", arity: 2, run: help },
];

/// Properties of the subcommands.
pub const SPECS: &[Spec] = &specs(
    &SUBCOMMANDS,
    [Flags::READ, Flags::READ, Flags::READ, Flags::LOADING.with(Flags::STALE)],
);

const HELP: &[&str] = &[
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
];

/// Entries that the full data of a stream has, if the client does not say.
const USUAL_COUNT: u64 = 10;

/// `XINFO STREAM|GROUPS|CONSUMERS|HELP ...`
pub fn xinfo(call: &mut Call<'_>) -> Result<(), Error> {
    subcommand::run(call, "xinfo", &SUBCOMMANDS)
}

fn help(call: &mut Call<'_>) -> Result<(), Error> {
    subcommand::help(&mut call.reply, NAME, HELP);
    Ok(())
}

/// `XINFO STREAM key [FULL [COUNT count]]`
fn stream(call: &mut Call<'_>) -> Result<(), Error> {
    let stream = existing(&call.database, call.arguments[2])?;
    let full_count = match &call.arguments[3..] {
        [] => None,
        [full] if is(full, "full") => Some(USUAL_COUNT),
        [full, name, count] if is(full, "full") && is(name, "count") => {
            Some(u64::try_from(integer(count)?).unwrap_or(USUAL_COUNT))
        }
        _ => return Err(Error::unknown_subcommand(NAME, call.arguments[1])),
    };
    let output = &mut call.reply;
    let Some(count) = full_count else {
        let info = stream.info();
        output.map(10);
        counters(output, &info);
        reply::name(output, "groups");
        reply::count(output, info.groups);
        reply::name(output, "first-entry");
        entry_or_null(output, info.first_entry);
        reply::name(output, "last-entry");
        entry_or_null(output, info.last_entry);
        return Ok(());
    };
    let full = stream.full_info(count);
    output.map(9);
    counters(output, &full.stream);
    reply::name(output, "entries");
    reply::entries(output, full.entries.iter().copied());
    reply::name(output, "groups");
    output.array(full.groups.len());
    full.groups.iter().for_each(|group| full_group(output, group));
    Ok(())
}

fn existing<'a>(database: &'a Database<'_>, key: &[u8]) -> Result<StreamRef<'a>, Error> {
    database.read::<Stream>(key)?.ok_or(Error::NO_SUCH_KEY)
}

fn counters(output: &mut Writer<'_>, info: &StreamInfo<'_>) {
    reply::name(output, "length");
    reply::count(output, info.length);
    // A node of entries is a leaf of the tree that Redis has, whose root is one more.
    reply::name(output, "radix-tree-keys");
    reply::count(output, info.nodes);
    reply::name(output, "radix-tree-nodes");
    reply::count(output, info.nodes + 1);
    reply::name(output, "last-generated-id");
    reply::id(output, info.last_generated_id);
    reply::name(output, "max-deleted-entry-id");
    reply::id(output, info.max_deleted_entry_id);
    reply::name(output, "entries-added");
    reply::count(output, info.entries_added);
    reply::name(output, "recorded-first-entry-id");
    reply::id(output, info.recorded_first_entry_id);
}

fn entry_or_null(output: &mut Writer<'_>, entry: Option<StreamEntry<'_>>) {
    match entry {
        Some(entry) => reply::entry(output, entry),
        None => output.null(),
    }
}

fn full_group(output: &mut Writer<'_>, FullGroup { group, pending, consumers }: &FullGroup<'_>) {
    output.map(7);
    reply::name(output, "name");
    output.bulk(group.name);
    reply::name(output, "last-delivered-id");
    reply::id(output, group.last_delivered_id);
    progress(output, group);
    reply::name(output, "pel-count");
    reply::count(output, group.pending);
    reply::name(output, "pending");
    output.array(pending.len());
    for PendingEntry { id, consumer, delivered_ms, deliveries } in pending {
        output.array(4);
        reply::id(output, *id);
        output.bulk(consumer);
        reply::count(output, *delivered_ms);
        reply::count(output, *deliveries);
    }
    reply::name(output, "consumers");
    output.array(consumers.len());
    consumers.iter().for_each(|consumer| full_consumer(output, consumer));
}

/// How far a group has read.
fn progress(output: &mut Writer<'_>, group: &GroupInfo<'_>) {
    reply::name(output, "entries-read");
    reply::optional(output, group.entries_read.map(|read| read as i64));
    reply::name(output, "lag");
    reply::optional(output, group.lag);
}

fn full_consumer(output: &mut Writer<'_>, consumer: &FullConsumer<'_>) {
    output.map(5);
    reply::name(output, "name");
    output.bulk(consumer.name);
    reply::name(output, "seen-time");
    reply::count(output, consumer.seen_ms);
    reply::name(output, "active-time");
    output.integer(consumer.active_ms.map_or(-1, |active| active as i64));
    reply::name(output, "pel-count");
    reply::count(output, consumer.pending_count);
    reply::name(output, "pending");
    output.array(consumer.pending.len());
    for entry in &consumer.pending {
        output.array(3);
        reply::id(output, entry.id);
        reply::count(output, entry.delivered_ms);
        reply::count(output, entry.deliveries);
    }
}

/// `XINFO GROUPS key`
fn groups(call: &mut Call<'_>) -> Result<(), Error> {
    let stream = existing(&call.database, call.arguments[2])?;
    let output = &mut call.reply;
    output.array(stream.info().groups as usize);
    for group in stream.groups() {
        output.map(6);
        reply::name(output, "name");
        output.bulk(group.name);
        reply::name(output, "consumers");
        reply::count(output, group.consumers);
        reply::name(output, "pending");
        reply::count(output, group.pending);
        reply::name(output, "last-delivered-id");
        reply::id(output, group.last_delivered_id);
        progress(output, &group);
    }
    Ok(())
}

/// `XINFO CONSUMERS key group`
fn consumers(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group) = (call.arguments[2], call.arguments[3]);
    let now_ms = call.now_ms();
    let stream = existing(&call.database, key)?;
    let consumers = stream.consumers(group, now_ms).map_err(|_| no_group(key, group))?;
    let output = &mut call.reply;
    let start = output.len();
    let mut count = 0;
    for ConsumerInfo { name, pending, idle_ms, inactive_ms } in consumers {
        output.map(4);
        reply::name(output, "name");
        output.bulk(name);
        reply::name(output, "pending");
        reply::count(output, pending);
        reply::name(output, "idle");
        reply::count(output, idle_ms);
        reply::name(output, "inactive");
        output.integer(inactive_ms.map_or(-1, |inactive| inactive as i64));
        count += 1;
    }
    output.before(start, |output| output.array(count));
    Ok(())
}
