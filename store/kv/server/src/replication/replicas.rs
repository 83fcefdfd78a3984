// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The replicas of a primary: how far each of them is. A sender has one entry here, from its
//! request until its end.

use std::io;
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
    /// Its node in a cluster, otherwise a number of its process.
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

    /// Both are connections of one server. Hosts and ports do not tell: replicas behind one
    /// address may have the same port, or none.
    fn is_same_as(&self, other: &Self) -> bool {
        self.node.is_some() && self.node == other.node
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

    /// Adds a replica and its thread, which is begun here, and which waits until it is listed. An
    /// older connection of the same server ends, so that no server counts twice. Threads that have
    /// ended are forgotten.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn add(
        &self,
        replica: Arc<Replica>,
        begin: impl FnOnce() -> io::Result<JoinHandle<()>>,
    ) -> io::Result<()> {
        let mut list = self.list();
        list.retain(|(_, thread)| !thread.is_finished());
        let thread = begin()?;
        let older = list.iter().filter(|(other, _)| other.is_same_as(&replica));
        older.for_each(|(other, _)| other.disconnect());
        list.push((replica, thread));
        Ok(())
    }

    /// Waits until the thread that calls is listed. A role that it sees after this stays until the
    /// connection ends: a change of the role ends all that are listed.
    pub fn wait_until_listed(&self) {
        // The list is locked while a thread begins.
        drop(self.list());
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    use super::*;

    fn replica(node: Option<NodeId>) -> Arc<Replica> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has one");
        let socket = TcpStream::connect(address).expect("it listens");
        Arc::new(Replica::new(node, ("localhost".into(), 0), socket))
    }

    #[test]
    fn a_thread_is_listed_before_it_looks_at_anything() {
        let replicas = Arc::new(Replicas::default());
        let (list, (sender, receiver)) = (replicas.clone(), channel());
        let run = move || {
            list.wait_until_listed();
            // The test may have failed.
            let _ = sender.send(list.reports().len());
        };
        let added = replicas.add(replica(None), || Ok(std::thread::spawn(run)));
        added.expect("it begins");
        assert_eq!(receiver.recv(), Ok(1));
    }

    /// Addresses are no names: several replicas may have the same, and no port.
    #[test]
    fn an_older_connection_of_the_same_server_ends() {
        let replicas = Replicas::default();
        let (ends, until) = channel::<()>();
        let until = Arc::new(Mutex::new(until));
        let node = NodeId::random();
        for name in [None, None, Some(node), Some(NodeId::random()), Some(node)] {
            let until = until.clone();
            let run = move || drop(until.lock().map(|until| until.recv()));
            let added = replicas.add(replica(name), || Ok(std::thread::spawn(run)));
            added.expect("it begins");
        }
        let reports = replicas.reports();
        assert_eq!(reports.len(), 4);
        assert_eq!(reports.iter().filter(|report| report.node == Some(node)).count(), 1);
        drop(ends);
        replicas.end();
    }
}
