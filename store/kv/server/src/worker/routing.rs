// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker as a part of a cluster's node: it executes commands on keys of its slots, and sends
//! clients with others elsewhere. Without a cluster, nothing here is called.
//!
//! Requests are checked where their client is, before they are sent to other workers. When slots
//! are [stopped](crate::cluster::Cluster::stop), each worker answers that it follows the new routes
//! and has executed everything that came before.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_commands::sort::{Naming, naming};
use freeport_kv_commands::{Command, Error, Flags, Keys, Spec};
use freeport_kv_protocol::resp::Writer;
use freeport_kv_protocol::slots::slot_of;

use super::{Core, Worker};
use crate::channels::Kind;
use crate::client::{Client, Transaction, slices};
use crate::cluster::{CROSS_SLOT, FENCED, Port, SlotState};
use crate::commands::{Action, key_positions, write_unsubscribed};

/// The slot of the keys of one unit of the log: a transaction or a script, which may be inside a
/// transaction. A move of slots takes a unit as a whole or not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnitSlot {
    depth: u32,
    slot: Option<u16>,
}

impl UnitSlot {
    /// A transaction or script begins, whose keys have a slot if it is known.
    pub fn enter(&mut self, slot: Option<u16>) {
        self.depth += 1;
        self.slot = self.slot.or(slot);
    }

    /// It has ended.
    pub fn leave(&mut self) {
        self.depth -= 1;
        if self.depth == 0 {
            self.slot = None;
        }
    }
}

/// The slot of a call, and how it uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    slot: u16,
    /// A replica may execute it.
    is_read: bool,
}

impl Core {
    /// A request can be executed here and now, as far as its slot and the lease decide it.
    #[inline]
    pub(super) fn is_routed_here(
        &self,
        client: &Client,
        command: &Command<Action>,
        arguments: &[&[u8]],
    ) -> bool {
        self.routes.is_none() || self.find_route(client, command, arguments) == Ok(true)
    }

    /// Returns whether a request is executed here; false if it has to wait.
    ///
    /// # Errors
    /// The client has to send it elsewhere, or nobody may execute it.
    fn find_route(
        &self,
        client: &Client,
        command: &Command<Action>,
        arguments: &[&[u8]],
    ) -> Result<bool, Error> {
        let Some(routes) = &self.routes else { return Ok(true) };
        let spec = &command.spec;
        // Where a slot is may be said without a lease.
        let needs_lease = needs_lease(command, arguments);
        let is_fenced = self.is_fenced && needs_lease;
        let target = match (&client.transaction, spec.name) {
            (Some(transaction), "exec") => self.target_of_transaction(transaction)?,
            _ => target(spec, arguments)?,
        };
        if let Some(Target { slot, is_read }) = target {
            match routes.state(slot) {
                SlotState::Served => {}
                SlotState::Stopped if client.queues(spec) || is_fenced => {}
                SlotState::Stopped => return Ok(false),
                SlotState::Copied if is_read && client.is_readonly => {}
                SlotState::Copied
                    if routes.awaits_primary && !self.is_fenced && !client.queues(spec) =>
                {
                    return Ok(false);
                }
                SlotState::Copied | SlotState::Elsewhere | SlotState::Nobody => {
                    let port = Port::of(&client.record.origin);
                    return Err(routes.view.redirection(slot, port));
                }
            }
        }
        if is_fenced {
            return Err(FENCED);
        }
        // Commands without a slot may change something too, such as `FLUSHALL`.
        if routes.hands_over && needs_lease && !client.queues(spec) {
            return Ok(false);
        }
        check_mode(spec, arguments).map(|()| true)
    }

    /// Another node becomes the primary, and the log may not grow.
    pub(super) fn hands_over(&self) -> bool {
        self.routes.as_ref().is_some_and(|routes| routes.hands_over)
    }

    /// The slot of all keys of a transaction; none if it has no key.
    fn target_of_transaction(&self, transaction: &Transaction) -> Result<Option<Target>, Error> {
        let mut found: Option<Target> = None;
        for arguments in &transaction.queued {
            let Some(command) = self.table.get(&arguments[0]) else { continue };
            let Some(one) = target(&command.spec, &slices(arguments))? else { continue };
            found = match found {
                Some(Target { slot, .. }) if slot != one.slot => return Err(CROSS_SLOT),
                Some(Target { is_read, .. }) => {
                    Some(Target { is_read: is_read && one.is_read, ..one })
                }
                None => Some(one),
            };
        }
        Ok(found)
    }

    /// The commands of a transaction follow, until [`Core::end_unit_slot`].
    pub fn begin_unit_slot(&mut self, transaction: &Transaction) {
        if self.routes.is_some() {
            // It was checked before.
            let target = self.target_of_transaction(transaction).ok().flatten();
            self.unit_slot.enter(target.map(|target| target.slot));
        }
    }

    /// The commands of a script follow, until [`Core::end_unit_slot`].
    pub fn begin_script_slot(&mut self) {
        if self.routes.is_some() {
            self.unit_slot.enter(None);
        }
    }

    /// The commands of a transaction or script have ended.
    pub fn end_unit_slot(&mut self) {
        if self.routes.is_some() {
            self.unit_slot.leave();
        }
    }

    /// Transactions fail that watch keys of slots which are elsewhere now: the keys may change
    /// there, and come back.
    fn fail_foreign_watches(&self) {
        let Some(routes) = &self.routes else { return };
        let is_foreign = |(_, key, _): &(u16, Vec<u8>, bool)| {
            matches!(routes.state(slot_of(key)), SlotState::Elsewhere | SlotState::Nobody)
        };
        for client in self.network.connections.values().filter_map(|it| it.client()) {
            if client.watch.keys.iter().any(is_foreign) {
                client.watch.flag.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Checks a call of a script: its keys are here, and have the slot of all others of the script.
    ///
    /// # Errors
    /// They are not, or have not.
    pub fn check_route_of_script(
        &mut self,
        client: &Client,
        spec: &Spec,
        arguments: &[&[u8]],
    ) -> Result<(), Error> {
        const ELSEWHERE: Error =
            Error::fixed("ERR Script attempted to access a non local key in a cluster node");
        const CROSSED: Error =
            Error::fixed("ERR Script attempted to access keys that do not hash to the same slot");
        let Some(routes) = &self.routes else { return Ok(()) };
        if let Some(Target { slot, is_read }) = target(spec, arguments).map_err(|_| ELSEWHERE)? {
            let is_here = match routes.state(slot) {
                SlotState::Served => true,
                SlotState::Copied => is_read && client.is_readonly,
                SlotState::Elsewhere | SlotState::Stopped | SlotState::Nobody => {
                    // It has begun before the slot was stopped, or its client would wait.
                    self.unit_slot.slot == Some(slot)
                }
            };
            if !is_here {
                return Err(ELSEWHERE);
            }
            if *self.unit_slot.slot.get_or_insert(slot) != slot {
                return Err(CROSSED);
            }
        }
        check_mode(spec, arguments)
    }
}

/// Only a node with a lease may answer a command: it reads or changes values or functions, or may
/// do so, or sends messages to the listeners of a slot.
fn needs_lease(command: &Command<Action>, arguments: &[&[u8]]) -> bool {
    let spec = &command.spec;
    match (command.run, spec.name) {
        (Action::Data(_), _) | (_, "exec" | "debug" | "spublish") => true,
        (_, "function") => spec.of(arguments).flags.has(Flags::WRITE),
        (_, name) => name.starts_with("eval") || name.starts_with("fcall"),
    }
}

/// The slot of all keys of a call; none if it names none.
///
/// # Errors
/// They have different slots.
fn target(spec: &Spec, arguments: &[&[u8]]) -> Result<Option<Target>, Error> {
    let mut found = None;
    let mut has_others = false;
    let mut add = |at: usize| {
        let slot = slot_of(arguments[at]);
        has_others |= *found.get_or_insert(slot) != slot;
    };
    if spec.flags.has(Flags::PUBSUB) {
        match spec.name {
            "ssubscribe" | "sunsubscribe" => (1..arguments.len()).for_each(&mut add),
            "spublish" => add(1),
            _ => {}
        }
    } else {
        let keys = if matches!(spec.keys, Keys::All) { key_positions(spec) } else { spec.keys };
        // The command itself refuses a number of keys that is too large.
        let _ = keys.visit(arguments, &mut add);
    }
    if has_others {
        return Err(CROSS_SLOT);
    }
    // Messages do not pass from a primary to its replicas.
    let is_read = !spec.of(arguments).flags.has(Flags::WRITE) && !spec.flags.has(Flags::PUBSUB);
    Ok(found.map(|slot| Target { slot, is_read }))
}

/// Checks that a call uses no database but 0, and makes no names of keys from values.
///
/// # Errors
/// It does, in the words of Redis.
fn check_mode(spec: &Spec, arguments: &[&[u8]]) -> Result<(), Error> {
    let is_not_zero = |word: &[u8]| integer(word).is_ok_and(|number| number != 0);
    match spec.name {
        "move" => Err(Error::fixed("ERR MOVE is not allowed in cluster mode")),
        "swapdb" => Err(Error::fixed("ERR SWAPDB is not allowed in cluster mode")),
        "select" if is_not_zero(arguments[1]) => {
            Err(Error::fixed("ERR SELECT is not allowed in cluster mode"))
        }
        "copy" => {
            let mut pairs = arguments[3..].windows(2);
            match pairs.any(|pair| is(pair[0], "db") && is_not_zero(pair[1])) {
                true => Err(Error::fixed(
                    "ERR Copying to another database is not allowed in cluster mode",
                )),
                false => Ok(()),
            }
        }
        "sort" | "sort_ro" => check_sort(arguments),
        _ => Ok(()),
    }
}

/// Checks a `SORT`.
fn check_sort(arguments: &[&[u8]]) -> Result<(), Error> {
    const BY: Error = Error::fixed("ERR BY option of SORT denied in Cluster mode.");
    const GET: Error = Error::fixed("ERR GET option of SORT denied in Cluster mode.");
    match naming(arguments) {
        Some(Naming::By) => Err(BY),
        Some(Naming::Get) => Err(GET),
        None => Ok(()),
    }
}

impl Worker {
    /// Returns whether a request is executed here and now. If not, its client waits.
    ///
    /// # Errors
    /// The client has to send it elsewhere, or nobody may execute it. A transaction that it would
    /// execute has ended.
    pub(super) fn check_route(
        &mut self,
        client: &mut Client,
        command: &Command<Action>,
        arguments: &[&[u8]],
    ) -> Result<bool, Error> {
        let found = self.core.find_route(client, command, arguments);
        match &found {
            Ok(true) => {}
            Ok(false) => self.stop_client(client),
            Err(error) => {
                if command.spec.name == "exec" && client.transaction.take().is_some() {
                    self.core.unwatch(client);
                }
                self.core.statistics.rejected(command.spec.number, error.text());
            }
        }
        found
    }

    /// A client waits until the routes change, or the lease of the node ends.
    pub(super) fn stop_client(&mut self, client: &mut Client) {
        client.is_suspended = true;
        self.stopped.push(client.id());
    }

    /// Checks the command of a client that waits for keys before it is executed again. Returns
    /// whether it is; it stays as it is if its slot is stopped.
    ///
    /// # Errors
    /// The slot is elsewhere now.
    pub(super) fn check_route_of_blocked(
        &self,
        client: &Client,
        arguments: &[Vec<u8>],
    ) -> Result<bool, Error> {
        match self.core.table.get(&arguments[0]) {
            Some(command) if self.core.routes.is_some() => {
                self.core.find_route(client, command, &slices(arguments))
            }
            _ => Ok(true),
        }
    }

    /// The routes have changed: clients that waited for that continue, and those that watch or wait
    /// for keys or listen to channels of slots which are elsewhere now learn it.
    pub(super) fn follow_routes(&mut self) {
        self.core.fail_foreign_watches();
        self.resume_stopped();
        let connections = self.core.network.connections.iter();
        let concerned = connections.filter_map(|(id, connection)| {
            let client = connection.client()?;
            let listens = client.subscriptions.iter().any(|(kind, _)| *kind == Kind::Sharded);
            (listens || client.blocked.is_some()).then_some((*id, listens))
        });
        let concerned: Vec<(u64, bool)> = concerned.collect();
        for (id, listens) in concerned {
            if listens {
                self.unsubscribe_foreign(id);
            }
            self.retry_by_message(id);
        }
    }

    /// Clients that wait until the routes change continue with their requests, or wait again.
    pub(super) fn resume_stopped(&mut self) {
        for client in std::mem::take(&mut self.stopped) {
            self.resume(client);
        }
    }

    /// A client no longer listens to channels of slots that are elsewhere.
    fn unsubscribe_foreign(&mut self, id: u64) {
        let Core { routes: Some(routes), network, shared, .. } = &mut self.core else { return };
        let Some(connection) = network.connections.get_mut(&id) else { return };
        let Some((client, output)) = connection.client_mut() else { return };
        let is_foreign = |(kind, name): &(Kind, Vec<u8>)| {
            let state = *kind == Kind::Sharded;
            state && !matches!(routes.state(slot_of(name)), SlotState::Served | SlotState::Stopped)
        };
        let (foreign, kept) = client.subscriptions.drain(..).partition(is_foreign);
        client.subscriptions = kept;
        let foreign: Vec<(Kind, Vec<u8>)> = foreign;
        for (number, (kind, name)) in foreign.iter().enumerate() {
            shared.channels.unsubscribe(*kind, name, id);
            let sharded = client.subscriptions.iter().filter(|(kind, _)| *kind == Kind::Sharded);
            let left = sharded.count() + foreign.len() - number - 1;
            let mut reply = Writer::new(output, client.session.version);
            write_unsubscribed(&mut reply, *kind, name, left);
        }
        if !foreign.is_empty() && !std::mem::replace(&mut client.is_told, true) {
            self.again.push_back(id);
        }
    }

    /// Somebody waits until the worker has executed what it had taken up before. It follows the
    /// present routes already.
    pub(super) fn settle(&mut self, done: Sender<()>) {
        self.lending.settling.push(done);
        if self.core.store.has(self.core.number) {
            self.end_settling();
        }
    }

    /// Everything that had waited for the own shard has been executed.
    pub(super) fn end_settling(&mut self) {
        if !self.lending.settling.is_empty() {
            self.core.flush_log();
            self.lending.settling.clear();
        }
    }
}
