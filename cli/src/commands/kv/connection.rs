// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection of RESP to a server, for commands of this program.

use super::encryption::ClientTls;
use anyhow::{Context, bail};
use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader, Version, Writer};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest time to wait for a node of a cluster to accept a connection.
const CONNECTING: Duration = Duration::from_secs(5);

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A connection to a server.
pub struct Connection {
    stream: Box<dyn Stream>,
    reader: ValueReader,
    /// Received bytes of later replies.
    rest: Vec<u8>,
}

impl Connection {
    /// Connects to the socket of a server of this machine.
    ///
    /// # Errors
    /// No server listens there.
    pub fn unix(path: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(path).with_context(|| absent(&path.display()))?;
        Ok(Self::over(Box::new(stream)))
    }

    /// Connects to `HOST:PORT`, with TLS if that is asked for.
    ///
    /// # Errors
    /// No server listens there, or the handshake fails.
    pub fn tcp(server: &str, tls: Option<&ClientTls>) -> anyhow::Result<Self> {
        let stream = connect(server).with_context(|| absent(&server))?;
        Ok(Self::over(match tls.filter(|tls| tls.is_used()) {
            Some(tls) => Box::new(tls.connect(stream, server)?),
            None => Box::new(stream),
        }))
    }

    fn over(stream: Box<dyn Stream>) -> Self {
        Self { stream, reader: ValueReader::new(ValueLimits::default()), rest: vec![] }
    }

    /// Sends a request, and waits for its reply.
    ///
    /// # Errors
    /// The connection ends, or the server sends something else.
    pub fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Value> {
        self.stream.write_all(request)?;
        self.reply()
    }

    /// Sends a command, and waits for its reply.
    ///
    /// # Errors
    /// See [`Connection::exchange`]; or the reply is an error.
    pub fn run(&mut self, words: &[&str]) -> anyhow::Result<Value> {
        match self.exchange(&command(words))? {
            Value::Error(text) => bail!("{}", String::from_utf8_lossy(&text)),
            value => Ok(value),
        }
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

/// The bytes of a command.
pub fn command(words: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut request = vec![];
    let mut writer = Writer::new(&mut request, Version::Two);
    writer.array(words.len());
    words.iter().for_each(|word| writer.bulk(word.as_ref()));
    request
}

fn connect(server: &str) -> anyhow::Result<TcpStream> {
    let mut last = anyhow::anyhow!("the host has no address");
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

fn absent(server: &dyn std::fmt::Display) -> String {
    format!("no server answers at {server}; start one with `freeport kv serve`")
}
