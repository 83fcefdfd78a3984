// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of a cluster as processes, which `freeport kv cluster` makes and changes, and keys that
//! `freeport kv cli -c` finds.

use crate::kv_server::{KvServer, output_of};
use freeport_testbed::wait_until;
use serde_json::Value;
use std::process::Output;
use tempfile::TempDir;

pub struct Cluster {
    folder: TempDir,
    pub nodes: Vec<KvServer>,
    /// Milliseconds.
    lease: &'static str,
}

impl Cluster {
    /// Nodes with leases of these milliseconds, in no shard.
    pub fn start(nodes: usize, lease: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut cluster = Self { folder, nodes: vec![], lease };
        (0..nodes).for_each(|_| cluster.add());
        cluster
    }

    fn url(&self) -> String {
        format!("file:{}", self.folder.path().join("registry").display())
    }

    /// Starts one more node.
    fn add(&mut self) {
        self.nodes.push(self.server(self.nodes.len()));
    }

    /// Starts a node again that has ended.
    pub fn start_again(&mut self, node: usize) {
        self.nodes[node] = self.server(node);
    }

    fn server(&self, node: usize) -> KvServer {
        let folder = self.folder.path().join(node.to_string());
        let folder = folder.to_str().expect("text");
        let (url, memory) = (self.url(), "16MiB");
        KvServer::start_node(&[
            "--dir",
            folder,
            "--memory",
            memory,
            "--cluster",
            &url,
            "--cluster-timeout",
            self.lease,
        ])
    }

    fn run(&self, arguments: &[&str]) -> Output {
        output_of(&[&["kv", "cluster", "--registry", &self.url()], arguments].concat(), "")
    }

    /// Runs a subcommand that succeeds.
    pub fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The status, also of a cluster that does not serve all slots.
    pub fn status(&self) -> Value {
        serde_json::from_slice(&self.run(&["status", "--json"]).stdout).expect("JSON")
    }

    fn address(&self, node: usize) -> String {
        self.nodes[node].address("resp").to_string()
    }

    /// Replies of any node, and of those to which it redirects.
    fn cli(&self, node: usize, lines: &str) -> Output {
        self.nodes[node].cli(&["-c", "--raw"], lines)
    }

    fn write(&self) {
        let lines: String = (0..200).map(|key| format!("SET key:{key} {key}\n")).collect();
        let output = self.cli(0, &lines);
        assert!(output.status.success(), "{output:?}");
    }

    /// All keys are there, from each of these nodes.
    fn check(&self, nodes: &[usize]) {
        let lines: String = (0..200).map(|key| format!("GET key:{key}\n")).collect();
        let expected: String = (0..200).map(|key| format!("{key}\n")).collect();
        for node in nodes.iter().copied() {
            // A node whose role has just changed may refuse commands for a moment.
            let mut output = self.cli(node, &lines);
            wait_until("the node serves its slots", || {
                let is_served = output.status.success();
                if !is_served {
                    output = self.cli(node, &lines);
                }
                is_served
            });
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "node {node}");
        }
    }
}

#[test]
fn keys_stay_while_slots_and_primaries_change() {
    let mut cluster = Cluster::start(3, "20000");
    wait_until("all nodes have leases", || {
        let said = cluster.nodes.iter().map(|node| node.ready.clone());
        assert!(said.into_iter().all(|line| line.contains("\"node\":")));
        String::from_utf8_lossy(&cluster.run(&["status"]).stdout).lines().count() == 3
    });
    let [first, second, third] = [0, 1, 2].map(|node| cluster.address(node));
    cluster.done(&["create", &first, &second, "--wait"]);
    cluster.write();
    cluster.check(&[0, 1]);

    cluster.done(&["move", "--count", "3000", "--from", &first, "--to", &second, "--wait"]);
    cluster.check(&[0, 1]);
    cluster.done(&["add", &third, "--shard", &first, "--wait"]);
    cluster.done(&["failover", &third, "--timeout", "180"]);
    cluster.check(&[0, 1, 2]);
    cluster.done(&["remove", &first]);
    cluster.done(&["rebalance", "--wait"]);

    // One more node takes the place of the second one.
    cluster.add();
    let fourth = cluster.address(3);
    wait_until("it has a lease", || {
        cluster.status()["free_nodes"].to_string().contains(&cluster.nodes[3].port("resp"))
    });
    cluster.done(&["add", &fourth, "--new-shard", "--wait"]);
    cluster.done(&["remove", &second, "--wait"]);
    let status = cluster.status();
    assert_eq!(status["is_served"], true, "{status}");
    let shards = status["shards"].as_array().expect("an array");
    assert_eq!(shards.len(), 2, "{status}");
    cluster.check(&[2, 3]);
}

#[test]
fn create_waits_for_nodes_that_have_just_started() {
    let cluster = Cluster::start(2, "20000");
    let made = cluster.done(&["create", "--nodes", "2", "--replicas", "1", "--wait"]);
    assert!(made.ends_with("\n2 nodes, 1 shard\n"), "{made}");
}

#[test]
fn redirections_keep_the_login() {
    let cluster = Cluster::start(2, "20000");
    cluster.done(&["create", "--nodes", "2", "--wait"]);
    cluster.write();
    for node in &cluster.nodes {
        node.reply(&["ACL", "SETUSER", "ann", "on", ">secret", "~*", "+@all"]);
        node.reply(&["ACL", "SETUSER", "default", "resetpass", ">another"]);
    }
    let file = cluster.folder.path().join("password");
    std::fs::write(&file, "secret\n").expect("it can be written");
    let lines: String = (0..200).map(|key| format!("GET key:{key}\n")).collect();
    let expected: String = (0..200).map(|key| format!("{key}\n")).collect();
    let login = ["--user", "ann", "--password-file", file.to_str().expect("text")];
    let output = cluster.nodes[0].cli(&[&["-c", "--raw"], &login[..]].concat(), &lines);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    let output = cluster.cli(0, "GET key:1");
    assert!(String::from_utf8_lossy(&output.stdout).contains("NOAUTH"), "{output:?}");
}

#[test]
fn a_node_needs_a_folder_and_an_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("file:{}", folder.path().display());
    let refused = |options: &[&str]| {
        let output = output_of(&[&["kv", "serve", "--port", "0"], options].concat(), "");
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(refused(&["--cluster", &url]).contains("--dir"));
    let path = folder.path().join("node");
    let node = ["--cluster", &url, "--dir", path.to_str().expect("text")];
    let anywhere = refused(&[&node[..], &["--bind", "0.0.0.0"]].concat());
    assert!(anywhere.contains("--announce"), "{anywhere}");
    assert!(refused(&["--replicaof", "localhost:1"]).contains("--dir"));
    let both = refused(&[&node[..], &["--replicaof", "localhost:1"]].concat());
    assert!(both.contains("--cluster"), "{both}");
    assert!(refused(&["--cluster", "consul://x"]).contains("etcd://"));
}
