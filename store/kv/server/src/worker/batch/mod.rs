// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of the batched protocol (KV-Direct, client-side batching).
//!
//! A packet is decoded where it was received, and none of its operations is executed unless all are
//! well formed. If all keys are the worker's own and the client may do everything, the operations
//! are executed at once and the replies appended to the connection's output. Otherwise the packet
//! gets a [plan]: who executes which operation, and which are refused.

mod care;
mod gathering;
mod hello;
mod plan;
mod routing;

use freeport_kv_commands::batch::{Batch, Replies};
use freeport_kv_protocol::batch::{
    Header, HeaderError, Opcode, Operations, ReplyLimits, ReplyWriter, write_error,
};

use super::Worker;
use super::requests::Progress;
use crate::client::Client;
use crate::connection::BACKLOG_BYTES;
pub use gathering::{Gathering, Parcel};

/// Largest payload of a packet, in bytes. It is taken only as its bytes arrive.
pub const PAYLOAD_BYTES_MAX: u32 = 64 << 20;
/// Limits of replies: what fits in a packet of a client fits in one of the server.
const REPLY_LIMITS: ReplyLimits = ReplyLimits {
    value_bytes: PAYLOAD_BYTES_MAX as usize,
    packet_bytes: PAYLOAD_BYTES_MAX as usize,
};
/// Largest payload before the client has said a password, if it needs one.
const EARLY_BYTES_MAX: u32 = 64 << 10;

/// State of a connection of the batched protocol, besides that of its client.
#[derive(Debug, Default)]
pub struct Batches {
    /// A packet was answered, so no hello may come any more.
    has_begun: bool,
    /// Replies of other workers that a packet waits for.
    gathering: Option<Box<Gathering>>,
    /// The number with which parcels of a datagram come back, in place of that of its client.
    ticket: Option<u64>,
    /// The worker that the client wants, which the connection moves to.
    pub moves_to: Option<usize>,
}

impl Batches {
    /// State for a packet that has come as a datagram, with a ticket that no client has as number.
    pub(super) fn datagram(ticket: u64) -> Self {
        Self { has_begun: true, ticket: Some(ticket), ..Self::default() }
    }

    /// The packet is a datagram, which is executed now or never.
    fn is_datagram(&self) -> bool {
        self.ticket.is_some()
    }

    /// Takes the replies of other workers that the packet waits for, if it does.
    pub(super) fn take_gathering(&mut self) -> Option<Box<Gathering>> {
        self.gathering.take()
    }
}

/// Progress with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// More bytes have to come.
    Incomplete,
    /// It was taken, with that number of bytes.
    Taken(usize),
    /// It has to wait, and is read again.
    Waits,
}

/// A complete packet.
#[derive(Clone, Copy)]
pub(super) struct Packet<'a> {
    /// Number that the client chose.
    pub batch: u32,
    /// Its operations.
    pub operations: &'a Operations,
    /// Bytes that they were decoded from.
    pub payload: &'a [u8],
    /// Limits of its replies.
    pub limits: ReplyLimits,
}

impl Worker {
    /// Executes the packets that are complete, until the client has to wait.
    pub(super) fn execute_packets(
        &mut self,
        (state, client): (&mut Batches, &mut Client),
        received: &[u8],
        output: &mut Vec<u8>,
    ) -> Progress {
        let mut used = 0;
        client.follow_users(&self.core.shared.users);
        self.core.begin_commands();
        while client.is_ready() && output.len() <= BACKLOG_BYTES {
            match self.take_packet((state, client), &received[used..], output) {
                Step::Taken(bytes) => used += bytes,
                Step::Incomplete => {
                    self.core.end_commands();
                    return Progress { used, is_input_left: false };
                }
                Step::Waits => break,
            }
        }
        self.core.end_commands();
        Progress { used, is_input_left: true }
    }

    fn take_packet(
        &mut self,
        (state, client): (&mut Batches, &mut Client),
        received: &[u8],
        output: &mut Vec<u8>,
    ) -> Step {
        let most = if client.is_authenticated { PAYLOAD_BYTES_MAX } else { EARLY_BYTES_MAX };
        let header = match Header::parse_request(received, most) {
            Ok(Some(header)) if received.len() >= header.packet_bytes() => header,
            Ok(_) => return Step::Incomplete,
            Err(error) => {
                self.refuse_header(client, error, output);
                return Step::Taken(received.len());
            }
        };
        let payload = &received[header.bytes()..header.packet_bytes()];
        let mut operations = std::mem::take(&mut self.operations);
        let is_taken = match operations.decode(payload, header.count) {
            Ok(()) => {
                let (operations, limits) = (&operations, REPLY_LIMITS);
                let packet = Packet { batch: header.batch, operations, payload, limits };
                self.execute_packet((state, client), packet, output)
            }
            Err(error) => {
                self.core.statistics.error("ERR malformed packet");
                write_error(output, header.batch, &error.to_string());
                state.has_begun = true;
                true
            }
        };
        self.operations = operations;
        if is_taken { Step::Taken(header.packet_bytes()) } else { Step::Waits }
    }

    /// Nothing behind such a header can be read, so the connection ends.
    #[cold]
    fn refuse_header(&self, client: &mut Client, error: HeaderError, output: &mut Vec<u8>) {
        self.core.statistics.error("ERR header of a packet");
        write_error(output, error.batch, &error.to_string());
        client.is_closing = true;
    }

    /// Executes a packet. Its replies are appended to the output now, or later if other workers
    /// have a part of it. Returns false if it has to wait, and must be given again.
    pub(super) fn execute_packet(
        &mut self,
        (state, client): (&mut Batches, &mut Client),
        packet: Packet<'_>,
        output: &mut Vec<u8>,
    ) -> bool {
        let own = self.core.number;
        if self.core.is_watchful && self.waits_for_pause(client, packet) {
            return false;
        }
        let Some(is_here) = self.core.route_packet(packet) else {
            // Datagrams do not wait.
            if !state.is_datagram() {
                self.stop_client(client);
            }
            return false;
        };
        if !self.core.store.has(own) {
            self.suspend_for(client, 1 << own);
            return false;
        }
        if client.is_checked || !is_here || self.core.needs_plan(state, packet) {
            return self.execute_planned((state, client), packet, output);
        }
        state.has_begun = true;
        let Packet { batch, operations, payload, limits } = packet;
        let mut writer = ReplyWriter::begin(output, batch, 0, limits);
        let all = Batch { operations, payload, range: 0..operations.len() };
        let mut replies = Replies { writer: &mut writer, output };
        self.core.execute_operations(client.session, &all, &mut replies);
        writer.finish(output);
        self.follow_operations();
        true
    }

    /// Consequences of operations for other clients.
    fn follow_operations(&mut self) {
        if !self.core.effects.events.is_empty() {
            self.core.publish_events();
        }
        if self.core.effects.has_ready_keys {
            self.serve_waiters();
        }
    }

    /// A client waits for the end of a pause, if there is one that concerns its packet.
    fn waits_for_pause(&mut self, client: &mut Client, packet: Packet<'_>) -> bool {
        let Some(pause) = self.core.pause.filter(|pause| self.core.now_ms < pause.end_ms) else {
            return false;
        };
        let mut operations = packet.operations.iter(packet.payload);
        let waits = pause.is_for_all
            || operations
                .any(|operation| !operation.opcode.is_read() && operation.opcode != Opcode::Hello);
        if waits {
            client.is_suspended = true;
            client.is_paused = true;
            self.paused.push(client.id());
        }
        waits
    }
}
