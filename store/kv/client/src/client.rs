// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client with a connection to each worker of a server.

use crate::address::Address;
use crate::batch::Batch;
use crate::connection::Connection;
use crate::error::Error;
use crate::function::{self, Function};
use crate::number::Number;
use crate::options::Options;
use crate::pipeline::Pipeline;
use crate::replies::Replies;
use freeport_kv_protocol::batch::{FunctionKind, Operation, PacketLimits, PacketWriter};
use freeport_kv_protocol::slots::worker_of;
use std::time::{Duration, Instant};

/// Id of the update `add`. Ids of built-in functions never change.
const ADD: u8 = 3;
/// Over UDP the system chooses the worker, by the client's port: so often a port is tried for each
/// worker at most.
const DATAGRAM_TRIES: usize = 8;
/// Over UDP a server forgets a client that sends nothing for 5 minutes, so after this time the
/// client says hello again.
const DATAGRAM_IDLE: Duration = Duration::from_secs(60);

/// A client of a key-value server.
///
/// A call waits for its replies. After an error of a connection, the next call connects again.
///
/// ```no_run
/// use freeport_kv_client::{Batch, Client, Options};
///
/// let mut client = Client::connect("tcp://127.0.0.1:7000", Options::default())?;
/// client.put(b"stock", &7_u32.to_le_bytes())?;
/// assert_eq!(client.fetch_add(b"stock", 5_u32)?, Some(7));
///
/// let mut batch = Batch::new();
/// for key in [b"stock", b"other"] {
///     batch.get(key);
/// }
/// let replies = client.run(&batch)?;
/// assert_eq!(replies.get(0)?, Some(&12_u32.to_le_bytes()[..]));
/// assert_eq!(replies.get(1)?, None);
/// # Ok::<(), freeport_kv_client::Error>(())
/// ```
#[derive(Debug)]
pub struct Client {
    address: Address,
    options: Options,
    /// None after an error.
    connections: Vec<Connection>,
    /// The connection for the keys of each worker.
    routes: Vec<usize>,
    functions: Option<Vec<Function>>,
    last_used: Instant,
    /// Batch and replies of calls with one operation.
    single: Batch,
    single_replies: Replies,
}

impl Client {
    /// Connects to a server: `tcp://HOST:PORT`, `udp://HOST:PORT`, or `fabric:PATH` with the path
    /// of its socket.
    ///
    /// # Errors
    /// The text is no address, or there is no connection, or the server refuses the login.
    pub fn connect(address: &str, options: Options) -> Result<Self, Error> {
        Self::connect_to(address.parse()?, options)
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// There is no connection, or the server refuses the login.
    pub fn connect_to(address: Address, options: Options) -> Result<Self, Error> {
        let mut client = Self {
            address,
            options,
            connections: Vec::new(),
            routes: Vec::new(),
            functions: None,
            last_used: Instant::now(),
            single: Batch::new(),
            single_replies: Replies::new(),
        };
        client.open()?;
        Ok(client)
    }

    /// Address of the server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Number of open connections: 0 after an error, until the next call.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Sends the operations of a batch, and waits for their replies.
    ///
    /// # Errors
    /// There are no replies to some of the operations.
    /// [`may_have_executed`](Error::may_have_executed) says what that means. Errors of single
    /// operations are in the replies.
    pub fn run(&mut self, batch: &Batch) -> Result<Replies, Error> {
        let mut replies = Replies::new();
        self.run_into(batch, &mut replies)?;
        Ok(replies)
    }

    /// Sends the operations of a batch, and waits for their replies, which take the place of
    /// others. So their memory is used again.
    ///
    /// # Errors
    /// Those of [`run`](Self::run). There are no replies then.
    pub fn run_into(&mut self, batch: &Batch, replies: &mut Replies) -> Result<(), Error> {
        let result = self.send(batch, replies).and_then(|()| self.finish(replies));
        if result.is_err() {
            replies.expect(0);
        }
        result
    }

    /// Sends the operations of a batch. While too many of its packets have no replies, it waits for
    /// some. Until [`finish`](Self::finish), the client must not be used otherwise.
    pub(crate) fn send(&mut self, batch: &Batch, replies: &mut Replies) -> Result<(), Error> {
        replies.expect(0);
        self.open()?;
        self.check_sizes(batch)?;
        replies.expect(batch.len());
        self.or_close(|client| client.submit(batch, replies))
    }

    /// Waits for all replies to the batch that was sent. After an error, those that have come are
    /// kept.
    pub(crate) fn finish(&mut self, replies: &mut Replies) -> Result<(), Error> {
        self.or_close(|client| {
            client.connections.iter_mut().try_for_each(|connection| connection.finish(replies))
        })
    }

    /// Closes the connections after an error: replies to other packets may still come.
    fn or_close(
        &mut self,
        exchange: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        exchange(self).inspect_err(|_| self.close())
    }

    /// The functions of the server. They are asked for once.
    ///
    /// # Errors
    /// There is no reply, or the server refuses.
    pub fn functions(&mut self) -> Result<&[Function], Error> {
        if self.functions.is_none() {
            let value = self.one(&Operation::functions())?.unwrap_or_default();
            let reason = "the list of functions has another form".to_owned();
            let address = self.address.clone();
            let functions = function::read(&value);
            self.functions = Some(functions.ok_or(Error::Protocol { address, reason })?);
        }
        Ok(self.functions.as_deref().unwrap_or_default())
    }

    /// The function with a name.
    ///
    /// # Errors
    /// There is none, or those of [`functions`](Self::functions).
    pub fn function(&mut self, kind: FunctionKind, name: &str) -> Result<Function, Error> {
        let mut functions = self.functions()?.iter();
        let found = functions.find(|function| function.kind == kind && function.name == name);
        found.cloned().ok_or_else(|| Error::NoFunction {
            address: self.address.clone(),
            name: name.to_owned(),
            kind,
        })
    }

    /// The value of a key; `None` if there is no such key.
    ///
    /// # Errors
    /// There is no reply, or [`Error::Operation`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.one(&Operation::get(key))
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// There is no reply, or [`Error::Operation`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.one(&Operation::put(key, value)).map(|_| ())
    }

    /// Removes a key, and returns whether there was one.
    ///
    /// # Errors
    /// There is no reply, or [`Error::Operation`].
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.one(&Operation::delete(key))?;
        Ok(self.single_replies.was_found(0)?)
    }

    /// Adds to a value of one number, and returns the original; `None` if there is no such key.
    /// The number wraps around.
    ///
    /// # Errors
    /// There is no reply, or [`Error::Operation`]: the value has another size than the number.
    pub fn fetch_add<N: Number>(&mut self, key: &[u8], amount: N) -> Result<Option<N>, Error> {
        self.update(key, ADD, &[amount])
    }

    /// Updates a value of one number by a function, and returns the original; `None` if there is
    /// no such key.
    ///
    /// # Errors
    /// There is no reply, or [`Error::Operation`].
    pub fn update<N: Number>(
        &mut self,
        key: &[u8],
        function: impl Into<u8>,
        operands: &[N],
    ) -> Result<Option<N>, Error> {
        self.single.clear();
        self.single.update(key, function, operands);
        let original = self.run_single()?;
        let Some(original) = original else { return Ok(None) };
        let reason = format!("an original of {} bytes", original.len());
        let address = self.address.clone();
        N::read(&original).map(Some).ok_or(Error::Protocol { address, reason })
    }

    /// Runs one operation.
    fn one(&mut self, operation: &Operation<'_>) -> Result<Option<Vec<u8>>, Error> {
        self.single.clear();
        self.single.push(operation);
        self.run_single()
    }

    fn run_single(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let single = std::mem::take(&mut self.single);
        let mut replies = std::mem::take(&mut self.single_replies);
        let result = self.run_into(&single, &mut replies);
        (self.single, self.single_replies) = (single, replies);
        result?;
        Ok(self.single_replies.get(0)?.map(<[u8]>::to_vec))
    }

    /// Connects, unless there are connections.
    fn open(&mut self) -> Result<(), Error> {
        if matches!(self.address, Address::Udp(_)) {
            let now = Instant::now();
            if now - self.last_used > DATAGRAM_IDLE {
                self.connections.clear();
            }
            self.last_used = now;
        }
        if !self.connections.is_empty() {
            return Ok(());
        }
        let first = Pipeline::connect(&self.address, &self.options)?;
        let workers = first.workers();
        let is_alone = workers > self.options.connections.max(1);
        self.routes = vec![0; if is_alone { 1 } else { workers.into() }];
        let mut pipelines = vec![first];
        if !is_alone {
            self.connect_to_others(workers, &mut pipelines)?;
        }
        let window = self.options.window;
        let connections = pipelines.into_iter();
        self.connections = connections.map(|pipeline| Connection::new(pipeline, window)).collect();
        Ok(())
    }

    /// Connects to the workers that do not serve the first connection. A worker that no connection
    /// reaches gets its operations from the first one's.
    fn connect_to_others(
        &mut self,
        workers: u16,
        pipelines: &mut Vec<Pipeline>,
    ) -> Result<(), Error> {
        let tries = if matches!(self.address, Address::Udp(_)) { DATAGRAM_TRIES } else { 1 };
        for worker in 0..workers {
            for _ in 0..tries {
                let is_there = |pipeline: &Pipeline, worker| pipeline.worker() == worker;
                if pipelines.iter().any(|pipeline| is_there(pipeline, worker)) {
                    break;
                }
                let other = Pipeline::connect_to_worker(&self.address, &self.options, worker)?;
                let reached = other.worker();
                if other.workers() == workers
                    && !pipelines.iter().any(|pipeline| is_there(pipeline, reached))
                {
                    self.routes[usize::from(reached)] = pipelines.len();
                    pipelines.push(other);
                }
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.connections.clear();
        self.functions = None;
    }

    /// Refuses a batch with an operation that fits into no packet.
    fn check_sizes(&self, batch: &Batch) -> Result<(), Error> {
        let connections = self.connections.iter();
        let bytes = connections.map(|connection| connection.pipeline.packet_limits().bytes).min();
        let limits = PacketLimits { bytes: bytes.unwrap_or(0), operations: 1 };
        if batch.packet_bytes_max() <= limits.bytes {
            return Ok(());
        }
        let mut packet = Vec::new();
        for (number, operation) in batch.iter().enumerate() {
            packet.clear();
            // A token is as long as any.
            let mut writer = PacketWriter::begin(&mut packet, limits, 0, Some(0));
            if let Err(refused) = writer.push(&mut packet, &operation) {
                return Err(Error::too_large(&self.address, number, refused));
            }
        }
        Ok(())
    }

    fn submit(&mut self, batch: &Batch, replies: &mut Replies) -> Result<(), Error> {
        self.connections.iter_mut().for_each(Connection::begin);
        let workers = self.routes.len();
        for (number, operation) in batch.iter().enumerate() {
            let connection = self.routes[worker_of(operation.key, workers)];
            self.connections[connection].push(number, &operation, replies)?;
        }
        self.connections.iter_mut().try_for_each(Connection::submit)
    }
}
