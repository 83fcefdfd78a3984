// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets of a worker: those that it listens on, and those of its clients. They belong to the
//! core, because a script that runs for long serves them too.

use std::collections::HashMap;

use freeport_kv_protocol::memcached::Limits;
use mio::Poll;

use crate::connection::Connection;
use crate::listener::Listener;

/// Sockets of a worker.
pub struct Network {
    /// Waits for events.
    pub poll: Poll,
    /// Sockets that clients connect to.
    pub listeners: Vec<Listener>,
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
    pub missed: Vec<u64>,
}
