// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that wait for keys. A command that found nothing is kept with its client, which the
//! shards of its keys know. When one of the keys changes, the command is executed again.

use freeport_kv_commands::{Block, Waiter};
use freeport_kv_protocol::resp::Writer;

use super::Worker;
use super::lending::Forgotten;
use crate::client::{Blocked, Client};
use crate::mail::Message;

impl Worker {
    /// Makes a client wait, after its command has found nothing. The shards of the keys are here.
    pub(super) fn block(&mut self, client: &mut Client, arguments: &[&[u8]], block: Block) {
        let owned = || arguments.iter().map(|argument| argument.to_vec()).collect();
        let arguments = block.arguments.clone().unwrap_or_else(owned);
        let blocked = Blocked { arguments, block };
        let waiter = Waiter {
            worker: u16::try_from(self.core.number).expect("there are at most 64 workers"),
            client: client.id(),
            kind: blocked.block.kind,
            wakes_on_removal: blocked.block.wakes_on_removal,
            is_told: false,
        };
        for key in blocked.keys() {
            let shard = self.core.store.shard_of(key);
            self.core.store.shard_mut(shard).wait(client.session.database, key, waiter);
        }
        if let Some(deadline_ms) = blocked.block.deadline_ms {
            self.deadlines.insert((deadline_ms, client.id()));
        }
        client.blocked = Some(blocked);
    }

    /// Ends a wait, if there is one.
    pub(super) fn stop_blocking(&mut self, client: &mut Client) {
        let Some(blocked) = client.blocked.take() else { return };
        for key in blocked.keys() {
            let what = Forgotten::Waiter(client.id());
            self.core.forget_everywhere((client.session.database, key), what);
        }
        if let Some(deadline_ms) = blocked.block.deadline_ms {
            self.deadlines.remove(&(deadline_ms, client.id()));
        }
        if client.is_caching_decided {
            client.end_caching(b"");
        }
    }

    /// Sends the notices of invalid copies that are left. Then it looks at the clients that wait
    /// for keys which have changed, in their order, until no key has changed any more.
    pub(super) fn serve_waiters(&mut self) {
        self.send_notices(0);
        // The command that made the keys ready may have taken longer than they last.
        if self.core.effects.has_ready_keys {
            self.core.now_ms = self.core.shared.now_ms();
        }
        while std::mem::take(&mut self.core.effects.has_ready_keys) {
            let mut waiters = vec![];
            for shard in self.core.store.shards_mut() {
                for (database, key) in shard.take_ready() {
                    let kind = shard
                        .database(database)
                        .and_then(|keyspace| keyspace.kind(&key, self.core.now_ms));
                    let own = self.core.number;
                    let mut found = shard.waiters(database, &key);
                    found.retain(|waiter| waiter.wakes_on_removal || kind == Some(waiter.kind));
                    // One message is enough until the worker has looked at the key.
                    found.retain(|waiter| {
                        usize::from(waiter.worker) == own
                            || !shard.set_told(database, &key, waiter.client, true)
                    });
                    waiters.extend(found);
                }
            }
            for waiter in waiters {
                if usize::from(waiter.worker) == self.core.number {
                    self.retry(waiter.client);
                } else {
                    let mailbox = &self.core.shared.mailboxes[usize::from(waiter.worker)];
                    mailbox.send(Message::Ready { client: waiter.client });
                }
            }
        }
    }

    /// Executes the command of a blocked client again, if the shards of its keys are here.
    fn retry(&mut self, id: u64) {
        let Some(mut connection) = self.core.network.connections.remove(&id) else { return };
        let records = self.core.records();
        let is_over = match connection.client_mut() {
            Some((client, output)) => self.retry_client(client, output),
            None => false,
        };
        connection.holding.has_written |= self.core.records() != records;
        self.core.network.connections.insert(id, connection);
        if is_over {
            self.again.push_back(id);
        }
    }

    /// Returns whether the wait is over.
    fn retry_client(&mut self, client: &mut Client, output: &mut Vec<u8>) -> bool {
        let Some(blocked) = &client.blocked else { return false };
        // It waits for shards already, and is executed when they are here.
        if client.is_suspended {
            return false;
        }
        match self.check_route_of_blocked(client, &blocked.arguments) {
            Ok(true) => {}
            // The change of routes that ends this looks at the client again.
            Ok(false) => return false,
            Err(error) => {
                Writer::new(output, client.session.version).error(error.text());
                self.stop_blocking(client);
                return true;
            }
        }
        // Also those of keys that it does not wait for, such as the target of `BLMOVE`.
        let needed = self.core.shards_of_queued(&blocked.arguments);
        if self.has_shards(needed) {
            return self.try_again(client, output);
        }
        self.suspend_for(client, needed);
        false
    }

    /// Returns whether the wait is over.
    fn try_again(&mut self, client: &mut Client, output: &mut Vec<u8>) -> bool {
        let Some(blocked) = client.blocked.take() else { return false };
        client.follow_users(&self.core.shared.users);
        match self.core.check_rights_of_blocked(client, &blocked.arguments) {
            Ok(()) => _ = self.core.run_inner(client, &blocked.arguments, output),
            Err(error) => Writer::new(output, client.session.version).error(error.text()),
        }
        self.send_notices(client.id());
        let is_over = self.core.effects.block.take().is_none();
        if !is_over {
            for key in blocked.keys() {
                let shard = self.core.store.shard_of(key);
                let shard = self.core.store.shard_mut(shard);
                shard.set_told(client.session.database, key, client.id(), false);
            }
        }
        client.blocked = Some(blocked);
        if is_over {
            self.stop_blocking(client);
        }
        is_over
    }

    /// A key was changed that a client waits for, or the shards of its keys are here.
    pub(super) fn retry_by_message(&mut self, client: u64) {
        self.retry(client);
        if self.core.effects.has_ready_keys {
            self.serve_waiters();
        }
    }

    /// Ends the waits whose time is over.
    pub(super) fn end_waits(&mut self) {
        while let Some(&(deadline_ms, id)) = self.deadlines.first() {
            if deadline_ms > self.core.now_ms {
                return;
            }
            self.deadlines.pop_first();
            let Some(mut connection) = self.core.network.connections.remove(&id) else { continue };
            if let Some((client, output)) = connection.client_mut()
                && let Some(blocked) = &client.blocked
            {
                let mut reply = Writer::new(output, client.session.version);
                match blocked.block.is_null_string {
                    true => reply.null(),
                    false => reply.null_array(),
                }
                self.core.count_wait(&blocked.arguments);
                self.stop_blocking(client);
                self.again.push_back(id);
            }
            self.core.network.connections.insert(id, connection);
        }
    }
}
