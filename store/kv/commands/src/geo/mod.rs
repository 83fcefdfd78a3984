// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places on earth: members of sorted sets, whose scores are their geohashes.

mod add;
mod arguments;
mod member;
mod request;
mod search;

use crate::command::{Command, Flags, Group, Run};
use crate::keys::Keys;

const READ: Flags = Flags::READ;
const GROW: Flags = Flags::WRITE.with(Flags::GROWS);
const GROW_MOVABLE: Flags = GROW.with(Flags::MOVABLE_KEYS);
const WITH_TARGET: Keys = Keys::Found(search::keys_with_target);

/// Commands of places.
pub const COMMANDS: &[Command] = &[
    new("geoadd", -5, GROW, Keys::FIRST, add::geoadd),
    new("geodist", -4, READ, Keys::FIRST, member::geodist),
    new("geohash", -2, READ, Keys::FIRST, member::geohash),
    new("geopos", -2, READ, Keys::FIRST, member::geopos),
    new("geosearch", -7, READ, Keys::FIRST, search::geosearch),
    new("geosearchstore", -8, GROW, Keys::TWO, search::geosearchstore),
    new("georadius", -6, GROW_MOVABLE, WITH_TARGET, search::georadius),
    new("georadius_ro", -6, READ, Keys::FIRST, search::georadius_ro),
    new("georadiusbymember", -5, GROW_MOVABLE, WITH_TARGET, search::georadiusbymember),
    new("georadiusbymember_ro", -5, READ, Keys::FIRST, search::georadiusbymember_ro),
];

const fn new(name: &'static str, arity: i32, flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new((name, arity), Group::Geo, flags, keys, run)
}
