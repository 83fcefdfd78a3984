// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands whose keys another worker has. All requests that a client has sent at once are divided
//! into a parcel for each worker, and every worker executes its parcel without leaving its loop.
//! The replies are put together in the order of the requests.
//!
//! Commands on keys of one worker keep their order. Those of different workers are under way at the
//! same time, as if the client had sent them over several connections; nobody is told that one is
//! done before its reply is sent. A command on keys of several workers, a transaction, a command
//! that may block and one of the server wait until everything before them is done.

use freeport_kv_commands::{Command, Flags, Session};
use freeport_kv_protocol::resp::Writer;
use smallvec::SmallVec;

use super::Worker;
use crate::client::Client;
use crate::commands::Action;
use crate::mail::Message;

/// Commands for one worker, and later their replies.
#[derive(Debug)]
pub struct Parcel {
    client: u64,
    /// The worker that has the client.
    worker: usize,
    session: Session,
    /// Bytes of all arguments.
    bytes: Vec<u8>,
    /// End of each argument.
    ends: Vec<usize>,
    /// End of each command among the arguments.
    commands: Vec<usize>,
    /// Bytes of all replies.
    replies: Vec<u8>,
    /// End of each reply.
    reply_ends: Vec<usize>,
    /// A command has changed something that is in the append log.
    has_written: bool,
}

/// Requests of a client that are under way.
#[derive(Debug)]
pub struct Gathering {
    /// The worker of each request.
    order: Vec<usize>,
    /// Parcels by worker; none where one is under way or was never made.
    parcels: Vec<Option<Box<Parcel>>>,
    /// Number of parcels under way.
    missing: usize,
}

impl Parcel {
    fn new(client: &Client, worker: usize) -> Self {
        Self {
            client: client.id(),
            worker,
            session: client.session,
            bytes: vec![],
            ends: vec![],
            commands: vec![],
            replies: vec![],
            reply_ends: vec![],
            has_written: false,
        }
    }

    fn push(&mut self, arguments: &[&[u8]]) {
        for argument in arguments {
            self.bytes.extend_from_slice(argument);
            self.ends.push(self.bytes.len());
        }
        self.commands.push(self.ends.len());
    }

    /// Arguments of a command.
    fn arguments(&self, number: usize) -> SmallVec<[&[u8]; 16]> {
        let before = |ends: &[usize], at: usize| if at == 0 { 0 } else { ends[at - 1] };
        let (first, end) = (before(&self.commands, number), self.commands[number]);
        (first..end).map(|at| &self.bytes[before(&self.ends, at)..self.ends[at]]).collect()
    }

    fn reply(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.reply_ends[number - 1] };
        &self.replies[start..self.reply_ends[number]]
    }
}

impl Worker {
    /// Sends requests to the workers of their keys, as many of the first ones as this is possible
    /// for, if the first of them all belongs elsewhere. Returns their number.
    pub(super) fn send_parcels<'a>(
        &mut self,
        client: &mut Client,
        requests: impl Iterator<Item = &'a [&'a [u8]]>,
    ) -> usize {
        if client.is_restricted() {
            return 0;
        }
        let own = self.core.number;
        let mut gathering = Gathering {
            order: vec![],
            parcels: (0..self.core.store.count()).map(|_| None).collect(),
            missing: 0,
        };
        for arguments in requests {
            let Some(worker) = self.worker_of(client, arguments) else { break };
            if gathering.order.is_empty() && worker == own {
                return 0;
            }
            let parcel = &mut gathering.parcels[worker];
            parcel.get_or_insert_with(|| Box::new(Parcel::new(client, own))).push(arguments);
            gathering.order.push(worker);
        }
        let count = gathering.order.len();
        if count > 0 {
            self.dispatch(client, gathering);
        }
        count
    }

    fn dispatch(&mut self, client: &mut Client, mut gathering: Gathering) {
        let own = self.core.number;
        for worker in (0..gathering.parcels.len()).filter(|worker| *worker != own) {
            if let Some(parcel) = gathering.parcels[worker].take() {
                gathering.missing += 1;
                self.core.shared.mailboxes[worker].send(Message::Execute { parcel });
            }
        }
        client.is_suspended = true;
        let own_parcel = gathering.parcels[own].take();
        gathering.missing += usize::from(own_parcel.is_some());
        client.gathering = Some(Box::new(gathering));
        if let Some(mut parcel) = own_parcel {
            if !self.core.store.has(own) {
                self.lending_wait(parcel);
                return;
            }
            self.execute_parcel(&mut parcel);
            // Others are missing still, so this is never the last.
            client.collect(own, parcel);
        }
    }

    /// The worker that has all keys of a command, if it can be sent there: not if it may block, if
    /// it belongs to a transaction, or if something is wrong with it.
    fn worker_of(&self, client: &Client, arguments: &[&[u8]]) -> Option<usize> {
        let command: &Command<Action> = self.core.table.get(arguments.first()?)?;
        let spec = &command.spec;
        if !matches!(command.run, Action::Data(_))
            || spec.of(arguments).flags.has(Flags::BLOCKING)
            || spec.check_arity(arguments.len()).is_err()
            || !self.core.has_rights(client, spec, arguments)
            || !self.core.is_routed_here(client, command, arguments)
        {
            return None;
        }
        let needed = self.core.shards_of(&spec.keys, arguments);
        (needed.count_ones() == 1).then(|| needed.trailing_zeros() as usize)
    }

    /// Another worker has sent commands for the own shard.
    pub(super) fn execute_for(&mut self, mut parcel: Box<Parcel>) {
        if !self.core.store.has(self.core.number) {
            return self.lending_wait(parcel);
        }
        self.execute_parcel(&mut parcel);
        if parcel.worker == self.core.number {
            return self.parcel_done(self.core.number, parcel);
        }
        let number = self.core.number;
        self.core.flush_log();
        self.core.shared.mailboxes[parcel.worker].send(Message::Executed { number, parcel });
    }

    fn execute_parcel(&mut self, parcel: &mut Parcel) {
        let table = self.core.table.clone();
        self.core.begin_commands();
        let records = self.core.records();
        let (mut replies, mut ends) = (vec![], Vec::with_capacity(parcel.commands.len()));
        for number in 0..parcel.commands.len() {
            if let Some(key) = parcel.arguments(number).get(1) {
                self.core.prefetch(key, parcel.session.database);
            }
        }
        for number in 0..parcel.commands.len() {
            let arguments = parcel.arguments(number);
            if let Some(Command { spec, run: Action::Data(run) }) = table.get(arguments[0]) {
                let command = Command { spec: *spec, run: *run };
                match self.core.make_room_for_data(spec, &arguments) {
                    Ok(()) => {
                        self.core.run_data(&command, parcel.session, &arguments, &mut replies)
                    }
                    Err(error) => {
                        self.core.statistics.rejected(spec.number, error.text());
                        Writer::new(&mut replies, parcel.session.version).error(error.text());
                    }
                }
            }
            if self.core.effects.has_ready_keys {
                self.send_notices(parcel.session.client);
                self.serve_waiters();
            }
            ends.push(replies.len());
        }
        self.core.end_commands();
        (parcel.replies, parcel.reply_ends) = (replies, ends);
        parcel.has_written = self.core.records() != records;
    }

    /// The replies of a parcel have come.
    pub(super) fn parcel_done(&mut self, number: usize, parcel: Box<Parcel>) {
        let id = parcel.client;
        // The client may have gone.
        let Some(connection) = self.core.network.connections.get_mut(&id) else { return };
        connection.holding.has_written |= parcel.has_written;
        let Some((client, output)) = connection.client_mut() else { return };
        if let Some(gathering) = client.collect(number, parcel) {
            gathering.write(output);
            client.is_suspended = false;
            for notice in client.take_held() {
                self.notify(&notice, &[id]);
            }
            self.serve(id);
        }
    }
}

impl Client {
    /// Takes the replies of a parcel; returns all, if they are complete.
    fn collect(&mut self, number: usize, parcel: Box<Parcel>) -> Option<Box<Gathering>> {
        let gathering = self.gathering.as_mut()?;
        gathering.parcels[number] = Some(parcel);
        gathering.missing -= 1;
        if gathering.missing > 0 { None } else { self.gathering.take() }
    }
}

impl Gathering {
    /// Writes all replies in the order of the requests.
    fn write(&self, output: &mut Vec<u8>) {
        let mut next = vec![0; self.parcels.len()];
        for &worker in &self.order {
            let parcel = self.parcels[worker].as_ref().expect("no parcel is missing");
            output.extend_from_slice(parcel.reply(next[worker]));
            next[worker] += 1;
        }
    }
}
