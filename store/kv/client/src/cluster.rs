// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of all nodes of a cluster.
//!
//! Nodes say where a key belongs when they are asked for one that they do not serve. So the client
//! begins with any node, and knows after its first batches which node serves which slot. It divides
//! a batch by that, sends all parts before it waits for replies, and sends operations again that a
//! node did not execute, because the slot is elsewhere, the node is gone, or its lease has run out.

use crate::address::Address;
use crate::batch::Batch;
use crate::client::Client;
use crate::error::{Error, OperationError};
use crate::function::Function;
use crate::options::Options;
use crate::owners::{Owners, read_moved};
use crate::replies::Replies;
use freeport_kv_protocol::batch::{FunctionKind, Operation, Reply, Status};
use freeport_kv_protocol::slots::slot_of;
use std::time::{Duration, Instant};

/// Pauses between two questions where nothing has changed: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(100)];
/// Rounds without a pause. In more of them, nodes name each other, since not all have followed a
/// change yet.
const QUICK_ROUNDS: usize = 2;
/// How texts of nodes begin that cannot serve a slot at the moment.
const DOWN: [&[u8]; 2] = [b"CLUSTERDOWN", b"LOADING"];

/// A client of a cluster over TCP.
///
/// It sends each operation to the node that serves its key. Operations that a node has not executed
/// are sent again, for [`patience`](Options::patience) at most, so a move of slots is not noticed,
/// and a fail-over only by batches that were under way. Operations on one key take effect in the
/// order of the batch, except while its slot changes the node.
///
/// ```no_run
/// use freeport_kv_client::{Batch, ClusterClient, Options};
///
/// let nodes = ["tcp://10.0.0.1:6390", "tcp://10.0.0.2:6390"];
/// let mut client = ClusterClient::connect(&nodes, Options::default())?;
/// let mut batch = Batch::new();
/// for number in 0_u32..1_000 {
///     batch.put(&number.to_le_bytes(), b"value");
/// }
/// assert_eq!(client.run(&batch)?.first_error(), None);
/// # Ok::<(), freeport_kv_client::Error>(())
/// ```
#[derive(Debug)]
pub struct ClusterClient {
    options: Options,
    nodes: Vec<Node>,
    owners: Owners,
    /// The node that is asked for slots without a known owner.
    guide: usize,
}

/// A node, and the part of a batch that it gets.
#[derive(Debug)]
struct Node {
    address: Address,
    /// None before the first use.
    client: Option<Client>,
    batch: Batch,
    /// Numbers of the operations in the whole batch.
    numbers: Vec<usize>,
    replies: Replies,
}

/// Operations that are sent again, and why.
#[derive(Default)]
struct Left {
    numbers: Vec<usize>,
    /// The last error of a node, or its refusal.
    reason: String,
    /// An answer of a node about another one, of interest if there is no such reason.
    said: String,
    /// Another try makes sense only after a while.
    needs_pause: bool,
}

impl ClusterClient {
    /// A client that begins with these nodes: `tcp://HOST:PORT` of their listeners for the batched
    /// protocol. It connects to the first that answers, and finds the others.
    ///
    /// # Errors
    /// There is no node, a text is no address, no node can be reached, or the first that can be
    /// reached refuses the login.
    pub fn connect(nodes: &[impl AsRef<str>], options: Options) -> Result<Self, Error> {
        let addresses = nodes.iter().map(|text| Ok(text.as_ref().parse()?));
        let addresses: Vec<Address> = addresses.collect::<Result<_, Error>>()?;
        let mut client = Self { options, nodes: vec![], owners: Owners::default(), guide: 0 };
        addresses.into_iter().for_each(|address| _ = client.node(address));
        let mut last = Error::NoNodes;
        for number in 0..client.nodes.len() {
            match client.nodes[number].connect(&client.options) {
                Ok(_) => {
                    client.guide = number;
                    return Ok(client);
                }
                Err(error @ Error::Connect { .. }) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Addresses of all nodes that the client knows.
    pub fn nodes(&self) -> impl Iterator<Item = &Address> {
        self.nodes.iter().map(|node| &node.address)
    }

    /// Sends the operations of a batch to the nodes of their keys, and waits for their replies.
    ///
    /// # Errors
    /// There are no replies to some of the operations.
    /// [`may_have_executed`](Error::may_have_executed) says what that means for those of one node;
    /// those of other nodes may have been executed in any case. Errors of single operations are in
    /// the replies.
    pub fn run(&mut self, batch: &Batch) -> Result<Replies, Error> {
        let mut replies = Replies::new();
        self.run_into(batch, &mut replies)?;
        Ok(replies)
    }

    /// As [`run`](Self::run); the replies take the place of others, whose memory is used again.
    ///
    /// # Errors
    /// Those of [`run`](Self::run). There are no replies then.
    pub fn run_into(&mut self, batch: &Batch, replies: &mut Replies) -> Result<(), Error> {
        replies.expect(batch.len());
        let result = self.run_all(batch, replies);
        if result.is_err() {
            replies.expect(0);
        }
        result
    }

    /// The value of a key; `None` if there is no such key.
    ///
    /// # Errors
    /// There is no reply, or [`Error::Operation`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let replies = self.one(&Operation::get(key))?;
        Ok(replies.get(0)?.map(<[u8]>::to_vec))
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// There is no reply, or [`Error::Operation`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.one(&Operation::put(key, value))?.get(0)?;
        Ok(())
    }

    /// Removes a key, and returns whether there was one.
    ///
    /// # Errors
    /// There is no reply, or [`Error::Operation`].
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.one(&Operation::delete(key))?.was_found(0)?)
    }

    /// The function with a name, of the node that the client has begun with: all nodes should have
    /// the same ones.
    ///
    /// # Errors
    /// There is none, or the node does not answer.
    pub fn function(&mut self, kind: FunctionKind, name: &str) -> Result<Function, Error> {
        self.nodes[self.guide].connect(&self.options)?.function(kind, name)
    }

    fn one(&mut self, operation: &Operation<'_>) -> Result<Replies, Error> {
        let mut batch = Batch::new();
        batch.push(operation);
        self.run(&batch)
    }

    fn run_all(&mut self, batch: &Batch, replies: &mut Replies) -> Result<(), Error> {
        let begin = Instant::now();
        let mut pause = PAUSES[0];
        let mut left = Left { numbers: (0..batch.len()).collect(), ..Left::default() };
        let mut rounds = 0;
        while let Some(first) = left.numbers.first() {
            if rounds > 0 && begin.elapsed() > self.options.patience {
                let slot = slot_of(batch.operation(*first).key);
                let reason = if left.reason.is_empty() { left.said } else { left.reason };
                return Err(Error::NotServed { slot, after: begin.elapsed(), reason });
            }
            if left.needs_pause || rounds > QUICK_ROUNDS {
                std::thread::sleep(pause);
                pause = (2 * pause).min(PAUSES[1]);
            }
            rounds += 1;
            let before = std::mem::take(&mut left);
            left = self.round(batch, &before.numbers, replies)?;
            if left.reason.is_empty() {
                left.reason = before.reason;
            }
            // An operation that is sent again keeps its place among those on its key.
            left.numbers.sort_unstable();
        }
        Ok(())
    }

    /// Sends operations to the nodes that should have their keys.
    fn round(
        &mut self,
        batch: &Batch,
        numbers: &[usize],
        replies: &mut Replies,
    ) -> Result<Left, Error> {
        self.nodes.iter_mut().for_each(Node::begin);
        for number in numbers {
            let operation = batch.operation(*number);
            let node = self.owners.of(slot_of(operation.key)).unwrap_or(self.guide);
            self.nodes[node].batch.push(&operation);
            self.nodes[node].numbers.push(*number);
        }
        let options = &self.options;
        let sent: Vec<Result<(), Error>> =
            self.nodes.iter_mut().map(|node| node.send(options)).collect();
        let mut left = Left::default();
        let mut failure = None;
        // All are waited for, so that no connection has replies to an older batch.
        for (number, sent) in sent.into_iter().enumerate() {
            let finished = sent.and_then(|()| self.nodes[number].finish());
            if let Err(error) = self.take(number, finished.err(), replies, &mut left) {
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(left), Err)
    }

    /// Takes the replies of a node, of which some may be missing because of an error.
    fn take(
        &mut self,
        number: usize,
        error: Option<Error>,
        replies: &mut Replies,
        left: &mut Left,
    ) -> Result<(), Error> {
        let mut moved = vec![];
        let node = &self.nodes[number];
        let (mut is_lost, mut is_down) = (false, false);
        for (at, whole) in node.numbers.iter().enumerate() {
            // Before the batch was sent, there is no place for replies.
            if at >= node.replies.len() || node.replies.is_missing(at) {
                left.numbers.push(*whole);
                is_lost |= !node.batch.operation(at).opcode.is_read();
                continue;
            }
            match node.replies.reply(at) {
                Reply { status: Status::Moved, value } => {
                    left.numbers.push(*whole);
                    moved.push(value.unwrap_or_default().to_vec());
                }
                Reply { status: Status::Unavailable, value: Some(text) }
                    if DOWN.iter().any(|begin| text.starts_with(begin)) =>
                {
                    is_down = true;
                    left.numbers.push(*whole);
                    left.reason = String::from_utf8_lossy(text).into_owned();
                    left.needs_pause = true;
                }
                reply => replies.set(*whole, reply),
            }
        }
        moved.iter().try_for_each(|text| self.learn(number, text, left))?;
        if is_down {
            // It may have been replaced without having noticed that.
            self.leave(number);
        }
        match error {
            Some(error) => self.give_up(number, error, is_lost, left),
            None => Ok(()),
        }
    }

    /// Follows a node's text about another one.
    fn learn(&mut self, from: usize, text: &[u8], left: &mut Left) -> Result<(), Error> {
        let address = &self.nodes[from].address;
        let wrong = |reason: &str| {
            let text = String::from_utf8_lossy(text);
            Error::Protocol { address: address.clone(), reason: format!("{reason}: `{text}`") }
        };
        let (slot, host) = read_moved(text).ok_or_else(|| wrong("it names no node"))?;
        if host.is_empty() {
            let status = Status::Moved;
            let text = format!("the node of slot {slot} has no listener for the batched protocol");
            return Err(OperationError { status, text }.into());
        }
        if left.said.is_empty() {
            left.said = format!("{address} says that {host} serves slot {slot}");
        }
        let node = self.node(Address::Tcp(host.to_owned()));
        if node == from {
            // It has not followed a change yet.
            left.needs_pause = true;
            left.reason = format!("{} names itself, and refuses", self.nodes[node].address);
        }
        self.owners.set(slot, node);
        Ok(())
    }

    /// Decides what becomes of operations without replies after an error of their node.
    fn give_up(
        &mut self,
        number: usize,
        error: Error,
        is_lost: bool,
        left: &mut Left,
    ) -> Result<(), Error> {
        let is_absent = matches!(error, Error::Connect { .. });
        let is_interrupted = matches!(error, Error::Lost { .. } | Error::TimedOut { .. });
        self.leave(number);
        if !is_absent && (!is_interrupted || is_lost) {
            return Err(error);
        }
        left.needs_pause = true;
        left.reason = error.to_string();
        Ok(())
    }

    /// Asks other nodes from now on.
    fn leave(&mut self, number: usize) {
        self.owners.forget(number);
        if self.guide == number {
            self.guide = (number + 1) % self.nodes.len();
        }
    }

    /// The number of the node with an address.
    fn node(&mut self, address: Address) -> usize {
        let known = self.nodes.iter().position(|node| node.address == address);
        known.unwrap_or_else(|| {
            self.nodes.push(Node {
                address,
                client: None,
                batch: Batch::new(),
                numbers: vec![],
                replies: Replies::new(),
            });
            self.nodes.len() - 1
        })
    }
}

impl Node {
    fn begin(&mut self) {
        self.batch.clear();
        self.numbers.clear();
        self.replies.expect(0);
    }

    fn connect(&mut self, options: &Options) -> Result<&mut Client, Error> {
        connected(&mut self.client, &self.address, options)
    }

    fn send(&mut self, options: &Options) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let client = connected(&mut self.client, &self.address, options)?;
        client.send(&self.batch, &mut self.replies)
    }

    fn finish(&mut self) -> Result<(), Error> {
        match &mut self.client {
            Some(client) if !self.batch.is_empty() => client.finish(&mut self.replies),
            _ => Ok(()),
        }
    }
}

/// Returns the client of a node, connected first if there is none.
fn connected<'a>(
    client: &'a mut Option<Client>,
    address: &Address,
    options: &Options,
) -> Result<&'a mut Client, Error> {
    let connected = match client.take() {
        Some(connected) => connected,
        None => Client::connect_to(address.clone(), options.clone())?,
    };
    Ok(client.insert(connected))
}
