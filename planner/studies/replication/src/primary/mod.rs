// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file system on the host: writes become chunks of a log, which is appended to the host's file
//! and then goes to the backups.
//!
//! No chunk leaves the host before it is in the host's file. So a chunk's number stands for the
//! same contents forever, also after the host has died, and it does no harm if a chunk is sent
//! twice.

mod carry;
mod client;
mod counters;
mod open;

pub use client::{Client, WriteError};
pub use counters::{Carried, Counters};

use crate::chunk::Chunk;
use crate::files::Files;
use crate::gate::{Permit, Permits, Watermark};
use crate::log::{Log, LogError};
use crate::options::{Options, Policy};
use crate::sender::Sender;
use freeport_study_verbs::{Memory, Place, Stable, Verbs};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use open::Open;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// The file system. A clone is the same.
pub struct Primary<V> {
    shared: Rc<Shared<V>>,
}

impl<V> Clone for Primary<V> {
    fn clone(&self) -> Self {
        Self { shared: Rc::clone(&self.shared) }
    }
}

struct Shared<V> {
    verbs: V,
    options: Options,
    state: RefCell<State>,
    /// Places of chunks in the host's memory.
    slots: Permits,
    line: UnboundedSender<Outgoing>,
    /// Number of the last chunk that all backups hold.
    held: Watermark<LogError>,
    sender: Sender<V>,
    /// Room in the processor's queue.
    processor: Permits,
    /// Time until which the processor is taken for dead.
    processor_gone: Cell<Duration>,
    counters: RefCell<Counters>,
}

/// Files, and chunks that are not complete.
struct State {
    files: Files,
    /// Number of the last complete chunk.
    last: u64,
    /// Its identity.
    identity: u64,
    /// Number of the last chunk that was in the host's file when it began.
    recovered: u64,
    /// Incomplete chunks by their clients.
    open: HashMap<u32, Open>,
    /// The last chunk with a write to each file since the host began.
    last_of: HashMap<String, u64>,
    clients: u32,
}

/// A complete chunk on its way.
struct Outgoing {
    chunk: Chunk,
    slot: Permit,
    policy: Policy,
}

impl<V: Verbs> Primary<V> {
    /// Begins the file system with the log in the host's file. Its last chunks go to the backups
    /// again, if these do not have them.
    ///
    /// # Errors
    /// The file does not work, or is damaged.
    pub fn begin(verbs: &V, options: &Options) -> Result<Self, LogError> {
        let log = Log::recover(verbs, options.log_slots)?;
        let (line, in_line) = unbounded();
        let held = Watermark::new(log.held());
        let state = State {
            identity: log.identity(),
            files: log.files,
            last: log.last,
            recovered: log.last,
            open: HashMap::new(),
            last_of: HashMap::new(),
            clients: 0,
        };
        let shared = Rc::new(Shared {
            verbs: verbs.clone(),
            options: *options,
            state: RefCell::new(state),
            slots: Permits::new(options.log_slots),
            line,
            held,
            sender: Sender::new(verbs, Place::Peer(0), options),
            processor: Permits::new(options.processor_queue),
            processor_gone: Cell::default(),
            counters: RefCell::default(),
        });
        for chunk in log.recent {
            let slot = shared.slots.try_take().expect("no more chunks were read than slots are");
            shared.put(&chunk, &slot);
            let outgoing = Outgoing { chunk, slot, policy: Policy::Auto };
            verbs.spawn(Rc::clone(&shared).carry(outgoing, false));
        }
        verbs.spawn(Rc::clone(&shared).append(in_line));
        Ok(Self { shared })
    }

    /// Returns a client, whose chunks take the alternatives of a policy.
    pub fn client(&self, policy: Policy) -> Client<V> {
        let mut state = self.shared.state.borrow_mut();
        state.clients += 1;
        Client::new(&self.shared, state.clients, policy)
    }

    /// Returns the contents of a file, with all writes that have returned.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.shared.state.borrow().files.get(path).map(<[u8]>::to_vec)
    }

    /// Returns all files, with all writes that have returned.
    pub fn files(&self) -> Files {
        self.shared.state.borrow().files.clone()
    }

    /// Returns the number of the last chunk that all backups hold.
    pub fn held(&self) -> u64 {
        self.shared.held.now()
    }

    /// Completes all chunks, and waits until all backups hold them and all earlier ones.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn sync(&self) -> Result<(), WriteError> {
        self.shared.complete_all();
        let last = self.shared.state.borrow().last;
        self.shared.wait_for(last).await
    }

    /// Returns what was carried since the host began.
    pub fn counters(&self) -> Counters {
        *self.shared.counters.borrow()
    }
}

impl<V: Verbs> Shared<V> {
    /// Puts a chunk into its place in the host's memory, from where the processor fetches it.
    fn put(&self, chunk: &Chunk, slot: &Permit) {
        self.verbs.memory().store(self.at(slot), chunk.bytes());
    }

    fn at(&self, slot: &Permit) -> u64 {
        (slot.number * self.options.slot_bytes()) as u64
    }

    /// Completes a client's chunk: it has its number from now on.
    fn complete(&self, client: u32) {
        let mut state = self.state.borrow_mut();
        let Some(open) = state.open.remove(&client) else { return };
        state.last += 1;
        let number = state.last;
        for path in open.paths {
            state.last_of.insert(path, number);
        }
        let chunk = Chunk::new(number, state.identity, &open.body);
        state.identity = chunk.identity();
        self.put(&chunk, &open.slot);
        let outgoing = Outgoing { chunk, slot: open.slot, policy: open.policy };
        // The receiver lives as long as the place, unless the file does not work.
        let _ = self.line.unbounded_send(outgoing);
    }

    fn complete_all(&self) {
        let mut clients: Vec<u32> = self.state.borrow().open.keys().copied().collect();
        clients.sort_unstable();
        clients.into_iter().for_each(|client| self.complete(client));
    }

    /// Appends chunks in their order, and then lets them go.
    async fn append(self: Rc<Self>, mut line: UnboundedReceiver<Outgoing>) {
        while let Some(outgoing) = line.next().await {
            let bytes = outgoing.chunk.bytes().to_vec();
            self.verbs.work(self.options.costs.append.of(bytes.len())).await;
            if let Err(fault) = self.verbs.stable().append(bytes).await {
                return self.fail(fault.into());
            }
            self.verbs.spawn(Rc::clone(&self).carry(outgoing, true));
        }
    }

    /// Ends all waits with the reason: nothing is acknowledged any more.
    fn fail(&self, reason: LogError) {
        self.held.break_with(reason);
        self.slots.close();
    }

    /// Waits until all backups hold a chunk.
    async fn wait_for(&self, number: u64) -> Result<(), WriteError> {
        self.held.reached(number).await.map_err(WriteError::Broken)
    }

    fn working(&self) -> Result<(), WriteError> {
        self.held.broken().map_or(Ok(()), |reason| Err(WriteError::Broken(reason)))
    }
}
