// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HyperLogLogs: approximate numbers of different elements, in strings.

mod count;
mod debug;

use crate::command::{Command, Flags, Group, Run};
use crate::keys::Keys;

const GROW: Flags = Flags::WRITE.with(Flags::GROWS);
const SECOND: Keys = Keys::Range { first: 2, last: 2, step: 1 };

/// Commands of HyperLogLogs.
pub const COMMANDS: &[Command] = &[
    with("pfadd", -2, GROW.with(Flags::FAST), Keys::FIRST, count::pfadd),
    with("pfcount", -2, Flags::READ, Keys::REST, count::pfcount),
    with("pfmerge", -2, GROW, Keys::REST, count::pfmerge),
    with("pfdebug", 3, GROW.with(Flags::ADMIN), SECOND, debug::pfdebug),
    with("pfselftest", 1, Flags::ADMIN, Keys::None, debug::pfselftest),
];

const fn with(name: &'static str, arity: i32, flags: Flags, keys: Keys, run: Run) -> Command {
    Command::new((name, arity), Group::HyperLogLog, flags, keys, run)
}
