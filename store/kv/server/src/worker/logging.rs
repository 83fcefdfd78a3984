// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The append log in the loop of a worker. Without a log, every function here is one comparison.
//!
//! 1. A command that may change something is refused if the log has no room for it.
//! 2. It is recorded, if it has changed something.
//! 3. Records are appended before a shard leaves the worker, and at the end of the turn. So the log
//!    has all changes of a key in the order of their execution.
//! 4. Replies are sent when the log is safe up to its end at the time of the append.

use freeport_kv_commands::{Error, Flags, Spec};
use freeport_kv_protocol::resp::Writer;
use freeport_kv_protocol::resp::reply::shared::OK;

use super::fencing::Passage;
use super::{Core, Worker};
use crate::client::{Client, slices};
use crate::connection::{BACKLOG_BYTES, Connection};
use crate::moving::Moving;
use crate::persistence::{Awaited, Holding, Reason, UNIT_BYTES, record};
use crate::replication::Replication;
use crate::shared::Shared;

impl Core {
    /// Number of recorded changes.
    #[inline]
    pub(super) fn records(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.records())
    }

    /// Asks for room in the log, if a command may change something.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub fn admit(
        &mut self,
        spec: &Spec,
        (database, arguments): (u16, &[&[u8]]),
    ) -> Result<(), Error> {
        match &mut self.log {
            Some(log) if spec.of(arguments).flags.has(Flags::WRITE) => {
                log.admit(arguments)?;
                match self.store.update_bytes(database, arguments, self.now_ms) {
                    Some(bytes) => log.admit_bytes(bytes + record::command_bytes(arguments)),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Asks for room for a change by a command that is not marked as a write.
    ///
    /// # Errors
    /// There is none.
    pub fn admit_unmarked(&mut self, arguments: &[&[u8]]) -> Result<(), Error> {
        self.log.as_mut().map_or(Ok(()), |log| log.admit(arguments))
    }

    /// Asks for room for a transaction, whose commands are one unit until [`Core::end_unit`].
    ///
    /// # Errors
    /// There is none.
    pub fn begin_transaction(
        &mut self,
        (database, queued): (u16, &[Vec<Vec<u8>>]),
    ) -> Result<(), Error> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let writes = |arguments: &&Vec<Vec<u8>>| {
            let command = self.table.get(&arguments[0]);
            command.is_some_and(|it| it.spec.of(&slices(arguments)).flags.has(Flags::WRITE))
        };
        let bytes = |arguments: &Vec<Vec<u8>>| {
            let arguments = slices(arguments);
            let values = self.store.update_bytes(database, &arguments, self.now_ms);
            record::command_bytes(&arguments) + values.unwrap_or_default()
        };
        let bytes: u64 = queued.iter().filter(writes).map(bytes).sum();
        if bytes > 0 {
            log.admit_bytes(bytes)?;
        }
        log.begin(true);
        Ok(())
    }

    /// The commands that follow are one unit, until [`Core::end_unit`].
    pub fn begin_unit(&mut self) {
        if let Some(log) = &mut self.log {
            log.begin(false);
        }
    }

    /// Ends a unit.
    pub fn end_unit(&mut self) {
        if let Some(log) = &mut self.log {
            log.end();
        }
    }

    /// Records a command, if it has changed something since there was a number of changes, and the
    /// keys that were removed before it because their time had passed or memory was short.
    #[inline]
    pub fn record(
        &mut self,
        changes: u64,
        (database, arguments): (u16, &[&[u8]]),
        has_succeeded: bool,
    ) {
        if self.log.is_none() {
            return;
        }
        self.record_removed();
        let logged = self.effects.logged.take();
        if let Some(log) = &mut self.log
            && self.effects.changes != changes
        {
            let Some(words) = logged else {
                return log.add(self.now_ms, |unit| {
                    record::write_command(unit, database, arguments, has_succeeded);
                });
            };
            for part in record::parts(&words, UNIT_BYTES) {
                log.add(self.now_ms, |unit| {
                    record::write_command(unit, database, &part, has_succeeded);
                });
            }
        }
    }

    /// Records keys that were removed outside of commands.
    #[inline]
    pub(super) fn record_removed(&mut self) {
        if let Some(log) = &mut self.log
            && !self.effects.removed.is_empty()
        {
            for (database, key) in self.effects.removed.drain(..) {
                log.add(self.now_ms, |unit| record::write_removal(unit, database, &key));
            }
        }
    }

    /// The log refuses writes for now, so nothing may be removed outside of commands either.
    #[inline]
    pub fn refuses_changes(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.refuses())
    }

    /// Asks for room for a change of the functions, all of which are recorded.
    ///
    /// # Errors
    /// There is none.
    pub fn admit_functions(&mut self, arguments: &[&[u8]]) -> Result<(), Error> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let present = self.shared.library.functions_since(0).map_or(0, |(_, dump)| dump.len());
        log.admit_bytes(record::command_bytes(arguments) + present as u64)
    }

    /// Records all functions.
    pub fn record_functions(&mut self, version: u64, dump: &[u8]) {
        if let Some(log) = &mut self.log {
            log.add(self.now_ms, |unit| record::write_functions(unit, version, dump));
        }
    }

    /// While the log refuses writes, or another node becomes the primary, values whose time has
    /// passed stay, because their removal would be a write. Reads do not see them.
    #[inline]
    pub(super) fn pause_removals(&mut self) {
        if self.log.is_some() {
            let paused_until_ms = self.pause.map_or(0, |pause| pause.end_ms);
            // While slots are imported, removals come from the log of the source.
            let is_importing = self.shared.moving.as_ref().is_some_and(Moving::is_importing);
            let refuses = is_importing || self.hands_over() || self.refuses_changes();
            self.effects.paused_until_ms = if refuses { u64::MAX } else { paused_until_ms };
        }
    }

    /// Appends what is recorded to the log.
    #[inline]
    pub fn flush_log(&mut self) {
        self.record_removed();
        if let Some(log) = &mut self.log {
            log.flush();
        }
        if std::mem::take(&mut self.effects.has_cleared)
            && let Some(moving) = &self.shared.moving
        {
            moving.note_clear();
        }
    }

    /// Sends replies, as far as the log and the lease let them go. Returns false if the connection
    /// has failed.
    #[inline]
    pub fn send(&mut self, id: u64, connection: &mut Connection) -> bool {
        // Without a lease, the turn of a connection adds only refusals.
        if self.routes.is_some() && !self.is_fenced {
            connection.guard_output();
        }
        self.send_as_guarded(id, connection)
    }

    /// The same; output that was added since [`Connection::guard_output`] depends on no key.
    #[inline]
    pub(super) fn send_as_guarded(&mut self, id: u64, connection: &mut Connection) -> bool {
        if connection.holding.is_on
            && let Some(log) = &mut self.log
        {
            log.hold(id, connection);
        }
        match self.pass_fence(id, connection) {
            Passage::Open => {}
            Passage::Waits => return true,
            Passage::Never => return false,
        }
        let backlog = connection.backlog_bytes();
        let is_open = connection.send();
        self.network.heat(id, connection);
        self.statistics.sent_bytes.add((backlog - connection.backlog_bytes()) as u64);
        is_open
    }

    /// The client waits, and takes no requests meanwhile.
    pub fn await_log(&mut self, client: &mut Client, awaited: Awaited) {
        if let Some(log) = &mut self.log {
            client.is_suspended = true;
            log.awaiting.push((client.id(), awaited));
        }
    }

    /// Replies may have been released that wait for the log.
    #[inline]
    pub(super) fn has_released(&self) -> bool {
        match &self.log {
            Some(log) => {
                let mailbox = &self.shared.mailboxes[self.number];
                mailbox.await_log(log.is_awaited() || self.network.holds_datagrams())
            }
            None => false,
        }
    }
}

impl Worker {
    /// Ends a turn: appends what it has recorded, and sends the replies that this releases.
    #[inline]
    pub(super) fn end_turn(&mut self) {
        if self.core.log.is_some() {
            self.follow_log();
        }
    }

    fn follow_log(&mut self) {
        // Shards that return may let commands be executed, so this comes before the append.
        self.take_images();
        self.core.flush_log();
        self.send_released();
        self.core.release_datagrams();
        self.answer_waiting();
    }

    /// Sends replies that the log has released.
    fn send_released(&mut self) {
        let Some(log) = &mut self.core.log else { return };
        let installed = self.core.shared.replication.as_ref().map_or(0, Replication::taken);
        if log.follows_new_log(installed) {
            // Positions of the log before mean nothing in this one.
            for client in log.take_waiting() {
                self.send_held(client, Holding::release_all);
            }
        }
        let Some(log) = &mut self.core.log else { return };
        for client in log.take_unmarked() {
            self.send_held(client, |holding| holding.is_unmarked = false);
        }
        let Some(log) = &mut self.core.log else { return };
        for client in log.take_released() {
            self.send_held(client, |holding| holding.is_listed = false);
        }
    }

    pub(super) fn send_held(&mut self, id: u64, unlist: impl FnOnce(&mut Holding)) {
        // The client may have gone.
        let Some(mut connection) = self.core.network.connections.remove(&id) else { return };
        unlist(&mut connection.holding);
        // Some of it may have been executed when the node had a lease.
        connection.guard_output();
        let backlog = connection.backlog_bytes();
        let is_open = self.core.send(id, &mut connection);
        let left = connection.backlog_bytes();
        if !is_open || connection.is_closing() && left == 0 {
            return self.farewell(*connection);
        }
        // Its requests have waited until there is room for their replies.
        if backlog > BACKLOG_BYTES && left <= BACKLOG_BYTES {
            self.again.push_back(id);
        }
        self.core.network.connections.insert(id, connection);
    }

    /// Answers commands that wait for the log or a snapshot, if their time has come.
    fn answer_waiting(&mut self) {
        let Some(log) = &mut self.core.log else { return };
        if log.awaiting.is_empty() {
            return;
        }
        for (client, awaited) in std::mem::take(&mut log.awaiting) {
            let is_answered = match self.core.network.connections.get_mut(&client) {
                Some(connection) => connection.client_mut().is_none_or(|(client, output)| {
                    let reply = Writer::new(output, client.session.version);
                    let is_answered = answer(&self.core.shared, self.core.now_ms, awaited, reply);
                    client.is_suspended = !is_answered;
                    is_answered
                }),
                // The client has gone.
                None => continue,
            };
            if is_answered {
                self.again.push_back(client);
            } else if let Some(log) = &mut self.core.log {
                log.awaiting.push((client, awaited));
            }
        }
    }

    /// The worker ends: what it has recorded is made durable, and its clients get their replies.
    pub(super) fn end_log(&mut self) {
        self.core.flush_log();
        let Some(persistence) = &self.core.shared.persistence else { return };
        // The server reports an error when all workers have ended.
        let _ = persistence.journal.sync();
        self.send_released();
        self.core.release_datagrams();
    }
}

/// Answers a command that waits, if its time has come. Returns whether it has.
fn answer(shared: &Shared, now_ms: u64, awaited: Awaited, mut reply: Writer<'_>) -> bool {
    let Some(persistence) = &shared.persistence else { return true };
    let is_replica = shared.replication.as_ref().is_some_and(Replication::is_replica);
    if is_replica && !matches!(awaited, Awaited::Snapshot { .. }) {
        reply.error("UNBLOCKED the server has become a replica");
        return true;
    }
    match awaited {
        Awaited::Snapshot { ended } => {
            if persistence.snapshots.ended() < ended {
                return false;
            }
            match &persistence.snapshots.report().failures[Reason::Save as usize] {
                None => reply.raw(OK),
                Some(reason) => reply.error(&format!("ERR The snapshot has failed: {reason}")),
            }
        }
        Awaited::Durable { position, deadline_ms, is_local, replicas } => {
            let is_durable = persistence.journal.durable() >= position;
            let durable = shared.replication.as_ref().map_or(0, |it| it.durable(position));
            let is_over = deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms);
            if !is_over && (is_local && !is_durable || durable < replicas) {
                return false;
            }
            reply.array(2);
            reply.integer(i64::from(is_durable));
            reply.integer(durable as i64);
        }
        Awaited::Replicas { position, deadline_ms, replicas } => {
            let acked = shared.replication.as_ref().map_or(0, |it| it.acked(position));
            let is_over = deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms);
            if !is_over && acked < replicas {
                return false;
            }
            reply.integer(acked as i64);
        }
    }
    true
}
