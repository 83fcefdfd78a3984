// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers that are the nodes of a cluster, with a registry in memory.

use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::{
    Address, Member, MemoryRegistry, NodeId, Registry, Revision, Shard, ShardId, Topology,
};
use freeport_kv_server::{Bind, ClusterOptions, Options, PersistenceOptions, Server};
use tempfile::TempDir;

use crate::client::{Client, server_with};

/// Nodes of a cluster. They end with this value.
pub struct Nodes {
    pub registry: MemoryRegistry,
    pub all: Vec<Node>,
    revision: Option<Revision>,
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
    /// A number of nodes that are in no shard, each with a number of workers.
    pub fn start(count: usize, workers: usize) -> Self {
        let registry = MemoryRegistry::default();
        let all = (0..count).map(|_| Node::start(&registry, workers)).collect();
        Self { registry, all, revision: None }
    }

    /// Replaces the slot map. Each shard has slots and the numbers of its nodes, of which the first
    /// is the primary. Waits until all nodes know it.
    pub fn set(&mut self, shards: &[(&str, &[usize])]) {
        let shard = |(slots, nodes): &(&str, &[usize])| Shard {
            id: ShardId::random(),
            slots: slots.parse().expect("slots"),
            primary: self.all[nodes[0]].id,
            term: 1,
            since: 0,
            members: nodes.iter().map(|number| self.all[*number].member()).collect(),
        };
        let topology = Topology {
            epoch: self.revision.map_or(1, |revision| revision.0 + 1),
            shards: shards.iter().map(shard).collect(),
            moves: vec![],
        };
        let registry = self.registry.client();
        let revision = registry.swap(self.revision, None, &topology).expect("it is right");
        self.revision = Some(revision);
        for node in &self.all {
            let presence = freeport_kv_cluster::Presence {
                session: 1,
                address: node.member().address,
                position: 0,
                term: 1,
                sealed: None,
                wants_to_lead: false,
                is_copying: false,
            };
            registry.keep(node.id, &presence, Duration::from_secs(600)).expect("it is kept");
        }
        for node in &self.all {
            let state = registry.read().expect("it is in memory");
            node.server.set_view(freeport_kv_server::View::new(node.id, state));
        }
    }
}
