// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings as vectors of bits and of small integers.
//!
//! Bits are changed where the string lies. Only a bit behind its end makes the string longer.

mod field;
mod operation;
mod range;
mod single;

use crate::command::{Command, Flags, Group, Run};
use crate::error::Error;
use crate::keys::Keys;

const FAST_READ: Flags = Flags::READ.with(Flags::FAST);
const GROW: Flags = Flags::WRITE.with(Flags::GROWS);

/// An offset is no integer, negative, or behind the largest string.
const OFFSET_OUT_OF_RANGE: Error = Error::fixed("ERR bit offset is not an integer or out of range");

/// Commands of bits.
pub const COMMANDS: &[Command] = &[
    with("setbit", 4, GROW, Keys::FIRST, single::setbit),
    with("getbit", 3, FAST_READ, Keys::FIRST, single::getbit),
    with("bitcount", -2, Flags::READ, Keys::FIRST, range::bitcount),
    with("bitpos", -3, Flags::READ, Keys::FIRST, range::bitpos),
    with("bitop", -4, GROW, Keys::Range { first: 2, last: -1, step: 1 }, operation::bitop),
    with("bitfield", -2, GROW, Keys::FIRST, field::bitfield),
    with("bitfield_ro", -2, FAST_READ, Keys::FIRST, field::bitfield_ro),
];

const fn with(name: &'static str, arity: i32, flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new((name, arity), Group::Bitmap, flags, keys, run)
}
