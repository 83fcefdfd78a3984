// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of KV-Direct on values, as commands: a string is a number, or an array of them,
//! and a function of the server's registry works on it where it lies.
//!
//! Numbers among the arguments and in replies are text, vectors are bytes. Nothing is made: a key
//! that does not exist has a null reply.

mod function;
mod logged;
mod read;
mod update;

use crate::command::{Command, Flags, Group, Run};
use crate::keys::Keys;

/// Commands of functions on values.
pub const COMMANDS: &[Command] = &[
    with("kv.update", -4, Flags::WRITE.with(Flags::FAST), Keys::FIRST, update::update),
    with("kv.updatev", -5, Flags::WRITE, Keys::FIRST, update::updatev),
    with("kv.reduce", 5, Flags::READ, Keys::FIRST, read::reduce),
    with("kv.filter", -4, Flags::READ, Keys::FIRST, read::filter),
    with("kv.functions", 1, Flags::LOADING.with(Flags::STALE), Keys::None, read::functions),
];

const fn with(name: &'static str, arity: i32, flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new((name, arity), Group::Vector, flags, keys, run)
}
