// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of a worker whose script runs for longer than `busy-reply-threshold`. They are accepted
//! and read, and may stop the script or the server. Every other request gets an error at once.
//!
//! Clients that the first worker accepts and hands over meanwhile are taken out of the mailbox. All
//! other messages wait for the end of the script, because they may need values. Clients of
//! memcached and of the batched protocol are accepted, and wait too.

use std::time::Duration;

use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Command, Flags};
use freeport_kv_protocol::resp::{Read, RequestReader, Writer};
use mio::{Events, Token};
use smallvec::SmallVec;

use super::{CONNECTIONS, Core, LISTENERS, WAKER};
use crate::client::Client;
use crate::commands::Action;
use crate::connection::{Connection, Peer, Received};

/// Events that are taken at once.
const EVENTS: usize = 64;
/// Bytes that are read from a connection at once.
const BUFFER_BYTES: usize = 4 << 10;

impl Core {
    /// Answers clients once, while a script runs. The connections get a turn after it. The first
    /// call for a script looks at all of them, because the worker may have taken their events
    /// already.
    pub fn answer_while_busy(&mut self, is_first: bool) {
        if is_first {
            self.network.unread.clear();
            (0..self.network.listeners.len()).for_each(|listener| self.accept(listener));
            let clients: Vec<u64> = self.network.connections.keys().copied().collect();
            for client in clients {
                if let Some(connection) = self.network.connections.get_mut(&client) {
                    connection.is_readable = true;
                }
                self.answer_client(client);
            }
        }
        for client in self.take_in_arrivals() {
            self.answer_input_of(client);
        }
        // There is more to read than was read at once.
        for client in std::mem::take(&mut self.network.unread) {
            self.answer_client(client);
        }
        let mut events = Events::with_capacity(EVENTS);
        if self.network.poll.poll(&mut events, Some(Duration::ZERO)).is_err() {
            // The worker's own loop reports it.
            return;
        }
        for event in &events {
            match event.token() {
                // The mailbox is looked at in every call.
                WAKER => {}
                Token(token) if token < CONNECTIONS => self.accept(token - LISTENERS),
                Token(token) => {
                    let client = (token - CONNECTIONS) as u64;
                    if self.network.note(client, event) {
                        self.answer_client(client);
                    }
                }
            }
        }
    }

    fn answer_client(&mut self, id: u64) {
        let Some(mut connection) = self.network.connections.remove(&id) else { return };
        self.answer(id, &mut connection);
        if connection.is_readable && is_heard(&connection) {
            self.network.unread.push(id);
        }
        self.put_back(id, connection);
    }

    /// Answers requests that somebody else has received.
    fn answer_input_of(&mut self, id: u64) {
        let Some(mut connection) = self.network.connections.remove(&id) else { return };
        connection.is_input_left = false;
        if is_heard(&connection) {
            self.answer_received(id, &mut connection, &[]);
        } else {
            connection.is_input_left = !connection.input.is_empty();
        }
        self.put_back(id, connection);
    }

    /// The connection gets a turn after the script.
    fn put_back(&mut self, id: u64, connection: Box<Connection>) {
        self.network.connections.insert(id, connection);
        self.network.missed.insert(id);
    }

    fn answer(&mut self, id: u64, connection: &mut Connection) {
        if connection.backlog_bytes() > 0 {
            // Some of it may have been executed when the node had a lease.
            connection.guard_output();
            self.send_replies(id, connection);
        }
        if !connection.is_readable || !is_heard(connection) {
            return;
        }
        let mut buffer = [0; BUFFER_BYTES];
        match connection.receive(&mut buffer) {
            Received::Bytes(bytes) => {
                self.statistics.received_bytes.add(bytes as u64);
                self.answer_received(id, connection, &buffer[..bytes]);
            }
            Received::Nothing => {}
            // Its next turn finds it again.
            Received::End => connection.is_input_left = true,
        }
    }

    fn answer_received(&mut self, id: u64, connection: &mut Connection, received: &[u8]) {
        // The replies that follow depend on no key, also without a lease.
        connection.guard_output();
        let mut input = std::mem::take(&mut connection.input);
        input.extend_from_slice(received);
        if let Peer::Resp { reader, client } = &mut connection.peer {
            self.limit_requests(reader, client);
            let (used, is_input_left) =
                self.answer_requests((reader, client), &input, &mut connection.output);
            input.drain(..used);
            connection.is_input_left = is_input_left;
        }
        connection.input = input;
        self.send_replies(id, connection);
    }

    /// Sends replies. A failure is found at the next turn of the connection.
    fn send_replies(&mut self, id: u64, connection: &mut Connection) {
        self.flush_log();
        self.send_as_guarded(id, connection);
    }

    /// Answers complete requests; returns their bytes, and whether the rest is more than the begin
    /// of a request.
    fn answer_requests(
        &mut self,
        (reader, client): (&mut RequestReader, &mut Client),
        received: &[u8],
        output: &mut Vec<u8>,
    ) -> (usize, bool) {
        let (mut used, mut is_input_left) = (0, false);
        while !client.is_closing {
            let request = match reader.read(&received[used..]) {
                Ok(Read::Complete(request)) => request,
                Ok(Read::Incomplete { .. }) => break,
                // Malformed requests are answered at the next turn.
                Err(_) => {
                    is_input_left = true;
                    break;
                }
            };
            let arguments: SmallVec<[&[u8]; 16]> = request.iter().collect();
            used += request.bytes();
            if !arguments.is_empty() {
                self.answer_request(client, &arguments, output);
            }
        }
        reader.restart();
        (used, is_input_left)
    }

    fn answer_request(&mut self, client: &mut Client, arguments: &[&[u8]], output: &mut Vec<u8>) {
        let table = self.table.clone();
        client.follow_users(&self.shared.users);
        let is_allowed = |command: &&Command<Action>| {
            is_allowed(command, client, arguments)
                && self.has_rights(client, &command.spec, arguments)
        };
        match table.get(arguments[0]).filter(is_allowed) {
            Some(command) => {
                self.run(command, client, arguments, output);
            }
            None => self.refuse(client, arguments, output),
        }
    }

    /// Refuses a request. `EXEC` ends its transaction.
    fn refuse(&mut self, client: &mut Client, arguments: &[&[u8]], output: &mut Vec<u8>) {
        let busy = self.shared.library.busy();
        client.refuse_transaction();
        let is_end = is(arguments[0], "exec") && client.transaction.take().is_some();
        let mut reply = Writer::new(output, client.session.version);
        if is_end {
            reply.error(&format!("EXECABORT Transaction discarded because of: {busy}"));
            self.unwatch(client);
        } else {
            reply.error(busy.text());
        }
    }
}

/// The requests of a connection are answered while a script runs.
fn is_heard(connection: &Connection) -> bool {
    let is_resp = matches!(connection.peer, Peer::Resp { .. });
    is_resp && connection.takes_requests() && !connection.is_input_left
}

/// The command needs neither values nor Lua.
fn is_allowed(command: &Command<Action>, client: &Client, arguments: &[&[u8]]) -> bool {
    let spec = &command.spec;
    let is_in_time = match spec.name {
        "script" => arguments.get(1).is_some_and(|word| is(word, "kill")),
        "function" => arguments.get(1).is_some_and(|word| is(word, "kill") || is(word, "stats")),
        "shutdown" => arguments.get(1).is_some_and(|word| is(word, "nosave")),
        // These look at keys, which the script may be changing.
        "watch" | "unwatch" | "exec" => false,
        _ => spec.flags.has(Flags::ALLOW_BUSY),
    };
    is_in_time
        && matches!(command.run, Action::Server(_))
        && spec.check_arity(arguments.len()).is_ok()
        && !client.queues(spec)
}
