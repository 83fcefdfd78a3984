// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Categories of commands, as access control names them. They follow from group and flags, but for
//! a few commands.

use freeport_kv_commands::{Flags, Group, Spec};

/// All categories.
pub const CATEGORIES: [&str; 22] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "vector",
];

/// Commands that are dangerous although they are not for operators.
const DANGEROUS: [&str; 10] = [
    "flushall", "flushdb", "info", "keys", "migrate", "restore", "role", "sort", "sort_ro",
    "swapdb",
];
/// Commands of operators that others may send as well.
const OF_OPERATORS: [&str; 2] = ["lastsave", "role"];
/// Commands of servers that change or read all keys.
const OF_KEYS: [&str; 4] = ["dbsize", "flushall", "flushdb", "swapdb"];
/// Commands of keys that are of several types.
const SORTING: [&str; 2] = ["sort", "sort_ro"];
/// Commands of the connection that belong to another group.
const OF_CONNECTION: [&str; 3] = ["command", "wait", "waitaof"];

/// Categories of a command, or of a subcommand of `command`. A command that consists of subcommands
/// has hardly any itself.
pub fn categories(spec: &Spec, command: &str) -> Vec<&'static str> {
    let is_container = !spec.subcommands.is_empty();
    let is_one_of = |names: &[&str]| command == spec.name && names.contains(&command);
    let is_sorting = is_one_of(&SORTING);
    let is_of_connection = OF_CONNECTION.contains(&command);
    let is_for_operators = spec.flags.has(Flags::ADMIN) || is_one_of(&OF_OPERATORS);
    let is_of_keys = spec.group == Group::Generic && !is_container && !is_of_connection;
    let is_of_values = !matches!(spec.group, Group::Generic | Group::Server | Group::PubSub);
    let mut all = vec![];
    let mut add = |is_in: bool, name: &'static str| {
        if is_in {
            all.push(name);
        }
    };
    add(is_of_keys && !is_sorting || is_one_of(&OF_KEYS), "keyspace");
    add(spec.flags.has(Flags::READ) && spec.group != Group::Scripting, "read");
    add(spec.flags.has(Flags::WRITE), "write");
    add(is_of_values && !is_container, spec.group.name());
    ["set", "sortedset", "list"].into_iter().for_each(|name| add(is_sorting, name));
    add(is_of_connection, "connection");
    add(spec.flags.has(Flags::PUBSUB) && !is_container, "pubsub");
    add(is_for_operators, "admin");
    add(spec.flags.has(Flags::FAST), "fast");
    add(!spec.flags.has(Flags::FAST), "slow");
    add(spec.flags.has(Flags::BLOCKING) && !is_of_connection, "blocking");
    add(is_for_operators || is_one_of(&DANGEROUS), "dangerous");
    all.sort_by_key(|name| CATEGORIES.iter().position(|one| one == name));
    all
}

#[cfg(test)]
mod tests {
    use freeport_kv_commands::Keys;

    use super::*;

    #[test]
    fn categories_follow_from_group_and_flags() {
        let of = |name, flags, group| {
            let keys = Keys::None;
            let spec = Spec { name, arity: 1, flags, keys, group, subcommands: &[], number: 0 };
            categories(&spec, name)
        };
        assert_eq!(of("get", Flags::READ | Flags::FAST, Group::String), ["read", "string", "fast"]);
        let keys = of("keys", Flags::READ, Group::Generic);
        assert_eq!(keys, ["keyspace", "read", "slow", "dangerous"]);
        let flush = of("flushall", Flags::WRITE, Group::Server);
        assert_eq!(flush, ["keyspace", "write", "slow", "dangerous"]);
        let publish = of("publish", Flags::PUBSUB | Flags::FAST, Group::PubSub);
        assert_eq!(publish, ["pubsub", "fast"]);
    }
}
