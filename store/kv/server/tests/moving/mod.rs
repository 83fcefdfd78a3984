// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slots that move between shards while clients use them: the nodes are servers of this process,
//! and agree in memory.

mod contents;
mod faults;
mod router;
mod traffic;

use freeport_kv_cluster::{MemoryRegistry, Move, NodeId, ShardId, SlotSet, Topology, Versioned};
use freeport_testbed::wait_until;

use crate::nodes::{self, Node, shard};

/// A cluster.
struct Fleet {
    registry: MemoryRegistry,
    /// The nodes of the first shard, then those of the second.
    nodes: Vec<Node>,
    shards: Vec<ShardId>,
}

impl Fleet {
    /// Two shards, of which each has half of the slots.
    fn new(replicas: usize, workers: usize) -> Self {
        let registry = MemoryRegistry::default();
        let count = 2 * (1 + replicas);
        let start = |_| Node::new(&registry, workers);
        let nodes: Vec<Node> = (0..count).map(start).collect();
        let (first, second) = nodes.split_at(1 + replicas);
        let shards = vec![shard("0-8191", first), shard("8192-16383", second)];
        let ids = shards.iter().map(|shard| shard.id).collect();
        nodes::change(&registry, |topology| topology.shards = shards.clone());
        let fleet = Self { registry, nodes, shards: ids };
        fleet.wait_until_ok();
        fleet
    }

    /// Waits until all nodes know owners of all slots and the addresses of all nodes, and primaries
    /// have their replicas.
    fn wait_until_ok(&self) {
        for node in &self.nodes {
            let mut client = node.client();
            wait_until("the node knows all owners", || {
                client.ask("CLUSTER INFO").contains("cluster_state:ok")
            });
            wait_until("the node knows all addresses", || {
                let report = client.ask("CLUSTER NODES");
                self.nodes.iter().all(|it| report.contains(&format!(" {}@", it.address())))
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
        nodes::topology(&self.registry).expect("the cluster was created")
    }

    /// Changes the topology as an operator does.
    fn change(&self, change: impl Fn(&mut Topology)) {
        nodes::change(&self.registry, change);
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
