// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lists: elements in an order that their users choose.

mod edit;
mod pop;
mod push;
mod read;
mod transfer;

use freeport_kv_types::list::End;

use crate::arguments::is;
use crate::command::{Command, Flags, Group, Run};
use crate::error::Error;
use crate::keys::Keys;

const READ: Flags = Flags::READ;
const WRITE: Flags = Flags::WRITE;
const GROW: Flags = WRITE.with(Flags::GROWS);
const FAST: Flags = Flags::FAST;
const COUNTED: Flags = WRITE.with(Flags::MOVABLE_KEYS);
const BLOCK: Flags = WRITE.with(Flags::BLOCKING);

/// All arguments but the last, which is a timeout.
const ALL_BUT_LAST: Keys = Keys::Range { first: 1, last: -2, step: 1 };

/// Commands of lists.
pub const COMMANDS: &[Command] = &[
    list(("lpush", -3), GROW.with(FAST), Keys::FIRST, push::lpush),
    list(("rpush", -3), GROW.with(FAST), Keys::FIRST, push::rpush),
    list(("lpushx", -3), GROW.with(FAST), Keys::FIRST, push::lpushx),
    list(("rpushx", -3), GROW.with(FAST), Keys::FIRST, push::rpushx),
    list(("lpop", -2), WRITE.with(FAST), Keys::FIRST, pop::lpop),
    list(("rpop", -2), WRITE.with(FAST), Keys::FIRST, pop::rpop),
    list(("lmpop", -4), COUNTED, Keys::Counted { count: 1, target: 0 }, pop::lmpop),
    list(("blpop", -3), BLOCK, ALL_BUT_LAST, pop::blpop),
    list(("brpop", -3), BLOCK, ALL_BUT_LAST, pop::brpop),
    list(
        ("blmpop", -5),
        COUNTED.with(Flags::BLOCKING),
        Keys::Counted { count: 2, target: 0 },
        pop::blmpop,
    ),
    list(("llen", 2), READ.with(FAST), Keys::FIRST, read::llen),
    list(("lrange", 4), READ, Keys::FIRST, read::lrange),
    list(("lindex", 3), READ, Keys::FIRST, read::lindex),
    list(("lpos", -3), READ, Keys::FIRST, read::lpos),
    list(("lset", 4), GROW, Keys::FIRST, edit::lset),
    list(("linsert", 5), GROW, Keys::FIRST, edit::linsert),
    list(("lrem", 4), WRITE, Keys::FIRST, edit::lrem),
    list(("ltrim", 4), WRITE, Keys::FIRST, edit::ltrim),
    list(("lmove", 5), GROW, Keys::TWO, transfer::lmove),
    list(("rpoplpush", 3), GROW, Keys::TWO, transfer::rpoplpush),
    list(("blmove", 6), GROW.with(BLOCK), Keys::TWO, transfer::blmove),
    list(("brpoplpush", 4), GROW.with(BLOCK), Keys::TWO, transfer::brpoplpush),
];

const fn list(name: (&'static str, i32), flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new(name, Group::List, flags, keys, run)
}

/// The end that `LEFT` or `RIGHT` names.
fn end(word: &[u8]) -> Result<End, Error> {
    match word {
        _ if is(word, "left") => Ok(End::Front),
        _ if is(word, "right") => Ok(End::Back),
        _ => Err(Error::SYNTAX),
    }
}

/// Event of elements that were added at an end.
fn push_event(end: End) -> &'static str {
    if end == End::Front { "lpush" } else { "rpush" }
}

/// Event of elements that were removed at an end.
fn pop_event(end: End) -> &'static str {
    if end == End::Front { "lpop" } else { "rpop" }
}
