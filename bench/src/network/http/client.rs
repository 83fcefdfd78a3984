// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client's side of a connection.

use super::super::Host;
use super::{field, read_head};
use anyhow::{Context, Result, ensure};
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

/// Maximum size of a body; longer ones are rejected.
const MOST_BODY: usize = 64 << 20;

/// A connection that is kept for several requests.
#[derive(Debug)]
pub struct Connection {
    reader: BufReader<TcpStream>,
}

/// A response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// Status code, such as 200.
    pub status: u16,
    /// Name of the server that answered.
    pub backend: String,
    /// Body.
    pub body: Vec<u8>,
}

/// Sends one request over a new connection, which the server closes first.
///
/// # Errors
/// No connection or no answer, each within `wait`.
pub fn get(host: &Host, server: SocketAddrV4, path: &str, wait: Duration) -> Result<Response> {
    host.within(|| Connection::open_here(server, wait)?.last(path))
}

impl Connection {
    /// Connects from a host; `wait` is the time limit for this and for each answer.
    ///
    /// # Errors
    /// No connection.
    pub fn open(host: &Host, server: SocketAddrV4, wait: Duration) -> Result<Self> {
        host.within(|| Self::open_here(server, wait))
    }

    /// Connects from the host that the thread is on.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_here(server: SocketAddrV4, wait: Duration) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&server.into(), wait);
        let stream = stream.with_context(|| format!("no connection to {server}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(wait))?;
        stream.set_write_timeout(Some(wait))?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    /// Sends one request and keeps the connection.
    ///
    /// # Errors
    /// No answer, or one that is not HTTP.
    pub fn get(&mut self, path: &str) -> Result<Response> {
        self.send(path, "")?;
        self.receive()
    }

    /// Sends one request after which the server closes, and waits until it has.
    ///
    /// # Errors
    /// As for `get`, or the connection stays open.
    pub fn last(mut self, path: &str) -> Result<Response> {
        self.send(path, "Connection: close\r\n")?;
        let response = self.receive()?;
        let more = self.reader.read(&mut [0]).context("waiting for the server to close")?;
        ensure!(more == 0, "the server sends data after the answer");
        Ok(response)
    }

    fn send(&mut self, path: &str, fields: &str) -> Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: freeport\r\n{fields}\r\n");
        self.reader.get_mut().write_all(request.as_bytes()).context("sending a request")
    }

    fn receive(&mut self) -> Result<Response> {
        let head = read_head(&mut self.reader).context("receiving an answer")?;
        let head = head.context("the server closed instead of answering")?;
        let status = head[0].split(' ').nth(1).and_then(|status| status.parse().ok());
        let length = field(&head, "content-length").and_then(|length| length.parse().ok());
        let length: usize = length.context("the answer has no length")?;
        ensure!(length <= MOST_BODY, "the body has {length} bytes, which is too long");
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).context("receiving a body")?;
        Ok(Response {
            status: status.context("the answer has no status")?,
            backend: field(&head, "x-backend").unwrap_or_default().into(),
            body,
        })
    }
}
