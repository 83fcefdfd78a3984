// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets of a worker: those that it listens on, and those of its clients; and its mailbox, in
//! which new clients come. They belong to the core, because a script that runs for long serves them
//! too.

use std::collections::{BTreeSet, HashMap};

use freeport_kv_protocol::memcached::Limits;
use mio::Poll;
use mio::event::Event;

use super::incoming::Incoming;
use super::polling::Polled;
use crate::connection::Connection;
use crate::datagrams::Datagrams;
use crate::listener::{Listener, Stream};

/// Sockets of a worker.
pub struct Network {
    /// Waits for events.
    pub poll: Poll,
    /// Messages of other workers, with the clients that the first worker has accepted.
    pub mail: Incoming,
    /// Sockets that clients connect to.
    pub listeners: Vec<Listener>,
    /// Sockets that datagrams arrive at.
    pub datagrams: Vec<Datagrams>,
    /// Connections by the number of their client. One that is being served is not among them.
    pub connections: HashMap<u64, Box<Connection>>,
    /// Limits of memcached's requests, if there are such clients.
    pub items: Option<Limits>,
    /// The worker that gets the next client.
    pub next_worker: usize,
    /// Clients could not be accepted.
    pub accepts_later: bool,
    /// When handshakes are looked at, in milliseconds since 1970.
    pub next_handshakes_ms: u64,
    /// Connections with events that a running script has taken: they get a turn after it.
    pub missed: BTreeSet<u64>,
    /// Those of them that a running script has not read to the end.
    pub unread: Vec<u64>,
    /// Connections over shared memory that are looked at in every turn.
    pub polled: Polled,
}

impl Network {
    /// Notes an event of a connection. Returns false if the connection has gone.
    pub fn note(&mut self, client: u64, event: &Event) -> bool {
        let Some(connection) = self.connections.get_mut(&client) else { return false };
        connection.is_readable |= event.is_readable();
        connection.is_readable |= connection.stream.has_records();
        match &mut connection.stream {
            Stream::Fabric(stream) => stream.rang(self.poll.registry(), event.token()),
            _ => connection.has_ended |= event.is_read_closed(),
        }
        true
    }
}
