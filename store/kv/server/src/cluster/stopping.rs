// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the promise of [`Cluster::stop`](super::Cluster::stop), with clients that write
//! meanwhile.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use freeport_kv_cluster::{
    Address, Fault, Member, MemoryClient, MemoryRegistry, Registry, Shard, ShardId, SlotSet,
};
use freeport_testbed::wait::wait_until;

use super::testing::topology;
use super::{Cluster, ClusterOptions, Stopper};
use crate::mail::Message;
use crate::options::{Bind, Options};
use crate::persistence::PersistenceOptions;
use crate::server::Server;
use crate::worker::Import;

/// Counters that clients count up.
const COUNTERS: usize = 50;
/// Requests that a client sends at once.
const PIPELINE: usize = 20;

/// A node that is the primary of all slots.
pub fn node(workers: usize, folder: &Path) -> Server {
    let registry = MemoryRegistry::default();
    node_of(&registry, &registry.client(), Duration::from_secs(30), workers, folder)
}

/// A node that is the primary of all slots, and reaches the registry by a client.
fn node_of(
    registry: &MemoryRegistry,
    client: &MemoryClient,
    timeout: Duration,
    workers: usize,
    folder: &Path,
) -> Server {
    let address = Address { host: "127.0.0.1".into(), ..Address::default() };
    let cluster =
        ClusterOptions { registry: Arc::new(client.clone()), address: address.clone(), timeout };
    let server = Server::start(Options {
        resp: vec![Bind::Tcp("127.0.0.1:0".parse().expect("an address"))],
        workers,
        persistence: Some(PersistenceOptions::new(folder.into())),
        cluster: Some(cluster),
        ..Options::default()
    });
    let server = server.expect("a free port");
    let me = server.shared().cluster.as_ref().expect("a node").me;
    let shard = Shard {
        id: ShardId::random(),
        slots: SlotSet::all(),
        primary: me,
        term: 1,
        since: 0,
        members: vec![Member { id: me, address }],
    };
    registry.client().swap(None, None, &topology(vec![shard])).expect("the first");
    let mut client = Counting::new(server.addresses()[0]);
    wait_until("the node is the primary", || client.ask("SET ready 1") == "+OK");
    server
}

/// A client with requests that have replies of one line.
pub struct Counting(BufReader<TcpStream>);

impl Counting {
    pub fn new(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).expect("it listens")))
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the server replies");
        line.trim_end().to_owned()
    }

    pub fn send(&mut self, request: &str) {
        writeln!(self.0.get_mut(), "{request}").expect("the server reads");
    }

    pub fn ask(&mut self, request: &str) -> String {
        self.send(request);
        self.line()
    }

    /// Counts up random counters, by commands of one worker and by scripts, which borrow all.
    fn count(&mut self, rng: &mut fastrand::Rng, counted: &AtomicU64) {
        let requests: String = (0..PIPELINE)
            .map(|_| match (rng.usize(..COUNTERS), rng.u8(..8)) {
                (counter, 0) => {
                    format!("EVAL return(redis.call([[INCR]],KEYS[1])) 1 counter{counter}\n")
                }
                (counter, _) => format!("INCR counter{counter}\n"),
            })
            .collect();
        self.0.get_mut().write_all(requests.as_bytes()).expect("the server reads");
        for _ in 0..PIPELINE {
            let line = self.line();
            assert!(line.starts_with(':'), "{line}");
            counted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn nothing_is_executed_while_slots_are_stopped_and_nothing_is_lost() {
    for workers in [1, 3] {
        let folder = tempfile::tempdir().expect("a folder");
        let server = node(workers, folder.path());
        let address = server.addresses()[0];
        let (counted, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (counted, is_over) = (&counted, &is_over);
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(seed);
                    let mut client = Counting::new(address);
                    while !is_over.load(Ordering::Relaxed) {
                        client.count(&mut rng, counted);
                    }
                });
            }
            for _ in 0..20 {
                let before = counted.load(Ordering::Relaxed);
                let target = before + 10 * PIPELINE as u64;
                wait_until("clients count", || counted.load(Ordering::Relaxed) > target);
                stop_once(&server);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let mut client = Counting::new(address);
        let sum: u64 = (0..COUNTERS)
            .map(|counter| client.ask(&format!("INCRBY counter{counter} 0")))
            .map(|line| line[1..].parse::<u64>().expect("a number"))
            .sum();
        assert_eq!(sum, counted.load(Ordering::Relaxed));
    }
}

#[test]
fn commands_without_a_slot_wait_while_the_primary_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = node(2, folder.path());
    let shared = server.shared();
    let (Some(cluster), Some(persistence)) = (&shared.cluster, &shared.persistence) else {
        panic!("the server is a node");
    };
    let mut client = Counting::new(server.addresses()[0]);
    let library = r##""#!lua name=one\nredis.register_function('f', function() end)""##;
    for (request, reply) in [
        (&*format!("FUNCTION LOAD {library}"), &["$3", "one"] as &[_]),
        ("FUNCTION FLUSH", &["+OK"]),
        ("EVAL return(redis.call([[FLUSHALL]])) 0", &["+OK"]),
        ("FLUSHALL", &["+OK"]),
    ] {
        assert_eq!(client.ask("SET key 1"), "+OK");
        stop(cluster, Stopper::HandOver);
        let end = persistence.journal.end();
        client.send(request);
        wait_until("the client waits", || server.census().suspended == 1);
        assert_eq!(persistence.journal.end(), end, "{request}");
        cluster.resume(Stopper::HandOver, &SlotSet::all());
        reply.iter().for_each(|line| assert_eq!(client.line(), *line, "{request}"));
        wait_until("it is recorded", || persistence.journal.end() > end);
    }
}

#[test]
fn nothing_is_imported_while_the_primary_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = node(1, folder.path());
    let shared = server.shared();
    let cluster = shared.cluster.as_ref().expect("the server is a node");
    let import = || {
        let (done, answers) = channel();
        let import = Box::new(Import { units: vec![], done });
        shared.mailboxes[0].send(Message::Import { import });
        answers.recv().expect("the worker answers")
    };
    assert_eq!(import(), Ok(()));
    stop(cluster, Stopper::HandOver);
    assert!(import().is_err());
    cluster.resume(Stopper::HandOver, &SlotSet::all());
    assert_eq!(import(), Ok(()));
}

#[test]
fn clients_that_wait_are_refused_when_the_lease_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = MemoryRegistry::default();
    let way = registry.client();
    let server = node_of(&registry, &way, Duration::from_secs(4), 2, folder.path());
    let cluster = server.shared().cluster.as_ref().expect("the server is a node");
    let mut client = Counting::new(server.addresses()[0]);
    stop(cluster, Stopper::HandOver);
    // One has a slot, and the other one has none.
    let mut other = Counting::new(server.addresses()[0]);
    client.send("SET key 2");
    other.send("FLUSHALL");
    wait_until("the clients wait", || server.census().suspended == 2);
    way.set_fault(Fault::Unreachable);
    wait_until("the clients are told", || server.census().suspended == 0);
    for client in [&mut client, &mut other] {
        assert!(client.line().starts_with("-CLUSTERDOWN"));
    }
    way.set_fault(Fault::None);
    cluster.resume(Stopper::HandOver, &SlotSet::all());
    wait_until("the node serves again", || client.ask("GET ready") == "$1");
    assert_eq!(client.line(), "1");
}

/// Stops all slots, and waits as long as it takes.
fn stop(cluster: &Cluster, stopper: Stopper) {
    assert!(cluster.stop(stopper, &SlotSet::all(), || true));
}

/// Stops all slots. The log does not grow until they are resumed, although clients send more.
fn stop_once(server: &Server) {
    let shared = server.shared();
    let (Some(cluster), Some(persistence)) = (&shared.cluster, &shared.persistence) else {
        panic!("the server is a node");
    };
    stop(cluster, Stopper::Move);
    // Another stop and its end change nothing.
    stop(cluster, Stopper::HandOver);
    cluster.resume(Stopper::HandOver, &SlotSet::all());
    let end = persistence.journal.end();
    for _ in 0..5 {
        // Every worker has turns.
        server.census();
    }
    assert_eq!(persistence.journal.end(), end);
    cluster.resume(Stopper::Move, &SlotSet::all());
}
