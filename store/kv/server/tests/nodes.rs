// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers of this process that are nodes of a cluster, with a registry in memory. Each node
//! reaches the registry by a client of its own, which can fail.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::{
    Address, Member, MemoryClient, MemoryRegistry, NodeId, Registry, Shard, ShardId, SwapError,
    Topology, Versioned,
};
use freeport_kv_server::{Bind, ClusterOptions, Options, PersistenceOptions, Server};
use tempfile::TempDir;

use crate::client::{Client, server_with};

/// Time for which a node is believed to be there. Long, because the machine may be busy.
const LEASE: Duration = Duration::from_secs(60);

/// A node, or the folder of one.
pub struct Node {
    pub id: NodeId,
    /// How it sees the registry.
    pub registry: MemoryClient,
    folder: TempDir,
    server: Option<Server>,
}

impl Node {
    /// Starts a node with a number of workers.
    pub fn new(registry: &MemoryRegistry, workers: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let id = NodeId::random();
        std::fs::write(folder.path().join("node"), format!("{id}\n")).expect("a file");
        let mut node = Self { id, registry: registry.client(), folder, server: None };
        node.start(workers);
        node
    }

    /// Starts the server, on free ports.
    pub fn start(&mut self, workers: usize) {
        let address = Address { host: "127.0.0.1".into(), ..Address::default() };
        let registry = Arc::new(self.registry.clone());
        let cluster = ClusterOptions { registry, address, timeout: LEASE };
        self.server = Some(server_with(Options {
            batch: vec![Bind::Tcp("127.0.0.1:0".parse().expect("an address"))],
            workers,
            memory_bytes: 256 << 20,
            persistence: Some(PersistenceOptions::new(self.folder.path().into())),
            cluster: Some(cluster),
            ..Options::default()
        }));
    }

    /// Ends the server as a signal does.
    pub fn stop(&mut self) {
        let server = self.server.take().expect("it runs");
        server.stopper().stop();
        server.join().expect("no worker fails");
    }

    fn addresses(&self) -> &[SocketAddr] {
        self.server.as_ref().expect("it runs").addresses()
    }

    /// The address for clients of Redis.
    pub fn address(&self) -> SocketAddr {
        self.addresses()[0]
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address().port()
    }

    /// The address for the batched protocol.
    pub fn batch_address(&self) -> SocketAddr {
        self.addresses()[1]
    }

    /// A new client.
    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }

    /// The node as a member of a shard.
    pub fn member(&self) -> Member {
        let (port, batch_port) = (self.port(), Some(self.batch_address().port()));
        let address = Address { host: "127.0.0.1".into(), port, tls_port: None, batch_port };
        Member { id: self.id, address }
    }
}

/// A shard, whose first node is the primary.
pub fn shard<'a>(slots: &str, nodes: impl IntoIterator<Item = &'a Node>) -> Shard {
    let members: Vec<Member> = nodes.into_iter().map(Node::member).collect();
    Shard {
        id: ShardId::random(),
        slots: slots.parse().expect("slots"),
        primary: members[0].id,
        term: 1,
        since: 0,
        members,
    }
}

/// The topology of a registry.
pub fn topology(registry: &MemoryRegistry) -> Option<Versioned> {
    registry.client().read().expect("it is in memory").topology
}

/// Changes the topology as an operator does: again, if a node has changed it meanwhile.
pub fn change(registry: &MemoryRegistry, change: impl Fn(&mut Topology)) {
    loop {
        let (revision, mut next) = match topology(registry) {
            Some(Versioned { revision, topology }) => (Some(revision), topology),
            None => (None, Topology { epoch: 0, shards: vec![], moves: vec![] }),
        };
        change(&mut next);
        next.epoch += 1;
        match registry.client().swap(revision, None, &next) {
            Err(SwapError::Changed) => {}
            result => {
                result.expect("the change is right");
                return;
            }
        }
    }
}
