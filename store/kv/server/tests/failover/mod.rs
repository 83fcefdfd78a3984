// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of a shard whose registry is in memory: leases, elections and planned changes of the
//! primary. Each node reaches the registry by a client of its own, which can fail.

mod electing;
mod handing_over;
mod leasing;
mod on_files;

use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::{
    Address, Fault, Member, MemoryClient, MemoryRegistry, NodeId, Registry, Shard, ShardId,
    SlotSet, Topology,
};
use freeport_kv_server::{ClusterOptions, Options, PersistenceOptions, Server};
use freeport_testbed::wait_until;
use tempfile::TempDir;

use crate::client::{Client, server_with};

/// Time of a lease that is lost in a test. On a loaded machine, nodes still keep others.
const SHORT: Duration = Duration::from_secs(4);
/// Time of a lease that is not lost.
const LONG: Duration = Duration::from_secs(60);

/// A node, or the folder of one.
struct Node {
    id: NodeId,
    registry: MemoryClient,
    lease: Duration,
    folder: TempDir,
    server: Option<Server>,
}

/// A shard with all slots.
struct Trial {
    registry: MemoryRegistry,
    nodes: Vec<Node>,
}

impl Trial {
    /// A shard with a number of nodes, the first of which is its primary.
    fn new(count: usize, lease: Duration) -> Self {
        let registry = MemoryRegistry::default();
        let nodes: Vec<Node> = (0..count).map(|_| Node::new(&registry, lease)).collect();
        let members = nodes.iter().map(|node| Member { id: node.id, address: node.address() });
        let shard = Shard {
            id: ShardId::random(),
            slots: SlotSet::all(),
            primary: nodes[0].id,
            term: 1,
            since: 0,
            members: members.collect(),
        };
        let topology = Topology { epoch: 1, shards: vec![shard], moves: vec![] };
        registry.client().swap(None, None, &topology).expect("there is none yet");
        let trial = Self { registry, nodes };
        wait_until("the first node leads", || trial.leads(0));
        for replica in 1..count {
            wait_until("the replica is in step", || trial.is_in_step(replica));
        }
        trial
    }

    /// The shard, as it is in the registry.
    fn shard(&self) -> Shard {
        let state = self.registry.client().read().expect("it is in memory");
        state.topology.expect("there is one").topology.shards.remove(0)
    }

    /// A node is the primary, and takes writes.
    fn leads(&self, node: usize) -> bool {
        self.shard().primary == self.nodes[node].id
            && self.nodes[node].client().call("SET probe x") == "OK"
    }

    /// A node follows the primary, and has its changes of this term.
    fn is_in_step(&self, node: usize) -> bool {
        let state = self.registry.client().read().expect("it is in memory");
        let presence = state.nodes.get(&self.nodes[node].id);
        presence.is_some_and(|it| it.term == self.shard().term && !it.is_copying)
            && self.nodes[node].info("master_link_status") == "up"
    }
}

impl Node {
    fn new(registry: &MemoryRegistry, lease: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (id, registry) = (NodeId::random(), registry.client());
        let mut node = Self { id, registry, lease, folder, server: None };
        std::fs::write(node.folder.path().join("node"), format!("{}\n", node.id)).expect("a file");
        node.start();
        node
    }

    fn start(&mut self) {
        let address = Address { host: "127.0.0.1".into(), ..Address::default() };
        let registry = Arc::new(self.registry.clone());
        let cluster = ClusterOptions { registry, address, timeout: self.lease };
        let persistence = Some(PersistenceOptions::new(self.folder.path().into()));
        let options =
            Options { workers: 2, persistence, cluster: Some(cluster), ..Default::default() };
        self.server = Some(server_with(options));
    }

    /// Ends the server as a signal does.
    fn stop(&mut self) {
        let server = self.server.take().expect("it runs");
        server.stopper().stop();
        server.join().expect("no worker fails");
    }

    fn address(&self) -> Address {
        let address = self.server.as_ref().expect("it runs").addresses()[0];
        Address { host: "127.0.0.1".into(), port: address.port(), ..Address::default() }
    }

    fn client(&self) -> Client {
        Client::new(self.server.as_ref().expect("it runs"))
    }

    /// It does not reach the registry, or does so again.
    fn cut(&self, is_cut: bool) {
        self.registry.set_fault(if is_cut { Fault::Unreachable } else { Fault::None });
    }

    /// Its calls of the registry take two fifths of the lease.
    fn slow_down(&self) {
        let request = self.lease * 2 / 5;
        self.registry.set_fault(Fault::Delayed { request, answer: Duration::ZERO });
    }

    /// A field of `INFO`.
    fn info(&self, field: &str) -> String {
        let text = self.client().ask("INFO everything");
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_default().to_owned()
    }

    /// Its reply to a command has a text in it.
    fn says(&self, line: &str, text: &str) -> bool {
        self.client().call(line).contains(text)
    }
}
