// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of any type: whether they exist, when they expire, where they are, and what they hold.

mod databases;
mod debug;
mod digest;
mod dump;
mod existence;
mod expiry;
mod inspection;
mod iteration;
mod payload;
mod reload;
mod relocation;

use crate::command::{Command, Flags, Group, Run};
use crate::keys::Keys;

const READ: Flags = Flags::READ;
const FAST_READ: Flags = Flags::READ.with(Flags::FAST);
const WRITE: Flags = Flags::WRITE;
const FAST_WRITE: Flags = Flags::WRITE.with(Flags::FAST);
const GROWS: Flags = Flags::WRITE.with(Flags::GROWS);
const DEBUG: Flags = Flags::ADMIN.with(Flags::NO_SCRIPT).with(Flags::LOADING).with(Flags::STALE);

/// Key of a command with subcommands, most of which have one behind their name.
const SECOND: Keys = Keys::Found(|arguments| if arguments.len() > 2 { vec![2] } else { vec![] });

const fn generic(name: &'static str, arity: i32, flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new((name, arity), Group::Generic, flags, keys, run)
}

const fn server(name: &'static str, arity: i32, flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new((name, arity), Group::Server, flags, keys, run)
}

/// Commands of keys.
pub const COMMANDS: &[Command] = &[
    generic("del", -2, WRITE, Keys::REST, existence::del),
    generic("unlink", -2, FAST_WRITE, Keys::REST, existence::del),
    generic("exists", -2, FAST_READ, Keys::REST, existence::exists),
    generic("touch", -2, FAST_READ, Keys::REST, existence::exists),
    generic("type", 2, FAST_READ, Keys::FIRST, existence::kind),
    generic("expire", -3, FAST_WRITE, Keys::FIRST, expiry::expire),
    generic("pexpire", -3, FAST_WRITE, Keys::FIRST, expiry::pexpire),
    generic("expireat", -3, FAST_WRITE, Keys::FIRST, expiry::expire_at),
    generic("pexpireat", -3, FAST_WRITE, Keys::FIRST, expiry::pexpire_at),
    generic("ttl", 2, FAST_READ, Keys::FIRST, expiry::ttl),
    generic("pttl", 2, FAST_READ, Keys::FIRST, expiry::pttl),
    generic("expiretime", 2, FAST_READ, Keys::FIRST, expiry::expire_time),
    generic("pexpiretime", 2, FAST_READ, Keys::FIRST, expiry::pexpire_time),
    generic("persist", 2, FAST_WRITE, Keys::FIRST, expiry::persist),
    generic("rename", 3, WRITE, Keys::TWO, relocation::rename),
    generic("renamenx", 3, FAST_WRITE, Keys::TWO, relocation::rename_new),
    generic("copy", -3, GROWS, Keys::TWO, relocation::copy),
    generic("move", 3, FAST_WRITE, Keys::FIRST, relocation::move_key),
    generic("keys", 2, READ, Keys::All, iteration::keys),
    generic("scan", -2, READ, Keys::All, iteration::scan),
    generic("randomkey", 1, READ, Keys::All, iteration::random_key),
    generic("dump", 2, READ, Keys::FIRST, dump::dump),
    generic("restore", -4, GROWS, Keys::FIRST, dump::restore),
    generic("object", -2, Flags::NONE, SECOND, inspection::object),
    server("memory", -2, Flags::NONE, SECOND, inspection::memory),
    server("dbsize", 1, FAST_READ, Keys::All, databases::size),
    server("flushdb", -1, WRITE, Keys::All, databases::flush_one),
    server("flushall", -1, WRITE, Keys::All, databases::flush_all),
    server("swapdb", 3, FAST_WRITE, Keys::All, databases::swap),
    server("debug", -2, DEBUG, Keys::All, debug::debug),
];
