// SPDX-License-Identifier: Apache-2.0 OR MIT
//! New clients. The first worker accepts them, and hands them to all workers in turn.

use std::io::{self, Write};
use std::sync::atomic::Ordering;

use freeport_kv_protocol::batch::write_error;
use mio::Token;

use super::incoming::Arrival;
use super::{CONNECTIONS, Core};
use crate::access::Login;
use crate::client::Client;
use crate::clients::Origin;
use crate::connection::Connection;
use crate::listener::{Protocol, Stream};
use crate::mail::Message;
use crate::persistence::Holding;

impl Core {
    /// Accepts all clients that have connected.
    pub(super) fn accept(&mut self, listener: usize) {
        loop {
            let Some(listener) = self.network.listeners.get(listener) else {
                return self.network.note_datagrams(listener);
            };
            let protocol = listener.protocol;
            match listener.accept() {
                Ok((stream, address)) => self.assign(stream, protocol, address),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_of_one_connection(&error) => {}
                // Descriptors or memory are short. No event reports the clients that wait.
                Err(_) => {
                    self.network.accepts_later = true;
                    return;
                }
            }
        }
    }

    /// Accepts the clients that descriptors were missing for.
    pub(super) fn accept_again(&mut self) {
        if std::mem::take(&mut self.network.accepts_later) {
            (0..self.network.listeners.len()).for_each(|listener| self.accept(listener));
        }
    }

    fn assign(&mut self, mut stream: Stream, protocol: Protocol, address: String) {
        let shared = &self.shared;
        if shared.clients.load(Ordering::Relaxed) >= self.settings.clients_max {
            shared.refused_clients.fetch_add(1, Ordering::Relaxed);
            let mut text = vec![];
            match protocol {
                Protocol::Resp => text.extend(b"-ERR max number of clients reached\r\n"),
                Protocol::Memcached => text.extend(b"ERROR Too many open connections\r\n"),
                Protocol::Batch => write_error(&mut text, 0, "max number of clients reached"),
            }
            // The connection ends either way.
            let _ = stream.write(&text);
            return;
        }
        shared.clients.fetch_add(1, Ordering::Relaxed);
        stream.keep_alive(self.settings.keepalive_s);
        let worker = match protocol {
            Protocol::Memcached => self.number,
            Protocol::Resp | Protocol::Batch => self.network.next_worker,
        };
        if protocol != Protocol::Memcached {
            self.network.next_worker = (worker + 1) % shared.mailboxes.len();
        }
        if worker == self.number {
            self.welcome(stream, protocol, address);
        } else {
            shared.mailboxes[worker].send(Message::Accepted { stream, protocol, address });
        }
    }

    /// Takes a new client in.
    pub(super) fn welcome(&mut self, stream: Stream, protocol: Protocol, address: String) {
        if self.take_in(stream, protocol, address).is_some() {
            self.statistics.connections.add(1);
        }
    }

    /// Takes in the clients in the mailbox, ahead of all other messages. Those that somebody else
    /// has served before are returned: their input may have requests, and no event reports that.
    pub(super) fn take_in_arrivals(&mut self) -> Vec<u64> {
        let mut served_before = vec![];
        while let Some(arrival) = self.network.mail.next_arrival() {
            let Arrival { stream, protocol, address, input } = arrival;
            match input {
                Some(input) => {
                    served_before.extend(self.take_over((stream, protocol), address, input));
                }
                None => self.welcome(stream, protocol, address),
            }
        }
        served_before
    }

    /// Takes a client in; returns its number, unless the system refuses it.
    pub(super) fn take_in(
        &mut self,
        mut stream: Stream,
        protocol: Protocol,
        address: String,
    ) -> Option<u64> {
        let id = self.shared.next_client();
        let token = Token(id as usize + CONNECTIONS);
        if stream.register(self.network.poll.registry(), token).is_err() {
            self.shared.clients.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let mut connection = match (protocol, self.network.items) {
            (Protocol::Memcached, Some(limits)) => {
                Connection::memcached(stream, freeport_kv_items::Connection::new(limits))
            }
            (Protocol::Batch, _) => {
                let client = self.introduce(id, (&stream, protocol), address);
                Connection::batch(stream, client)
            }
            _ => {
                let client = self.introduce(id, (&stream, protocol), address);
                Connection::resp(stream, client)
            }
        };
        if self.log.is_some() && protocol != Protocol::Memcached {
            connection.holding = Holding::on();
        }
        self.network.connections.insert(id, Box::new(connection));
        Some(id)
    }

    /// A new client with a user, which the others know from now on.
    fn introduce(
        &self,
        id: u64,
        (stream, protocol): (&Stream, Protocol),
        address: String,
    ) -> Client {
        let origin = Origin {
            id,
            worker: self.number,
            address,
            local: stream.local_address(),
            descriptor: stream.descriptor(),
            is_unix: stream.is_local(),
            is_encrypted: matches!(stream, Stream::Tls(_)),
            is_batched: protocol == Protocol::Batch,
            connected_ms: self.now_ms,
        };
        let record = self.shared.registry.insert(origin);
        Client::new(record, Login::new(&self.shared.users))
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
            | io::ErrorKind::InvalidInput
    )
}
