// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers that are the nodes of a cluster, with a registry in memory.

use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::{
    Address, Member, MemoryRegistry, NodeId, Registry, Revision, Shard, ShardId, Topology,
};
use freeport_kv_server::{Bind, ClusterOptions, Options, PersistenceOptions, Server};
use freeport_testbed::wait::wait_until;
use tempfile::TempDir;

use crate::client::{Client, server_with};

/// Nodes of a cluster. They end with this value.
pub struct Nodes {
    pub all: Vec<Node>,
    registry: MemoryRegistry,
    revision: Option<Revision>,
    epoch: u64,
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
            timeout: Duration::from_secs(60),
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
            wait_until("the node has a lease", || {
                client.call("GET x") == "(error) CLUSTERDOWN Hash slot not served"
            });
        }
        Self { all, registry, revision: None, epoch: 0, shards: vec![] }
    }

    /// Replaces the slot map. Each shard has slots and the numbers of its nodes, of which the first
    /// is the primary. Waits until all nodes know it.
    pub fn set(&mut self, shards: &[(&str, &[usize])]) {
        self.shards.resize_with(shards.len().max(self.shards.len()), ShardId::random);
        let shard = |((slots, nodes), id): (&(&str, &[usize]), &ShardId)| Shard {
            id: *id,
            slots: slots.parse().expect("slots"),
            primary: self.all[nodes[0]].id,
            term: 1,
            since: 0,
            members: nodes.iter().map(|number| self.all[*number].member()).collect(),
        };
        self.epoch += 1;
        let topology = Topology {
            epoch: self.epoch,
            shards: shards.iter().zip(&self.shards).map(shard).collect(),
            moves: vec![],
        };
        let registry = self.registry.client();
        let revision = registry.swap(self.revision, None, &topology).expect("it is right");
        self.revision = Some(revision);
        let epoch = format!("cluster_current_epoch:{}\r\n", self.epoch);
        for node in &self.all {
            let mut client = node.client();
            wait_until("the node knows the slot map", || {
                let text = client.ask("CLUSTER INFO");
                text.contains(&epoch) && text.contains("cluster_slots_fail:0")
            });
        }
    }
}
