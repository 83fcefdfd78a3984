// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection of RESP to a server, for commands of this program.

use super::encryption::ClientTls;
use anyhow::{Context, bail};
use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader, Version, Writer};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest time to wait for a server to accept a connection.
const CONNECTING: Duration = Duration::from_secs(5);

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A connection to a server.
pub struct Connection {
    stream: Box<dyn Stream>,
    /// The same, for questions to the system; `None` for a socket of this machine.
    socket: Option<TcpStream>,
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
        Ok(Self::over(Box::new(stream), None))
    }

    /// Connects to `HOST:PORT`, with TLS if that is asked for.
    ///
    /// # Errors
    /// No server listens there, or the handshake fails.
    pub fn tcp(server: &str, tls: Option<&ClientTls>) -> anyhow::Result<Self> {
        let stream = connect(server, CONNECTING).with_context(|| absent(&server))?;
        let socket = Some(stream.try_clone()?);
        let stream: Box<dyn Stream> = match tls.filter(|tls| tls.is_used()) {
            Some(tls) => Box::new(tls.connect(stream, server)?),
            None => Box::new(stream),
        };
        Ok(Self::over(stream, socket))
    }

    /// Connects to `HOST:PORT` of a server that has to answer within `limit` each time.
    ///
    /// # Errors
    /// No server listens there.
    pub fn limited(server: &str, limit: Duration) -> anyhow::Result<Self> {
        // The system takes no time of zero.
        let limit = limit.max(Duration::from_millis(1));
        let stream = connect(server, limit).with_context(|| absent(&server))?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self::over(Box::new(stream), None))
    }

    fn over(stream: Box<dyn Stream>, socket: Option<TcpStream>) -> Self {
        Self { stream, socket, reader: ValueReader::new(ValueLimits::default()), rest: vec![] }
    }

    /// Returns whether the server has kept the connection, as far as the system knows.
    pub fn is_open(&self) -> bool {
        let Some(socket) = &self.socket else { return true };
        let peek = || {
            socket.set_nonblocking(true)?;
            let peeked = socket.peek(&mut [0]);
            socket.set_nonblocking(false)?;
            peeked
        };
        match peek() {
            Ok(bytes) => bytes > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }

    /// Sends a request, and waits for its reply.
    ///
    /// # Errors
    /// The connection ends, or the server sends something else.
    pub fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Value> {
        self.stream.write_all(request).map_err(silent)?;
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
            let length = self.stream.read(&mut part).map_err(silent)?;
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

/// Names the error of a time that has passed.
fn silent(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            anyhow::anyhow!("the server does not answer")
        }
        _ => error.into(),
    }
}

fn connect(server: &str, limit: Duration) -> anyhow::Result<TcpStream> {
    let mut last = anyhow::anyhow!("the host has no address");
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

fn absent(server: &dyn std::fmt::Display) -> String {
    format!("no server answers at {server}; start one with `freeport kv serve`")
}
