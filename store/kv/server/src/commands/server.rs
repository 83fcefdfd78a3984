// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands of the server as a whole. It has no replicas, and says so.

use std::sync::atomic::Ordering;
use std::time::Duration;

use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;

use super::connection::REDIS_VERSION;
use super::persistence::NO_SAVING;
use super::reloading::reload_from_disk;
use super::{Context, Flow, ServerRun, data_or};
use crate::shared::since_1970;

const READY: Flags = Flags::LOADING.with(Flags::STALE);
const TIME: Flags = READY.with(Flags::FAST);
const ADMIN: Flags = Flags::ADMIN.with(Flags::NO_SCRIPT);
const DEBUG: Flags = ADMIN.with(READY);
const MONITOR: Flags = ADMIN.with(READY);
const SHUTDOWN: Flags = ADMIN.with(READY).with(Flags::NO_MULTI).with(Flags::ALLOW_BUSY);

/// Commands of the server.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("time", 1), Group::Server, TIME, Keys::None, time),
    Command::new(("lolwut", -1), Group::Server, Flags::READ.with(Flags::FAST), Keys::None, lolwut),
    Command::new(("debug", -2), Group::Server, DEBUG, Keys::All, debug),
    Command::new(("monitor", 1), Group::Server, MONITOR, Keys::None, monitor),
    Command::new(("shutdown", -1), Group::Server, SHUTDOWN, Keys::None, shutdown),
];

fn time(context: &mut Context<'_>) -> Result<Flow, Error> {
    let now = context.core.script_began.unwrap_or_else(since_1970);
    let mut reply = context.reply();
    reply.array(2);
    reply.bulk(now.as_secs().to_string().as_bytes());
    reply.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(Flow::Continue)
}

fn lolwut(context: &mut Context<'_>) -> Result<Flow, Error> {
    const PICTURE: &str = "\
           _/\\_     ships of all flags\n  \
        __/____\\__  land here freely\n  \
        \\_o__o__o/\n  \
     ~~~~~~~~~~~~~~~~~~~~~~\n\n";
    let text = format!("{PICTURE}Redis ver. {REDIS_VERSION}, as Freeport serves it\n");
    context.reply().verbatim(*b"txt", text.as_bytes());
    Ok(Flow::Continue)
}

/// `SLEEP` stops the worker, while it holds all shards, so that the whole server stands still.
/// `SET-DISABLE-DENY-SCRIPTS` lets scripts call all commands. `LOADAOF` reads the folder
/// again, if the server has one. The rest is a command on values.
fn debug(context: &mut Context<'_>) -> Result<Flow, Error> {
    const LONGEST_S: f64 = 3_600.0;
    let server = context.core.shared.clone();
    if let (Some(persistence), [_, word]) = (&server.persistence, context.arguments)
        && is(word, "loadaof")
    {
        return reload_from_disk(context, persistence);
    }
    if is(context.arguments[1], "populate") {
        context.core.admit_unmarked(context.arguments)?;
    }
    let [_, word, seconds] = *context.arguments else { return data_or(context, unknown) };
    if is(word, "set-disable-deny-scripts") {
        let allows_all = seconds != b"0";
        context.core.shared.library.allows_all.store(allows_all, Ordering::Relaxed);
        context.reply().raw(shared::OK);
        return Ok(Flow::Continue);
    }
    if !is(word, "sleep") {
        return data_or(context, unknown);
    }
    let seconds = std::str::from_utf8(seconds).ok().and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.filter(|seconds| (0.0..=LONGEST_S).contains(seconds));
    std::thread::sleep(Duration::from_secs_f64(seconds.ok_or(Error::NOT_A_FLOAT)?));
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn unknown(context: &mut Context<'_>) -> Error {
    Error::unknown_subcommand("DEBUG", context.arguments[1])
}

/// The client sees the commands of all clients from now on.
fn monitor(context: &mut Context<'_>) -> Result<Flow, Error> {
    if !context.client.session.may_block {
        return Err(Error::fixed("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    context.client.is_monitor = true;
    context.core.shared.set_monitor(context.core.number, context.client.id(), true);
    context.core.follow();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

/// The client gets no reply: its connection ends.
fn shutdown(context: &mut Context<'_>) -> Result<Flow, Error> {
    let (mut saves, mut does_not_save, mut is_abort, mut is_forced) = (false, false, false, false);
    for word in &context.arguments[1..] {
        match word.to_ascii_lowercase().as_slice() {
            b"nosave" => does_not_save = true,
            b"save" => saves = true,
            b"now" => {}
            b"force" => is_forced = true,
            b"abort" => is_abort = true,
            _ => return Err(Error::SYNTAX),
        }
    }
    if saves && does_not_save || is_abort && context.arguments.len() > 2 {
        return Err(Error::SYNTAX);
    }
    if is_abort {
        return Err(Error::fixed("ERR No shutdown in progress."));
    }
    let log = context.core.shared.persistence.as_ref().map(|it| &it.journal);
    if saves && log.is_none() {
        return Err(NO_SAVING);
    }
    // Every worker writes and syncs the log at its end.
    if !does_not_save && !is_forced && log.is_some_and(|log| log.failure().is_some()) {
        return Err(Error::fixed("ERR Errors trying to SHUTDOWN. Check logs."));
    }
    context.client.is_closing = true;
    context.core.shared.stop();
    Ok(Flow::Continue)
}

/// Milliseconds that a client waits; 0: without an end.
pub(super) fn check_timeout(argument: &[u8]) -> Result<u64, Error> {
    const NO_INTEGER: Error = Error::fixed("ERR timeout is not an integer or out of range");
    match integer(argument).map_err(|_| NO_INTEGER)? {
        ..0 => Err(Error::fixed("ERR timeout is negative")),
        timeout_ms => Ok(timeout_ms.unsigned_abs()),
    }
}
