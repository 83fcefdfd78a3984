// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `COMMAND`: what the server's commands are, as clients ask for it to find keys, and interactive
//! ones to complete names.

use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Access, Command, Error, Flags, Group, Keys, Spec, Uses};
use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::pattern::matches_ignoring_case;

use super::categories::categories;
use super::divided::key_positions;
use super::{Action, Container, Context, Flow, ServerRun, Subcommand};
use crate::access::KeyUses;

const FLAGS: Flags = Flags::LOADING.with(Flags::STALE);

/// `COMMAND`.
pub const COMMANDS: &[Command<ServerRun>] =
    &[Command::new(("command", -1), Group::Server, FLAGS, Keys::None, command)];

/// Its subcommands.
pub const COMMAND: Container = Container {
    name: "command",
    group: Group::Server,
    subcommands: &[
        Subcommand::new("count", 2, FLAGS, count),
        Subcommand::new("docs", -2, FLAGS, docs),
        Subcommand::new("getkeys", -3, FLAGS, |context| keys(context, false)),
        Subcommand::new("getkeysandflags", -3, FLAGS, |context| keys(context, true)),
        Subcommand::new("info", -2, FLAGS, info),
        Subcommand::new("list", -2, FLAGS, list),
    ],
    help: &[
        "(no subcommand)",
        "    Return details about all Redis commands.",
        "COUNT",
        "    Return the total number of commands in this Redis server.",
        "LIST",
        "    Return a list of all commands in this Redis server.",
        "INFO [<command-name> ...]",
        "    Return details about multiple Redis commands.",
        "    If no command names are given, documentation details for all",
        "    commands are returned.",
        "DOCS [<command-name> ...]",
        "    Return documentation details about multiple Redis commands.",
        "    If no command names are given, documentation details for all",
        "    commands are returned.",
        "GETKEYS <full-command>",
        "    Return the keys from a full Redis command.",
        "GETKEYSANDFLAGS <full-command>",
        "    Return the keys and the access flags from a full Redis command.",
    ],
};

fn command(context: &mut Context<'_>) -> Result<Flow, Error> {
    if context.arguments.len() > 1 {
        return COMMAND.run(context);
    }
    show_all(context);
    Ok(Flow::Continue)
}

fn count(context: &mut Context<'_>) -> Result<Flow, Error> {
    let count = context.core.table.len();
    context.reply().integer(count as i64);
    Ok(Flow::Continue)
}

fn show_all(context: &mut Context<'_>) {
    let table = context.core.table.clone();
    let mut reply = context.reply();
    reply.array(table.len());
    table.iter().for_each(|command| show(&mut reply, &command.spec, None));
}

fn info(context: &mut Context<'_>) -> Result<Flow, Error> {
    let names = &context.arguments[2..];
    if names.is_empty() {
        show_all(context);
        return Ok(Flow::Continue);
    }
    let table = context.core.table.clone();
    let mut reply = context.reply();
    reply.array(names.len());
    for name in names {
        let mut words = name.splitn(2, |byte| *byte == b'|');
        let command = words.next().and_then(|word| table.get(word));
        match (command, words.next()) {
            (Some(command), None) => show(&mut reply, &command.spec, None),
            (Some(Command { spec, .. }), Some(word)) => {
                match spec.subcommands.iter().find(|part| is(word, part.name)) {
                    Some(part) => show(&mut reply, part, Some(spec.name)),
                    None => reply.null(),
                }
            }
            (None, _) => reply.null(),
        }
    }
    Ok(Flow::Continue)
}

/// The ten properties of a command.
fn show(reply: &mut Writer<'_>, spec: &Spec, parent: Option<&str>) {
    let (first, last, step) = match spec.keys {
        Keys::Range { first, last, step } => (first as i64, last as i64, step as i64),
        Keys::Counted { target, .. } if target > 0 => (target as i64, target as i64, 1),
        _ => (0, 0, 0),
    };
    reply.array(10);
    reply.bulk(full_name(spec, parent).as_bytes());
    reply.integer(i64::from(spec.arity));
    show_flags(reply, spec.flags);
    [first, last, step].into_iter().for_each(|number| reply.integer(number));
    show_categories(reply, spec, parent);
    reply.set(0);
    match spec.subcommands {
        [] => {
            show_keys(reply, spec, parent);
            reply.set(0);
        }
        parts => {
            // Each subcommand has its own keys.
            reply.set(0);
            reply.array(parts.len());
            parts.iter().for_each(|part| show(reply, part, Some(spec.name)));
        }
    }
}

/// A name, such as `client|list` of a subcommand.
fn full_name(spec: &Spec, parent: Option<&str>) -> String {
    parent.map_or_else(|| spec.name.to_owned(), |parent| format!("{parent}|{}", spec.name))
}

fn show_flags(reply: &mut Writer<'_>, flags: Flags) {
    let names: Vec<&str> = flags.names().collect();
    reply.set(names.len());
    names.iter().for_each(|name| reply.status(name));
}

fn show_categories(reply: &mut Writer<'_>, spec: &Spec, parent: Option<&str>) {
    let categories = categories(spec, parent.unwrap_or(spec.name));
    reply.set(categories.len());
    categories.iter().for_each(|name| reply.status(&format!("@{name}")));
}

/// Where the keys of a command are, and how it uses them.
fn show_keys(reply: &mut Writer<'_>, spec: &Spec, parent: Option<&str>) {
    let (first, others) = Uses::of(&full_name(spec, parent), spec.flags).usual();
    match key_positions(spec) {
        Keys::None | Keys::All | Keys::AllFor(_) => reply.set(0),
        Keys::Range { first: at, last, step } if last - (at as isize) != 0 && first != others => {
            reply.set(2);
            show_range(reply, first, (at, 0, step));
            let rest = if last < 0 { last as i64 } else { last as i64 - at as i64 - 1 };
            show_range(reply, others, (at + 1, rest, step));
        }
        Keys::Range { first: at, last, step } => {
            let last = if last < 0 { last as i64 } else { last as i64 - at as i64 };
            reply.set(1);
            show_range(reply, first, (at, last, step));
        }
        Keys::Counted { count, target } => {
            reply.set(if target > 0 { 2 } else { 1 });
            if target > 0 {
                show_range(reply, first, (target, 0, 1));
            }
            begin_keys(reply, others, Some(count));
            reply.bulk(b"keynum");
            show_numbers(reply, &[("keynumidx", 0), ("firstkey", 1), ("keystep", 1)]);
        }
        Keys::Found(_) | Keys::Made { .. } => {
            reply.set(1);
            begin_keys(reply, first, None);
            reply.bulk(b"unknown");
            show_numbers(reply, &[]);
        }
    }
}

fn show_range(reply: &mut Writer<'_>, access: Access, (first, last, step): (usize, i64, usize)) {
    begin_keys(reply, access, Some(first));
    reply.bulk(b"range");
    show_numbers(reply, &[("lastkey", last), ("keystep", step as i64), ("limit", 0)]);
}

/// Everything of a group of keys up to the type of its end.
fn begin_keys(reply: &mut Writer<'_>, access: Access, index: Option<usize>) {
    reply.map(3);
    reply.bulk(b"flags");
    show_access(reply, access);
    reply.bulk(b"begin_search");
    reply.map(2);
    reply.bulk(b"type");
    match index {
        Some(index) => {
            reply.bulk(b"index");
            show_numbers(reply, &[("index", index as i64)]);
        }
        None => {
            reply.bulk(b"unknown");
            show_numbers(reply, &[]);
        }
    }
    reply.bulk(b"find_keys");
    reply.map(2);
    reply.bulk(b"type");
}

fn show_numbers(reply: &mut Writer<'_>, numbers: &[(&str, i64)]) {
    reply.bulk(b"spec");
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(*number);
    }
}

fn list(context: &mut Context<'_>) -> Result<Flow, Error> {
    let shared = context.core.shared.clone();
    let all = || shared.users.catalog.iter().map(|entry| &entry.name[..]);
    let found: Vec<&str> = match context.arguments[2..] {
        [] => all().collect(),
        [word, kind, pattern] if is(word, "filterby") => {
            if is(kind, "module") {
                vec![]
            } else if is(kind, "aclcat") {
                return Ok(list_category(context, pattern));
            } else if is(kind, "pattern") {
                all().filter(|name| matches_ignoring_case(pattern, name.as_bytes())).collect()
            } else {
                return Err(Error::SYNTAX);
            }
        }
        _ => return Err(Error::SYNTAX),
    };
    let mut reply = context.reply();
    reply.array(found.len());
    found.iter().for_each(|name| reply.bulk(name.as_bytes()));
    Ok(Flow::Continue)
}

fn list_category(context: &mut Context<'_>, category: &[u8]) -> Flow {
    let shared = context.core.shared.clone();
    let entries = shared.users.catalog.category(category);
    let names: Vec<&str> = entries.into_iter().flatten().map(|entry| &entry.name[..]).collect();
    let mut reply = context.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name.as_bytes()));
    Flow::Continue
}

fn keys(context: &mut Context<'_>, has_flags: bool) -> Result<Flow, Error> {
    const UNKNOWN: Error = Error::fixed("ERR Invalid command specified");
    const NO_KEYS: Error = Error::fixed("ERR The command has no key arguments");
    const WRONG_NUMBER: Error =
        Error::fixed("ERR Invalid number of arguments specified for command");
    const INVALID: Error = Error::fixed("ERR Invalid arguments specified for command");
    let arguments = &context.arguments[2..];
    let spec = context.core.table.get(arguments[0]).ok_or(UNKNOWN)?.spec;
    let shared = context.core.shared.clone();
    let entry = shared.users.catalog.of(&spec, arguments);
    if !entry.has_keys() {
        return Err(NO_KEYS);
    }
    spec.of(arguments).check_arity(arguments.len()).map_err(|_| WRONG_NUMBER)?;
    let mut keys = KeyUses::new();
    entry.find_keys(arguments, &mut keys).map_err(|_| INVALID)?;
    // A script may have none.
    if keys.is_empty() && !spec.name.starts_with("eval") && !spec.name.starts_with("fcall") {
        return Err(NO_KEYS);
    }
    let mut reply = context.reply();
    reply.array(keys.len());
    for (at, access) in keys {
        if has_flags {
            reply.array(2);
        }
        reply.bulk(arguments[at]);
        if has_flags {
            show_access(&mut reply, access);
        }
    }
    Ok(Flow::Continue)
}

fn show_access(reply: &mut Writer<'_>, access: Access) {
    reply.set(access.names.len());
    access.names.iter().for_each(|flag| reply.status(flag));
}

fn docs(context: &mut Context<'_>) -> Result<Flow, Error> {
    let names = &context.arguments[2..];
    let table = context.core.table.clone();
    let found: Vec<&Command<Action>> = match names {
        [] => table.iter().collect(),
        _ => names.iter().filter_map(|name| table.get(name)).collect(),
    };
    let mut reply = context.reply();
    reply.map(found.len());
    for Command { spec, .. } in found {
        reply.bulk(spec.name.as_bytes());
        show_documentation(&mut reply, spec.group, !spec.subcommands.is_empty());
        if !spec.subcommands.is_empty() {
            reply.bulk(b"subcommands");
            reply.map(spec.subcommands.len());
            for part in spec.subcommands {
                reply.bulk(full_name(part, Some(spec.name)).as_bytes());
                show_documentation(&mut reply, spec.group, false);
            }
        }
    }
    Ok(Flow::Continue)
}

/// Summary, first version and group; the texts of Redis are not repeated here.
fn show_documentation(reply: &mut Writer<'_>, group: Group, has_more: bool) {
    let group = match group {
        Group::Generic => "generic",
        Group::SortedSet => "sorted-set",
        Group::Transactions => "transactions",
        other => other.name(),
    };
    reply.map(if has_more { 4 } else { 3 });
    for (name, value) in [("summary", ""), ("since", "1.0.0"), ("group", group)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}
