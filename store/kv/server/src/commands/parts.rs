// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `MEMORY` and `MODULE`: optional parts of a server.

use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;

use super::{Container, Context, Flow, ServerRun, Subcommand, data_or};
use crate::statistics::sum;

const ADMIN: Flags = Flags::ADMIN.with(Flags::NO_SCRIPT);

/// The key of `MEMORY USAGE`.
const USAGE: Keys = Keys::Found(|arguments| match arguments {
    [_, word, _, ..] if word.eq_ignore_ascii_case(b"usage") => vec![2],
    _ => vec![],
});

/// Commands of parts.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("memory", -2), Group::Server, Flags::NONE, USAGE, |context| MEMORY.run(context)),
    Command::new(("module", -2), Group::Server, Flags::NONE, Keys::None, |context| {
        MODULE.run(context)
    }),
];

/// Subcommands of `MEMORY`.
pub const MEMORY: Container = Container {
    name: "memory",
    group: Group::Server,
    subcommands: &[
        Subcommand::new("doctor", 2, Flags::NONE, doctor),
        Subcommand::new("malloc-stats", 2, Flags::NONE, allocator),
        Subcommand::new("purge", 2, Flags::NONE, purge),
        Subcommand::new("stats", 2, Flags::NONE, statistics),
        Subcommand::new("usage", -3, Flags::READ, |context| {
            data_or(context, |context| MEMORY.unknown(context.arguments[1]))
        }),
    ],
    help: &[
        "DOCTOR",
        "    Return memory problems reports.",
        "MALLOC-STATS",
        "    Return internal statistics report from the memory allocator.",
        "PURGE",
        "    Attempt to purge dirty pages for reclamation by the allocator.",
        "STATS",
        "    Return information about the memory usage of the server.",
        "USAGE <key> [SAMPLES <count>]",
        "    Return memory in bytes used by <key> and its value. Nested values are",
        "    sampled up to <count> times (default: 5, 0 means sample all).",
    ],
};

/// Subcommands of `MODULE`.
pub const MODULE: Container = Container {
    name: "module",
    group: Group::Server,
    subcommands: &[
        Subcommand::new("list", 2, ADMIN, no_modules),
        Subcommand::new("load", -3, ADMIN, cannot_load),
        Subcommand::new("loadex", -3, ADMIN, cannot_load),
        Subcommand::new("unload", 3, ADMIN, cannot_load),
    ],
    help: &["LIST", "    Return a list of loaded modules."],
};

fn used_bytes(context: &Context<'_>) -> u64 {
    sum(context.core.shared.workers(), |worker| &worker.memory_bytes)
}

fn doctor(context: &mut Context<'_>) -> Result<Flow, Error> {
    let (used, most) = (used_bytes(context), context.core.shared.options.memory_bytes as u64);
    let percent = used.saturating_mul(100) / most.max(1);
    let text = match percent {
        ..90 => format!("Keys and values use {percent} % of the memory. Nothing is wrong.\n"),
        _ => format!(
            "Keys and values use {percent} % of the memory. Commands that need more will soon be \
             refused: remove keys, or start the server with more memory.\n"
        ),
    };
    context.reply().verbatim(*b"txt", text.as_bytes());
    Ok(Flow::Continue)
}

fn allocator(context: &mut Context<'_>) -> Result<Flow, Error> {
    let mut text = String::new();
    for (number, worker) in context.core.shared.workers().enumerate() {
        let bytes = worker.memory_bytes.get();
        text += &format!("worker {number}: {} keys, {bytes} bytes\n", worker.keys.get());
    }
    context.reply().verbatim(*b"txt", text.as_bytes());
    Ok(Flow::Continue)
}

/// Freed memory is used again at once.
fn purge(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn statistics(context: &mut Context<'_>) -> Result<Flow, Error> {
    let used = used_bytes(context);
    let keys = sum(context.core.shared.workers(), |worker| &worker.keys);
    let numbers = [
        ("total.allocated", used),
        ("dataset.bytes", used),
        ("keys.count", keys),
        ("keys.bytes-per-key", used.checked_div(keys).unwrap_or(0)),
        ("maxmemory", context.core.shared.options.memory_bytes as u64),
    ];
    let mut reply = context.reply();
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }
    Ok(Flow::Continue)
}

fn no_modules(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.reply().array(0);
    Ok(Flow::Continue)
}

fn cannot_load(_context: &mut Context<'_>) -> Result<Flow, Error> {
    Err(Error::fixed("ERR this server loads no modules"))
}
