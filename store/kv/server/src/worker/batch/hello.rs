// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hello: a client of the batched protocol names its user, its database, and the worker that shall
//! serve it.

use freeport_kv_protocol::batch::{Hello, HelloReply, Operation, Status};

use super::super::{Core, Worker};
use super::{Batches, PAYLOAD_BYTES_MAX};
use crate::access::{DEFAULT, Place, Reason};
use crate::client::Client;
use crate::connection::{Connection, Peer};
use crate::listener::{Protocol, Stream};
use crate::mail::Message;

/// Status and value of a reply.
pub(super) type Answer = (Status, Vec<u8>);

/// The hello of a client was understood.
pub(super) enum Greeting {
    /// This is the reply.
    Answer(Answer),
    /// Another worker answers it.
    Moves(usize),
}

impl Core {
    /// Answers the first operation of a connection.
    pub(super) fn greet(&self, client: &mut Client, operation: &Operation<'_>) -> Greeting {
        let failed = |text: String| Greeting::Answer((Status::Failed, text.into_bytes()));
        let Some(hello) = Hello::decode(operation) else {
            return failed(
                "ERR the value of a hello has at least 4 bytes: database, worker".into(),
            );
        };
        let (workers, databases) = (self.shared.mailboxes.len(), self.shared.options.databases);
        if hello.database >= databases {
            let database = hello.database;
            return failed(format!(
                "ERR there is no database {database}; the last is {}",
                databases - 1
            ));
        }
        if self.routes.is_some() && hello.database > 0 {
            return failed("ERR a node of a cluster has database 0 only".into());
        }
        match hello.worker.map(usize::from) {
            Some(worker) if worker >= workers => {
                return failed(format!(
                    "ERR there is no worker {worker}; the last is {}",
                    workers - 1
                ));
            }
            Some(worker) if worker != self.number => return Greeting::Moves(worker),
            _ => {}
        }
        Greeting::Answer(match self.log_in(client, &hello) {
            true => {
                client.session.database = hello.database;
                let reply = HelloReply {
                    worker: self.number as u16,
                    workers: workers as u16,
                    payload_limit: PAYLOAD_BYTES_MAX,
                    token: 0,
                };
                (Status::Done, reply.value().to_vec())
            }
            false => {
                let text = "WRONGPASS invalid username-password pair or user is disabled.";
                (Status::Denied, text.into())
            }
        })
    }

    /// The client logs in as the user of a hello. Returns false if it may not.
    pub(in crate::worker) fn log_in(&self, client: &mut Client, hello: &Hello<'_>) -> bool {
        let users = &self.shared.users;
        let version = users.version();
        let name = if hello.user.is_empty() { DEFAULT } else { hello.user };
        if let Some(user) = users.authenticate(name, hello.password) {
            client.log_in((user, version), users);
            return true;
        }
        self.log_denial(client, Reason::Login, Place::Request, (b"hello", name, "hello"));
        false
    }
}

impl Worker {
    /// Gives a connection to the worker that its hello asks for, with the hello.
    pub(in crate::worker) fn hand_over(&mut self, connection: Connection, worker: usize) {
        let Connection { mut stream, input, peer, .. } = connection;
        let Peer::Batch { client, .. } = peer else { return };
        let shared = &self.core.shared;
        shared.registry.remove(client.id());
        if stream.deregister(self.core.network.poll.registry()).is_err() {
            shared.clients.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
            return;
        }
        let address = client.record.origin.address.clone();
        shared.mailboxes[worker].send(Message::Moved {
            stream,
            protocol: Protocol::Batch,
            address,
            input,
        });
    }

    /// Takes a connection from another worker, or from the start of the server.
    pub(in crate::worker) fn take_over(
        &mut self,
        (stream, protocol): (Stream, Protocol),
        address: String,
        input: Vec<u8>,
    ) {
        if let Some(id) = self.core.take_over((stream, protocol), address, input) {
            self.serve(id);
        }
    }
}

impl Core {
    /// Takes a connection from another worker, or from the start of the server, which has its first
    /// turn to come. Returns its number, unless the system refuses it.
    pub(in crate::worker) fn take_over(
        &mut self,
        (stream, protocol): (Stream, Protocol),
        address: String,
        input: Vec<u8>,
    ) -> Option<u64> {
        if protocol == Protocol::Resp {
            // Nobody has counted it while the server read its folder.
            self.statistics.connections.add(1);
            stream.keep_alive(self.settings.keepalive_s);
        }
        let id = self.take_in(stream, protocol, address)?;
        if let Some(connection) = self.network.connections.get_mut(&id) {
            connection.is_input_left = !input.is_empty();
            connection.input = input;
        }
        Some(id)
    }
}

impl Batches {
    /// The client may say hello.
    pub(super) fn may_greet(&self) -> bool {
        !self.has_begun
    }
}
