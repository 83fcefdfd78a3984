// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets: different byte strings.

mod algebra;
mod random;
mod read;
mod scan;
mod write;

use crate::command::{Command, Flags, Group, Run};
use crate::keys::Keys;

const READ: Flags = Flags::READ.with(Flags::FAST);
/// Takes time in proportion to the set.
const READ_ALL: Flags = Flags::READ;
const GROW: Flags = Flags::WRITE.with(Flags::GROWS);
const ADD: Flags = GROW.with(Flags::FAST);
const REMOVE: Flags = Flags::WRITE.with(Flags::FAST);

/// Commands of sets.
pub const COMMANDS: &[Command] = &[
    set(("sadd", -3), ADD, Keys::FIRST, write::sadd),
    set(("srem", -3), REMOVE, Keys::FIRST, write::srem),
    set(("smove", 4), REMOVE, Keys::TWO, write::smove),
    set(("scard", 2), READ, Keys::FIRST, read::scard),
    set(("sismember", 3), READ, Keys::FIRST, read::sismember),
    set(("smismember", -3), READ, Keys::FIRST, read::smismember),
    set(("smembers", 2), READ_ALL, Keys::FIRST, read::smembers),
    set(("spop", -2), REMOVE, Keys::FIRST, random::spop),
    set(("srandmember", -2), READ_ALL, Keys::FIRST, random::srandmember),
    set(("sscan", -3), READ_ALL, Keys::FIRST, scan::sscan),
    set(("sinter", -2), READ_ALL, Keys::REST, algebra::sinter),
    set(("sintercard", -3), READ_ALL.with(Flags::MOVABLE_KEYS), COUNTED, algebra::sintercard),
    set(("sunion", -2), READ_ALL, Keys::REST, algebra::sunion),
    set(("sdiff", -2), READ_ALL, Keys::REST, algebra::sdiff),
    set(("sinterstore", -3), GROW, Keys::REST, algebra::sinterstore),
    set(("sunionstore", -3), GROW, Keys::REST, algebra::sunionstore),
    set(("sdiffstore", -3), GROW, Keys::REST, algebra::sdiffstore),
];

const COUNTED: Keys = Keys::Counted { count: 1, target: 0 };

const fn set(name: (&'static str, i32), flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new(name, Group::Set, flags, keys, run)
}
