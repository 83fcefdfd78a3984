// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replicas: servers that follow the log of another one, on loopback.

mod crashes;
mod random;
mod roles;
mod syncing;
mod waiting;
mod writes;

use std::net::SocketAddr;
use std::path::Path;

use freeport_kv_server::{Options, PersistenceOptions, Policy, Server};
use freeport_testbed::wait_until;
use tempfile::TempDir;

use crate::client::{Client, server_with};

/// A server and its folder, which it has again when it is started again.
struct Node {
    server: Server,
    folder: TempDir,
}

impl Node {
    /// A server with an empty folder.
    fn start(workers: usize) -> Self {
        Self::with(Options { workers, ..Options::default() })
    }

    /// A server with options and an empty folder.
    fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = server_with(with_folder(folder.path(), options));
        Self { server, folder }
    }

    /// A replica of another server.
    fn of(primary: &Self, workers: usize) -> Self {
        let replica = Self::start(workers);
        follow(&replica, primary);
        replica
    }

    fn client(&self) -> Client {
        Client::new(&self.server)
    }

    fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    /// Ends the server as a signal does; its folder stays.
    fn stop(self) -> TempDir {
        self.server.stopper().stop();
        self.server.join().expect("no worker fails");
        self.folder
    }

    /// Ends the server, and starts it again.
    fn restart(self, workers: usize) -> Self {
        Self::again(self.stop(), Options { workers, ..Options::default() })
    }

    /// A server with a folder that another one had.
    fn again(folder: TempDir, options: Options) -> Self {
        let server = server_with(with_folder(folder.path(), options));
        Self { server, folder }
    }

    /// The digest of all keys.
    fn digest(&self) -> String {
        self.client().call("DEBUG DIGEST")
    }

    /// A field of `INFO`.
    fn info(&self, field: &str) -> String {
        let text = self.client().ask("INFO");
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{field} is in {text}")).to_owned()
    }

    /// Snapshots that it has taken from a primary.
    fn full_syncs(&self) -> String {
        self.info("replica_full_syncs")
    }
}

fn with_folder(folder: &Path, options: Options) -> Options {
    let policy = Policy::EverySecond;
    let persistence = PersistenceOptions { policy, ..PersistenceOptions::new(folder.into()) };
    Options { persistence: Some(persistence), ..options }
}

/// Makes a server a replica of another one.
fn follow(replica: &Node, primary: &Node) {
    let address = primary.address();
    let line = format!("REPLICAOF {} {}", address.ip(), address.port());
    assert_eq!(replica.client().call(&line), "OK");
}

/// Waits until a replica has everything of its primary.
#[track_caller]
fn catch_up(replica: &Node, primary: &Node) {
    wait_until("the replica has everything", || {
        replica.info("master_link_status") == "up"
            && replica.info("slave_repl_offset") == primary.info("master_repl_offset")
    });
}

#[test]
fn writes_appear_on_the_replica() {
    for workers in [1, 2] {
        let primary = Node::start(workers);
        let replica = Node::of(&primary, 3 - workers);
        let mut client = primary.client();
        for number in 0..20 {
            assert_eq!(client.call(&format!("SET key{number} {number}")), "OK");
        }
        assert_eq!(client.call("WAIT 1 30000"), "(integer) 1");
        let mut reader = replica.client();
        for number in 0..20 {
            assert_eq!(reader.call(&format!("GET key{number}")), format!("\"{number}\""));
        }
        assert_eq!(primary.info("connected_slaves"), "1");
        assert_eq!(primary.info("follower_connections"), "1");
        assert_eq!(replica.info("role"), "slave");
        assert_eq!(replica.digest(), primary.digest());
    }
}
