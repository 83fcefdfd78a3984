// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All nodes of a cluster, and their roles as they report them.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::{Member, Registry, open, planning};
use freeport_kv_protocol::resp::Value;
use freeport_testbed::etcd::EtcdServer;
use freeport_testbed::wait_until;

use super::process::{Node, Program};
use super::routes::Routes;
use crate::client::Client;
use crate::crash::model::text;
use crate::crash::reading::try_ask;

/// Time after which a node that does not answer counts as absent.
const ABSENT: Duration = Duration::from_secs(2);

/// The nodes of a cluster.
pub struct Fleet {
    pub nodes: Vec<Node>,
    pub shape: Shape,
    registry: String,
    _etcd: Option<EtcdServer>,
    /// It has the folders of the nodes, and what they share.
    _folder: tempfile::TempDir,
}

/// Numbers of nodes.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub shards: usize,
    /// Replicas of each shard.
    pub replicas: usize,
}

/// The role of a node, as `ROLE` has it.
#[derive(Clone, Debug, PartialEq)]
enum Role {
    /// Number of replicas that are connected.
    Primary { replicas: usize },
    /// Port of the primary, whether the replica has all of its keys.
    Replica { of: u16, is_connected: bool },
}

impl Fleet {
    /// Starts nodes, and makes a cluster of them: each shard has an equal part of the slots.
    /// A node is believed to be there for the time of a lease.
    pub fn new(program: Program, shape: Shape, lease: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (registry, etcd) = match program {
            Program::Freeport { has_etcd: true, .. } => {
                let etcd = EtcdServer::start(folder.path()).expect("etcd is installed");
                (format!("etcd://{}/cluster", etcd.address()), Some(etcd))
            }
            _ => (format!("file:{}", folder.path().join("registry").display()), None),
        };
        let count = shape.shards * (1 + shape.replicas);
        let place = |number: usize| folder.path().join(number.to_string());
        let nodes = (0..count).map(|number| Node::new(program, place(number), (&registry, lease)));
        let nodes = nodes.collect();
        let fleet = Self { nodes, shape, registry, _etcd: etcd, _folder: folder };
        match program {
            Program::Freeport { .. } => fleet.join(),
            Program::Redis => fleet.join_redis(),
        }
        fleet
    }

    /// Makes a slot map of all nodes that have a lease.
    fn join(&self) {
        let registry = self.registry();
        let mut present = BTreeMap::new();
        wait_until("all nodes have a lease", || {
            present = registry.read().map(|state| state.nodes).unwrap_or_default();
            present.len() == self.nodes.len()
        });
        let mut members: Vec<Member> = present
            .into_iter()
            .map(|(id, presence)| Member { id, address: presence.address })
            .collect();
        members.sort_by_key(|member| member.address.port);
        let topology = planning::create(&members, self.shape.replicas).expect("there are enough");
        registry.swap(None, None, &topology).expect("there is none yet");
    }

    /// Where nodes of ours agree.
    pub fn registry(&self) -> Arc<dyn Registry> {
        open(&self.registry).unwrap_or_else(|error| panic!("{error}"))
    }

    fn join_redis(&self) {
        let mut command = Command::new("redis-cli");
        command.args(["--cluster", "create"]);
        command.args(self.nodes.iter().map(|node| node.address().to_string()));
        command.args(["--cluster-replicas", &self.shape.replicas.to_string(), "--cluster-yes"]);
        let status = command.stdout(Stdio::null()).status().expect("redis-cli is installed");
        assert!(status.success(), "{command:?}: {status}");
    }

    pub fn routes(&self) -> Routes {
        Routes(self.nodes.iter().map(Node::address).collect())
    }

    /// All shards have a primary, and all replicas the keys of theirs.
    pub fn is_whole(&self) -> bool {
        let Shape { shards, replicas } = self.shape;
        let roles: Option<Vec<Role>> = self.nodes.iter().map(|node| role(node.address())).collect();
        let Some(roles) = roles else { return false };
        let is_right = |role: &Role| match role {
            Role::Primary { replicas: connected } => *connected == replicas,
            Role::Replica { is_connected, .. } => *is_connected,
        };
        let primaries = roles.iter().filter(|role| matches!(role, Role::Primary { .. })).count();
        primaries == shards && roles.iter().all(is_right) && self.nodes.iter().all(is_content)
    }

    /// Numbers of the nodes of each shard; the primary comes first. The cluster has to be whole.
    pub fn shards(&self) -> Vec<Vec<usize>> {
        let mut shards: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (number, node) in self.nodes.iter().enumerate() {
            match role(node.address()).expect("it answers") {
                Role::Primary { .. } => {
                    shards.entry(node.address().port()).or_default().insert(0, number);
                }
                Role::Replica { of, .. } => shards.entry(of).or_default().push(number),
            }
        }
        shards.into_values().collect()
    }

    /// The term of each shard, or its epoch: each election makes it larger. A shard is given by
    /// the numbers of its nodes.
    pub fn terms(&self, shards: &[Vec<usize>]) -> Vec<u64> {
        let mut terms = vec![0; shards.len()];
        // A node may not know the last one yet.
        for node in &self.nodes {
            let Ok(Value::Bulk(report)) = ask(node.address(), &["CLUSTER", "NODES"]) else {
                continue;
            };
            for line in text(&report).lines() {
                if let [_, address, flags, _, _, _, term, ..] =
                    line.split(' ').collect::<Vec<_>>()[..]
                    && flags.contains("master")
                    && let Some(node) = self.node_at(address)
                    && let Some(shard) = shards.iter().position(|shard| shard.contains(&node))
                {
                    terms[shard] = term.parse::<u64>().expect("a number").max(terms[shard]);
                }
            }
        }
        terms
    }

    /// The number of the node with an address as `CLUSTER NODES` has it: `host:port@bus,name`.
    fn node_at(&self, address: &str) -> Option<usize> {
        let (_, port) = address.split('@').next()?.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        self.nodes.iter().position(|node| node.address().port() == port)
    }

    /// The number of the node with a port.
    pub fn number_of(&self, port: u16) -> usize {
        let found = self.nodes.iter().position(|node| node.address().port() == port);
        found.expect("the port of a node")
    }

    /// Whether a node is a primary.
    pub fn is_primary(&self, node: usize) -> bool {
        matches!(role(self.nodes[node].address()), Some(Role::Primary { .. }))
    }

    /// Has a replica ask for the place of its primary.
    pub fn ask_to_lead(&self, node: usize) {
        let reply = ask(self.nodes[node].address(), &["CLUSTER", "FAILOVER"]);
        assert_eq!(reply.expect("the node answers"), Value::Status(b"OK".to_vec()));
    }
}

/// The node knows an owner for every slot.
fn is_content(node: &Node) -> bool {
    let report = ask(node.address(), &["CLUSTER", "INFO"]);
    matches!(report, Ok(Value::Bulk(report)) if text(&report).contains("cluster_state:ok"))
}

fn role(address: SocketAddr) -> Option<Role> {
    let Ok(Value::Array(parts)) = ask(address, &["ROLE"]) else { return None };
    let word = |value: &Value| match value {
        Value::Bulk(word) => text(word),
        other => panic!("ROLE: {other:?}"),
    };
    match (word(&parts[0]).as_str(), &parts[1..]) {
        ("master", [_, Value::Array(replicas)]) => Some(Role::Primary { replicas: replicas.len() }),
        ("slave", [_, Value::Integer(port), state, _]) => Some(Role::Replica {
            of: u16::try_from(*port).expect("a port"),
            is_connected: word(state) == "connected",
        }),
        _ => panic!("ROLE: {parts:?}"),
    }
}

fn ask(address: SocketAddr, words: &[&str]) -> io::Result<Value> {
    let mut client = Client::try_connect(address)?;
    client.stream.set_read_timeout(Some(ABSENT))?;
    try_ask(&mut client, words)
}
