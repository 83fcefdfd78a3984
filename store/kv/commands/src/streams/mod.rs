// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams and their consumer groups.
//!
//! A change of a stream itself (an entry added, deleted or trimmed) fails transactions that watch
//! the key and wakes clients that wait for it. A change of a group does neither: groups are no part
//! of what a transaction reads. One is an exception: a client that reads as a member of a group
//! waits for its key also to lose the group, and then gets the error of a missing group.
//!
//! Reading as a member of a group and claiming only move entries between lists, and are what
//! consumers do before they acknowledge and delete: a full store takes them.

mod add;
mod claim;
mod entries;
mod group;
mod info;
mod pending;
mod read;
mod read_options;
mod reply;
mod trim;

use freeport_kv_types::{Stream, StreamId, StreamRef};

use crate::command::{Command, Flags, Group, Run, Spec};
use crate::database::Database;
use crate::error::Error;
use crate::keys::Keys;
use crate::subcommand::Subcommand;

const READ: Flags = Flags::READ;
const WRITE: Flags = Flags::WRITE;
const ADD: Flags = WRITE.with(Flags::GROWS).with(Flags::FAST);
const BLOCKING: Flags = Flags::BLOCKING.with(Flags::MOVABLE_KEYS);
const STREAM: Group = Group::Stream;

/// The key of a command with subcommands, all of which but `HELP` have one.
const SECOND: Keys = Keys::Found(|arguments| if arguments.len() > 2 { vec![2] } else { vec![] });

/// Commands of streams.
pub const COMMANDS: &[Command] = &[
    Command::new(("xadd", -5), STREAM, ADD, Keys::FIRST, add::xadd),
    Command::new(("xlen", 2), STREAM, READ.with(Flags::FAST), Keys::FIRST, entries::xlen),
    Command::new(("xrange", -4), STREAM, READ, Keys::FIRST, entries::xrange),
    Command::new(("xrevrange", -4), STREAM, READ, Keys::FIRST, entries::xrevrange),
    Command::new(("xread", -4), STREAM, READ.with(BLOCKING), read_options::KEYS, read::xread),
    Command::new(
        ("xreadgroup", -7),
        STREAM,
        WRITE.with(BLOCKING),
        read_options::KEYS,
        read::xreadgroup,
    ),
    Command::new(("xdel", -3), STREAM, WRITE.with(Flags::FAST), Keys::FIRST, entries::xdel),
    Command::new(("xtrim", -4), STREAM, WRITE, Keys::FIRST, add::xtrim),
    Command::new(("xsetid", -3), STREAM, ADD, Keys::FIRST, entries::xsetid),
    divided("xgroup", group::xgroup, group::SPECS),
    Command::new(("xack", -4), STREAM, WRITE.with(Flags::FAST), Keys::FIRST, group::xack),
    Command::new(("xpending", -3), STREAM, READ, Keys::FIRST, pending::xpending),
    Command::new(("xclaim", -6), STREAM, WRITE.with(Flags::FAST), Keys::FIRST, claim::xclaim),
    Command::new(
        ("xautoclaim", -6),
        STREAM,
        WRITE.with(Flags::FAST),
        Keys::FIRST,
        claim::xautoclaim,
    ),
    divided("xinfo", info::xinfo, info::SPECS),
];

/// A command that consists of subcommands.
const fn divided(name: &'static str, run: Run, subcommands: &'static [Spec]) -> Command {
    Command::new((name, -2), STREAM, Flags::NONE, SECOND, run).with_subcommands(subcommands)
}

/// Properties of subcommands, each with its flags.
const fn specs<const COUNT: usize>(
    subcommands: &[Subcommand; COUNT],
    flags: [Flags; COUNT],
) -> [Spec; COUNT] {
    let mut specs = [Spec {
        name: "",
        arity: 0,
        flags: Flags::NONE,
        keys: Keys::Range { first: 2, last: 2, step: 1 },
        group: STREAM,
        subcommands: &[],
        number: 0,
    }; COUNT];
    let mut at = 0;
    while at < COUNT {
        specs[at].name = subcommands[at].name;
        specs[at].arity = subcommands[at].arity;
        specs[at].flags = flags[at];
        at += 1;
    }
    specs
}

/// Complete ids of entries.
fn ids(arguments: &[&[u8]]) -> Result<Vec<StreamId>, Error> {
    arguments.iter().map(|text| Ok(StreamId::parse_strict(text, 0)?)).collect()
}

/// The stream of a key, which has a group of this name.
fn stream_with_group<'a>(
    database: &'a Database<'_>,
    key: &[u8],
    group: &[u8],
) -> Result<StreamRef<'a>, Error> {
    let stream = database.read::<Stream>(key)?;
    stream.filter(|stream| stream.has_group(group)).ok_or_else(|| {
        let (key, group) = (Error::shown(key), Error::shown(group));
        Error::new(format!("NOGROUP No such key '{key}' or consumer group '{group}'"))
    })
}

/// The stream has no such group.
fn no_group(key: &[u8], group: &[u8]) -> Error {
    let (key, group) = (Error::shown(key), Error::shown(group));
    Error::new(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}
