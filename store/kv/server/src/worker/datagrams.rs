// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams of the batched protocol in the loop of a worker. Without a socket for them, every
//! function here is one comparison.

use std::mem;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use freeport_kv_datagrams::Datagram;
use freeport_kv_protocol::batch::{Header, write_error};

use super::batch::{Batches, Packet, Parcel};
use super::network::Network;
use super::{Core, Worker};
use crate::client::Client;
use crate::datagrams::{PAYLOAD_BYTES_MAX, Port, Underway, limits};

/// System calls for datagrams in a turn; connections wait meanwhile.
const CALLS: usize = 4;

impl Network {
    /// Notes that datagrams have come, at one of the sockets behind the listeners.
    pub(super) fn note_datagrams(&mut self, socket: usize) {
        if let Some(datagrams) = self.datagrams.get_mut(socket - self.listeners.len()) {
            datagrams.port.is_readable = true;
        }
    }

    /// Replies to datagrams wait for the log.
    pub(super) fn holds_datagrams(&self) -> bool {
        self.datagrams.iter().any(|datagrams| datagrams.port.is_waiting())
    }
}

impl Core {
    /// Datagrams may have come that can be executed now. While the shard is on loan or requests are
    /// paused, the system keeps them.
    #[inline]
    pub(super) fn has_datagrams(&self) -> bool {
        !self.network.datagrams.is_empty()
            && self.network.datagrams.iter().any(|datagrams| datagrams.port.may_receive())
            && self.store.has(self.number)
            && self.pause.is_none_or(|pause| pause.end_ms <= self.now_ms)
    }

    /// Ends the sessions of clients.
    pub(super) fn end_sessions(&mut self, mut is_ended: impl FnMut(&mut Client) -> bool) {
        let mut all = mem::take(&mut self.network.datagrams);
        for datagrams in &mut all {
            for client in datagrams.port.sessions.end_all(|client| is_ended(client)) {
                self.farewell_datagrams(&client);
            }
        }
        self.network.datagrams = all;
    }

    /// Ends the sessions of clients that send nothing any more, from time to time.
    pub(super) fn end_idle_sessions(&mut self) {
        let mut all = mem::take(&mut self.network.datagrams);
        for datagrams in &mut all {
            for client in datagrams.port.sessions.sweep(self.now_ms) {
                self.farewell_datagrams(&client);
            }
        }
        self.network.datagrams = all;
    }

    /// A turn has ended: sends the replies to datagrams that the log has released.
    pub(super) fn release_datagrams(&mut self) {
        let Some(log) = &self.log else { return };
        if !self.datagrams_pass_fence() {
            return self.drop_datagrams();
        }
        for datagrams in &mut self.network.datagrams {
            let released = (log.released(), log.is_failing());
            datagrams.port.release(log.end_position(), released, &self.statistics);
        }
    }
}

impl Core {
    /// Drops replies that have not left yet.
    pub(super) fn drop_datagrams(&mut self) {
        let ports = self.network.datagrams.iter_mut().map(|datagrams| &mut datagrams.port);
        ports.for_each(|port| port.drop_held(&self.statistics));
    }
}

impl Worker {
    /// Executes datagrams that have come.
    #[inline]
    pub(super) fn serve_datagrams(&mut self) {
        if self.core.has_datagrams() {
            self.serve_sockets();
        }
    }

    fn serve_sockets(&mut self) {
        // The clients of sockets are beside the core while it executes their operations.
        let mut all = mem::take(&mut self.core.network.datagrams);
        for datagrams in &mut all {
            let (inbox, port) = (&mut datagrams.inbox, &mut datagrams.port);
            for _ in 0..CALLS {
                if !port.receive(inbox) {
                    break;
                }
                // As after a read from a connection.
                self.core.follow();
                self.core.begin_commands();
                inbox.iter().for_each(|datagram| self.serve_datagram(port, &datagram));
                self.core.end_commands();
                port.send(&self.core.statistics);
            }
        }
        let sessions: usize = all.iter().map(|datagrams| datagrams.port.sessions.len()).sum();
        self.core.statistics.datagrams.sessions.set(sessions as u64);
        self.core.network.datagrams = all;
    }

    fn serve_datagram(&mut self, port: &mut Port, datagram: &Datagram<'_>) {
        let Datagram { sender, bytes } = *datagram;
        let counts = &self.core.statistics.datagrams;
        counts.received.add(1);
        self.core.statistics.received_bytes.add(bytes.len() as u64);
        let header = match Header::parse_request(bytes, PAYLOAD_BYTES_MAX) {
            Ok(Some(header)) if header.packet_bytes() == bytes.len() => header,
            _ => return counts.malformed.add(1),
        };
        let Some(token) = header.token else {
            return port.greet(&self.core, &header, datagram);
        };
        if !port.has_session(&self.core, (sender, token)) {
            counts.refused.add(1);
            return port.refuse(sender, header.batch, bytes.len());
        }
        let Some(session) = port.sessions.get(sender, token) else { return };
        session.active_ms = self.core.now_ms;
        session.longest = session.longest.max(bytes.len());
        let target = (sender, session.longest);
        let payload = &bytes[header.bytes()..];
        port.replies.clear();
        match port.operations.decode(payload, header.count) {
            Ok(()) => self.execute_datagram(port, (target, token), (header.batch, payload)),
            Err(malformed) => {
                counts.malformed.add(1);
                write_error(&mut port.replies, header.batch, &malformed.to_string());
                port.reply(target, false, &self.core.statistics);
            }
        }
    }

    /// Executes the decoded operations of a datagram.
    fn execute_datagram(
        &mut self,
        port: &mut Port,
        (target, token): ((SocketAddr, usize), u64),
        (batch, payload): (u32, &[u8]),
    ) {
        let Some(session) = port.sessions.get(target.0, token) else { return };
        let client = &mut session.client;
        client.record.active_ms.store(self.core.now_ms, Ordering::Relaxed);
        client.follow_users(&self.core.shared.users);
        let records = self.core.records();
        let ticket = port.pending.next_ticket();
        let mut state = Batches::datagram(ticket);
        let (operations, limits) = (&port.operations, limits(target.1));
        let packet = Packet { batch, operations, payload, limits };
        let is_taken = self.execute_packet((&mut state, client), packet, &mut port.replies);
        // Datagrams do not wait for each other.
        (client.is_suspended, client.is_paused) = (false, false);
        let has_written = self.core.records() != records;
        if !is_taken {
            // The slots are stopped, requests are paused since this turn, or consequences of an
            // earlier datagram took the shard away.
            self.core.statistics.datagrams.dropped.add(1);
        } else if let Some(gathering) = state.take_gathering() {
            port.pending.insert(ticket, Underway { target, has_written, gathering });
        } else {
            port.reply(target, has_written, &self.core.statistics);
        }
    }

    /// The replies of another worker to a part of a datagram have come.
    pub(super) fn datagram_done(&mut self, ticket: u64, number: usize, parcel: Box<Parcel>) {
        let ports = self.core.network.datagrams.iter_mut().map(|datagrams| &mut datagrams.port);
        for port in ports {
            let Some(underway) = port.pending.get_mut(ticket) else { continue };
            underway.has_written |= parcel.has_written;
            if underway.gathering.take(number, parcel)
                && let Some(underway) = port.pending.remove(ticket)
            {
                let Underway { target, has_written, gathering } = underway;
                port.replies.clear();
                gathering.write(&mut port.replies);
                port.reply(target, has_written, &self.core.statistics);
                port.send(&self.core.statistics);
            }
            return;
        }
    }
}
