// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sorted sets.
//!
//! A range of any kind is a range of ranks. Commands turn what the client wrote into ranks, and
//! read, count, remove or store the elements of these ranks.

pub(crate) mod add;
mod algebra;
mod elements;
mod pop;
mod random;
mod range;
mod read;
mod remove;
mod scan;
pub(crate) mod store;

use crate::command::{Command, Flags, Group, Run};
use crate::keys::Keys;

const READ: Flags = Flags::READ;
const READ_FAST: Flags = READ.with(Flags::FAST);
const REMOVE: Flags = Flags::WRITE;
const REMOVE_FAST: Flags = REMOVE.with(Flags::FAST);
const GROW: Flags = REMOVE.with(Flags::GROWS);
const GROW_FAST: Flags = GROW.with(Flags::FAST);
/// Redis 7.2 allows these in scripts, where they do not wait; 7.0 did not.
const WAIT: Flags = REMOVE_FAST.with(Flags::BLOCKING);

/// Keys of commands that wait: all arguments but the timeout.
const ALL_BUT_LAST: Keys = Keys::Range { first: 1, last: -2, step: 1 };
const COUNTED: Keys = Keys::Counted { count: 1, target: 0 };
const COUNTED_TARGET: Keys = Keys::Counted { count: 2, target: 1 };
const COUNTED_TIMEOUT: Keys = Keys::Counted { count: 2, target: 0 };

/// Commands of sorted sets.
pub const COMMANDS: &[Command] = &[
    new("zadd", -4, GROW_FAST, Keys::FIRST, add::zadd),
    new("zincrby", 4, GROW_FAST, Keys::FIRST, add::zincrby),
    new("zrem", -3, REMOVE_FAST, Keys::FIRST, remove::zrem),
    new("zremrangebyrank", 4, REMOVE, Keys::FIRST, remove::zremrangebyrank),
    new("zremrangebyscore", 4, REMOVE, Keys::FIRST, remove::zremrangebyscore),
    new("zremrangebylex", 4, REMOVE, Keys::FIRST, remove::zremrangebylex),
    new("zscore", 3, READ_FAST, Keys::FIRST, read::zscore),
    new("zmscore", -3, READ_FAST, Keys::FIRST, read::zmscore),
    new("zcard", 2, READ_FAST, Keys::FIRST, read::zcard),
    new("zcount", 4, READ_FAST, Keys::FIRST, read::zcount),
    new("zlexcount", 4, READ_FAST, Keys::FIRST, read::zlexcount),
    new("zrank", -3, READ_FAST, Keys::FIRST, read::zrank),
    new("zrevrank", -3, READ_FAST, Keys::FIRST, read::zrevrank),
    new("zrange", -4, READ, Keys::FIRST, range::zrange),
    new("zrevrange", -4, READ, Keys::FIRST, range::zrevrange),
    new("zrangebyscore", -4, READ, Keys::FIRST, range::zrangebyscore),
    new("zrevrangebyscore", -4, READ, Keys::FIRST, range::zrevrangebyscore),
    new("zrangebylex", -4, READ, Keys::FIRST, range::zrangebylex),
    new("zrevrangebylex", -4, READ, Keys::FIRST, range::zrevrangebylex),
    new("zrangestore", -5, GROW, Keys::TWO, range::zrangestore),
    new("zpopmin", -2, REMOVE_FAST, Keys::FIRST, pop::zpopmin),
    new("zpopmax", -2, REMOVE_FAST, Keys::FIRST, pop::zpopmax),
    new("zmpop", -4, REMOVE.with(Flags::MOVABLE_KEYS), COUNTED, pop::zmpop),
    new("bzpopmin", -3, WAIT, ALL_BUT_LAST, pop::bzpopmin),
    new("bzpopmax", -3, WAIT, ALL_BUT_LAST, pop::bzpopmax),
    new(
        "bzmpop",
        -5,
        REMOVE.with(Flags::BLOCKING).with(Flags::MOVABLE_KEYS),
        COUNTED_TIMEOUT,
        pop::bzmpop,
    ),
    new("zunion", -3, READ.with(Flags::MOVABLE_KEYS), COUNTED, algebra::zunion),
    new("zinter", -3, READ.with(Flags::MOVABLE_KEYS), COUNTED, algebra::zinter),
    new("zdiff", -3, READ.with(Flags::MOVABLE_KEYS), COUNTED, algebra::zdiff),
    new("zintercard", -3, READ.with(Flags::MOVABLE_KEYS), COUNTED, algebra::zintercard),
    new("zunionstore", -4, GROW.with(Flags::MOVABLE_KEYS), COUNTED_TARGET, algebra::zunionstore),
    new("zinterstore", -4, GROW.with(Flags::MOVABLE_KEYS), COUNTED_TARGET, algebra::zinterstore),
    new("zdiffstore", -4, GROW.with(Flags::MOVABLE_KEYS), COUNTED_TARGET, algebra::zdiffstore),
    new("zrandmember", -2, READ, Keys::FIRST, random::zrandmember),
    new("zscan", -3, READ, Keys::FIRST, scan::zscan),
];

const fn new(name: &'static str, arity: i32, flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new((name, arity), Group::SortedSet, flags, keys, run)
}
