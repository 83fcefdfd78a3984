// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of channels for the clients of a worker, and events of keys as such messages.

use freeport_kv_protocol::resp::Writer;

use super::{Core, Worker};
use crate::channels::{Content, Delivery, Kind};
use crate::mail::Message;

/// Unsent bytes of a client that listens above which it is disconnected: messages are not kept for
/// a client that does not read them.
pub(super) const BACKLOG_MAX: usize = 32 << 20;

impl Worker {
    /// Writes messages of this worker's clients to their listeners on it.
    pub(super) fn deliver_own(&mut self) {
        for delivery in std::mem::take(&mut self.core.deliveries) {
            self.receive_delivery(&delivery);
        }
    }

    /// A message has come.
    pub(super) fn receive_delivery(&mut self, delivery: &Delivery) {
        self.core.shared.mailboxes[self.core.number].delivered(delivery);
        self.deliver(delivery);
    }

    /// Disconnects the clients that a message was not sent to, because too many were on their way.
    pub(super) fn leave_behind(&mut self) {
        for client in self.core.shared.mailboxes[self.core.number].take_behind() {
            if let Some(connection) = self.core.network.connections.remove(&client) {
                self.farewell(*connection);
            }
        }
    }

    /// Writes a message to clients.
    pub(super) fn deliver(&mut self, delivery: &Delivery) {
        let published = match &delivery.content {
            Content::Published(published) => published,
            Content::Invalidated(notice) => return self.notify(notice, &delivery.clients),
        };
        for id in &delivery.clients {
            // A client may have gone.
            let Some(connection) = self.core.network.connections.get_mut(id) else { continue };
            if connection.backlog_bytes() > BACKLOG_MAX {
                if let Some(connection) = self.core.network.connections.remove(id) {
                    self.farewell(*connection);
                }
                continue;
            }
            let Some((client, output)) = connection.client_mut() else { continue };
            published.write(&mut Writer::new(output, client.session.version));
            if !std::mem::replace(&mut client.is_told, true) {
                self.again.push_back(*id);
            }
        }
    }
}

impl Core {
    /// Publishes a message; returns the number of its receivers.
    pub fn publish(&mut self, kind: Kind, channel: &[u8], payload: &[u8]) -> usize {
        let Self { shared, deliveries, number, .. } = self;
        shared.channels.publish(kind, channel, payload, |worker, delivery| {
            let mailbox = &shared.mailboxes[worker];
            match mailbox.admit(delivery) {
                Some(delivery) if worker == *number => deliveries.push(delivery),
                Some(delivery) => mailbox.send(Message::Deliver { delivery }),
                None => {}
            }
        })
    }
}
