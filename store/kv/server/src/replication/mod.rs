// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replication: a replica has the log of its primary, batch by batch, and executes it.
//!
//! 1. The [receiver] of a replica connects to the primary as a client does, logs in, and sends
//!    `KV.FOLLOW` with the place where its log ends.
//! 2. The worker of that connection gives its socket to a [sender] thread of the primary. If the
//!    place is one of the primary's own log, the sender continues there. Otherwise it sends the
//!    primary's snapshot first, and the replica forgets what it has ([sync]).
//! 3. The receiver hands batches to the first worker ([feed]), which holds all shards while it
//!    executes some of them and appends them to its own log. Positions of both logs are equal.
//! 4. The replica answers with the position that its log has released. The primary counts these
//!    answers for `WAIT` ([replicas]).
//!
//! A role changes only while a worker holds all shards ([role]). So no command runs meanwhile, and
//! every worker knows the new role before it touches a key again.

mod backoff;
mod feed;
mod link;
mod options;
mod progress;
mod receiver;
mod replicas;
mod request;
mod role;
mod sender;
mod state;
mod sync;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};

use freeport_kv_cluster::{Address, NodeId};
use freeport_kv_journal::{Journal, Position};

use crate::configuration::Configuration;
use crate::options::Options;
use crate::shared::Shared;

pub use feed::Feed;
pub use link::{LinkStream, log_in, open};
pub use options::ReplicationOptions;
use progress::Progress;
pub use replicas::ReplicaReport;
use replicas::Replicas;
pub use request::Request;
pub use role::RoleError;
pub use sender::serve;
use state::Link;
pub use state::LinkPhase;

/// Least time without a sign of the other side after which a link in a cluster has failed.
const CLUSTER_TIMEOUT_MIN: Duration = Duration::from_secs(5);

/// The primary that a replica follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Its node, in a cluster.
    pub node: Option<NodeId>,
    /// Where it accepts clients of Redis.
    pub address: Address,
    /// Number of its election, in a cluster.
    pub term: u64,
}

/// The part of a server in replication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes writes, and replicas follow it.
    Primary {
        /// Number of its election, in a cluster.
        term: u64,
    },
    /// It executes the log of a primary, and refuses writes.
    Replica {
        /// The primary; none: it waits to be told.
        leader: Option<Leader>,
        /// It takes no more changes of this primary.
        is_sealed: bool,
    },
}

/// Numbers of synchronizations since the start.
#[derive(Debug, Default)]
pub struct SyncCounts {
    /// Snapshots that this primary has begun to send.
    pub full: AtomicU64,
    /// Replicas that continued where they were.
    pub partial: AtomicU64,
    /// Replicas that could not continue where they were.
    pub refused: AtomicU64,
    /// Snapshots that this replica has taken.
    pub taken: AtomicU64,
}

/// The replication of a server with a folder.
pub struct Replication {
    journal: Arc<Journal>,
    options: ReplicationOptions,
    state: Mutex<State>,
    /// The role or the link has changed.
    changed: Condvar,
    /// Counts up with every change of the role, while all shards are held: what an earlier link has
    /// brought is not executed.
    attempt: AtomicU64,
    is_replica: AtomicBool,
    is_loading: AtomicBool,
    /// The keys are not those of any moment of the primary: the whole state is needed again.
    needs_sync: AtomicBool,
    /// Port where replicas of this server would reach it, for reports of the primary, and the name
    /// by which the primary knows it: its node, or its run.
    port: u16,
    node: Option<NodeId>,
    /// Time without a sign of life after which a node of the cluster has failed.
    cluster_timeout: Option<Duration>,
    /// The log of a replica has advanced.
    pub progress: Arc<Progress>,
    replicas: Replicas,
    receiver: Mutex<Option<JoinHandle<()>>>,
    /// Numbers of synchronizations.
    pub counts: SyncCounts,
}

impl fmt::Debug for Replication {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        formatter
            .debug_struct("Replication")
            .field("role", &state.role)
            .field("link", &state.link)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    role: Role,
    link: Link,
    is_stopping: bool,
}

impl Replication {
    /// The replication of a server that was started with these options.
    /// `node` is its name in the cluster, or of this run.
    pub fn new(options: &Options, journal: Arc<Journal>, node: Option<NodeId>) -> Self {
        let is_replica = options.replication.follows.is_some() || options.cluster.is_some();
        let role = match is_replica {
            true => {
                let leader = options.replication.follows.clone();
                let leader = leader.map(|address| Leader { node: None, address, term: 0 });
                Role::Replica { leader, is_sealed: false }
            }
            false => Role::Primary { term: 0 },
        };
        journal.set_follower(is_replica);
        Self {
            journal,
            options: options.replication.clone(),
            state: Mutex::new(State { role, link: Link::default(), is_stopping: false }),
            changed: Condvar::new(),
            attempt: AtomicU64::new(0),
            is_replica: AtomicBool::new(is_replica),
            is_loading: AtomicBool::new(false),
            needs_sync: AtomicBool::new(false),
            port: options.resp_port().unwrap_or_default(),
            node,
            cluster_timeout: options.cluster.as_ref().map(|cluster| cluster.timeout),
            progress: Arc::default(),
            replicas: Replicas::default(),
            receiver: Mutex::default(),
            counts: SyncCounts::default(),
        }
    }

    /// Begins a history, if the server is a primary and its log has some: the last batches of the
    /// log may have been lost with the machine. No worker may have appended anything yet.
    ///
    /// # Errors
    /// The file of histories cannot be written.
    pub fn begin(&self) -> io::Result<()> {
        if !self.is_replica() && !self.journal.lineage().histories().is_empty() {
            self.journal.begin_history(0).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Begins to follow, now or when the server becomes a replica.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(shared: &Arc<Shared>) -> io::Result<()> {
        let Some(replication) = &shared.replication else { return Ok(()) };
        let thread = std::thread::Builder::new().name("kv-receiver".into());
        let shared = shared.clone();
        let thread = thread.spawn(move || receiver::run(&shared))?;
        *replication.receiver.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// The log has a history, by which replicas know it. A server begins the first one when the
    /// first replica comes.
    fn ensure_history(&self) -> Result<(), String> {
        let _one_at_a_time = self.state();
        if self.journal.lineage().histories().is_empty() {
            self.journal.begin_history(0).map_err(|failure| failure.to_string())?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Present options: some are parameters.
    pub fn options(&self, configuration: &Configuration) -> ReplicationOptions {
        let seconds = |name: &str| configuration.value(name).parse().unwrap_or_default();
        ReplicationOptions {
            user: configuration.value("masteruser"),
            password: configuration.value("masterauth"),
            timeout: match &self.cluster_timeout {
                // A lost primary is found by its lease. A link to a busy one should last.
                Some(timeout) => (*timeout).max(CLUSTER_TIMEOUT_MIN),
                None => Duration::from_secs(seconds("repl-timeout")),
            },
            ..self.options.clone()
        }
    }

    /// The present role.
    pub fn role(&self) -> Role {
        self.state().role.clone()
    }

    /// The server refuses writes, because it is a replica.
    #[inline]
    pub fn is_replica(&self) -> bool {
        self.is_replica.load(Ordering::Acquire)
    }

    /// The server takes the snapshot of its primary, and has no keys meanwhile.
    #[inline]
    pub fn is_loading(&self) -> bool {
        self.is_loading.load(Ordering::Acquire)
    }

    /// As if the server took a snapshot.
    #[cfg(test)]
    pub fn set_loading(&self) {
        self.is_loading.store(true, Ordering::Release);
    }

    /// End of the log.
    pub fn position(&self) -> Position {
        self.journal.end()
    }

    /// How often the log was replaced by that of a primary.
    pub fn taken(&self) -> u64 {
        self.counts.taken.load(Ordering::Acquire)
    }

    /// Replicas that are connected.
    pub fn replicas(&self) -> Vec<ReplicaReport> {
        self.replicas.reports()
    }

    /// Number of replicas whose log has released all changes up to a position.
    pub fn acked(&self, position: Position) -> usize {
        self.replicas.count(|report| report.acked >= position)
    }

    /// Number of replicas whose log is durable up to a position.
    pub fn durable(&self, position: Position) -> usize {
        self.replicas.count(|report| report.durable >= position)
    }

    /// Number of replicas that get changes and for which something holds.
    pub fn counted(&self, is_counted: impl Fn(&ReplicaReport) -> bool) -> usize {
        self.replicas.count(is_counted)
    }

    /// The newest history of the log; 0: there is none.
    pub fn history(&self) -> u64 {
        self.journal.lineage().current().map_or(0, |history| history.id)
    }

    /// The last term whose primary has this log, or the begin of it that ends here; 0: none.
    pub fn term(&self) -> u64 {
        let (end, lineage) = (self.journal.end(), self.journal.lineage());
        let mut newest_first = lineage.histories().iter().rev();
        newest_first.find(|history| history.start <= end).map_or(0, |history| history.term)
    }

    /// The keys are not those of any moment of a primary: the server waits for a snapshot of one,
    /// or has a part of it. The files are those before.
    pub fn is_copying(&self) -> bool {
        self.needs_sync.load(Ordering::Acquire)
    }

    /// The role has not changed since an attempt began.
    pub fn is_present(&self, attempt: u64) -> bool {
        self.attempt.load(Ordering::Acquire) == attempt
    }

    /// The keys are not those of the primary: the next link takes all of them.
    pub fn want_sync(&self) {
        self.needs_sync.store(true, Ordering::Release);
    }

    /// The server stops: threads end soon. Does not wait.
    pub fn stop(&self) {
        let mut state = self.state();
        state.is_stopping = true;
        state.link.disconnect();
        drop(state);
        self.changed.notify_all();
        self.replicas.disconnect();
        self.progress.notify();
    }

    /// Waits until all threads have ended, after [`Replication::stop`].
    pub fn join(&self) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(receiver) = receiver {
            // A panic was reported by its thread.
            let _ = receiver.join();
        }
        self.replicas.end();
    }
}
