// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers that are the nodes of a cluster, with a registry in memory.

use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::{
    Address, Member, MemoryRegistry, NodeId, Registry, Shard, ShardId, SwapError, Topology,
};
use freeport_kv_server::{Bind, ClusterOptions, Options, PersistenceOptions, Server};
use freeport_testbed::wait::wait_until;
use tempfile::TempDir;

use crate::client::{Client, server_with};

/// Nodes of a cluster. They end with this value.
pub struct Nodes {
    pub all: Vec<Node>,
    registry: MemoryRegistry,
    /// A name for each shard that there has been.
    shards: Vec<ShardId>,
}

/// One of them.
pub struct Node {
    pub id: NodeId,
    pub server: Server,
    _folder: TempDir,
}

impl Node {
    fn start(registry: &MemoryRegistry, workers: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address = Address { host: "127.0.0.1".into(), ..Address::default() };
        let cluster = ClusterOptions {
            registry: Arc::new(registry.client()),
            address,
            timeout: Duration::from_secs(10),
        };
        let server = server_with(Options {
            workers,
            batch: vec![Bind::Tcp("127.0.0.1:0".parse().expect("an address"))],
            persistence: Some(PersistenceOptions::new(folder.path().into())),
            cluster: Some(cluster),
            ..Options::default()
        });
        let id = std::fs::read_to_string(folder.path().join("node")).expect("a node has a name");
        Self { id: id.trim().parse().expect("an id"), server, _folder: folder }
    }

    /// A new client.
    pub fn client(&self) -> Client {
        Client::new(&self.server)
    }

    /// The port for clients of Redis.
    pub fn port(&self) -> u16 {
        self.server.addresses()[0].port()
    }

    /// The port for the batched protocol.
    pub fn batch_port(&self) -> u16 {
        self.server.addresses()[1].port()
    }

    fn member(&self) -> Member {
        let (port, batch_port) = (self.port(), Some(self.batch_port()));
        let address = Address { host: "127.0.0.1".into(), port, tls_port: None, batch_port };
        Member { id: self.id, address }
    }
}

impl Nodes {
    /// A number of nodes that are in no shard, each with a number of workers. All have a lease.
    pub fn start(count: usize, workers: usize) -> Self {
        let registry = MemoryRegistry::default();
        let all: Vec<Node> = (0..count).map(|_| Node::start(&registry, workers)).collect();
        for node in &all {
            let mut client = node.client();
            wait_until("the node has a lease", || client.ask("DBSIZE") == ":0\r\n");
        }
        Self { all, registry, shards: vec![] }
    }

    /// Replaces the slot map. Each shard has slots and the numbers of its nodes, of which the first
    /// is the primary. Waits until all nodes know it.
    pub fn set(&mut self, shards: &[(&str, &[usize])]) {
        self.shards.resize_with(shards.len().max(self.shards.len()), ShardId::random);
        let registry = self.registry.client();
        wait_until("the slot map is replaced", || {
            let stored = registry.read().expect("it is in memory").topology;
            let topology = self.topology(shards, stored.as_ref().map(|stored| &stored.topology));
            // Primaries begin terms meanwhile.
            match registry.swap(stored.map(|stored| stored.revision), None, &topology) {
                Ok(_) => true,
                Err(SwapError::Changed) => false,
                Err(error) => panic!("{error}"),
            }
        });
        let served = |(slots, nodes): &(&str, &[usize])| {
            format!("{} {}", self.all[nodes[0]].id, slots.replace(',', " "))
        };
        let mut expected: Vec<String> = shards.iter().map(served).collect();
        expected.sort();
        for node in &self.all {
            let mut client = node.client();
            wait_until("the node knows the slot map", || {
                client.call("CLUSTER INFO").contains("cluster_slots_fail:0")
                    && primaries(&client.ask("CLUSTER NODES")) == expected
            });
        }
        // A replica refuses commands until it has the keys of its primary.
        for number in shards.iter().flat_map(|(_, nodes)| &nodes[1..]) {
            let mut client = self.all[*number].client();
            wait_until("the replica has its keys", || {
                client.call("INFO replication").contains("master_link_status:up")
            });
        }
    }

    /// A slot map. Shards that there are keep their terms.
    fn topology(&self, shards: &[(&str, &[usize])], stored: Option<&Topology>) -> Topology {
        let shard = |((slots, nodes), id): (&(&str, &[usize]), &ShardId)| {
            let present = stored.and_then(|stored| stored.shard(*id));
            Shard {
                id: *id,
                slots: slots.parse().expect("slots"),
                primary: self.all[nodes[0]].id,
                term: present.map_or(1, |present| present.term),
                since: present.map_or(0, |present| present.since),
                members: nodes.iter().map(|number| self.all[*number].member()).collect(),
            }
        };
        Topology {
            epoch: stored.map_or(1, |stored| stored.epoch + 1),
            shards: shards.iter().zip(&self.shards).map(shard).collect(),
            moves: vec![],
        }
    }
}

/// Primaries with their slots, in the order of their names, from `CLUSTER NODES`.
fn primaries(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let of_primary = lines.filter_map(|words| match words[..] {
        [id, _, flags, "-", _, _, _, _, ref slots @ ..] if flags.contains("master") => {
            Some(format!("{id} {}", slots.join(" ")))
        }
        _ => None,
    });
    let mut all: Vec<String> = of_primary.collect();
    all.sort();
    all
}
