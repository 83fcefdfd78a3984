// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slots that move between shards while clients use them: the nodes are servers of this process,
//! and agree in memory.

mod contents;
mod faults;
mod router;
mod traffic;

use std::net::SocketAddr;
use std::time::Duration;

use freeport_kv_cluster::{
    Address, Member, MemoryClient, MemoryRegistry, Move, NodeId, Registry, Shard, ShardId, SlotSet,
    SwapError, Topology, Versioned,
};
use freeport_kv_server::{Bind, ClusterOptions, Options, PersistenceOptions, Server};
use freeport_testbed::wait_until;
use tempfile::TempDir;

use crate::client::Client;

/// Time for which a node is believed to be there. Long, because the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A server and its folder, which it has again when it is started again.
struct Node {
    server: Option<Server>,
    folder: TempDir,
    /// How it sees the registry.
    registry: MemoryClient,
    address: SocketAddr,
    id: NodeId,
}

/// A cluster.
struct Fleet {
    registry: MemoryRegistry,
    /// The nodes of the first shard, then those of the second.
    nodes: Vec<Node>,
    shards: Vec<ShardId>,
}

impl Node {
    fn start(registry: &MemoryRegistry, workers: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = registry.client();
        let server = serve(&folder, &registry, "127.0.0.1:0", workers);
        let address = server.addresses()[0];
        let id = node_of(&registry, address.port());
        Self { server: Some(server), folder, registry, address, id }
    }

    fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Ends the server as a signal does, and starts it again.
    fn restart(&mut self, workers: usize) {
        let server = self.server.take().expect("it runs");
        server.stopper().stop();
        server.join().expect("no worker fails");
        let address = self.address.to_string();
        self.server = Some(serve(&self.folder, &self.registry, &address, workers));
    }
}

fn serve(folder: &TempDir, registry: &MemoryClient, address: &str, workers: usize) -> Server {
    let announced = Address { host: "127.0.0.1".into(), ..Address::default() };
    let registry = std::sync::Arc::new(registry.clone());
    let cluster = ClusterOptions { registry, address: announced, timeout: TIMEOUT };
    let options = Options {
        resp: vec![Bind::Tcp(address.parse().expect("an address"))],
        workers,
        memory_bytes: 256 << 20,
        persistence: Some(PersistenceOptions::new(folder.path().to_owned())),
        cluster: Some(cluster),
        ..Options::default()
    };
    Server::start(options).unwrap_or_else(|error| panic!("{error}"))
}

/// The node that has announced a port, when it has a lease.
fn node_of(registry: &MemoryClient, port: u16) -> NodeId {
    let mut found = None;
    wait_until("the node has a lease", || {
        let nodes = registry.read().expect("no fault").nodes;
        let node = nodes.into_iter().find(|(_, presence)| presence.address.port == port);
        found = node.map(|(id, _)| id);
        found.is_some()
    });
    found.expect("it was found")
}

impl Fleet {
    /// Two shards, of which each has half of the slots.
    fn new(replicas: usize, workers: usize) -> Self {
        let registry = MemoryRegistry::default();
        let count = 2 * (1 + replicas);
        let nodes: Vec<Node> = (0..count).map(|_| Node::start(&registry, workers)).collect();
        let member = |node: &Node| {
            let (host, port) = ("127.0.0.1".into(), node.address.port());
            Member { id: node.id, address: Address { host, port, ..Address::default() } }
        };
        let shard = |nodes: &[Node], slots: &str| Shard {
            id: ShardId::random(),
            slots: slots.parse().expect("slots"),
            primary: nodes[0].id,
            term: 1,
            since: 0,
            members: nodes.iter().map(member).collect(),
        };
        let (first, second) = nodes.split_at(1 + replicas);
        let shards = vec![shard(first, "0-8191"), shard(second, "8192-16383")];
        let ids = shards.iter().map(|shard| shard.id).collect();
        let topology = Topology { epoch: 1, shards, moves: vec![] };
        registry.client().swap(None, None, &topology).expect("there is none yet");
        let fleet = Self { registry, nodes, shards: ids };
        fleet.wait_until_ok();
        fleet
    }

    /// Waits until all nodes know owners of all slots, and primaries have their replicas.
    fn wait_until_ok(&self) {
        for node in &self.nodes {
            wait_until("the node knows all owners", || {
                node.client().ask("CLUSTER INFO").contains("cluster_state:ok")
            });
        }
        for shard in self.topology().topology.shards {
            let mut client = self.node(shard.primary).client();
            let expected = format!("connected_slaves:{}", shard.members.len() - 1);
            wait_until("the replicas are there", || {
                let report = client.ask("INFO replication");
                let is_online = report.matches("state=online").count() + 1 == shard.members.len();
                report.contains("role:master") && report.contains(&expected) && is_online
            });
        }
    }

    fn topology(&self) -> Versioned {
        let state = self.registry.client().read().expect("no fault");
        state.topology.expect("the cluster was created")
    }

    /// Changes the topology as an operator does.
    fn change(&self, change: impl Fn(&mut Topology)) {
        let registry = self.registry.client();
        loop {
            let Versioned { revision, mut topology } = self.topology();
            change(&mut topology);
            topology.epoch += 1;
            match registry.swap(Some(revision), None, &topology) {
                Err(SwapError::Changed) => {}
                result => {
                    result.expect("the change is right");
                    return;
                }
            }
        }
    }

    /// Begins to move slots from one shard to another.
    fn begin_move(&self, from: usize, to: usize, slots: &str) {
        let slots: SlotSet = slots.parse().expect("slots");
        let (from, to) = (self.shards[from], self.shards[to]);
        self.change(|topology| {
            topology.moves.push(Move { from, to, slots: slots.clone() });
        });
    }

    fn is_moving(&self) -> bool {
        !self.topology().topology.moves.is_empty()
    }

    /// Moves slots, and waits until it is done.
    fn move_slots(&self, from: usize, to: usize, slots: &str) {
        self.begin_move(from, to, slots);
        wait_until("the slots have moved", || !self.is_moving());
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes.iter().find(|node| node.id == id).expect("it is a node of the cluster")
    }

    /// The first node of a shard.
    fn first(&self, shard: usize) -> &Node {
        &self.nodes[shard * self.nodes.len() / 2]
    }
}
