// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CONFIG`: shows and changes parameters.

use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;

use super::{Container, Context, Flow, ServerRun, Subcommand};
use crate::configuration::Refusal;

const FLAGS: Flags = Flags::ADMIN.with(Flags::NO_SCRIPT).with(Flags::LOADING).with(Flags::STALE);

/// `CONFIG`.
pub const COMMANDS: &[Command<ServerRun>] =
    &[Command::new(("config", -2), Group::Server, Flags::NONE, Keys::None, |context| {
        CONFIG.run(context)
    })];

/// Its subcommands.
pub const CONFIG: Container = Container {
    name: "config",
    group: Group::Server,
    subcommands: &[
        Subcommand::new("get", -3, FLAGS, get),
        Subcommand::new("set", -4, FLAGS, set),
        Subcommand::new("resetstat", 2, FLAGS, reset_statistics),
        Subcommand::new("rewrite", 2, FLAGS, rewrite),
    ],
    help: &[
        "GET <pattern>",
        "    Return parameters matching the glob-like <pattern> and their values.",
        "SET <directive> <value>",
        "    Set the configuration <directive> to <value>.",
        "RESETSTAT",
        "    Reset statistics reported by the INFO command.",
        "REWRITE",
        "    Rewrite the configuration file.",
    ],
};

fn get(context: &mut Context<'_>) -> Result<Flow, Error> {
    let found = context.core.shared.configuration.matching(&context.arguments[2..]);
    let mut reply = context.reply();
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    Ok(Flow::Continue)
}

fn set(context: &mut Context<'_>) -> Result<Flow, Error> {
    let words = &context.arguments[2..];
    if !words.len().is_multiple_of(2) {
        return Err(Error::SYNTAX);
    }
    let pairs: Vec<(&[u8], &[u8])> = words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    context.core.shared.configuration.set(&pairs).map_err(|refusal| match refusal {
        Refusal::Unknown(name) => Error::new(format!(
            "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
        )),
        Refusal::Value { name, reason } => Error::new(format!(
            "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
        )),
    })?;
    context.core.shared.has_changed();
    context.core.follow();
    if let Some((_, password)) = pairs.iter().find(|(name, _)| is(name, "requirepass")) {
        context.core.shared.users.set_default_password(password);
        context.users_have_changed();
    }
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn reset_statistics(context: &mut Context<'_>) -> Result<Flow, Error> {
    let shared = &context.core.shared;
    shared.workers().for_each(crate::statistics::Statistics::reset);
    shared.configuration.tls.iter().for_each(|tls| tls.handshakes.reset());
    shared.users.log.reset_counts();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn rewrite(_context: &mut Context<'_>) -> Result<Flow, Error> {
    Err(Error::fixed("ERR The server is running without a config file"))
}
