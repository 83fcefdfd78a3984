// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that need more than values: the connection, the client's transaction, the server.

mod connection;
mod functions;
mod pubsub;
mod scripts;
mod transactions;

use freeport_kv_commands::{Command, Error, FAMILIES, Run, Table};
use freeport_kv_protocol::resp::Writer;

use crate::client::Client;
use crate::scripting::Engine;
use crate::worker::Core;

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
    /// Calls a function with the worker's Lua states. Meanwhile the client is inside a script: it may
    /// not wait, and a database that the script selects is forgotten after it.
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
    let server = [
        connection::COMMANDS,
        functions::COMMANDS,
        pubsub::COMMANDS,
        scripts::COMMANDS,
        transactions::COMMANDS,
    ]
    .into_iter()
    .flatten()
    .map(|command| Command { spec: command.spec, run: Action::Server(command.run) });
    Table::new(data.chain(server))
}
