// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Work of a worker besides its commands: it follows the parameters, and treats those with care
//! that concern more than their client.
//!
//! Nearly all commands need none of this care, so they pay for it with one comparison: the server
//! has no monitor and no pause and is in no cluster, and the client has authenticated, wants its
//! replies, and has not decided whether its next command counts for client-side caching.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Error, Flags, Spec};
use freeport_kv_protocol::resp::{RequestReader, Writer};

use super::replicating::LOADING;
use super::{Core, Worker};
use crate::channels::Kind;
use crate::client::{Client, Replies, slices};
use crate::cluster::Cluster;
use crate::commands::Flow;
use crate::configuration::{Settings, events};
use crate::connection::Connection;
use crate::mail::Message;
use crate::shared::Pause;
use crate::slow_log::is_secret;

/// Milliseconds between two looks at what changes slowly.
const LOOK_MS: u64 = 100;
/// Commands that may change values, although they are not marked so.
const MAY_WRITE: [&str; 7] =
    ["publish", "spublish", "pfcount", "eval", "evalsha", "fcall", "script"];

impl Core {
    /// Follows the parameters, if they have changed.
    ///
    /// A client that has got the reply to a change relies on it, and so does everybody who hears
    /// of that reply. So a worker follows whenever it has taken up something to execute, before it
    /// executes it: bytes of clients, datagrams, messages of other workers, batches of a primary.
    /// Once at the begin of a turn is not enough, because these may come later.
    #[inline]
    pub fn follow(&mut self) {
        if self.shared.version.load(Ordering::Acquire) != self.settings.version {
            self.follow_changes();
        }
    }

    /// Follows the parameters now.
    #[cold]
    pub fn follow_changes(&mut self) {
        let version = self.shared.version.load(Ordering::Acquire);
        self.settings = Settings::new(version, &self.shared.configuration);
        self.effects.listened = events::listened(self.settings.events);
        if let Some(persistence) = &self.shared.persistence {
            persistence.journal.set_policy(self.settings.policy);
        }
        self.has_new_limits = true;
        self.effects.broadcast_prefixes = self.shared.trackers.prefixes();
        self.pause = self.shared.pause();
        self.monitors = self.shared.monitors();
        self.routes = self.shared.cluster.as_ref().map(Cluster::routes);
        self.follow_role();
        self.is_guarded = self.pause.is_some()
            || !self.monitors.is_empty()
            || self.settings.refuses()
            || self.is_loading;
        self.is_watchful = self.is_guarded || self.routes.is_some();
        self.effects.paused_until_ms = self.pause.map_or(0, |pause| pause.end_ms);
        self.pause_removals();
        self.apply_limits();
    }

    /// Gives the own shard new limits, as soon as it is here.
    fn apply_limits(&mut self) {
        if self.has_new_limits && self.store.has(self.number) {
            let shard = self.store.shard_mut(self.number);
            let limits = self.settings.limits(&shard.options().keyspace.limits);
            shard.set_limits(&limits);
            self.store.set_eviction(self.number, self.settings.eviction, self.now_ms);
            self.limit_readers();
            self.has_new_limits = false;
        }
    }

    /// Publishes the events of keys that have happened.
    #[cold]
    pub fn publish_events(&mut self) {
        let flags = self.settings.events;
        for event in std::mem::take(&mut self.effects.events) {
            let channel = |kind: &str, name: &[u8]| {
                [format!("__{kind}@{}__:", event.database).as_bytes(), name].concat()
            };
            if flags & events::KEYSPACE != 0 {
                let channel = channel("keyspace", &event.key);
                self.publish(Kind::Channel, &channel, event.name.as_bytes());
            }
            if flags & events::KEYEVENT != 0 {
                let channel = channel("keyevent", event.name.as_bytes());
                self.publish(Kind::Channel, &channel, &event.key);
            }
        }
    }

    /// Shows a command of a script to those that monitor.
    #[cold]
    pub fn show_of_script(&self, client: &Client, spec: &Spec, arguments: &[&[u8]]) {
        let flags = spec.of(arguments).flags;
        if !flags.has(Flags::ADMIN) && !flags.has(Flags::SKIP_MONITOR) {
            self.show_from("lua", client.session.database, arguments);
        }
    }

    /// Shows a command of a client to those that monitor.
    pub(super) fn show(&self, client: &Client, arguments: &[&[u8]]) {
        let origin = &client.record.origin;
        let address = match origin.is_unix {
            true => format!("unix:{}", origin.address.trim_end_matches(":0")),
            false => origin.address.clone(),
        };
        self.show_from(&address, client.session.database, arguments);
    }

    fn show_from(&self, address: &str, database: u16, arguments: &[&[u8]]) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let (seconds, microseconds) = (now.as_secs(), now.subsec_micros());
        let mut line = format!("+{seconds}.{microseconds:06} [{database} {address}]");
        for (at, argument) in arguments.iter().enumerate() {
            let shown: &[u8] = if is_secret(arguments, at) { b"(redacted)" } else { argument };
            line += &format!(" \"{}\"", quoted(shown));
        }
        line += "\r\n";
        let line: Arc<[u8]> = line.into_bytes().into();
        for (worker, monitor) in &self.monitors {
            let message = Message::Show { client: *monitor, line: line.clone() };
            self.shared.mailboxes[*worker].send(message);
        }
    }
}

/// Bytes as between quotes of C.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'"' => text += "\\\"",
            b'\\' => text += "\\\\",
            b'\n' => text += "\\n",
            b'\r' => text += "\\r",
            b'\t' => text += "\\t",
            7 => text += "\\a",
            8 => text += "\\b",
            0x20..=0x7E => text.push(char::from(*byte)),
            _ => text += &format!("\\x{byte:02x}"),
        }
    }
    text
}

impl Worker {
    /// Executes a request with care: see [`Worker::needs_care`].
    #[cold]
    pub(super) fn execute_with_care(
        &mut self,
        client: &mut Client,
        arguments: &[&[u8]],
        output: &mut Vec<u8>,
    ) -> Flow {
        let start = output.len();
        let before = client.replies;
        if before == Replies::Skip {
            client.replies = Replies::On;
        }
        let flow = match self.check(client, arguments) {
            Ok(true) => self.execute(client, arguments, output),
            Ok(false) => Flow::Suspend,
            Err(error) => {
                client.refuse_transaction();
                Writer::new(output, client.session.version).error(error.text());
                Flow::Continue
            }
        };
        if flow == Flow::Suspend {
            client.replies = before;
        } else if (before == Replies::Skip || client.replies == Replies::Off)
            && !self.is_sent_anyway(arguments)
        {
            output.truncate(start);
        }
        if client.is_caching_decided && flow == Flow::Continue {
            client.end_caching(arguments[0]);
        }
        flow
    }

    /// A command's replies are sent to a client without replies: they are messages about channels,
    /// or it turns replies on.
    fn is_sent_anyway(&self, arguments: &[&[u8]]) -> bool {
        let name = self.core.table.get(arguments[0]).map_or("", |command| command.spec.name);
        let turns_on = |words: &[&[u8]]| matches!(words, [_, _, on] if is(on, "on"));
        name.ends_with("subscribe")
            || name == "client" && is(arguments[1], "reply") && turns_on(arguments)
    }

    /// A request of this client cannot be executed without further ado.
    #[inline]
    pub(super) fn needs_care(&self, client: &Client) -> bool {
        self.core.is_watchful
            | client.is_checked
            | (client.replies != Replies::On)
            | client.is_caching_decided
    }

    /// Requests of this client may be sent to other workers, each after a check of its rights.
    #[inline]
    pub(super) fn can_divide(&self, client: &Client) -> bool {
        !self.core.is_guarded
            & client.is_authenticated
            & (client.replies == Replies::On)
            & !client.is_caching_decided
    }

    /// Returns false if the request has to wait.
    fn check(&mut self, client: &mut Client, arguments: &[&[u8]]) -> Result<bool, Error> {
        const NO_AUTH: Error = Error::fixed("NOAUTH Authentication required.");
        // Execution finds what is wrong with the request itself.
        let Some(command) = self.core.table.get(arguments[0]).copied() else { return Ok(true) };
        let spec = command.spec;
        if spec.check_arity(arguments.len()).is_err() {
            return Ok(true);
        }
        if !client.is_authenticated && !spec.flags.has(Flags::NO_AUTH) {
            self.core.statistics.rejected(spec.number, NO_AUTH.text());
            return Err(NO_AUTH);
        }
        if client.is_checked
            && let Err(error) = self.core.check_rights(client, &spec, arguments)
        {
            self.core.statistics.rejected(spec.number, error.text());
            return Err(error);
        }
        if self.core.routes.is_some() && !self.check_route(client, &command, arguments)? {
            return Ok(false);
        }
        if self.core.is_loading && !spec.of(arguments).flags.has(Flags::LOADING) {
            self.core.statistics.rejected(spec.number, LOADING.text());
            return Err(LOADING);
        }
        if let Some(pause) = self.core.pause
            && self.core.now_ms < pause.end_ms
            && (pause.is_for_all || self.may_write(client, spec.of(arguments)))
        {
            client.is_suspended = true;
            client.is_paused = true;
            self.paused.push(client.id());
            return Ok(false);
        }
        if self.core.settings.refuses()
            && let Err(error) = self.core.check_memory(client, &spec, arguments)
        {
            self.core.statistics.rejected(spec.number, error.text());
            return Err(error);
        }
        // A request that waits for shards is executed later.
        if !self.core.monitors.is_empty()
            && !client.queues(&spec)
            && self.has_shards(self.core.needed_shards(client, &spec, arguments))
        {
            self.show_command(client, &spec, arguments);
        }
        Ok(true)
    }

    fn show_command(&self, client: &Client, spec: &Spec, arguments: &[&[u8]]) {
        let flags = spec.of(arguments).flags;
        if let (Some(transaction), "exec") = (&client.transaction, spec.name) {
            if !transaction.is_refused {
                transaction.queued.iter().for_each(|it| self.core.show(client, &slices(it)));
            }
            self.core.show(client, arguments);
        } else if !flags.has(Flags::ADMIN) && !flags.has(Flags::SKIP_MONITOR) {
            self.core.show(client, arguments);
        }
    }

    fn may_write(&self, client: &Client, spec: &Spec) -> bool {
        let writes = |spec: &Spec| spec.flags.has(Flags::WRITE) || MAY_WRITE.contains(&spec.name);
        match (&client.transaction, spec.name) {
            (Some(transaction), "exec") => transaction.queued.iter().any(|queued| {
                self.core.table.get(&queued[0]).is_some_and(|queued| writes(&queued.spec))
            }),
            _ => writes(spec),
        }
    }

    /// Does what is due once a turn.
    pub(super) fn look_around(&mut self) {
        self.core.follow();
        self.follow_new_role();
        self.look_at_fence();
        self.core.pause_removals();
        if !self.core.effects.events.is_empty() {
            self.core.publish_events();
        }
        if !self.paused.is_empty() {
            self.end_pause();
        }
        if self.core.now_ms >= self.next_look_ms {
            self.next_look_ms = self.core.now_ms + LOOK_MS;
            self.core.apply_limits();
            self.core.follow_role();
            self.core.publish_size();
            if self.core.settings.idle_s > 0 {
                self.disconnect_idle();
            }
            self.end_late_handshakes();
            if self.core.number == 0 {
                self.core.shared.sample_rates(self.core.now_ms);
                self.core.look_at_log();
            }
        }
    }

    /// Requests that waited for the end of a pause are executed, if it is over.
    fn end_pause(&mut self) {
        let lasts = |pause: Pause| self.core.now_ms < pause.end_ms;
        if self.core.pause.is_some_and(lasts) {
            return;
        }
        for client in std::mem::take(&mut self.paused) {
            self.resume(client);
        }
    }

    /// Disconnects clients that have sent nothing for long, but not those that wait or listen.
    fn disconnect_idle(&mut self) {
        let limit_ms = self.core.settings.idle_s * 1_000;
        let is_idle = |connection: &Connection| {
            connection.client().is_some_and(|client| {
                let active_ms = client.record.active_ms.load(Ordering::Relaxed);
                client.blocked.is_none()
                    && client.subscriptions.is_empty()
                    && !client.is_monitor
                    && self.core.now_ms.saturating_sub(active_ms) > limit_ms
            })
        };
        let idle: Vec<u64> = self
            .core
            .network
            .connections
            .iter()
            .filter(|(_, connection)| is_idle(connection))
            .map(|(id, _)| *id)
            .collect();
        idle.into_iter().for_each(|id| self.disconnect(id));
    }

    /// Ends a connection now.
    pub(super) fn disconnect(&mut self, id: u64) {
        // The client may have gone.
        if let Some(connection) = self.core.network.connections.remove(&id) {
            return self.farewell(*connection);
        }
        self.core.end_sessions(|client| client.id() == id);
    }

    /// Ends the wait of a client by a reply: that of a wait whose time is over, or an error.
    pub(super) fn unblock(&mut self, id: u64, is_error: bool) {
        self.end_wait(id, |reply, is_null_string| match (is_error, is_null_string) {
            (true, _) => reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK"),
            (false, true) => reply.null(),
            (false, false) => reply.null_array(),
        });
    }

    /// Ends the wait of a client for keys, if there is one, by a reply. The function that writes it
    /// also gets whether that of a wait in vain is a string.
    pub(super) fn end_wait(&mut self, id: u64, write: impl FnOnce(&mut Writer<'_>, bool)) {
        let Some(mut connection) = self.core.network.connections.remove(&id) else { return };
        if let Some((client, output)) = connection.client_mut()
            && let Some(blocked) = &client.blocked
        {
            let mut reply = Writer::new(output, client.session.version);
            write(&mut reply, blocked.block.is_null_string);
            self.core.count_wait(&blocked.arguments);
            self.stop_blocking(client);
            self.again.push_back(id);
        }
        self.core.network.connections.insert(id, connection);
    }

    /// Writes a line to a client that monitors.
    pub(super) fn show_to(&mut self, id: u64, line: &[u8]) {
        // The client may have gone.
        let Some(connection) = self.core.network.connections.get_mut(&id) else { return };
        let Some((client, output)) = connection.client_mut() else { return };
        output.extend_from_slice(line);
        if !std::mem::replace(&mut client.is_told, true) {
            self.again.push_back(id);
        }
    }
}

impl Core {
    /// The reader of a client keeps the present limits.
    #[inline]
    pub(super) fn limit_requests(&self, reader: &mut RequestReader, client: &mut Client) {
        let wanted = (self.settings.version, client.is_authenticated);
        if client.limited != wanted {
            reader.set_limits(self.settings.requests_of(client.is_authenticated));
            client.limited = wanted;
        }
    }

    /// Publishes the size of the own shard, if it is here, for those that need no exact number.
    pub fn publish_size(&self) {
        self.statistics.changes.set(self.effects.changes);
        if self.store.has(self.number) {
            let shard = self.store.shard(self.number);
            self.statistics.keys.set(shard.keys() as u64);
            self.statistics.memory_bytes.set(shard.memory_bytes() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_quoted() {
        assert_eq!(quoted(b"a \"b\"\\\r\n\t\x07\x08\x00\xFF"), r#"a \"b\"\\\r\n\t\a\b\x00\xff"#);
    }
}
