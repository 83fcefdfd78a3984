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

mod options;
mod replicas;
mod role;

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use freeport_kv_cluster::{Address, NodeId};
use freeport_kv_journal::{Journal, Position};

pub use options::ReplicationOptions;
pub use replicas::ReplicaReport;
use replicas::Replicas;
pub use role::RoleError;

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

/// State of a replica's link to its primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkPhase {
    /// There is none; the replica tries again soon.
    #[default]
    Down,
    /// The replica gets the primary's snapshot.
    Syncing,
    /// The replica gets changes.
    Online,
}

/// State of a replica's link to its primary, for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkReport {
    /// Its phase.
    pub phase: LinkPhase,
    /// Time since the primary has last sent something.
    pub silence: Option<Duration>,
    /// End of the primary's log, as far as the replica knows.
    pub primary_end: Position,
    /// Why the last attempt has ended.
    pub failure: Option<String>,
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
#[derive(Debug)]
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
    replicas: Replicas,
    /// Numbers of synchronizations.
    pub counts: SyncCounts,
}

#[derive(Debug)]
struct State {
    role: Role,
    link: Link,
    is_stopping: bool,
}

#[derive(Debug, Default)]
struct Link {
    phase: LinkPhase,
    /// A handle of its socket, by which others end it.
    socket: Option<TcpStream>,
    heard: Option<Instant>,
    primary_end: Position,
    failure: Option<String>,
}

impl Replication {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// End of the log.
    pub fn position(&self) -> Position {
        self.journal.end()
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

    /// State of the link to the primary.
    pub fn link(&self) -> LinkReport {
        let state = self.state();
        let link = &state.link;
        LinkReport {
            phase: link.phase,
            silence: link.heard.map(|heard| heard.elapsed()),
            primary_end: link.primary_end,
            failure: link.failure.clone(),
        }
    }

    /// The server stops: threads end soon. Does not wait.
    pub fn stop(&self) {
        let mut state = self.state();
        state.is_stopping = true;
        state.link.disconnect();
        drop(state);
        self.changed.notify_all();
        self.replicas.disconnect();
    }
}

impl Link {
    /// Ends the connection; its threads then end by themselves.
    fn disconnect(&mut self) {
        if let Some(socket) = self.socket.take() {
            // The other side may have done so before.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}
