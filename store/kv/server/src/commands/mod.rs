// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that need more than values: the connection, the client's transaction, the server.

mod access_log;
mod acl;
mod authentication;
mod categories;
mod client;
mod cluster;
mod command;
mod config;
mod connection;
mod container;
mod divided;
mod functions;
mod info;
mod parts;
mod persistence;
mod pubsub;
mod reloading;
mod replication;
mod reports;
mod scripts;
mod server;
mod transactions;

use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Call, Command, Error, FAMILIES, Run, Table};
use freeport_kv_protocol::resp::Writer;

use crate::client::Client;
use crate::scripting::Engine;
use crate::worker::Core;
pub use categories::{CATEGORIES, categories};
pub use container::{Container, Subcommand};
pub use divided::key_positions;
pub use info::process;
pub use pubsub::write_unsubscribed;

/// Function of a command.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// A command on values.
    Data(Run),
    /// A command of the server.
    Server(ServerRun),
}

/// Executes a command of the server.
pub type ServerRun = fn(&mut Context<'_>) -> Result<Flow, Error>;

/// How a connection continues after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// With the next request.
    Continue,
    /// Later, with the same request: shards are missing.
    Suspend,
}

/// One execution of a command of the server.
pub struct Context<'a> {
    /// The worker's shards and more.
    pub core: &'a mut Core,
    /// The client.
    pub client: &'a mut Client,
    /// Arguments; the first is the name.
    pub arguments: &'a [&'a [u8]],
    /// Place for the reply.
    pub output: &'a mut Vec<u8>,
}

impl Context<'_> {
    /// Calls a function with the worker's Lua states. Meanwhile the client is inside a script: it
    /// may not wait, and a database that the script selects is forgotten after it.
    pub fn with_engine<R>(&mut self, run: impl FnOnce(&mut Engine, &mut Self) -> R) -> R {
        let mut engine = self.core.engine.take().unwrap_or_else(|| Box::new(Engine::new()));
        let session = self.client.session;
        self.client.session.may_block = false;
        let result = run(&mut engine, self);
        self.client.session = session;
        self.core.engine = Some(engine);
        result
    }

    /// Writes the reply in the client's version.
    pub fn reply(&mut self) -> Writer<'_> {
        Writer::new(self.output, self.client.session.version)
    }
}

/// Replies with the lines of a help text.
fn help(context: &mut Context<'_>, lines: &[&str]) {
    let mut reply = context.reply();
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.status(line));
}

/// All commands that clients can send.
pub fn table() -> Table<Action> {
    let data = FAMILIES
        .iter()
        .copied()
        .flatten()
        .map(|command| Command { spec: command.spec, run: Action::Data(command.run) });
    let server = SERVER_FAMILIES
        .iter()
        .copied()
        .flatten()
        .map(|command| Command { spec: command.spec, run: Action::Server(command.run) });
    // A server's command of the same name replaces one on values, and may execute it.
    Table::new(data.chain(server).map(|command| {
        let name = command.spec.name;
        match (container::subcommands(name), divided::subcommands(name)) {
            ([], []) => command,
            ([], subcommands) | (subcommands, _) => command.with_subcommands(subcommands),
        }
    }))
}

/// Commands of the server.
const SERVER_FAMILIES: &[&[Command<ServerRun>]] = &[
    acl::COMMANDS,
    authentication::COMMANDS,
    client::COMMANDS,
    cluster::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    connection::COMMANDS,
    functions::COMMANDS,
    info::COMMANDS,
    parts::COMMANDS,
    persistence::COMMANDS,
    pubsub::COMMANDS,
    replication::COMMANDS,
    reports::COMMANDS,
    scripts::COMMANDS,
    server::COMMANDS,
    transactions::COMMANDS,
];

/// Commands that consist of subcommands.
const CONTAINERS: [&Container; 9] = [
    &acl::ACL,
    &client::CLIENT,
    &cluster::CLUSTER,
    &command::COMMAND,
    &config::CONFIG,
    &parts::MEMORY,
    &parts::MODULE,
    &reports::LATENCY,
    &reports::SLOW_LOG,
];

/// The container of a name.
fn container(name: &[u8]) -> Option<&'static Container> {
    CONTAINERS.into_iter().find(|container| is(name, container.name))
}

/// Executes the command on values that this command of the server has replaced.
///
/// # Errors
/// `unknown`, if there is none.
fn data_or(
    context: &mut Context<'_>,
    unknown: impl FnOnce(&mut Context<'_>) -> Error,
) -> Result<Flow, Error> {
    let mut commands = FAMILIES.iter().copied().flatten();
    let Some(command) = commands.find(|one| is(context.arguments[0], one.spec.name)) else {
        return Err(unknown(context));
    };
    let Context { core, client, arguments, output } = context;
    let changes = core.effects.changes;
    let parts = (&mut core.store, &mut core.effects);
    let mut call = Call::new(arguments, client.session, parts, core.now_ms, output);
    let result = (command.run)(&mut call);
    core.record(changes, (client.session.database, arguments), result.is_ok());
    result.map(|()| Flow::Continue)
}
