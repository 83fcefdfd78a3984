// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker: one thread with a shard of the keys and some of the connections.
//!
//! A turn of its loop:
//! 1. wait for events, unless something is left to do;
//! 2. accept clients, and serve the connections that have requests or can send replies;
//! 3. read the mailbox: new clients, shards that come and go, keys that blocked clients wait for;
//! 4. serve connections that were put aside, end waits whose time is over, remove expired keys.
//!
//! A connection is taken out of the table while it is served, so that its requests can change
//! everything else of the worker.

mod accepting;
mod applying;
mod batch;
mod blocking;
mod busy;
mod counting;
mod datagrams;
mod delivering;
mod errands;
mod fencing;
mod handshakes;
mod imaging;
mod importing;
mod incoming;
mod invalidating;
mod lending;
mod logging;
mod measuring;
mod memcached;
mod memory;
#[cfg(test)]
mod midway;
mod network;
mod parcels;
mod polling;
mod purging;
mod recording;
mod replicating;
mod requests;
mod rights;
mod routing;
mod serving;
mod timing;
mod watching;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use freeport_kv_commands::{Effects, Shard, Store, Table};
use freeport_kv_items::Items;
use freeport_kv_protocol::batch::Operations;
use mio::{Events, Poll, Token};

use crate::channels::Delivery;
use crate::cluster::{Cluster, Routes};
use crate::commands::Action;
use crate::configuration::Settings;
use crate::datagrams::Datagrams;
use crate::listener::Listener;
use crate::mail::Message;
use crate::persistence::{Applier, Recorder};
use crate::replication::Replication;
use crate::scripting::Engine;
use crate::shared::{Pause, Shared};
use crate::statistics::Statistics;
use applying::Copying;
pub use batch::{Batches, Gathering as BatchGathering, Parcel as BatchParcel};
pub use errands::Errand;
use errands::Errands;
use fencing::Fencing;
use imaging::Imaging;
pub use importing::Import;
use incoming::Incoming;
use invalidating::Notices;
pub use lending::Forgotten;
use lending::Lending;
use measuring::Stopwatch;
use network::Network;
pub use parcels::{Gathering, Parcel};
use polling::Polled;
use purging::Purging;
use routing::UnitSlot;

/// Token of the mailbox.
pub const WAKER: Token = Token(0);
/// Token of the first listener. Those of connections are the numbers of clients, behind these.
const LISTENERS: usize = 1;
/// First token of a connection.
const CONNECTIONS: usize = 1 << 10;
/// Events that are taken at once.
const EVENTS: usize = 256;
/// Bytes that are read from a connection at once.
const BUFFER_BYTES: usize = 64 << 10;

/// A worker.
pub struct Worker {
    /// Connections that have more to do without an event.
    again: VecDeque<u64>,
    /// Ends of waits: time, client.
    deadlines: BTreeSet<(u64, u64)>,
    lending: Lending,
    errands: Errands,
    imaging: Imaging,
    purging: Purging,
    /// Executes units of other shards, once there were any.
    applier: Option<Box<Applier>>,
    /// Items of memcached, which the first worker has, with all their clients.
    items: Option<Items>,
    /// Bytes that are being read.
    buffer: Vec<u8>,
    /// Operations of the packet that is being executed.
    operations: Operations,
    next_expiry_ms: u64,
    /// When what changes slowly is looked at, in milliseconds since 1970.
    next_look_ms: u64,
    /// Clients whose requests are on slots that were stopped.
    stopped: Vec<u64>,
    /// Clients whose requests wait for the end of a pause.
    paused: Vec<u64>,
    is_stopping: bool,
    /// The server was a replica when the worker looked at its role last.
    was_replica: bool,
    core: Core,
}

/// State that the execution of commands needs.
pub struct Core {
    /// Number of the worker and of its shard.
    pub number: usize,
    /// Its sockets.
    pub network: Network,
    /// The shards that are here.
    pub store: Store,
    /// Effects of commands that are being executed.
    pub effects: Effects,
    /// Messages for clients of this worker.
    pub deliveries: Vec<Delivery>,
    /// Invalidations that are not sent yet.
    pub notices: Notices,
    /// Commands by name.
    pub table: Arc<Table<Action>>,
    /// Time of this turn in milliseconds since 1970.
    pub now_ms: u64,
    /// Where changes are recorded, if a log is kept.
    pub log: Option<Box<Recorder>>,
    /// Time since 1970 at which the running script began, which is its time until it ends.
    pub script_began: Option<Duration>,
    /// Lua states, once a client has used them.
    pub engine: Option<Box<Engine>>,
    /// State of the server.
    pub shared: Arc<Shared>,
    /// Settings that follow from the parameters.
    pub settings: Settings,
    /// Sizes of packed values have changed, and the own shard does not know it yet.
    pub has_new_limits: bool,
    /// Counts of this worker.
    pub statistics: Arc<Statistics>,
    /// Measures commands.
    pub stopwatch: Stopwatch,
    /// Requests wait until its end.
    pub pause: Option<Pause>,
    /// Workers and clients that see all commands.
    pub monitors: Vec<(usize, u64)>,
    /// How commands on each slot are treated, if the server is a node of a cluster.
    pub routes: Option<Arc<Routes>>,
    /// There is a pause, a monitor, or a limit of memory above which commands are refused.
    pub is_guarded: bool,
    /// The same, or the server is a node of a cluster.
    pub is_watchful: bool,
    /// The lease of the node had run out when the turn began.
    pub is_fenced: bool,
    /// Output that waits for the lease.
    pub fencing: Fencing,
    /// The slot of the keys of the transaction or script that is being executed.
    pub unit_slot: UnitSlot,
    /// The server takes the keys of its primary, and has none meanwhile.
    pub is_loading: bool,
    /// Means to execute batches of a primary, once there are any.
    pub copying: Option<Box<Copying>>,
    /// More keys of the own shard have to be evicted.
    pub is_evicting: bool,
    /// The last command that needed memory found nothing to evict.
    pub is_eviction_short: bool,
}

impl Worker {
    /// A worker with its shard, in its thread: Lua states do not leave it. Listeners are registered
    /// with its poll already, with the tokens of [`Worker::register`].
    pub fn new(
        (number, mut shard): (usize, Box<Shard>),
        shared: Arc<Shared>,
        poll: Poll,
        mail: Receiver<Message>,
        (listeners, mut datagrams): (Vec<Listener>, Vec<Datagrams>),
    ) -> Self {
        let mut store = Store::new(shared.mailboxes.len());
        store.set_functions(shared.options.functions.clone());
        if shared.replication.as_ref().is_some_and(Replication::is_replica) {
            // The keys of its primary fit in any case.
            shard.set_stretched(true);
        }
        shard.count_readers(shared.trackers.counts_of(number));
        store.insert(number, shard);
        if shared.persistence.is_some() {
            datagrams.iter_mut().for_each(|datagrams| datagrams.port.hold_replies());
        }
        let items = memcached::items(&shared, &listeners);
        let network = Network {
            poll,
            mail: Incoming::new(mail),
            listeners,
            datagrams,
            connections: HashMap::new(),
            items: items.as_ref().map(|items| items.options().limits),
            next_worker: number,
            accepts_later: false,
            next_handshakes_ms: 0,
            missed: BTreeSet::new(),
            unread: vec![],
            polled: Polled::new(),
        };
        let core = Core {
            number,
            network,
            store,
            effects: Effects { records: shared.persistence.is_some(), ..Effects::default() },
            deliveries: vec![],
            notices: Notices::default(),
            table: shared.table.clone(),
            now_ms: shared.now_ms(),
            settings: Settings::new(0, &shared.configuration),
            has_new_limits: true,
            statistics: shared.statistics[number].clone(),
            stopwatch: Stopwatch::new(),
            pause: None,
            monitors: vec![],
            routes: shared.cluster.as_ref().map(Cluster::routes),
            is_guarded: false,
            is_watchful: false,
            is_fenced: false,
            fencing: Fencing::default(),
            unit_slot: UnitSlot::default(),
            is_loading: false,
            copying: None,
            is_evicting: false,
            is_eviction_short: false,
            log: shared.persistence.as_ref().map(|it| Box::new(it.recorder())),
            script_began: None,
            engine: None,
            shared,
        };
        Self {
            again: VecDeque::new(),
            deadlines: BTreeSet::new(),
            lending: Lending::default(),
            errands: Errands::default(),
            imaging: Imaging::default(),
            purging: Purging::default(),
            applier: None,
            items,
            buffer: vec![0; BUFFER_BYTES],
            operations: Operations::default(),
            next_expiry_ms: 0,
            next_look_ms: 0,
            stopped: vec![],
            paused: vec![],
            is_stopping: false,
            was_replica: false,
            core,
        }
    }

    /// Makes events of listeners and datagrams arrive at the poll of a worker.
    ///
    /// # Errors
    /// Those of the system.
    pub fn register(
        listeners: &mut [Listener],
        datagrams: &[Datagrams],
        poll: &Poll,
    ) -> io::Result<()> {
        for (at, listener) in listeners.iter_mut().enumerate() {
            listener.register(poll.registry(), Token(LISTENERS + at))?;
        }
        for (at, datagrams) in datagrams.iter().enumerate() {
            datagrams.register(poll.registry(), Token(LISTENERS + listeners.len() + at))?;
        }
        Ok(())
    }

    /// Works until the server stops.
    ///
    /// # Errors
    /// Events cannot be waited for.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.is_stopping {
            self.wait(&mut events)?;
            self.core.now_ms = self.core.shared.now_ms();
            self.look_around();
            for event in &events {
                match event.token() {
                    WAKER => {}
                    Token(token) if token < CONNECTIONS => self.core.accept(token - LISTENERS),
                    Token(token) => {
                        let client = (token - CONNECTIONS) as u64;
                        if self.core.network.note(client, event) {
                            self.serve(client);
                        }
                    }
                }
            }
            if self.core.network.polled.is_hot() {
                self.poll_hot();
            }
            self.read_mail();
            self.serve_datagrams();
            self.deliver_own();
            self.again.extend(std::mem::take(&mut self.core.network.missed));
            for _ in 0..self.again.len() {
                if let Some(client) = self.again.pop_front() {
                    self.serve(client);
                }
            }
            self.keep_time();
            self.purge_some();
            self.end_notices();
            self.end_turn();
        }
        self.end_log();
        Ok(())
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        if self.core.network.polled.is_hot() {
            return self.core.ask_for_events(events);
        }
        let mailbox = &self.core.shared.mailboxes[self.core.number];
        let mut timeout = self.next_time();
        mailbox.fall_asleep();
        // A message that came before the mailbox knew is here now.
        match self.core.network.mail.next() {
            Some(message) => {
                mailbox.wake_up();
                self.receive(message);
                timeout = Duration::ZERO;
            }
            None if !self.again.is_empty()
                || self.core.has_released()
                || self.core.has_datagrams() =>
            {
                timeout = Duration::ZERO;
            }
            None => {}
        }
        let waited = self.core.network.poll.poll(events, Some(timeout));
        self.core.shared.mailboxes[self.core.number].wake_up();
        match waited {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    fn read_mail(&mut self) {
        self.leave_behind();
        while let Some(message) = self.core.network.mail.next() {
            self.receive(message);
        }
    }

    fn receive(&mut self, message: Message) {
        self.core.begin_commands();
        self.core.follow();
        self.follow_new_role();
        match message {
            Message::Accepted { stream, protocol, address } => {
                self.core.welcome(stream, protocol, address);
            }
            Message::Borrow { worker } => self.asked_for_shard(worker),
            Message::Lent { number, shard } => self.borrowed(number, shard),
            Message::Returned { shard } => self.returned(shard),
            Message::Ready { client } => self.retry_by_message(client),
            Message::Deliver { delivery } => {
                // Its sender may have seen the reply to what this worker has published.
                self.deliver_own();
                self.receive_delivery(&delivery);
            }
            Message::Execute { parcel } => self.execute_for(parcel),
            Message::Executed { number, parcel } => self.parcel_done(number, parcel),
            Message::Moved { stream, protocol, address, input } => {
                self.take_over((stream, protocol), address, input);
            }
            Message::ExecuteBatch { parcel } => self.execute_batch_for(parcel),
            Message::ExecutedBatch { number, parcel } => self.batch_done(number, parcel),
            Message::Disconnect { client } => self.disconnect(client),
            Message::Unblock { client, is_error } => self.unblock(client, is_error),
            Message::Show { client, line } => self.show_to(client, &line),
            Message::Forget { place, what } => self.forget(place, what),
            Message::Run { errand } => self.borrow_for_errand(errand),
            Message::FollowUsers => self.follow_users(),
            Message::Count { census } => {
                // Nobody may wait for it any more.
                let _ = census.send(self.census());
            }
            Message::Import { import } => self.import(import),
            Message::FollowRoutes => self.follow_routes(),
            Message::Settle { done } => self.settle(done),
            Message::Stop => self.is_stopping = true,
        }
    }
}
