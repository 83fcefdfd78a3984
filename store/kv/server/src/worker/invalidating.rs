// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Notices of invalid copies: from the effects of a command to the clients that keep the copies.
//! See [`crate::tracking`].
//!
//! Clients get a notice of a key that they have read after the command that changed it, and the
//! client of that command after its reply. Changes that are broadcast are collected for a turn, so
//! that each client gets one message for a prefix.

use std::sync::Arc;

use super::delivering::BACKLOG_MAX;
use super::{Core, Worker};
use crate::channels::{Content, Delivery};
use crate::client::Client;
use crate::mail::Message;
use crate::tracking::{Changes, Invalidated, Notice, Reason, by_worker};

/// Keys that are taken out of a table above its limit in one turn.
const TRIMMED_KEYS: usize = 1_000;

/// Invalidations that a worker has not sent yet.
#[derive(Debug, Default)]
pub struct Notices {
    /// Changes of this turn that are broadcast.
    changes: Changes,
    /// Notices for clients of this worker that are being served: they are written after the reply.
    unwritten: Vec<(u64, Notice)>,
    /// The table of the own shard is above its limit.
    pub is_trimming: bool,
}

impl Notices {
    /// Some client that is being served gets a notice.
    #[inline]
    pub fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }
}

impl Worker {
    /// Sends the invalidations that are among the effects. A client has caused them, or none (0).
    #[cold]
    pub(super) fn send_notices(&mut self, by: u64) {
        if std::mem::take(&mut self.core.effects.are_all_invalid) {
            let notice = Notice { invalidated: Arc::new(Invalidated::All), reason: Reason::Flush };
            for (worker, clients) in self.core.shared.trackers.everyone() {
                self.send_notice(usize::from(worker), &notice, clients);
            }
        }
        for it in std::mem::take(&mut self.core.effects.invalidations) {
            let by = if it.is_by_command { by } else { 0 };
            if it.is_broadcast {
                self.core.notices.changes.insert(it.key.clone(), by);
            }
            if it.readers.is_empty() {
                continue;
            }
            let invalidated = Arc::new(Invalidated::Keys(vec![(it.key, by)]));
            let notice = Notice { invalidated, reason: Reason::Read };
            for (worker, clients) in by_worker(it.readers.into_iter()) {
                self.send_notice(usize::from(worker), &notice, clients);
            }
        }
    }

    fn send_notice(&mut self, worker: usize, notice: &Notice, clients: Vec<u64>) {
        if worker == self.core.number {
            return self.notify(notice, &clients);
        }
        let delivery = Delivery { content: Content::Invalidated(notice.clone()), clients };
        let mailbox = &self.core.shared.mailboxes[worker];
        if let Some(delivery) = mailbox.admit(delivery) {
            mailbox.send(Message::Deliver { delivery });
        }
    }

    /// Clients of this worker get a notice.
    pub(super) fn notify(&mut self, notice: &Notice, clients: &[u64]) {
        for &client in clients {
            if !self.notify_one(notice, client) {
                self.core.notices.unwritten.push((client, notice.clone()));
            }
        }
    }

    /// A client gets a notice. Returns false if it is being served, or has gone.
    fn notify_one(&mut self, notice: &Notice, id: u64) -> bool {
        let Core { network, shared, .. } = &mut self.core;
        let Some(connection) = network.connections.get_mut(&id) else { return false };
        if connection.backlog_bytes() > BACKLOG_MAX {
            self.disconnect(id);
            return true;
        }
        let Some((client, output)) = connection.client_mut() else { return true };
        let forwarded = client.take_notice(notice, output, shared);
        if !std::mem::replace(&mut client.is_told, true) {
            self.again.push_back(id);
        }
        if let Some(it) = forwarded {
            self.send_notice(it.worker, &it.notice, vec![it.client]);
        }
        true
    }

    /// Writes the notices for a client that is being served.
    #[cold]
    pub(super) fn write_notices(&mut self, client: &mut Client, output: &mut Vec<u8>) {
        let is_own = |(id, _): &mut (u64, Notice)| *id == client.id();
        let own: Vec<_> = self.core.notices.unwritten.extract_if(.., is_own).collect();
        for (_, notice) in own {
            if let Some(it) = client.take_notice(&notice, output, &self.core.shared) {
                self.send_notice(it.worker, &it.notice, vec![it.client]);
            }
        }
    }

    /// Sends what is left at the end of a turn, when no client is being served.
    pub(super) fn end_notices(&mut self) {
        if self.core.notices.is_trimming {
            self.core.trim_readers();
        }
        let effects = &self.core.effects;
        if effects.are_all_invalid || !effects.invalidations.is_empty() {
            self.send_notices(0);
        }
        // Clients of these may be the clients that others are redirected to.
        while let Some((client, notice)) = self.core.notices.unwritten.pop() {
            self.notify_one(&notice, client);
        }
        if !self.core.notices.changes.is_empty() {
            self.broadcast();
        }
    }

    fn broadcast(&mut self) {
        let changes = std::mem::take(&mut self.core.notices.changes);
        // Not while its lock is held: a client that is too slow ends, and stops tracking.
        let messages = self.core.shared.trackers.broadcast(&changes);
        for (worker, invalidated, clients) in messages {
            let notice = Notice { invalidated, reason: Reason::Prefix };
            self.send_notice(usize::from(worker), &notice, clients);
        }
    }
}

impl Core {
    /// Gives the own shard its part of the limit of keys that are remembered for clients.
    pub(super) fn limit_readers(&mut self) {
        let limit = match self.settings.read_keys_max {
            0 => usize::MAX,
            most => most.div_ceil(self.store.count()),
        };
        self.store.shard_mut(self.number).set_read_keys_max(limit);
        self.notices.is_trimming = true;
    }

    fn trim_readers(&mut self) {
        if self.store.has(self.number) {
            let shard = self.store.shard_mut(self.number);
            self.notices.is_trimming = !shard.trim_readers(TRIMMED_KEYS, &mut self.effects);
        }
    }
}
