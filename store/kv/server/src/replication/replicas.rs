// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The replicas of a primary: how far each of them is. A sender has one entry here, from its
//! request until its end.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use freeport_kv_cluster::NodeId;
use freeport_kv_journal::Position;

use crate::shared::now_ms;

/// A replica, as reports show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaReport {
    /// Its node, in a cluster.
    pub node: Option<NodeId>,
    /// Address of its host.
    pub host: String,
    /// The port that it listens on.
    pub port: u16,
    /// It has all entries of the snapshot that it was sent, and gets changes.
    pub is_online: bool,
    /// Its own log has released all changes up to here.
    pub acked: Position,
    /// Its own log is durable up to here.
    pub durable: Position,
    /// Time since its last answer.
    pub lag: Duration,
}

/// A replica that is connected.
#[derive(Debug)]
pub(super) struct Replica {
    pub node: Option<NodeId>,
    pub host: String,
    pub port: u16,
    /// A handle of its socket, by which others end the connection.
    socket: TcpStream,
    is_online: AtomicBool,
    /// The connection was ended here.
    is_over: AtomicBool,
    acked: AtomicU64,
    durable: AtomicU64,
    /// When it has answered last, in milliseconds since 1970.
    answered_ms: AtomicU64,
}

impl Replica {
    /// A replica that has sent its request over a socket.
    pub fn new(node: Option<NodeId>, (host, port): (String, u16), socket: TcpStream) -> Self {
        Self {
            node,
            host,
            port,
            socket,
            is_online: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            acked: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            answered_ms: AtomicU64::new(now_ms()),
        }
    }

    /// It gets changes from now on.
    pub fn set_online(&self) {
        self.is_online.store(true, Ordering::Release);
    }

    /// It has answered.
    pub fn note(&self, acked: Position, durable: Position) {
        self.durable.store(durable.0, Ordering::Release);
        self.acked.store(acked.0, Ordering::Release);
        self.answered_ms.store(now_ms(), Ordering::Release);
    }

    /// Ends the connection; its threads then end by themselves.
    pub fn disconnect(&self) {
        self.is_over.store(true, Ordering::Release);
        // The other side may have done so before.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Both are connections of one server.
    fn is_same_as(&self, other: &Self) -> bool {
        match (self.node, other.node) {
            (Some(one), Some(node)) => one == node,
            _ => (&self.host, self.port) == (&other.host, other.port),
        }
    }

    fn report(&self) -> ReplicaReport {
        let answered_ms = self.answered_ms.load(Ordering::Acquire);
        ReplicaReport {
            node: self.node,
            host: self.host.clone(),
            port: self.port,
            is_online: self.is_online.load(Ordering::Acquire),
            acked: Position(self.acked.load(Ordering::Acquire)),
            durable: Position(self.durable.load(Ordering::Acquire)),
            lag: Duration::from_millis(now_ms().saturating_sub(answered_ms)),
        }
    }
}

/// The replicas that are connected, and the threads that serve them.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    list: Mutex<Vec<(Arc<Replica>, JoinHandle<()>)>>,
}

impl Replicas {
    fn list(&self) -> MutexGuard<'_, Vec<(Arc<Replica>, JoinHandle<()>)>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a replica and its thread. An older connection of the same server ends, so that no
    /// server counts twice. Threads that have ended are forgotten.
    pub fn add(&self, replica: Arc<Replica>, thread: JoinHandle<()>) {
        let mut list = self.list();
        list.retain(|(_, thread)| !thread.is_finished());
        let older = list.iter().filter(|(other, _)| other.is_same_as(&replica));
        older.for_each(|(other, _)| other.disconnect());
        list.push((replica, thread));
    }

    /// Reports of all that are connected.
    pub fn reports(&self) -> Vec<ReplicaReport> {
        let list = self.list();
        let is_present = |(replica, thread): &&(Arc<Replica>, JoinHandle<()>)| {
            !thread.is_finished() && !replica.is_over.load(Ordering::Acquire)
        };
        list.iter().filter(is_present).map(|(replica, _)| replica.report()).collect()
    }

    /// Number of replicas for which something holds.
    pub fn count(&self, is_counted: impl Fn(&ReplicaReport) -> bool) -> usize {
        self.reports().iter().filter(|report| report.is_online && is_counted(report)).count()
    }

    /// Ends all connections. Does not wait.
    pub fn disconnect(&self) {
        self.list().iter().for_each(|(replica, _)| replica.disconnect());
    }

    /// Ends all connections, and waits for their threads.
    pub fn end(&self) {
        let list = std::mem::take(&mut *self.list());
        list.iter().for_each(|(replica, _)| replica.disconnect());
        for (_, thread) in list {
            // A panic was reported by its thread.
            let _ = thread.join();
        }
    }
}
