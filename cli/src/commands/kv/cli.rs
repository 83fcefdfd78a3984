// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cli`: sends commands to a server of RESP, and prints the replies.

use super::encryption::ClientTls;
use crate::output::write_bytes;
use anyhow::{Context, bail};
use clap::Args;
use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader, Version, Writer};
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cli SET key value\n  \
                  freeport kv cli --server 7000 HGETALL user:1\n  \
                  freeport kv cli --server 6380 --tls --cacert ca.pem PING\n  \
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
    #[command(flatten)]
    tls: ClientTls,
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

/// A connection to the server.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

struct Connection {
    stream: Box<dyn Stream>,
    reader: ValueReader,
    /// Received bytes of later replies.
    rest: Vec<u8>,
}

/// Sends the command, or those of the input.
///
/// # Errors
/// There is no connection, or the server sends no replies.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut connection = Connection::open(arguments)?;
    if arguments.resp3 {
        connection.stream.write_all(b"HELLO 3\r\n")?;
        if let Value::Error(text) = connection.reply()? {
            bail!("{}", String::from_utf8_lossy(&text));
        }
    }
    let mut is_well = true;
    if arguments.command.is_empty() {
        let is_terminal = io::stdin().is_terminal();
        prompt(is_terminal)?;
        for line in io::stdin().lock().split(b'\n') {
            let mut line = line?;
            if !line.trim_ascii().is_empty() {
                line.push(b'\n');
                connection.stream.write_all(&line)?;
                is_well &= print(&connection.reply()?, arguments.raw);
            }
            prompt(is_terminal)?;
        }
    } else {
        let mut request = vec![];
        let mut writer = Writer::new(&mut request, Version::Two);
        writer.array(arguments.command.len());
        arguments.command.iter().for_each(|word| writer.bulk(word.as_bytes()));
        connection.stream.write_all(&request)?;
        is_well = print(&connection.reply()?, arguments.raw);
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Connection {
    fn open(arguments: &Arguments) -> anyhow::Result<Self> {
        let stream: Box<dyn Stream> = match &arguments.socket {
            Some(path) => Box::new(UnixStream::connect(path).with_context(|| {
                format!(
                    "no server answers at {}; start one with `freeport kv serve`",
                    path.display()
                )
            })?),
            None => {
                let stream = TcpStream::connect(arguments.server).with_context(|| {
                    format!(
                        "no server answers at {}; start one with `freeport kv serve`",
                        arguments.server
                    )
                })?;
                match arguments.tls.is_used() {
                    true => Box::new(arguments.tls.connect(stream, arguments.server)?),
                    false => Box::new(stream),
                }
            }
        };
        Ok(Self { stream, reader: ValueReader::new(ValueLimits::default()), rest: vec![] })
    }

    fn reply(&mut self) -> anyhow::Result<Value> {
        let mut part = vec![0; 64 << 10];
        loop {
            match self.reader.read(&self.rest)? {
                ValueProgress::Complete { value, bytes } => {
                    self.rest.drain(..bytes);
                    return Ok(value);
                }
                ValueProgress::Incomplete { .. } => self.rest.clear(),
            }
            let length = self.stream.read(&mut part)?;
            if length == 0 {
                bail!("the server closed the connection");
            }
            self.rest.extend_from_slice(&part[..length]);
        }
    }
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
