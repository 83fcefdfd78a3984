// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of a client: read in batches, so that the memory of their keys is fetched together, and
//! executed in their order.

use freeport_kv_commands::{Call, Command, Error, Keys, Session, Spec};
use freeport_kv_protocol::resp::{ProtocolError, Read, RequestReader, Writer};
use smallvec::SmallVec;

use super::{Core, Worker};
use crate::client::{Client, slices};
use crate::commands::{Action, Context, Flow};
use crate::connection::BACKLOG_BYTES;

/// Requests that are read before the first of them is executed.
const BATCH: usize = 64;

/// Requests that were read, with their arguments in the received bytes.
#[derive(Default)]
struct Batch<'a> {
    arguments: SmallVec<[&'a [u8]; 128]>,
    /// For each request, the end of its arguments, and of its bytes.
    ends: SmallVec<[(usize, usize); BATCH]>,
}

/// Why no further request was read into a batch.
enum End {
    /// The batch is full.
    Full,
    /// The next request is incomplete.
    Incomplete,
    /// The next request is a line, whose words are with the reader.
    Inline,
    /// The connection has to end.
    Failed(ProtocolError),
}

/// Progress with received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Number of bytes that are not needed any more.
    pub used: usize,
    /// The others may have a complete request.
    pub is_input_left: bool,
}

impl Worker {
    /// Executes the requests that are complete, until the client has to wait.
    pub(super) fn execute_requests(
        &mut self,
        (reader, client): (&mut RequestReader, &mut Client),
        received: &[u8],
        output: &mut Vec<u8>,
    ) -> Progress {
        let mut used = 0;
        client.follow_users(&self.core.shared.users);
        while client.is_ready() && output.len() <= BACKLOG_BYTES {
            let mut batch = Batch::default();
            // Its password decides how long the next request may be.
            let most = if client.is_authenticated { BATCH } else { 1 };
            let end = batch.read(reader, &received[used..], most);
            self.core.begin_commands();
            if !batch.ends.is_empty() {
                let (count, bytes) = self.execute_batch(&batch, client, output);
                self.core.end_commands();
                used += bytes;
                if count < batch.ends.len() || !client.is_ready() {
                    reader.restart();
                    continue;
                }
            }
            match end {
                End::Full => {}
                End::Incomplete => {
                    return Progress { used, is_input_left: false };
                }
                End::Inline => {
                    used += self.execute_line((reader, client), &received[used..], output)
                }
                End::Failed(error) => {
                    error.write_reply(output);
                    client.is_closing = true;
                }
            }
        }
        Progress { used, is_input_left: true }
    }

    /// Executes requests of a batch; returns their number, and that of their bytes.
    fn execute_batch(
        &mut self,
        batch: &Batch<'_>,
        client: &mut Client,
        output: &mut Vec<u8>,
    ) -> (usize, usize) {
        if batch.ends.len() > 1 {
            self.prefetch(batch, client.session.database);
        }
        let has_others = self.core.store.count() > 1;
        let mut bytes = 0;
        for (number, &(_, bytes_end)) in batch.ends.iter().enumerate() {
            let arguments = batch.request(number);
            if has_others && client.transaction.is_none() && self.can_divide(client) {
                let rest = (number..batch.ends.len()).map(|at| batch.request(at));
                let sent = self.send_parcels(client, rest);
                if sent > 0 {
                    return (number + sent, batch.ends[number + sent - 1].1);
                }
            }
            if !arguments.is_empty() && self.request(client, arguments, output) == Flow::Suspend {
                return (number, bytes);
            }
            bytes = bytes_end;
            if !client.is_ready() || output.len() > BACKLOG_BYTES {
                return (number + 1, bytes);
            }
        }
        (batch.ends.len(), bytes)
    }

    /// Fetches the memory of the keys that most commands have first.
    fn prefetch(&self, batch: &Batch<'_>, database: u16) {
        for number in 0..batch.ends.len() {
            if let Some(&key) = batch.request(number).get(1) {
                self.core.prefetch(key, database);
            }
        }
    }

    /// Executes a request that is a line; returns its bytes, or 0 if it has to wait.
    fn execute_line(
        &mut self,
        (reader, client): (&mut RequestReader, &mut Client),
        received: &[u8],
        output: &mut Vec<u8>,
    ) -> usize {
        reader.restart();
        let Ok(Read::Complete(request)) = reader.read(received) else { return 0 };
        let arguments: SmallVec<[&[u8]; 16]> = request.iter().collect();
        if !arguments.is_empty() && self.request(client, &arguments, output) == Flow::Suspend {
            return 0;
        }
        request.bytes()
    }

    /// Executes a request, as its client and the server demand it.
    #[inline]
    fn request(&mut self, client: &mut Client, arguments: &[&[u8]], output: &mut Vec<u8>) -> Flow {
        let flow = match self.needs_care(client) {
            true => self.execute_with_care(client, arguments, output),
            false => self.execute(client, arguments, output),
        };
        if self.core.notices.has_unwritten() {
            self.write_notices(client, output);
        }
        flow
    }

    /// Executes a request, with what follows from it for other clients.
    pub(super) fn execute(
        &mut self,
        client: &mut Client,
        arguments: &[&[u8]],
        output: &mut Vec<u8>,
    ) -> Flow {
        let Some(command) = &self.core.table.get(arguments[0]).copied() else {
            client.refuse_transaction();
            let error = unknown_command(arguments);
            self.core.statistics.error(error.text());
            Writer::new(output, client.session.version).error(error.text());
            return Flow::Continue;
        };
        let checked = command
            .spec
            .check_arity(arguments.len())
            .and_then(|()| client.check_listening(&command.spec));
        if let Err(error) = checked {
            client.refuse_transaction();
            self.core.statistics.rejected(command.spec.number, error.text());
            Writer::new(output, client.session.version).error(error.text());
            return Flow::Continue;
        }
        client.last_command = u32::from(self.core.number_of(&command.spec, arguments)) + 1;
        if client.queues(&command.spec) {
            let spec = command.spec.of(arguments);
            match self.core.check_role(spec) {
                Ok(()) => client.queue(spec, arguments, output),
                Err(error) => {
                    client.refuse_transaction();
                    self.core.statistics.rejected(spec.number, error.text());
                    Writer::new(output, client.session.version).error(error.text());
                }
            }
            return Flow::Continue;
        }
        if self.core.store.count() > 1 {
            let needed = self.core.needed_shards(client, &command.spec, arguments);
            if !self.has_shards(needed) {
                self.suspend_for(client, needed);
                return Flow::Suspend;
            }
        }
        if self.core.settings.eviction.policy.is_some()
            && let Err(error) = self.core.make_room(client, &command.spec, arguments)
        {
            self.core.statistics.rejected(command.spec.number, error.text());
            Writer::new(output, client.session.version).error(error.text());
            self.finish_command(client, arguments);
            return Flow::Continue;
        }
        let flow = self.core.run(command, client, arguments, output);
        self.finish_command(client, arguments);
        flow
    }

    /// Consequences of an executed command: its client waits for a key, others have got what they
    /// waited for, shards return to their workers.
    pub(super) fn finish_command(&mut self, client: &mut Client, arguments: &[&[u8]]) {
        if let Some(block) = self.core.effects.block.take() {
            self.block(client, arguments, block);
        }
        if self.core.effects.has_ready_keys {
            self.send_notices(client.id());
            self.serve_waiters();
        }
        self.return_shards();
    }
}

impl<'a> Batch<'a> {
    /// Arguments of a request.
    fn request(&self, number: usize) -> &[&'a [u8]] {
        let start = if number == 0 { 0 } else { self.ends[number - 1].0 };
        &self.arguments[start..self.ends[number].0]
    }

    /// Reads requests until one is incomplete, or must be executed alone.
    fn read(&mut self, reader: &mut RequestReader, received: &'a [u8], most: usize) -> End {
        let mut start = 0;
        while self.ends.len() < most {
            match reader.read(&received[start..]) {
                Err(error) => return End::Failed(error),
                Ok(Read::Incomplete { .. }) => return End::Incomplete,
                Ok(Read::Complete(request)) => {
                    if !request.is_empty() && request.get_received(0).is_none() {
                        return End::Inline;
                    }
                    self.arguments
                        .extend((0..request.len()).filter_map(|at| request.get_received(at)));
                    start += request.bytes();
                    self.ends.push((self.arguments.len(), start));
                }
            }
        }
        End::Full
    }
}

impl Core {
    /// Executes a command whose shards are here.
    pub fn run(
        &mut self,
        command: &Command<Action>,
        client: &mut Client,
        arguments: &[&[u8]],
        output: &mut Vec<u8>,
    ) -> Flow {
        let start = output.len();
        self.begin_command(&command.spec);
        let result = match command.run {
            Action::Data(run) => {
                let command = Command { spec: command.spec, run };
                self.run_data(&command, client.session, arguments, output);
                return Flow::Continue;
            }
            Action::Server(run) => {
                let mut context = Context { core: self, client, arguments, output };
                run(&mut context)
            }
        };
        self.end_command(&command.spec, client.id(), arguments);
        if output.get(start) == Some(&b'-') && result.is_ok() {
            self.count_failure((&command.spec, arguments), &output[start..]);
        }
        result.unwrap_or_else(|error| {
            output.truncate(start);
            self.statistics.failed(self.number_of(&command.spec, arguments), error.text());
            Writer::new(output, client.session.version).error(error.text());
            Flow::Continue
        })
    }

    /// Executes a command on values, whose shards are here.
    pub fn run_data(
        &mut self,
        command: &Command,
        session: Session,
        arguments: &[&[u8]],
        output: &mut Vec<u8>,
    ) {
        let start = output.len();
        if let Err(error) = self.admit(&command.spec, (session.database, arguments)) {
            self.statistics.rejected(command.spec.number, error.text());
            return Writer::new(output, session.version).error(error.text());
        }
        self.begin_command(&command.spec);
        let changes = self.effects.changes;
        let has_succeeded = self.execute_data(command, session, arguments, output)
            || (self.settings.eviction.policy.is_some()
                && self.retry_with_room(command, session, arguments, output, start));
        if !has_succeeded {
            self.count_failure((&command.spec, arguments), &output[start..]);
        }
        self.record(changes, (session.database, arguments), has_succeeded);
        self.end_command(&command.spec, session.client, arguments);
        if !self.effects.events.is_empty() {
            self.publish_events();
        }
    }

    /// Executes a command on values once, without what belongs to it besides. Returns whether it
    /// succeeded.
    #[inline]
    pub(super) fn execute_data(
        &mut self,
        command: &Command,
        session: Session,
        arguments: &[&[u8]],
        output: &mut Vec<u8>,
    ) -> bool {
        let parts = (&mut self.store, &mut self.effects);
        command.execute(&mut Call::new(arguments, session, parts, self.now_ms, output))
    }

    /// Fetches the memory of a key, if its shard is here.
    pub fn prefetch(&self, key: &[u8], database: u16) {
        let shard = self.store.shard_of(key);
        if self.store.has(shard)
            && let Some(keyspace) = self.store.shard(shard).database(database)
        {
            keyspace.engine().prefetch(key);
        }
    }

    /// Executes a command of a transaction or of a script, which has been checked.
    pub fn run_inner(
        &mut self,
        client: &mut Client,
        arguments: &[Vec<u8>],
        output: &mut Vec<u8>,
    ) -> Flow {
        let table = self.table.clone();
        let command = table.get(&arguments[0]).expect("commands are checked when they are queued");
        self.run(command, client, &slices(arguments), output)
    }

    /// Shards that a command needs, as bits.
    pub(super) fn needed_shards(&self, client: &Client, spec: &Spec, arguments: &[&[u8]]) -> u64 {
        if let (Some(transaction), "exec") = (&client.transaction, spec.name) {
            let mut needed = 0;
            for queued in &transaction.queued {
                needed |= self.shards_of_queued(queued);
            }
            for (_, key, _) in &client.watch.keys {
                needed |= 1 << self.store.shard_of(key);
            }
            return needed;
        }
        self.shards_of(&spec.keys, arguments)
    }

    /// Shards that a command needs which was checked before, as bits.
    pub(super) fn shards_of_queued(&self, arguments: &[Vec<u8>]) -> u64 {
        let command = self.table.get(&arguments[0]).expect("commands are checked when they come");
        self.shards_of(&command.spec.keys, &slices(arguments))
    }

    /// Shards that a command needs, as bits.
    pub(super) fn shards_of(&self, keys: &Keys, arguments: &[&[u8]]) -> u64 {
        if keys.needs_all(arguments) {
            return u64::MAX >> (64 - self.store.count());
        }
        let mut needed = 0;
        // The command itself refuses a number of keys that is too large.
        let _ = keys.visit(arguments, |at| needed |= 1 << self.store.shard_of(arguments[at]));
        needed
    }
}

/// Redis shows the begin of the arguments.
fn unknown_command(arguments: &[&[u8]]) -> Error {
    const SHOWN_BYTES: usize = 128;
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned();
    let mut shown = String::new();
    for argument in &arguments[1..] {
        if shown.len() >= SHOWN_BYTES {
            break;
        }
        let room = SHOWN_BYTES - shown.len();
        let argument = &argument[..argument.len().min(room)];
        shown += &format!("'{}' ", text(argument));
    }
    Error::new(format!(
        "ERR unknown command '{}', with args beginning with: {shown}",
        text(arguments[0])
    ))
}
