// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection: its socket, bytes that were received and not yet used, and replies that were not
//! yet sent.

use std::io::{self, Read, Write};

use freeport_kv_protocol::resp::{RequestLimits, RequestReader};

use crate::client::Client;
use crate::listener::Stream;
use crate::persistence::Holding;
use crate::worker::Batches;

/// Replies for which memory is kept between requests.
const KEPT_BYTES: usize = 16 << 10;
/// Unsent replies above which a client's requests wait.
pub const BACKLOG_BYTES: usize = 256 << 10;

/// A connection of any protocol.
#[derive(Debug)]
pub struct Connection {
    /// The socket.
    pub stream: Stream,
    /// Received bytes from the begin of the next request.
    pub input: Vec<u8>,
    /// Replies, of which the first `sent` bytes are sent.
    pub output: Vec<u8>,
    sent: usize,
    /// How much of the output may be sent.
    pub holding: Holding,
    /// The socket may have more bytes.
    pub is_readable: bool,
    /// The input may have a complete request.
    pub is_input_left: bool,
    /// The client has closed its side: it sends nothing beyond what can be read now.
    pub has_ended: bool,
    /// The other side.
    pub peer: Peer,
}

/// The other side of a connection, by protocol.
#[derive(Debug)]
pub enum Peer {
    /// A client of Redis.
    Resp {
        /// Reads its requests.
        reader: RequestReader,
        /// Its state.
        client: Box<Client>,
    },
    /// A client of the batched protocol.
    Batch {
        /// State of its packets.
        state: Box<Batches>,
        /// Its state.
        client: Box<Client>,
    },
    /// A client of memcached.
    Memcached {
        /// Reads its requests.
        connection: freeport_kv_items::Connection,
        /// The connection ends when all replies are sent.
        is_closing: bool,
    },
}

/// Result of reading from a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// That number of bytes.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// The client has closed the connection, or it failed.
    End,
}

impl Connection {
    /// The connection of a client of Redis.
    pub fn resp(stream: Stream, client: Client) -> Self {
        let reader = RequestReader::new(RequestLimits::default());
        Self::new(stream, Peer::Resp { reader, client: Box::new(client) })
    }

    /// The connection of a client of the batched protocol.
    pub fn batch(stream: Stream, client: Client) -> Self {
        Self::new(stream, Peer::Batch { state: Box::default(), client: Box::new(client) })
    }

    /// The connection of a client of memcached.
    pub fn memcached(stream: Stream, connection: freeport_kv_items::Connection) -> Self {
        Self::new(stream, Peer::Memcached { connection, is_closing: false })
    }

    fn new(stream: Stream, peer: Peer) -> Self {
        Self {
            stream,
            input: vec![],
            output: vec![],
            sent: 0,
            holding: Holding::default(),
            is_readable: true,
            is_input_left: false,
            has_ended: false,
            peer,
        }
    }

    /// The client, unless it is one of memcached.
    pub fn client(&self) -> Option<&Client> {
        match &self.peer {
            Peer::Resp { client, .. } | Peer::Batch { client, .. } => Some(client),
            Peer::Memcached { .. } => None,
        }
    }

    /// The client, unless it is one of memcached, with the place for its replies.
    pub fn client_mut(&mut self) -> Option<(&mut Client, &mut Vec<u8>)> {
        match &mut self.peer {
            Peer::Resp { client, .. } | Peer::Batch { client, .. } => {
                Some((client, &mut self.output))
            }
            Peer::Memcached { .. } => None,
        }
    }

    /// Its requests are executed now.
    pub fn is_ready(&self) -> bool {
        match &self.peer {
            Peer::Resp { client, .. } | Peer::Batch { client, .. } => client.is_ready(),
            Peer::Memcached { is_closing, .. } => !is_closing,
        }
    }

    /// The worker that serves the connection from now on, if another one is asked for.
    #[inline]
    pub fn moves_to(&self) -> Option<usize> {
        match &self.peer {
            Peer::Batch { state, .. } => state.moves_to,
            Peer::Resp { .. } | Peer::Memcached { .. } => None,
        }
    }

    /// The client is a replica that gets the log from now on.
    #[inline]
    pub fn follows(&self) -> bool {
        self.client().is_some_and(|client| client.following.is_some())
    }

    /// The client waits for a key.
    pub fn is_blocked(&self) -> bool {
        self.client().is_some_and(|client| client.blocked.is_some())
    }

    /// It ends when all replies are sent.
    pub fn is_closing(&self) -> bool {
        match &self.peer {
            Peer::Resp { client, .. } | Peer::Batch { client, .. } => client.is_closing,
            Peer::Memcached { is_closing, .. } => *is_closing,
        }
    }

    /// The client's side has ended. Replies that wait for the log are still sent: the connection
    /// ends after them. Returns whether there are any.
    pub fn closes_later(&mut self) -> bool {
        let waits = self.holding.is_listed || self.holding.is_unmarked;
        if waits && let Some((client, _)) = self.client_mut() {
            client.is_closing = true;
        }
        waits
    }

    /// Reads once. The next event reports more only if this did not fill the buffer.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Received {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Received::End,
                Ok(bytes) => {
                    // The end of the client's side was reported already, if it was.
                    self.is_readable =
                        bytes == buffer.len() || self.has_ended || self.stream.has_more();
                    return Received::Bytes(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_readable = self.stream.has_more();
                    return Received::Nothing;
                }
                Err(_) => return Received::End,
            }
        }
    }

    /// Sends replies as far as they may be sent and the socket takes them. Returns false if the
    /// connection has failed.
    pub fn send(&mut self) -> bool {
        let end = self.holding.sendable(self.output.len());
        while self.sent < end {
            match self.stream.write(&self.output[self.sent..end]) {
                Ok(0) => return false,
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Its requests are executed while the output is short. Otherwise bytes are
                    // moved only if at least as many were sent.
                    let left = self.backlog_bytes();
                    self.forget_sent(if left <= BACKLOG_BYTES { 1 } else { left });
                    return true;
                }
                Err(_) => return false,
            }
        }
        if end < self.output.len() {
            self.forget_sent(1);
            return true;
        }
        self.holding.remove(self.output.len());
        self.output.clear();
        self.sent = 0;
        if self.output.capacity() > KEPT_BYTES {
            self.output = vec![];
        }
        true
    }

    /// Its next requests are read and executed now.
    pub fn takes_requests(&self) -> bool {
        self.is_ready() && self.backlog_bytes() <= BACKLOG_BYTES
    }

    /// The present output depends on the lease of the node.
    #[inline]
    pub fn guard_output(&mut self) {
        self.holding.guard(self.output.len());
    }

    /// Output that is not sent yet depends on the lease of the node.
    #[inline]
    pub fn has_guarded(&self) -> bool {
        self.holding.guarded(self.sent) > 0
    }

    /// There are bytes that may be sent.
    pub fn has_sendable(&self) -> bool {
        self.sent < self.holding.sendable(self.output.len())
    }

    /// Number of bytes that wait to be sent.
    pub fn backlog_bytes(&self) -> usize {
        self.output.len() - self.sent
    }

    /// A slow client keeps no memory for what it has received, from a number of bytes.
    fn forget_sent(&mut self, least: usize) {
        if self.sent >= least {
            self.output.drain(..self.sent);
            self.holding.remove(self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_protocol::memcached::Limits;
    use mio::net::UnixStream;

    use super::*;

    /// Requests are executed while the output is short, and given turns while the backlog is. If
    /// the two differed, a client that does not read would get turns without end.
    #[test]
    fn sent_bytes_do_not_count_as_output() {
        let (stream, _client) = UnixStream::pair().expect("the system has sockets");
        let peer = freeport_kv_items::Connection::new(Limits::default());
        let mut connection = Connection::memcached(Stream::Unix(stream), peer);
        for bytes in (0..20).map(|step| (BACKLOG_BYTES + 10_000) >> step) {
            connection.output.resize(connection.output.len() + bytes, b'x');
            assert!(connection.send(), "the client is there");
            let is_short = connection.output.len() <= BACKLOG_BYTES;
            assert_eq!(is_short, connection.backlog_bytes() <= BACKLOG_BYTES);
        }
    }
}
