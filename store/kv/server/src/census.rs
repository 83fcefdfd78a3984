// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A count of what a server keeps for its clients. Tests see from it that nothing is left of
//! clients that have gone.

use std::sync::mpsc::channel;

use crate::mail::Message;
use crate::shared::Shared;

/// State that the workers of a server hold. Each worker counts at a moment of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Shards that are with their workers; the others are on loan, or on their way.
    pub shards: usize,
    /// Connections.
    pub connections: usize,
    /// Clients that wait for a key.
    pub blocked: usize,
    /// Clients that wait for shards, or for replies of other workers.
    pub suspended: usize,
    /// Keys that clients wait for, in shards that are with their workers.
    pub awaited_keys: usize,
    /// Keys that transactions watch, in the same shards.
    pub watched_keys: usize,
    /// Loans and commands of other workers that wait for a shard.
    pub loans: usize,
    /// Bytes of published messages on their way to other workers.
    pub message_bytes: usize,
    /// Number of published messages that were lost since the start, because a worker was too slow.
    pub lost_messages: u64,
}

impl Census {
    /// Asks all workers, and adds up their answers. A worker that ends is left out.
    pub(crate) fn take(shared: &Shared) -> Self {
        let (sender, receiver) = channel();
        for mailbox in shared.mailboxes.iter() {
            mailbox.send(Message::Count { census: sender.clone() });
        }
        drop(sender);
        let mut sum = Self::default();
        for one in receiver {
            sum.add(&one);
        }
        for mailbox in shared.mailboxes.iter() {
            sum.message_bytes += mailbox.message_bytes();
            sum.lost_messages += mailbox.lost_messages();
        }
        sum
    }

    fn add(&mut self, other: &Self) {
        self.shards += other.shards;
        self.connections += other.connections;
        self.blocked += other.blocked;
        self.suspended += other.suspended;
        self.awaited_keys += other.awaited_keys;
        self.watched_keys += other.watched_keys;
        self.loans += other.loans;
    }
}
