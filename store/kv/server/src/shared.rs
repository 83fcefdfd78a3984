// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State that all workers of a server know. Nothing here is on the path of an operation on values.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use freeport_kv_cluster::NodeId;
use freeport_kv_commands::Table;

use crate::access::{Catalog, Users};
use crate::channels::Channels;
use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::commands::{Action, table};
use crate::configuration::Configuration;
use crate::mail::{Mailbox, Message};
use crate::moving::Moving;
use crate::options::Options;
use crate::persistence::Persistence;
use crate::rates::Rates;
use crate::replication::Replication;
use crate::scripting::Library;
use crate::slow_log::{LatencyMonitor, SlowLog};
use crate::statistics::{Calls, Statistics};
use crate::tracking::Trackers;

/// State of a server.
#[derive(Debug)]
pub struct Shared {
    /// Options that it was started with.
    pub options: Options,
    /// A mailbox for each worker. Threads of the log have them without the rest, because they may
    /// not be the last that holds the log.
    pub mailboxes: Arc<[Mailbox]>,
    /// Channels of publish and subscribe.
    pub channels: Channels,
    /// Clients that want to know when their copies of values become invalid.
    pub trackers: Trackers,
    /// Scripts and functions.
    pub library: Library,
    /// Time of the start.
    pub started: Instant,
    /// The same time in seconds since 1970.
    pub started_s: u64,
    /// Number of connections, which is limited.
    pub clients: AtomicUsize,
    /// Number of those that threads serve, because another server follows the log there.
    followers: AtomicUsize,
    /// Number of clients that were refused because there were too many.
    pub refused_clients: AtomicU64,
    /// All users.
    pub users: Users,
    /// All clients of Redis.
    pub registry: Clients,
    /// Commands by name.
    pub table: Arc<Table<Action>>,
    /// Parameters.
    pub configuration: Configuration,
    /// Changes with every parameter, pause, monitor and prefix of keys whose changes are broadcast;
    /// workers compare it.
    pub version: Arc<AtomicU64>,
    /// Counts of each worker.
    pub statistics: Vec<Arc<Statistics>>,
    /// Commands that took long.
    pub slow_log: SlowLog,
    /// Samples of events that took long.
    pub latency: LatencyMonitor,
    /// Commands and bytes of the last seconds.
    pub rates: Mutex<Rates>,
    /// The files that changes are kept in, if they are.
    pub persistence: Option<Persistence>,
    /// Its part in replication, if it has files.
    pub replication: Option<Replication>,
    /// The node of a cluster that the server is, if it is one.
    pub cluster: Option<Cluster>,
    /// Slots on their way between shards of the cluster.
    pub moving: Option<Moving>,
    /// A random name of this run of the server, 40 hexadecimal digits.
    pub run_id: String,
    pause: Mutex<Option<Pause>>,
    monitors: Mutex<Vec<(usize, u64)>>,
    last_client: AtomicU64,
    is_stopping: AtomicBool,
}

/// Requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Until when, in milliseconds since 1970.
    pub end_ms: u64,
    /// All requests; otherwise those that may change values.
    pub is_for_all: bool,
}

/// The connection of a follower, which was one of a client before. A thread serves it. It counts
/// for the limit of clients until this is dropped.
#[derive(Debug)]
pub struct FollowerCount(Arc<Shared>);

impl FollowerCount {
    /// Counts a connection that is among [`Shared::clients`] already.
    pub fn new(shared: Arc<Shared>) -> Self {
        shared.followers.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for FollowerCount {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
        self.0.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// State at the start.
    pub fn new(
        options: Options,
        mailboxes: Vec<Mailbox>,
        persistence: Option<Persistence>,
        node: Option<NodeId>,
    ) -> Self {
        let table = Arc::new(table());
        let catalog = Catalog::new(&table);
        let numbers = catalog.len();
        let statistics = mailboxes.iter().map(|_| Arc::new(Statistics::new(numbers))).collect();
        let version = Arc::new(AtomicU64::new(1));
        let mailboxes: Arc<[Mailbox]> = mailboxes.into();
        let cluster = node
            .zip(options.cluster.clone())
            .map(|(me, options)| Cluster::new(me, options, version.clone(), mailboxes.clone()));
        let run_id: String = (0..5).map(|_| format!("{:08x}", fastrand::u32(..))).collect();
        // Outside of a cluster, a primary knows a replica by its run.
        let name = node.or_else(|| run_id.parse().ok());
        let replication = persistence
            .as_ref()
            .map(|persistence| Replication::new(&options, persistence.journal.clone(), name));
        Self {
            refused_clients: AtomicU64::new(0),
            users: Users::new(catalog),
            registry: Clients::default(),
            table,
            configuration: Configuration::new(&options),
            trackers: Trackers::new(mailboxes.len(), version.clone()),
            version,
            statistics,
            slow_log: SlowLog::default(),
            latency: LatencyMonitor::default(),
            rates: Mutex::default(),
            persistence,
            moving: cluster.is_some().then(|| Moving::new(mailboxes.len())),
            replication,
            cluster,
            run_id,
            pause: Mutex::new(None),
            monitors: Mutex::new(vec![]),
            options,
            mailboxes,
            channels: Channels::default(),
            library: Library::default(),
            started: Instant::now(),
            started_s: now_ms() / 1000,
            clients: AtomicUsize::new(0),
            followers: AtomicUsize::new(0),
            last_client: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// How Redis calls this kind of server.
    pub fn mode(&self) -> &'static str {
        if self.cluster.is_some() { "cluster" } else { "standalone" }
    }

    /// Number of connected clients; those that follow the log are none.
    pub fn connected_clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed).saturating_sub(self.followers())
    }

    /// Number of connections on which another server follows the log. The limit of clients counts
    /// them.
    pub fn followers(&self) -> usize {
        self.followers.load(Ordering::Relaxed)
    }

    /// Number of a new client.
    pub fn next_client(&self) -> u64 {
        self.last_client.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Workers look at parameters, pause and monitors again.
    pub fn has_changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The present pause, if there is one that has not ended.
    pub fn pause(&self) -> Option<Pause> {
        let pause = *self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        pause.filter(|pause| now_ms() < pause.end_ms)
    }

    /// Begins, changes or ends a pause. One pause does not shorten another.
    pub fn set_pause(&self, pause: Option<Pause>) {
        let present = self.pause();
        let joined = pause.map(|pause| {
            let end_ms = present.map_or(0, |present| present.end_ms).max(pause.end_ms);
            let is_for_all = pause.is_for_all || present.is_some_and(|present| present.is_for_all);
            Pause { end_ms, is_for_all }
        });
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = joined;
        self.has_changed();
    }

    /// Workers and clients that see all commands.
    pub fn monitors(&self) -> Vec<(usize, u64)> {
        self.monitors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A client sees all commands from now on, or no more.
    pub fn set_monitor(&self, worker: usize, client: u64, is_monitor: bool) {
        let mut monitors = self.monitors.lock().unwrap_or_else(PoisonError::into_inner);
        monitors.retain(|(_, other)| *other != client);
        if is_monitor {
            monitors.push((worker, client));
        }
        drop(monitors);
        self.has_changed();
    }

    /// Notes how many commands and bytes there were until now.
    pub fn sample_rates(&self, now_ms: u64) {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.sample(now_ms, &self.statistics);
    }

    /// The counts of all workers.
    pub fn workers(&self) -> impl Iterator<Item = &Statistics> + Clone {
        self.statistics.iter().map(|worker| &**worker)
    }

    /// Calls of all workers of commands and subcommands that were called or refused, in no order.
    pub fn calls(&self) -> impl Iterator<Item = (&str, Calls)> {
        let entries = self.users.catalog.iter();
        let all = entries.map(|entry| (&entry.name[..], Calls::of(self.workers(), entry.number)));
        all.filter(|(_, calls)| calls.count() > 0 || calls.rejected > 0)
    }

    /// The time in milliseconds since 1970. It does not go back behind changes that were recovered.
    pub fn now_ms(&self) -> u64 {
        let floor_ms = self.persistence.as_ref().map(|it| it.floor_ms.load(Ordering::Relaxed));
        now_ms().max(floor_ms.unwrap_or(0))
    }

    /// The workers end.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Makes all workers end.
    pub fn stop(&self) {
        if !self.is_stopping.swap(true, Ordering::Relaxed) {
            self.replication.iter().for_each(Replication::stop);
            self.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::Stop));
        }
    }
}

/// The time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

/// The time since 1970.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
