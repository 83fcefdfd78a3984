// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Subcommands of commands that find them by themselves. Users have rights to each, and `COMMAND`
//! lists them.

use freeport_kv_commands::{Flags, Group, Keys, Spec};

const PUBSUB: Flags = Flags::PUBSUB.with(Flags::LOADING).with(Flags::STALE);
const SCRIPT: Flags = Flags::NO_SCRIPT;
const BUSY: Flags = SCRIPT.with(Flags::ALLOW_BUSY);
const CHANGE: Flags = SCRIPT.with(Flags::WRITE);
const GROW: Flags = CHANGE.with(Flags::GROWS);
const HELP: Flags = Flags::LOADING.with(Flags::STALE);
const OBJECT_KEY: Keys = Keys::Range { first: 2, last: 2, step: 1 };

const FUNCTION: &[Spec] = &[
    part("delete", 3, CHANGE, Group::Scripting),
    part("dump", 2, SCRIPT, Group::Scripting),
    part("flush", -2, CHANGE, Group::Scripting),
    part("help", 2, HELP, Group::Scripting),
    part("kill", 2, BUSY, Group::Scripting),
    part("list", -2, SCRIPT, Group::Scripting),
    part("load", -3, GROW, Group::Scripting),
    part("restore", -3, GROW, Group::Scripting),
    part("stats", 2, BUSY, Group::Scripting),
];

const SCRIPTS: &[Spec] = &[
    part("exists", -3, SCRIPT, Group::Scripting),
    part("flush", -2, SCRIPT, Group::Scripting),
    part("help", 2, HELP, Group::Scripting),
    part("kill", 2, BUSY, Group::Scripting),
    part("load", 3, SCRIPT.with(Flags::STALE), Group::Scripting),
];

const CHANNELS: &[Spec] = &[
    part("channels", -2, PUBSUB, Group::PubSub),
    part("help", 2, HELP, Group::PubSub),
    part("numpat", 2, PUBSUB, Group::PubSub),
    part("numsub", -2, PUBSUB, Group::PubSub),
    part("shardchannels", -2, PUBSUB, Group::PubSub),
    part("shardnumsub", -2, PUBSUB, Group::PubSub),
];

const OBJECT: &[Spec] = &[
    of_key("encoding"),
    of_key("freq"),
    part("help", 2, HELP, Group::Generic),
    of_key("idletime"),
    of_key("refcount"),
];

const fn part(name: &'static str, arity: i32, flags: Flags, group: Group) -> Spec {
    Spec { name, arity, flags, keys: Keys::None, group, number: 0, subcommands: &[] }
}

const fn of_key(name: &'static str) -> Spec {
    Spec { keys: OBJECT_KEY, ..part(name, 3, Flags::READ, Group::Generic) }
}

/// Properties of the subcommands of a command; empty if it has none here.
pub fn subcommands(name: &str) -> &'static [Spec] {
    match name {
        "function" => FUNCTION,
        "object" => OBJECT,
        "pubsub" => CHANNELS,
        "script" => SCRIPTS,
        _ => &[],
    }
}

/// Keys that a call names. Some commands need more than these: a script may use other keys.
pub fn key_positions(spec: &Spec) -> Keys {
    match spec.name {
        "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro" => {
            Keys::Counted { count: 2, target: 0 }
        }
        _ => spec.keys,
    }
}
