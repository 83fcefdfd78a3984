// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `SLOWLOG` and `LATENCY`: commands that took long, and how long commands take.

use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;

use super::{Container, Context, Flow, ServerRun, Subcommand};
use crate::statistics::Calls;

const FLAGS: Flags = Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE);
const LATENCY_FLAGS: Flags = FLAGS.with(Flags::NO_SCRIPT);

/// Both commands.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("slowlog", -2), Group::Server, Flags::NONE, Keys::None, |context| {
        SLOW_LOG.run(context)
    }),
    Command::new(("latency", -2), Group::Server, Flags::NONE, Keys::None, |context| {
        LATENCY.run(context)
    }),
];

/// Subcommands of `SLOWLOG`.
pub const SLOW_LOG: Container = Container {
    name: "slowlog",
    group: Group::Server,
    subcommands: &[
        Subcommand::new("get", -2, FLAGS, slow_commands),
        Subcommand::new("len", 2, FLAGS, slow_count),
        Subcommand::new("reset", 2, FLAGS, forget_slow),
    ],
    help: &[
        "GET [<count>]",
        "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
        "    Entries are made of:",
        "    id, timestamp, time in microseconds, arguments array, client IP and port,",
        "    client name",
        "LEN",
        "    Return the length of the slowlog.",
        "RESET",
        "    Reset the slowlog.",
    ],
};

/// Subcommands of `LATENCY`.
pub const LATENCY: Container = Container {
    name: "latency",
    group: Group::Server,
    subcommands: &[
        Subcommand::new("doctor", 2, LATENCY_FLAGS, doctor),
        Subcommand::new("graph", 3, LATENCY_FLAGS, graph),
        Subcommand::new("histogram", -2, LATENCY_FLAGS, histogram),
        Subcommand::new("history", 3, LATENCY_FLAGS, history),
        Subcommand::new("latest", 2, LATENCY_FLAGS, latest),
        Subcommand::new("reset", -2, LATENCY_FLAGS, reset),
    ],
    help: &[
        "DOCTOR",
        "    Return a human readable latency analysis report.",
        "GRAPH <event>",
        "    Return an ASCII latency graph for the <event> class.",
        "HISTORY <event>",
        "    Return time-latency samples for the <event> class.",
        "LATEST",
        "    Return the latest latency samples for all events.",
        "RESET [<event> ...]",
        "    Reset latency data of one or more <event> classes.",
        "    (default: reset all data for all event classes)",
        "HISTOGRAM [COMMAND ...]",
        "    Return a cumulative distribution of latencies in the format of a histogram for the \
         specified command names.",
        "    If no commands are specified then all histograms are replied.",
    ],
};

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn slow_commands(context: &mut Context<'_>) -> Result<Flow, Error> {
    const RANGE: Error = Error::fixed("ERR count should be greater than or equal to -1");
    let count = match context.arguments[2..] {
        [] => 10,
        [count] => integer(count).ok().filter(|count| *count >= -1).ok_or(RANGE)?,
        _ => return Err(Error::arity("slowlog|get")),
    };
    let entries = context.core.shared.slow_log.latest(usize::try_from(count).unwrap_or(usize::MAX));
    let mut reply = context.reply();
    reply.array(entries.len());
    for entry in entries {
        reply.array(6);
        reply.integer(number(entry.id));
        reply.integer(number(entry.time_s));
        reply.integer(number(entry.microseconds));
        reply.array(entry.arguments.len());
        entry.arguments.iter().for_each(|argument| reply.bulk(argument));
        reply.bulk(entry.address.as_bytes());
        reply.bulk(&entry.name);
    }
    Ok(Flow::Continue)
}

fn slow_count(context: &mut Context<'_>) -> Result<Flow, Error> {
    let count = context.core.shared.slow_log.len();
    context.reply().integer(count as i64);
    Ok(Flow::Continue)
}

fn forget_slow(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.core.shared.slow_log.clear();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn history(context: &mut Context<'_>) -> Result<Flow, Error> {
    let samples = context.core.shared.latency.history(context.arguments[2]);
    let mut reply = context.reply();
    reply.array(samples.len());
    for (time_s, milliseconds) in samples {
        reply.array(2);
        reply.integer(number(time_s));
        reply.integer(number(milliseconds));
    }
    Ok(Flow::Continue)
}

fn latest(context: &mut Context<'_>) -> Result<Flow, Error> {
    let events = context.core.shared.latency.latest();
    let mut reply = context.reply();
    reply.array(events.len());
    for (event, (time_s, milliseconds), longest) in events {
        reply.array(4);
        reply.bulk(event.as_bytes());
        [time_s, milliseconds, longest].into_iter().for_each(|it| reply.integer(number(it)));
    }
    Ok(Flow::Continue)
}

fn reset(context: &mut Context<'_>) -> Result<Flow, Error> {
    let count = context.core.shared.latency.reset(&context.arguments[2..]);
    context.reply().integer(count as i64);
    Ok(Flow::Continue)
}

/// A bar of `#` for each sample, the longest of which has 40.
fn graph(context: &mut Context<'_>) -> Result<Flow, Error> {
    const WIDTH: u64 = 40;
    let event = context.arguments[2];
    let samples = context.core.shared.latency.history(event);
    let shown = String::from_utf8_lossy(event).into_owned();
    let Some(longest) = samples.iter().map(|(_, milliseconds)| *milliseconds).max() else {
        return Err(Error::new(format!("ERR No samples available for event '{shown}'")));
    };
    let shortest = samples.iter().map(|(_, milliseconds)| *milliseconds).min().unwrap_or_default();
    let mut text = format!("{shown} - high {longest} ms, low {shortest} ms\n");
    for (time_s, milliseconds) in samples {
        let width = (milliseconds * WIDTH).div_ceil(longest.max(1)) as usize;
        text += &format!("{time_s} {} {milliseconds} ms\n", "#".repeat(width));
    }
    context.reply().verbatim(*b"txt", text.as_bytes());
    Ok(Flow::Continue)
}

fn doctor(context: &mut Context<'_>) -> Result<Flow, Error> {
    let (latency_ms, events) =
        (context.core.settings.latency_ms, context.core.shared.latency.latest());
    let mut text = String::new();
    if latency_ms == 0 && events.is_empty() {
        text += "Latency monitoring is off. \"CONFIG SET latency-monitor-threshold \
                 <milliseconds>\" turns it on.\n";
    } else if events.is_empty() {
        text += &format!("No command has taken {latency_ms} milliseconds.\n");
    }
    for (event, (_, milliseconds), longest) in events {
        text += &format!(
            "{event}: the last one took {milliseconds} ms, the longest {longest} ms. SLOWLOG GET \
             shows which commands take long.\n"
        );
    }
    context.reply().verbatim(*b"txt", text.as_bytes());
    Ok(Flow::Continue)
}

fn histogram(context: &mut Context<'_>) -> Result<Flow, Error> {
    let names = &context.arguments[2..];
    // The name of a command is also that of its subcommands.
    let is_named = |name: &&[u8], known: &str| {
        is(name, known) || known.split_once('|').is_some_and(|(command, _)| is(name, command))
    };
    let wanted = |known: &str| names.is_empty() || names.iter().any(|name| is_named(name, known));
    let shared = context.core.shared.clone();
    let found: Vec<(&str, Calls)> =
        shared.calls().filter(|(name, calls)| calls.count() > 0 && wanted(name)).collect();
    let mut reply = context.reply();
    reply.map(found.len());
    for (name, calls) in found {
        let durations = calls.cumulative();
        reply.bulk(name.as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.integer(number(calls.count()));
        reply.bulk(b"histogram_usec");
        reply.map(durations.len());
        for (microseconds, count) in durations {
            reply.integer(number(microseconds));
            reply.integer(number(count));
        }
    }
    Ok(Flow::Continue)
}
