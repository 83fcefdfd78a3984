// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cluster` on a registry in a folder, where a test says which nodes there are.

use crate::kv_server::{command, output_of, run_with};
use freeport_kv_cluster::{Address, FileRegistry, NodeId, Presence, Registry, State};
use serde_json::Value;
use std::net::TcpListener;
use std::process::Output;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than any test.
const LEASE: Duration = Duration::from_secs(3600);

struct Cluster {
    folder: TempDir,
    registry: FileRegistry,
    nodes: Vec<NodeId>,
}

impl Cluster {
    /// A registry with nodes of these hosts, in no shard.
    fn with(hosts: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = FileRegistry::open(folder.path()).expect("it can be made");
        let mut cluster = Self { folder, registry, nodes: vec![] };
        hosts.iter().for_each(|host| cluster.start(host, 0));
        cluster
    }

    /// A node appears, with a log of this length.
    fn start(&mut self, host: &str, position: u64) {
        self.start_at(host, 7000 + self.nodes.len() as u16, position);
    }

    fn start_at(&mut self, host: &str, port: u16, position: u64) {
        let id = NodeId::random();
        let presence = Presence {
            session: 1,
            address: Address { host: host.to_owned(), port, ..Address::default() },
            position,
            term: 1,
            is_copying: false,
            sealed: None,
            wants_to_lead: false,
        };
        self.registry.keep(id, &presence, LEASE).expect("a folder does not fail");
        self.nodes.push(id);
    }

    fn stop(&self, number: usize) {
        self.registry.leave(self.nodes[number], 1).expect("a folder does not fail");
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let url = format!("file:{}", self.folder.path().display());
        output_of(&[&["kv", "cluster", "--registry", &url], arguments].concat(), "")
    }

    /// Output of a subcommand that succeeds.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Errors of a subcommand that fails, and changes nothing.
    fn refused(&self, arguments: &[&str]) -> String {
        let before = self.state();
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?}: {output:?}");
        assert_eq!(self.state(), before, "{arguments:?}");
        String::from_utf8(output.stderr).expect("text")
    }

    fn state(&self) -> State {
        self.registry.read().expect("a folder does not fail")
    }

    fn topology(&self) -> freeport_kv_cluster::Topology {
        self.state().topology.expect("there is a cluster").topology
    }

    fn status(&self) -> Value {
        let output = self.run(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The name of a shard by its number.
    fn shard(&self, number: usize) -> String {
        self.topology().shards[number].id.to_string()
    }

    fn node(&self, number: usize) -> String {
        self.nodes[number].to_string()
    }
}

#[test]
fn a_cluster_is_made_shown_and_grown() {
    let mut cluster = Cluster::with(&["a", "a", "b", "b"]);
    assert!(cluster.refused(&["status"]).contains("kv cluster create"));
    let made = cluster.done(&["create", "--replicas", "1", "--wait"]);
    assert_eq!(made.lines().count(), 3, "{made}");
    assert!(made.ends_with("\n4 nodes, 2 shards\n"), "{made}");
    assert!(cluster.refused(&["create"]).contains("already"));
    let topology = cluster.topology();
    assert!(topology.is_complete());
    for shard in &topology.shards {
        let hosts: Vec<_> = shard.members.iter().map(|node| &node.address.host).collect();
        assert_ne!(hosts[0], hosts[1]);
    }

    let text = cluster.done(&["status"]);
    for part in ["epoch 1; shards: 2", "0-8191 (8192)", "primary", "replica", "a:7000", "b:7003"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("warning"), "{text}");

    cluster.start("c", 0);
    cluster.start("c", 0);
    assert_eq!(cluster.status()["free_nodes"].as_array().map(Vec::len), Some(2));
    cluster.done(&["add", "c:7004", "--new-shard"]);
    cluster.done(&["add", &cluster.node(5)[..6], "--shard", &cluster.shard(2)[..8], "--wait"]);
    assert!(cluster.refused(&["add", "c:7005", "--new-shard"]).contains("already"));
    let planned = cluster.done(&["rebalance", "--dry-run"]);
    assert!(cluster.topology().moves.is_empty());
    assert_eq!(cluster.done(&["rebalance"]), planned);
    let status = cluster.status();
    assert_eq!(status["moves"].as_array().map(Vec::len), Some(2), "{status}");
    assert_eq!(status["is_served"], true);
    // No further moves are needed, though the shards do not have equally many slots yet.
    let enough = cluster.run(&["rebalance"]);
    assert!(enough.status.success(), "{enough:?}");
    assert!(String::from_utf8_lossy(&enough.stderr).contains("under way"), "{enough:?}");
    assert!(cluster.refused(&["rebalance", "--wait", "--timeout", "0"]).contains("not done"));

    // A new node ends before it has slots.
    cluster.done(&["move", "--cancel", "0-16383"]);
    cluster.start("d", 0);
    cluster.done(&["add", "d:7006", "--new-shard"]);
    cluster.stop(6);
    let status = cluster.status();
    assert_eq!(status["is_served"], true, "{status}");
    assert!(status["warnings"].to_string().contains("has no slots"), "{status}");
    cluster.done(&["forget", "d:7006"]);
}

#[test]
fn a_cluster_is_made_of_as_many_nodes_as_are_named() {
    let mut cluster = Cluster::with(&["a", "b"]);
    let few = cluster.refused(&["create", "--nodes", "3", "--timeout", "0"]);
    assert!(few.contains("2 of 3 nodes"), "{few}");
    assert!(cluster.refused(&["create", "--nodes", "1"]).contains("2 nodes"));
    assert!(cluster.refused(&["create", "--nodes", "1", "a:7000"]).contains("cannot be used"));
    assert!(cluster.refused(&["create", "--timeout", "1"]).contains("--nodes"));
    cluster.start("c", 0);
    cluster.done(&["create", "--nodes", "3"]);
    assert_eq!(cluster.topology().shards.len(), 3);
    assert!(cluster.refused(&["create", "--nodes", "4"]).contains("already"));
}

#[test]
fn nodes_that_are_stopped_hold_up_no_command() {
    // The system accepts connections for it, but no process replies.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("the system chooses a port");
    let port = silent.local_addr().expect("it is bound").port();
    let mut cluster = Cluster::with(&[]);
    (0..3).for_each(|_| cluster.start_at("127.0.0.1", port, 0));
    cluster.done(&["create", &cluster.node(0), &cluster.node(1)]);
    cluster.done(&["add", &cluster.node(2), "--shard", &cluster.shard(0)]);
    cluster.done(&["move", "--slots", "0-9", "--to", &cluster.shard(1)]);
    assert_eq!(cluster.status()["moves"].as_array().map(Vec::len), Some(1));
    let refused = cluster.refused(&["failover", &cluster.node(2), "--timeout", "1"]);
    assert!(refused.contains("does not answer"), "{refused}");
    cluster.done(&["rebalance"]);
    let late = cluster.refused(&["rebalance", "--wait", "--timeout", "0"]);
    assert!(late.contains("not done"), "{late}");
}

#[test]
fn nodes_with_keys_are_not_taken_by_accident() {
    let mut cluster = Cluster::with(&["a"]);
    cluster.start("b", 500);
    assert!(cluster.refused(&["create"]).contains("--discard"));
    assert!(cluster.refused(&["create", "--replicas", "2"]).contains("fewer replicas"));
    // Its keys stay if it has all slots.
    cluster.done(&["create", "b:7001"]);
    assert_eq!(cluster.topology().shards.len(), 1);
    cluster.start("c", 9);
    let shard = cluster.shard(0);
    assert!(cluster.refused(&["add", "c:7002", "--shard", &shard]).contains("--discard"));
    cluster.done(&["add", "c:7002", "--shard", &shard, "--discard"]);
    assert_eq!(cluster.topology().shards[0].members.len(), 2);
}

#[test]
fn moves_begin_and_are_cancelled() {
    let cluster = Cluster::with(&["a", "b"]);
    cluster.done(&["create"]);
    let [from, to] = [cluster.shard(0), cluster.shard(1)];
    cluster.done(&["move", "--slots", "0-9", "--to", &to]);
    cluster.done(&["move", "--count", "2", "--from", &from, "--to", &to]);
    assert_eq!(cluster.topology().moves[0].slots.to_string(), "0-9,8190-8191");
    assert!(cluster.refused(&["move", "--slots", "9", "--to", &to]).contains("being moved"));
    assert!(cluster.refused(&["move", "--slots", "9000", "--to", &to]).contains("already"));
    let too_many = ["move", "--count", "9000", "--from", &from, "--to", &to];
    assert!(cluster.refused(&too_many).contains("8180"), "what is being moved does not count");
    for wrong in [&["move", "--slots", "1"][..], &["move", "--count", "1", "--to", &to], &["move"]]
    {
        assert!(cluster.refused(wrong).contains("--"), "{wrong:?}");
    }
    cluster.done(&["move", "--cancel", "0-9"]);
    assert_eq!(cluster.topology().moves[0].slots.to_string(), "8190-8191");
    cluster.done(&["move", "--cancel", "0-16383"]);
    assert!(cluster.topology().moves.is_empty());
}

#[test]
fn nodes_leave() {
    let cluster = Cluster::with(&["a", "b", "c"]);
    cluster.done(&["create", "a:7000", "b:7001"]);
    cluster.done(&["add", "c:7002", "--shard", &cluster.shard(0)]);
    assert!(cluster.refused(&["remove", "a:7000"]).contains("kv cluster failover"));
    assert!(cluster.refused(&["forget", "c:7002"]).contains("kv cluster remove"));
    cluster.done(&["remove", "c:7002"]);
    assert_eq!(cluster.topology().shards[0].members.len(), 1);

    // The last node of a shard gives its slots away; nobody moves them here.
    assert!(cluster.done(&["remove", "b:7001"]).contains("1 moves"));
    assert_eq!(cluster.topology().moves.len(), 1);
    cluster.stop(1);
    assert!(cluster.refused(&["forget", "b:7001"]).contains("--lose-keys"));
    let status = cluster.run(&["status"]);
    assert_eq!(status.status.code(), Some(1), "{status:?}");
    assert!(String::from_utf8_lossy(&status.stdout).contains("start that at b:7001"));
    cluster.done(&["forget", &cluster.node(1), "--lose-keys"]);
    let topology = cluster.topology();
    assert!(topology.is_complete() && topology.shards.len() == 1);
    assert_eq!(cluster.status()["is_served"], true);
}

#[test]
fn a_missing_registry_is_an_error_with_advice() {
    let without = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env_remove("FREEPORT_KV_REGISTRY");
        let output = run_with(command, "");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(without(&["kv", "cluster", "status"]).contains("FREEPORT_KV_REGISTRY"));
    let wrong = without(&["kv", "cluster", "status", "--registry", "consul://here"]);
    assert!(wrong.contains("etcd://"), "{wrong}");
    let cluster = Cluster::with(&["a"]);
    let mut command = command(&["kv", "cluster", "create", "--json"]);
    let url = format!("file:{}", cluster.folder.path().display());
    command.env("FREEPORT_KV_REGISTRY", url);
    let output = run_with(command, "");
    assert!(output.status.success(), "{output:?}");
}
