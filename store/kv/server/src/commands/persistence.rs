// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands of persistence. A server without a folder says that it has none.

use freeport_kv_commands::arguments::{count, integer, is};
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};

use super::server::check_timeout;
use super::{Context, Flow, ServerRun};
use crate::persistence::{Awaited, Persistence, Reason};

const ADMIN: Flags = Flags::ADMIN.with(Flags::NO_SCRIPT);
const TIME: Flags = Flags::LOADING.with(Flags::STALE).with(Flags::FAST);
/// Error of a server that keeps nothing.
pub(super) const NO_SAVING: Error = Error::fixed("ERR persistence is not configured");
const IS_SAVING: Error = Error::fixed("ERR Background save already in progress");

/// Commands of persistence.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("lastsave", 1), Group::Server, TIME, Keys::None, last_save),
    Command::new(("save", 1), Group::Server, ADMIN.with(Flags::NO_MULTI), Keys::None, save),
    Command::new(("bgsave", -1), Group::Server, ADMIN, Keys::None, save_in_background),
    Command::new(("bgrewriteaof", 1), Group::Server, ADMIN, Keys::None, rewrite),
    Command::new(("waitaof", 4), Group::Generic, Flags::BLOCKING, Keys::None, wait_for_file),
];

fn persistence<'a>(context: &'a Context<'_>) -> Result<&'a Persistence, Error> {
    context.core.shared.persistence.as_ref().ok_or(NO_SAVING)
}

/// The time of the start, as Redis replies before the first time that it saves.
fn last_save(context: &mut Context<'_>) -> Result<Flow, Error> {
    let saved_s = persistence(context).ok().and_then(|it| it.snapshots.report().completed_s);
    let saved_s = saved_s.unwrap_or(context.core.shared.started_s);
    context.reply().integer(saved_s as i64);
    Ok(Flow::Continue)
}

/// The client waits until the snapshot is on the disk; others do not.
fn save(context: &mut Context<'_>) -> Result<Flow, Error> {
    let snapshots = &persistence(context)?.snapshots;
    snapshots.want(Reason::Save).map_err(|_| IS_SAVING)?;
    let awaited = Awaited::Snapshot { ended: snapshots.ended() + 1 };
    context.core.await_log(context.client, awaited);
    Ok(Flow::Continue)
}

fn save_in_background(context: &mut Context<'_>) -> Result<Flow, Error> {
    const BUSY: Error = Error::fixed(
        "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE \
         in order to schedule a BGSAVE whenever possible.",
    );
    let is_scheduled = match context.arguments {
        [_] => false,
        [_, word] if is(word, "schedule") => true,
        _ => return Err(Error::SYNTAX),
    };
    let snapshots = &persistence(context)?.snapshots;
    let text = match snapshots.want(Reason::Save) {
        Ok(()) => "Background saving started",
        Err(Reason::Save) => return Err(IS_SAVING),
        Err(Reason::Rewrite) if is_scheduled => {
            snapshots.schedule(Reason::Save);
            "Background saving scheduled"
        }
        Err(Reason::Rewrite) => return Err(BUSY),
    };
    context.reply().status(text);
    Ok(Flow::Continue)
}

fn rewrite(context: &mut Context<'_>) -> Result<Flow, Error> {
    const IS_REWRITING: Error =
        Error::fixed("ERR Background append only file rewriting already in progress");
    let snapshots = &persistence(context)?.snapshots;
    let text = match snapshots.want(Reason::Rewrite) {
        Ok(()) => "Background append only file rewriting started",
        Err(Reason::Rewrite) => return Err(IS_REWRITING),
        Err(Reason::Save) => {
            snapshots.schedule(Reason::Rewrite);
            "Background append only file rewriting scheduled"
        }
    };
    context.reply().status(text);
    Ok(Flow::Continue)
}

/// Replies with the numbers of servers that have all changes until now in a file: this one, and
/// replicas. Waits until they are as many as the client wants, unless it may not.
fn wait_for_file(context: &mut Context<'_>) -> Result<Flow, Error> {
    const RANGE: Error = Error::fixed("ERR value is out of range, must be between 0 and 1");
    const REPLICA: Error = Error::fixed(
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes to \
         replicas are just local and are not propagated.",
    );
    const NO_FILE: Error =
        Error::fixed("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
    let local = integer(context.arguments[1])?;
    if !(0..=1).contains(&local) {
        return Err(RANGE);
    }
    let replicas = count(context.arguments[2])?.unsigned_abs() as usize;
    let timeout_ms = check_timeout(context.arguments[3])?;
    let is_replica = context.core.log.as_ref().is_some_and(|log| log.is_replica);
    if is_replica {
        return Err(REPLICA);
    }
    let Ok(persistence) = persistence(context) else {
        if local > 0 {
            return Err(NO_FILE);
        }
        write_files(context, false, 0);
        return Ok(Flow::Continue);
    };
    let journal = persistence.journal.clone();
    let server = context.core.shared.clone();
    context.core.flush_log();
    let position = journal.end();
    let is_durable = journal.durable() >= position;
    let durable = server.replication.as_ref().map_or(0, |it| it.durable(position));
    let is_enough = (local == 0 || is_durable) && durable >= replicas;
    if is_enough || !context.client.session.may_block {
        write_files(context, is_durable, durable);
        return Ok(Flow::Continue);
    }
    let deadline_ms = (timeout_ms > 0).then(|| context.core.now_ms.saturating_add(timeout_ms));
    let awaited = Awaited::Durable { position, deadline_ms, is_local: local > 0, replicas };
    context.core.await_log(context.client, awaited);
    Ok(Flow::Continue)
}

fn write_files(context: &mut Context<'_>, is_durable: bool, replicas: usize) {
    let mut reply = context.reply();
    reply.array(2);
    reply.integer(i64::from(is_durable));
    reply.integer(replicas as i64);
}
