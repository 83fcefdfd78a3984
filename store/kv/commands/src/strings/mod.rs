// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings and counters.
//!
//! A string is stored as its bytes, and a counter as its decimal text. A change that keeps the
//! length is made where the string lies; any other stores the string anew.

mod count;
mod edit;
mod lcs;
mod options;
mod read;
mod set;
mod several;

use crate::command::{Command, Flags, Group, Run};
use crate::keys::Keys;

const READ: Flags = Flags::READ;
const COUNTED: Flags = Flags::WRITE.with(Flags::FAST).with(Flags::COUNTED);
const GROW: Flags = Flags::WRITE.with(Flags::GROWS);

/// Commands of strings.
pub const COMMANDS: &[Command] = &[
    with("get", 2, READ.with(Flags::FAST), read::get),
    with("getdel", 2, COUNTED, read::getdel),
    with("getex", -2, COUNTED, read::getex),
    with("strlen", 2, READ.with(Flags::FAST), read::strlen),
    with("getrange", 4, READ, read::getrange),
    with("substr", 4, READ, read::getrange),
    with("set", -3, GROW, set::set),
    with("setnx", 3, GROW.with(Flags::FAST), set::setnx),
    with("setex", 4, GROW, set::setex),
    with("psetex", 4, GROW, set::psetex),
    with("getset", 3, GROW.with(COUNTED), set::getset),
    with("append", 3, GROW.with(Flags::FAST), edit::append),
    with("setrange", 4, GROW, edit::setrange),
    with("incr", 2, GROW.with(Flags::FAST), count::incr),
    with("decr", 2, GROW.with(Flags::FAST), count::decr),
    with("incrby", 3, GROW.with(Flags::FAST), count::incrby),
    with("decrby", 3, GROW.with(Flags::FAST), count::decrby),
    with("incrbyfloat", 3, GROW.with(Flags::FAST), count::incrbyfloat),
    of_several("mget", -2, READ.with(Flags::FAST), Keys::REST, several::mget),
    of_several("mset", -3, GROW, PAIRS, several::mset),
    of_several("msetnx", -3, GROW, PAIRS, several::msetnx),
    of_several("lcs", -3, READ, Keys::TWO, lcs::lcs),
];

/// Keys that alternate with values.
const PAIRS: Keys = Keys::Range { first: 1, last: -1, step: 2 };

const fn with(name: &'static str, arity: i32, flags: Flags, run: Run) -> Command {
    of_several(name, arity, flags, Keys::FIRST, run)
}

const fn of_several(name: &'static str, arity: i32, flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new((name, arity), Group::String, flags, keys, run)
}
