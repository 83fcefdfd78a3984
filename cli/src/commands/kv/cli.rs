// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cli`: sends commands to a server of RESP, and prints the replies.

use super::connection::{Connection, command};
use super::encryption::ClientTls;
use super::login::Login;
use super::redirection::{pauses, redirection};
use crate::output::write_bytes;
use anyhow::bail;
use clap::Args;
use freeport_kv_protocol::resp::Value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, BufRead, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cli SET key value\n  \
                  freeport kv cli --server 7000 HGETALL user:1\n  \
                  freeport kv cli --server 6380 --tls --cacert ca.pem PING\n  \
                  freeport kv cli -c --server 7000 GET user:1\n  \
                  freeport kv cli --user ada --password-file ada.txt GET user:1\n  \
                  freeport kv cli < commands.txt\n\n\
                  Without a command, each line of the input is one. A reply that is an error makes \
                  the exit status 1.")]
pub struct Arguments {
    /// Address of the server: a port of this host, or an address with one
    #[arg(long, value_name = "ADDRESS", default_value = "6379",
          value_parser = crate::arguments::address)]
    server: SocketAddr,
    /// Unix socket of the server, in place of the address
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Follow redirections to other nodes of a cluster
    #[arg(short = 'c', long, conflicts_with = "socket")]
    cluster: bool,
    #[command(flatten)]
    tls: ClientTls,
    #[command(flatten)]
    login: Login,
    /// Replies of version 3 of the protocol
    #[arg(short = '3', long)]
    resp3: bool,
    /// Print strings as they are, without quotes and types
    #[arg(long)]
    raw: bool,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// The commands' connections.
struct Session<'a> {
    arguments: &'a Arguments,
    /// By host and port. They are kept, because a node may know more about one than this program,
    /// such as `READONLY`.
    connections: HashMap<String, Connection>,
    /// Host and port of the server that gets the next command.
    server: String,
}

/// Sends the command, or those of the input.
///
/// # Errors
/// There is no connection, or the server sends no replies.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut session = Session::open(arguments)?;
    let mut is_well = true;
    if arguments.command.is_empty() {
        let is_terminal = io::stdin().is_terminal();
        prompt(is_terminal)?;
        for line in io::stdin().lock().split(b'\n') {
            let mut line = line?;
            if !line.trim_ascii().is_empty() {
                line.push(b'\n');
                is_well &= print(&session.reply(&line)?, arguments.raw);
            }
            prompt(is_terminal)?;
        }
    } else {
        is_well = print(&session.reply(&command(&arguments.command))?, arguments.raw);
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl<'a> Session<'a> {
    fn open(arguments: &'a Arguments) -> anyhow::Result<Self> {
        let server = arguments.server.to_string();
        let connection = match &arguments.socket {
            Some(path) => hello(Connection::unix(path)?, &path.display().to_string(), arguments)?,
            None => connect(&server, arguments)?,
        };
        let connections = HashMap::from([(server.clone(), connection)]);
        Ok(Self { arguments, connections, server })
    }

    /// The connection to the present server.
    fn connection(&mut self) -> anyhow::Result<&mut Connection> {
        match self.connections.entry(self.server.clone()) {
            Entry::Occupied(kept) => Ok(kept.into_mut()),
            Entry::Vacant(free) => Ok(free.insert(connect(&self.server, self.arguments)?)),
        }
    }

    /// Makes another server the present one.
    fn turn_to(&mut self, server: String) {
        // A node may have started again meanwhile.
        self.connections.retain(|other, connection| *other != server || connection.is_open());
        self.server = server;
    }

    /// The reply to a request, from the node that has its keys.
    fn reply(&mut self, request: &[u8]) -> anyhow::Result<Value> {
        let mut reply = self.connection()?.exchange(request)?;
        for pause in pauses() {
            let Value::Error(text) = &reply else { return Ok(reply) };
            if !self.arguments.cluster {
                return Ok(reply);
            }
            let Some(next) = redirection(text, &self.server)? else { return Ok(reply) };
            if io::stderr().is_terminal() {
                eprintln!("-> slot {} is at {}", next.slot, next.server);
            }
            std::thread::sleep(pause);
            if next.server != self.server {
                self.turn_to(next.server);
            }
            let connection = self.connection()?;
            if next.is_asking {
                connection.run(&["ASKING"])?;
            }
            reply = connection.exchange(request)?;
        }
        bail!("the nodes send the command to each other; see `freeport kv cluster status`")
    }
}

fn connect(server: &str, arguments: &Arguments) -> anyhow::Result<Connection> {
    hello(Connection::tcp(server, Some(&arguments.tls))?, server, arguments)
}

/// Logs in, and chooses the version.
fn hello(
    mut connection: Connection,
    server: &str,
    arguments: &Arguments,
) -> anyhow::Result<Connection> {
    arguments.login.log_in(&mut connection, server)?;
    if arguments.resp3 {
        connection.run(&["HELLO", "3"])?;
    }
    Ok(connection)
}

fn prompt(is_terminal: bool) -> io::Result<()> {
    if is_terminal {
        print!("> ");
        io::stdout().flush()?;
    }
    Ok(())
}

/// Prints a reply; returns whether it is no error.
fn print(value: &Value, raw: bool) -> bool {
    match value {
        Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } if raw => {
            write_bytes(bytes);
            println!();
        }
        value => println!("{value}"),
    }
    !matches!(value, Value::Error(_))
}
