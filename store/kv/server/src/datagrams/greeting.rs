// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hello over UDP: the only datagram that needs no token.
//!
//! Its reply goes to an address that may be somebody else's, so it is short: 35 bytes for the 24 of
//! the shortest hello, and errors are not longer than the hello.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use freeport_kv_datagrams::Datagram;
use freeport_kv_protocol::batch::{
    HEADER_BYTES, HEADER_BYTES_MAX, Header, Hello, HelloReply, Opcode, Operations, ReplyLimits,
    ReplyWriter, Status,
};

use super::DATAGRAM_BYTES_MAX;
use super::port::Port;
use super::token::Claim;
use crate::access::{DEFAULT, LogEntry, Login, Place, Reason, User};
use crate::client::Client;
use crate::clients::{ClientRecord, Origin};
use crate::worker::Core;

/// Bytes of the largest payload of a datagram with a token.
pub const PAYLOAD_BYTES_MAX: u32 = (DATAGRAM_BYTES_MAX - HEADER_BYTES_MAX) as u32;

/// A hello that was right.
#[derive(Debug)]
pub struct Greeting {
    user: Arc<User>,
    /// Version of the users before the user was found.
    version: u64,
    database: u16,
}

/// A hello that is refused: status and text.
type Refusal = (Status, &'static str);

impl Port {
    /// Answers a datagram without a token: a hello, or something that needs one.
    pub fn greet(&mut self, core: &Core, header: &Header, datagram: &Datagram<'_>) {
        let payload = &datagram.bytes[header.bytes()..];
        let mut operations = std::mem::take(&mut self.operations);
        // Only a packet of one operation is read: everybody can send it.
        let is_one = header.count == 1 && operations.decode(payload, 1).is_ok();
        let hello = is_one.then(|| hello(&operations, payload)).flatten();
        self.operations = operations;
        let Some(hello) = hello else {
            core.statistics.datagrams.refused.add(1);
            return self.refuse(datagram.sender, header.batch, datagram.bytes.len());
        };
        self.replies.clear();
        let mut writer =
            ReplyWriter::begin(&mut self.replies, header.batch, 0, ReplyLimits::default());
        match self.accept(core, &hello, datagram.sender) {
            Ok(reply) => writer.value(&mut self.replies, &reply.value()),
            Err((status, text)) => {
                let room = datagram.bytes.len().saturating_sub(HEADER_BYTES + 3);
                writer.error(&mut self.replies, status, &text[..text.len().min(room)]);
            }
        }
        writer.finish(&mut self.replies);
        self.answer_unknown(datagram.sender);
    }

    fn accept(
        &mut self,
        core: &Core,
        hello: &Hello<'_>,
        address: SocketAddr,
    ) -> Result<HelloReply, Refusal> {
        let shared = &core.shared;
        let databases = if core.routes.is_some() { 1 } else { shared.options.databases };
        if hello.database >= databases {
            return Err((Status::Failed, "there is no such database"));
        }
        if self.sessions.is_full() || core.has_all_clients() {
            return Err((Status::Failed, "max number of clients reached"));
        }
        let name = if hello.user.is_empty() { DEFAULT } else { hello.user };
        let version = shared.users.version();
        let Some(user) = shared.users.authenticate(name, hello.password) else {
            let text = "WRONGPASS invalid username-password pair or user is disabled.";
            self.log_denial(core, name, address);
            return Err((Status::Denied, text));
        };
        let claim = Claim { address, database: hello.database, user: user.identity };
        let token = self.secret.token(&claim, core.now_ms);
        self.sessions.greet(address, token, Greeting { user, version, database: hello.database });
        Ok(HelloReply {
            worker: core.number as u16,
            workers: shared.mailboxes.len() as u16,
            payload_limit: PAYLOAD_BYTES_MAX,
            token,
        })
    }

    /// A datagram's sender has a session with this token. The first datagram with the token of a
    /// hello begins it.
    pub fn has_session(&mut self, core: &Core, (address, token): (SocketAddr, u64)) -> bool {
        if self.sessions.get(address, token).is_some() {
            return true;
        }
        let Some(greeting) = self.sessions.prove(address, token) else { return false };
        self.end_session(core, address);
        if self.sessions.is_full() || core.has_all_clients() {
            return false;
        }
        let client = self.introduce(core, greeting, address);
        self.sessions.begin(address, (token, core.now_ms), client);
        true
    }

    /// Ends the session of an address, if there is one.
    pub fn end_session(&mut self, core: &Core, address: SocketAddr) {
        if let Some(client) = self.sessions.end(address) {
            core.farewell_datagrams(&client);
        }
    }

    /// A new client, which the others know from now on.
    fn introduce(&self, core: &Core, greeting: Greeting, address: SocketAddr) -> Box<Client> {
        let shared = &core.shared;
        shared.clients.fetch_add(1, Ordering::Relaxed);
        core.statistics.connections.add(1);
        let origin = Origin { id: shared.next_client(), ..self.origin(core, address) };
        let record = shared.registry.insert(origin);
        let mut client = Client::new(record, Login::new(&shared.users));
        client.session.database = greeting.database;
        client.log_in((greeting.user, greeting.version), &shared.users);
        client.record.database.store(u32::from(greeting.database), Ordering::Relaxed);
        Box::new(client)
    }

    fn origin(&self, core: &Core, address: SocketAddr) -> Origin {
        Origin {
            worker: core.number,
            address: address.to_string(),
            local: self.address.to_string(),
            descriptor: self.descriptor(),
            is_batched: true,
            connected_ms: core.now_ms,
            ..Origin::default()
        }
    }

    fn log_denial(&self, core: &Core, user: &[u8], address: SocketAddr) {
        let client = ClientRecord::new(self.origin(core, address));
        let entry = LogEntry::new(Reason::Login, Place::Request, core.now_ms).of(b"hello", user);
        let entry = LogEntry { client: client.line("hello", core.now_ms), ..entry };
        core.shared.users.log.add(entry, core.settings.access_log_entries);
    }
}

impl Core {
    /// There are as many clients as are allowed.
    fn has_all_clients(&self) -> bool {
        self.shared.clients.load(Ordering::Relaxed) >= self.settings.clients_max
    }

    /// Forgets a client whose session has ended.
    pub fn farewell_datagrams(&self, client: &Client) {
        self.shared.clients.fetch_sub(1, Ordering::Relaxed);
        self.shared.registry.remove(client.id());
    }
}

/// The hello of a decoded packet, if it is one.
fn hello<'a>(operations: &Operations, payload: &'a [u8]) -> Option<Hello<'a>> {
    let operation = operations.get(payload, 0);
    (operation.opcode == Opcode::Hello).then(|| Hello::decode(&operation)).flatten()
}
