// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection's turn: read once, execute what is complete, send replies.
//!
//! Bytes are read into a buffer of the worker, and requests executed where they lie. The rest
//! of an incomplete request moves to the connection. A client that does not read its replies is not
//! read from either, so a slow one keeps little memory.

use std::sync::atomic::Ordering;

use super::{BUFFER_BYTES, Worker, recording};
use crate::connection::{BACKLOG_BYTES, Connection, Peer, Received};

impl Worker {
    /// Gives a connection its turn.
    pub(super) fn serve(&mut self, client: u64) {
        let Some(mut connection) = self.core.network.connections.remove(&client) else { return };
        if !self.turn(client, &mut connection) {
            self.farewell(*connection);
        } else if let Some(worker) = connection.moves_to() {
            self.hand_over(*connection, worker);
        } else if connection.follows() {
            self.give_to_sender(*connection);
        } else {
            self.core.network.connections.insert(client, connection);
        }
    }

    /// Returns false if the connection has ended.
    fn turn(&mut self, id: u64, connection: &mut Connection) -> bool {
        if let Some((client, _)) = connection.client_mut() {
            client.is_told = false;
        }
        if connection.backlog_bytes() > 0 {
            // Some of it may have been executed when the node had a lease.
            connection.guard_output();
            if !self.core.send(id, connection) {
                return false;
            }
        }
        if connection.backlog_bytes() > BACKLOG_BYTES {
            return true;
        }
        let records = self.core.records();
        let is_open = match connection.is_ready() {
            true => self.read_and_execute(connection),
            false => true,
        };
        connection.holding.has_written |= self.core.records() != records;
        // Clients that know of a reply find its consequences in the record.
        recording::record(connection);
        // Also the last replies of a connection that is closing.
        if !self.core.send(id, connection) || !is_open && !connection.closes_later() {
            return false;
        }
        recording::record_output(connection);
        if connection.is_closing() {
            return connection.backlog_bytes() > 0;
        }
        // A client that waits for a key is not read from, so its end would not be seen.
        if connection.has_ended && connection.is_blocked() {
            return false;
        }
        if connection.is_ready() && (connection.is_readable || has_more(connection)) {
            self.again.push_back(id);
        }
        true
    }

    fn read_and_execute(&mut self, connection: &mut Connection) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let is_open = self.read_into(connection, &mut buffer);
        self.buffer = buffer;
        is_open
    }

    fn read_into(&mut self, connection: &mut Connection, buffer: &mut [u8]) -> bool {
        let received = match connection.is_readable && !connection.is_input_left {
            true => connection.receive(buffer),
            false => Received::Nothing,
        };
        let bytes = match received {
            Received::End => return false,
            Received::Nothing if !connection.is_input_left => return true,
            Received::Nothing => 0,
            Received::Bytes(bytes) => {
                self.core.statistics.received_bytes.add(bytes as u64);
                bytes
            }
        };
        if connection.input.is_empty() {
            let used = self.execute_received(connection, &buffer[..bytes]);
            connection.input.extend_from_slice(&buffer[used..bytes]);
            return true;
        }
        let mut input = std::mem::take(&mut connection.input);
        input.extend_from_slice(&buffer[..bytes]);
        let used = self.execute_received(connection, &input);
        if used < input.len() {
            input.drain(..used);
            // A large request leaves no memory behind.
            if input.capacity() > BUFFER_BYTES && used > input.len() {
                input.shrink_to_fit();
            }
            connection.input = input;
        }
        true
    }

    /// Executes the requests among received bytes; returns the number of bytes that are not needed
    /// any more.
    fn execute_received(&mut self, connection: &mut Connection, received: &[u8]) -> usize {
        // The client may have sent them when it knew of something that is newer than this turn.
        self.core.follow();
        let Connection { output, peer, .. } = connection;
        let progress = match peer {
            Peer::Resp { reader, client } => {
                client.record.active_ms.store(self.core.now_ms, Ordering::Relaxed);
                self.core.limit_requests(reader, client);
                self.execute_requests((reader, client), received, output)
            }
            Peer::Batch { state, client } => {
                client.record.active_ms.store(self.core.now_ms, Ordering::Relaxed);
                self.execute_packets((state, client), received, output)
            }
            Peer::Memcached { connection, is_closing } => {
                self.execute_memcached((connection, is_closing), received, output)
            }
        };
        connection.is_input_left = progress.is_input_left && progress.used < received.len();
        progress.used
    }

    /// Forgets a client whose connection has ended.
    pub(super) fn farewell(&mut self, mut connection: Connection) {
        self.core.shared.clients.fetch_sub(1, Ordering::Relaxed);
        let Some((client, _)) = connection.client_mut() else { return };
        for (kind, name) in &client.subscriptions {
            self.core.shared.channels.unsubscribe(*kind, name, client.id());
        }
        self.stop_blocking(client);
        self.core.unwatch(client);
        client.stop_tracking(&self.core.shared);
        self.core.shared.registry.remove(client.id());
        if client.is_monitor {
            self.core.shared.set_monitor(self.core.number, client.id(), false);
        }
    }
}

/// Requests were left because too many replies waited; now there is room.
fn has_more(connection: &Connection) -> bool {
    connection.is_input_left && connection.backlog_bytes() <= BACKLOG_BYTES
}
