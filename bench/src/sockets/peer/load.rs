// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client with several connections: each sends the next request when the previous one is
//! answered. Every byte of every answer is compared.

use super::epoll::Epoll;
use crate::between::desk::{Desk, now};
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// Time limit for an answer.
const PATIENCE_MS: i32 = 10_000;

/// The request, and how long to send it.
pub struct Load<'a> {
    pub port: u16,
    pub connections: usize,
    pub request: &'a [u8],
    /// The expected answer.
    pub answer: &'a [u8],
    pub time: Duration,
}

/// A connection, and the number of bytes of its answer that have arrived.
struct Connection {
    stream: TcpStream,
    asked: u64,
    filled: usize,
}

impl Load<'_> {
    /// Sends requests and records the times on the desk. Returns the connections, still open.
    ///
    /// # Errors
    /// No connection, no answer, or an unexpected one.
    pub fn run(&self, desk: &Desk) -> Result<impl Sized> {
        ensure!(
            !self.request.is_empty() && !self.answer.is_empty(),
            "the request or the answer is empty"
        );
        let epoll = Epoll::new()?;
        let mut connections = vec![];
        for number in 0..self.connections {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
            stream.set_nodelay(true)?;
            epoll.add(&stream, number)?;
            connections.push(Connection { stream, asked: 0, filled: 0 });
        }
        desk.begin();
        self.ask(&epoll, &mut connections, desk)?;
        desk.end();
        Ok(connections)
    }

    /// Sends requests over all connections for the given time, and waits until all are answered.
    fn ask(&self, epoll: &Epoll, connections: &mut [Connection], desk: &Desk) -> Result<()> {
        let deadline = Instant::now() + self.time;
        let mut buffer = vec![0; self.answer.len()];
        for connection in &mut *connections {
            connection.ask(self.request)?;
        }
        let mut open = connections.len();
        while open > 0 {
            let ready = epoll.wait(PATIENCE_MS)?;
            ensure!(!ready.is_empty(), "no answer");
            for number in ready {
                let connection = connections.get_mut(number).context("no such connection")?;
                if !connection.take(&mut buffer, self.answer)? {
                    continue;
                }
                desk.count(now() - connection.asked);
                if Instant::now() < deadline {
                    connection.ask(self.request)?;
                } else {
                    open -= 1;
                }
            }
        }
        Ok(())
    }
}

impl Connection {
    fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.asked = now();
        self.filled = 0;
        self.stream.write_all(request).context("a request cannot be sent")
    }

    /// Receives data; returns whether the answer is complete.
    fn take(&mut self, buffer: &mut [u8], answer: &[u8]) -> Result<bool> {
        let expected = &answer[self.filled..];
        let count = self.stream.read(&mut buffer[..expected.len()])?;
        ensure!(count > 0, "the server has closed instead of answering");
        if buffer[..count] != expected[..count] {
            let came = String::from_utf8_lossy(&buffer[..count.min(80)]).into_owned();
            bail!("an unexpected answer: {came:?}");
        }
        self.filled += count;
        Ok(self.filled == answer.len())
    }
}
