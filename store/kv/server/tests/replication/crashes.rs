// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers that are killed, machines that lose the end of a log, disks without room, and replicas
//! that do not read.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use freeport_kv_journal::faulty::FaultyDisk;
use freeport_kv_protocol::replication::VERSION;
use freeport_kv_protocol::resp::Value;
use freeport_kv_server::{Bind, Options, PersistenceOptions, Policy, Server};
use freeport_testbed::port::free_port;
use freeport_testbed::{number, seed, usual_or_long, wait_until};

use super::{Node, catch_up, follow, with_folder};
use crate::client::{Client, request, server_with};
use crate::crash::process::{Launch, Process, Program};
use crate::persistence::random::{keep_keys, run};

/// A server in a process of its own.
struct Killable {
    process: Option<Process>,
    launch: Launch,
    address: SocketAddr,
}

impl Killable {
    fn start(folder: &Path, workers: usize) -> Self {
        let program = Program::Freeport { workers };
        let launch =
            Launch { program, policy: Some("everysec"), folder: folder.into(), follows: None };
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { process: None, launch, address };
        server.begin();
        server
    }

    fn begin(&mut self) {
        let mut process = self.launch.begin();
        self.address = process.ready().expect("it starts");
        self.process = Some(process);
    }

    /// Kills the process, and starts another one with the same folder. A replica follows the same
    /// primary again.
    fn kill(&mut self) {
        self.process = None;
        self.begin();
    }

    fn client(&self) -> Client {
        Client::connect(self.address)
    }

    fn follow(&mut self, primary: &Self) {
        self.launch.follows = Some(primary.address);
        let address = primary.address;
        let line = format!("REPLICAOF {} {}", address.ip(), address.port());
        assert_eq!(self.client().call(&line), "OK");
    }

    fn digest(&self) -> String {
        self.client().call("DEBUG DIGEST")
    }

    fn has(&self, line: &str) -> bool {
        self.client().ask("INFO").lines().any(|one| one == line)
    }

    /// Waits until it has everything of its primary.
    fn catch_up(&self, primary: &Self) {
        wait_until("the replica has everything", || {
            let text = primary.client().ask("INFO replication");
            let end = text.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
            let end = end.expect("the primary has a position");
            self.has("master_link_status:up") && self.has(&format!("slave_repl_offset:{end}"))
        });
    }
}

/// Either side is killed while clients write; afterwards the replica continues where it was.
#[test]
fn killed_servers_continue() {
    let rounds = number("FREEPORT_CRASHES").unwrap_or(usual_or_long(4, 60));
    let mut random = fastrand::Rng::with_seed(seed());
    println!("seed {}", random.get_seed());
    let folders = [0, 1].map(|_| tempfile::tempdir().expect("a temporary folder"));
    let mut primary = Killable::start(folders[0].path(), 2);
    let mut replica = Killable::start(folders[1].path(), 1);
    replica.follow(&primary);
    replica.catch_up(&primary);
    for round in 0..rounds {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (mut random, mut client) = (random.fork(), primary.client());
                scope.spawn(move || run(&mut client, &mut random, 150));
            }
            if round % 2 == 0 {
                if random.bool() {
                    // A primary keeps the log before for a while, but not over its own restart.
                    primary.client().call("BGREWRITEAOF");
                }
                replica.kill();
            }
        });
        if round % 2 == 1 {
            primary.kill();
            replica.follow(&primary);
        }
        keep_keys(&mut primary.client());
        replica.catch_up(&primary);
        assert_eq!(replica.digest(), primary.digest());
        // A process counts those since its start.
        assert!(replica.has("replica_full_syncs:0"), "round {round}");
    }
}

/// A replica that is killed while it takes a snapshot has its own keys or those of the primary.
#[test]
fn a_replica_is_killed_while_it_takes_a_snapshot() {
    let folders = [0, 1].map(|_| tempfile::tempdir().expect("a temporary folder"));
    let primary = Killable::start(folders[0].path(), 1);
    let mut replica = Killable::start(folders[1].path(), 1);
    primary.client().call("DEBUG POPULATE 200000 key 50");
    primary.client().call("SAVE");
    let theirs = primary.digest();
    for round in 0..usual_or_long(4, 40) {
        // Its log goes another way, so it needs the whole state, whatever it has got before.
        assert_eq!(replica.client().call(&format!("SET own {round}")), "OK");
        let own = replica.digest();
        assert_ne!(own, theirs);
        replica.follow(&primary);
        replica.launch.follows = None;
        wait_until("it takes a snapshot", || {
            replica.has("master_sync_in_progress:1") || replica.has("master_link_status:up")
        });
        replica.kill();
        let digest = replica.digest();
        assert!(digest == own || digest == theirs, "its keys are those of no moment");
    }
    assert_eq!(replica.client().call("SET own last"), "OK");
    replica.follow(&primary);
    replica.catch_up(&primary);
    assert_eq!(replica.digest(), theirs);
    assert!(primary.has("sync_partial_ok:0"), "each link needs the whole state");
}

/// A server that accepts connections, and never says anything.
#[test]
fn a_primary_that_is_silent_does_not_hold_its_replica() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it has one");
    let line = format!("REPLICAOF {} {}", address.ip(), address.port());
    let (primary, replica) = (Node::start(1), Node::start(2));
    let mut operator = replica.client();
    // It would wait for longer than the test does.
    assert_eq!(operator.call("CONFIG SET repl-timeout 100000"), "OK");
    assert_eq!(operator.call(&line), "OK");
    let (_first, _) = silent.accept().expect("the replica connects");
    follow(&replica, &primary);
    catch_up(&replica, &primary);
    assert_eq!(operator.call(&line), "OK");
    let (_second, _) = silent.accept().expect("the replica connects");
    replica.stop();
}

/// Connections of replicas count for the limit of clients until they end. As in Redis, reports do
/// not have them among the clients.
#[test]
fn replicas_are_bounded_as_clients_are() {
    let primary = Node::with(Options { clients_max: 2, ..Options::default() });
    let mut client = primary.client();
    let mut follower = primary.client();
    follower.send(&format!("KV.FOLLOW {VERSION} - 0 0 0"));
    assert_eq!(follower.text(), "OK");
    assert!(client.ask("INFO clients").contains("connected_clients:1\r\n"));
    assert!(primary.client().is_closed(), "there are as many as may be");
    drop(follower);
    wait_until("it counts no more", || {
        let mut other = primary.client();
        // It may have been refused, and closed before this.
        let sent = other.stream.write_all(&request(&[b"PING"]));
        sent.is_ok() && other.try_reply().is_ok_and(|reply| reply == Value::Status(b"PONG".into()))
    });
}

/// A server that listens on a port of its own.
fn on_port(port: u16, folder: &Path) -> Server {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let options = Options { resp: vec![Bind::Tcp(address)], ..Options::default() };
    Server::start(with_folder(folder, options)).expect("the port is free")
}

#[test]
fn a_replica_connects_again() {
    let (folder, port) = (tempfile::tempdir().expect("a temporary folder"), free_port());
    let primary = Node { server: on_port(port, folder.path()), folder };
    let replica = Node::of(&primary, 2);
    primary.client().call("SET key 1");
    catch_up(&replica, &primary);
    let folder = primary.stop();
    wait_until("the link is down", || replica.info("master_link_status") == "down");
    assert_eq!(replica.client().call("GET key"), "\"1\"", "it serves what it has");
    let primary = Node { server: on_port(port, folder.path()), folder };
    primary.client().call("SET key 2");
    catch_up(&replica, &primary);
    assert_eq!(replica.client().call("GET key"), "\"2\"");
    assert_eq!(replica.full_syncs(), "1", "that of the begin");
}

/// The log with the highest number loses some bytes at its end.
fn cut_log(folder: &Path, bytes: u64) {
    let names = fs::read_dir(folder).expect("the folder is there");
    let number = |path: &std::path::PathBuf| -> Option<u64> {
        path.file_name()?.to_str()?.strip_prefix("log.")?.parse().ok()
    };
    let paths = names.map(|entry| entry.expect("an entry").path());
    let log = paths.max_by_key(number).expect("there is a log");
    let file = fs::OpenOptions::new().write(true).open(log).expect("it is there");
    let length = file.metadata().expect("it is there").len();
    file.set_len(length - bytes).expect("it can be cut");
}

/// The machine of a primary fails, and its disk lacks the last changes, which a replica has. The
/// replica must not continue behind them, because the primary has gone another way.
#[test]
fn a_primary_that_has_lost_changes_is_followed_anew() {
    let primary = Node::start(1);
    let replica = Node::of(&primary, 1);
    let mut client = primary.client();
    for number in 0..20 {
        client.call(&format!("SET key{number} {number}"));
    }
    catch_up(&replica, &primary);
    let folder = primary.stop();
    cut_log(folder.path(), 100);
    let primary = Node::again(folder, Options::default());
    let mut client = primary.client();
    assert_eq!(client.call("EXISTS key19"), "(integer) 0", "it is lost");
    // Its log gets as long as that of the replica.
    (0..20).for_each(|number| drop(client.call(&format!("SET other{number} {number}"))));
    follow(&replica, &primary);
    catch_up(&replica, &primary);
    assert_eq!(replica.digest(), primary.digest());
    assert_eq!(replica.full_syncs(), "2");
    assert_eq!(replica.client().call("EXISTS key19"), "(integer) 0");
}

#[test]
fn a_replica_without_disk_space_continues_when_there_is_some() {
    let primary = Node::start(1);
    let (folder, disk) = (tempfile::tempdir().expect("a folder"), Arc::new(FaultyDisk::default()));
    let persistence = PersistenceOptions {
        policy: Policy::EverySecond,
        disk: disk.clone(),
        ..PersistenceOptions::new(folder.path().into())
    };
    let options = Options { persistence: Some(persistence), ..Options::default() };
    let replica = Node { server: server_with(options), folder };
    follow(&replica, &primary);
    primary.client().call("SET key value");
    catch_up(&replica, &primary);
    disk.faults().set_room(Some(0));
    let mut client = primary.client();
    let value = "x".repeat(100_000);
    for number in 0..100 {
        assert_eq!(client.call(&format!("SET key{number} {value}")), "OK");
    }
    wait_until("the replica says why", || {
        replica.client().ask("INFO replication").contains("No space left on device")
    });
    assert_eq!(client.call("WAIT 1 50"), "(integer) 0");
    assert_eq!(replica.client().call("GET key"), "\"value\"", "it serves what it has");
    disk.faults().set_room(None);
    catch_up(&replica, &primary);
    assert_eq!(client.call("WAIT 1 30000"), "(integer) 1");
    assert_eq!(replica.digest(), primary.digest());
    assert_eq!(replica.full_syncs(), "1", "that of the begin");
}

/// A primary takes writes while a replica does not read, and ends its connection.
#[test]
fn a_replica_that_does_not_read_is_disconnected() {
    let primary = Node::start(1);
    let mut client = primary.client();
    client.call("CONFIG SET repl-timeout 1");
    let mut silent = primary.client();
    silent.send(&format!("KV.FOLLOW {VERSION} - 0 0 0"));
    assert_eq!(silent.text(), "OK");
    let value = "x".repeat(1_000_000);
    for number in 0..30 {
        assert_eq!(client.call(&format!("SET key{number} {value}")), "OK");
    }
    wait_until("the primary has ended it", || primary.info("connected_slaves") == "0");
    assert!(silent.is_closed());
    assert_eq!(client.call("PING"), "PONG");
}

/// Bytes that are no frames end a connection, and nothing else.
#[test]
fn answers_that_are_none_end_the_connection() {
    let primary = Node::start(1);
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut client = primary.client();
        client.send(&format!("KV.FOLLOW {VERSION} - {seed} 0 0"));
        assert_eq!(client.text(), "OK");
        let bytes: Vec<u8> = (0..random.usize(16..400)).map(|_| random.u8(..)).collect();
        // The primary may have ended it already.
        let _ = client.stream.write_all(&bytes);
        assert!(client.is_closed());
    }
    wait_until("all are gone", || primary.info("connected_slaves") == "0");
    assert_eq!(primary.client().call("PING"), "PONG");
}
