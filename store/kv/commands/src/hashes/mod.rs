// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes: fields with values.

mod increment;
mod random;
mod read;
mod scan;
mod write;

use crate::command::{Command, Flags, Group, Run};
use crate::keys::Keys;

const READ: Flags = Flags::READ.with(Flags::FAST);
/// Takes time in proportion to the hash.
const READ_ALL: Flags = Flags::READ;
const WRITE: Flags = Flags::WRITE.with(Flags::GROWS).with(Flags::FAST);
const REMOVE: Flags = Flags::WRITE.with(Flags::FAST);

/// Commands of hashes.
pub const COMMANDS: &[Command] = &[
    hash(("hset", -4), WRITE, write::hset),
    hash(("hsetnx", 4), WRITE, write::hsetnx),
    hash(("hmset", -4), WRITE, write::hmset),
    hash(("hdel", -3), REMOVE, write::hdel),
    hash(("hincrby", 4), WRITE, increment::hincrby),
    hash(("hincrbyfloat", 4), WRITE, increment::hincrbyfloat),
    hash(("hget", 3), READ, read::hget),
    hash(("hmget", -3), READ, read::hmget),
    hash(("hlen", 2), READ, read::hlen),
    hash(("hexists", 3), READ, read::hexists),
    hash(("hstrlen", 3), READ, read::hstrlen),
    hash(("hgetall", 2), READ_ALL, read::hgetall),
    hash(("hkeys", 2), READ_ALL, read::hkeys),
    hash(("hvals", 2), READ_ALL, read::hvals),
    hash(("hrandfield", -2), READ_ALL, random::hrandfield),
    hash(("hscan", -3), READ_ALL, scan::hscan),
];

const fn hash(name: (&'static str, i32), flags: Flags, run: Run) -> Command {
    Command::new(name, Group::Hash, flags, Keys::FIRST, run)
}
