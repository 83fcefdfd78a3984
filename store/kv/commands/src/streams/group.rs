// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `XGROUP` and `XACK`: consumer groups, and entries that their consumers are done with.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::stream::GroupStart;
use freeport_kv_types::{Stream, StreamRef};

use super::{ids, no_group, reply, specs};
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::command::{Flags, Spec};
use crate::effects::Class;
use crate::error::Error;
use crate::subcommand::{self, Subcommand};

const NAME: &str = "XGROUP";

const SUBCOMMANDS: [Subcommand; 6] = [
    Subcommand { name: "create", arity: -5, run: create },
    Subcommand { name: "setid", arity: -5, run: set_id },
    Subcommand { name: "destroy", arity: 4, run: destroy },
    Subcommand { name: "createconsumer", arity: 5, run: create_consumer },
    Subcommand { name: "delconsumer", arity: 5, run: delete_consumer },
    Subcommand { name: "help", arity: 2, run: help },
];

/// Properties of the subcommands.
pub const SPECS: &[Spec] = &specs(
    &SUBCOMMANDS,
    [
        Flags::WRITE.with(Flags::GROWS),
        Flags::WRITE,
        Flags::WRITE,
        Flags::WRITE.with(Flags::GROWS),
        Flags::WRITE,
        Flags::LOADING.with(Flags::STALE),
    ],
);

const HELP: &[&str] = &[
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
];

/// `XGROUP CREATE|SETID|DESTROY|CREATECONSUMER|DELCONSUMER|HELP ...`
pub fn xgroup(call: &mut Call<'_>) -> Result<(), Error> {
    subcommand::run(call, "xgroup", &SUBCOMMANDS)
}

fn help(call: &mut Call<'_>) -> Result<(), Error> {
    subcommand::help(&mut call.reply, NAME, HELP);
    Ok(())
}

/// `XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]`
fn create(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group) = (call.arguments[2], call.arguments[3]);
    let options = Options::parse(call, true)?;
    let is_new = match call.database.read::<Stream>(key)? {
        None if !options.is_stream_made => return Err(Options::KEY_NEEDED),
        stream => stream.is_none(),
    };
    if call.arguments.len() > 8 {
        return Err(Error::unknown_subcommand(NAME, call.arguments[1]));
    }
    let start = GroupStart::parse(call.arguments[4])?;
    let create = |stream: &mut Stream| stream.create_group(group, start, options.entries_read);
    call.database.change(key, |stream, _| create(stream))??;
    if is_new {
        call.database.changed(key, Class::Stream, "xgroup-create");
    } else {
        call.database.changed_unwatched(key, Some((Class::Stream, "xgroup-create")));
    }
    call.reply.raw(shared::OK);
    Ok(())
}

/// `XGROUP SETID key group id|$ [ENTRIESREAD entries-read]`
fn set_id(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group) = (call.arguments[2], call.arguments[3]);
    let options = Options::parse(call, false)?;
    check_group(call, key, group)?;
    if call.arguments.len() > 7 {
        return Err(Error::unknown_subcommand(NAME, call.arguments[1]));
    }
    let start = GroupStart::parse_any(call.arguments[4])?;
    let set = |stream: &mut Stream| stream.set_group(group, start, options.entries_read);
    call.database.shrink(key, |stream, _| set(stream))??;
    call.database.changed_unwatched(key, Some((Class::Stream, "xgroup-setid")));
    call.reply.raw(shared::OK);
    Ok(())
}

/// Options of a group that is made or moved.
struct Options {
    is_stream_made: bool,
    entries_read: Option<u64>,
}

impl Options {
    const KEY_NEEDED: Error = Error::fixed(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to \
         use the MKSTREAM option to create an empty stream automatically.",
    );

    fn parse(call: &Call<'_>, can_make: bool) -> Result<Self, Error> {
        const NEGATIVE: Error = Error::fixed("ERR value for ENTRIESREAD must be positive or -1");

        let mut options = Self { is_stream_made: false, entries_read: None };
        let mut words = &call.arguments[5..];
        while !words.is_empty() {
            words = match words {
                [word, rest @ ..] if can_make && is(word, "mkstream") => {
                    options.is_stream_made = true;
                    rest
                }
                [word, value, rest @ ..] if is(word, "entriesread") => {
                    options.entries_read = match integer(value)? {
                        -1 => None,
                        value => Some(u64::try_from(value).map_err(|_| NEGATIVE)?),
                    };
                    rest
                }
                _ => return Err(Error::unknown_subcommand(NAME, call.arguments[1])),
            };
        }
        Ok(options)
    }
}

/// `XGROUP DESTROY key group`
fn destroy(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group) = (call.arguments[2], call.arguments[3]);
    existing(call, key)?;
    let is_removed =
        call.database.shrink(key, |stream: &mut Stream, _| stream.destroy_group(group))?;
    if is_removed {
        call.database.changed_unwatched(key, Some((Class::Stream, "xgroup-destroy")));
        // Clients that wait as members of the group learn that it is gone.
        call.database.wake(key);
    }
    reply::count(&mut call.reply, is_removed.into());
    Ok(())
}

/// `XGROUP CREATECONSUMER key group consumer`
fn create_consumer(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group, consumer) = (call.arguments[2], call.arguments[3], call.arguments[4]);
    check_group(call, key, group)?;
    let now_ms = call.now_ms();
    let create = |stream: &mut Stream| stream.create_consumer(group, consumer, now_ms);
    let is_new = call.database.change(key, |stream, _| create(stream))??;
    if is_new {
        let event = (Class::Stream, "xgroup-createconsumer");
        call.database.changed_unwatched(key, Some(event));
    }
    reply::count(&mut call.reply, is_new.into());
    Ok(())
}

/// `XGROUP DELCONSUMER key group consumer`
fn delete_consumer(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group, consumer) = (call.arguments[2], call.arguments[3], call.arguments[4]);
    let is_there = check_group(call, key, group)?.has_consumer(group, consumer);
    if !is_there {
        call.reply.raw(shared::ZERO);
        return Ok(());
    }
    let delete = |stream: &mut Stream| stream.delete_consumer(group, consumer);
    let pending = call.database.shrink(key, |stream, _| delete(stream))??;
    call.database.changed_unwatched(key, Some((Class::Stream, "xgroup-delconsumer")));
    reply::count(&mut call.reply, pending);
    Ok(())
}

fn existing<'a>(call: &'a Call<'_>, key: &[u8]) -> Result<StreamRef<'a>, Error> {
    call.database.read::<Stream>(key)?.ok_or(Options::KEY_NEEDED)
}

fn check_group<'a>(call: &'a Call<'_>, key: &[u8], group: &[u8]) -> Result<StreamRef<'a>, Error> {
    let stream = existing(call, key)?;
    if stream.has_group(group) { Ok(stream) } else { Err(no_group(key, group)) }
}

/// `XACK key group id ...`
pub fn xack(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, group) = (call.arguments[1], call.arguments[2]);
    if !call.database.read::<Stream>(key)?.is_some_and(|stream| stream.has_group(group)) {
        call.reply.raw(shared::ZERO);
        return Ok(());
    }
    let ids = ids(&call.arguments[3..])?;
    let acknowledge = |stream: &mut Stream| stream.acknowledge(group, &ids);
    let acknowledged = call.database.shrink(key, |stream, _| acknowledge(stream))??;
    if acknowledged > 0 {
        call.database.changed_unwatched(key, None);
    }
    reply::count(&mut call.reply, acknowledged);
    Ok(())
}
