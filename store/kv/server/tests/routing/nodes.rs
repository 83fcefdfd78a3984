// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shards of nodes, and what the nodes know of them.

use freeport_kv_cluster::{MemoryRegistry, Shard, ShardId};
use freeport_testbed::wait::wait_until;

use crate::nodes::{Node, change, shard};

/// Nodes of a cluster. They end with this value.
pub struct Nodes {
    pub all: Vec<Node>,
    registry: MemoryRegistry,
    /// A name for each shard that there has been.
    shards: Vec<ShardId>,
}

impl Nodes {
    /// A number of nodes that are in no shard, each with a number of workers. All have a lease.
    pub fn start(count: usize, workers: usize) -> Self {
        let registry = MemoryRegistry::default();
        let start = |_| Node::new(&registry, workers);
        let all: Vec<Node> = (0..count).map(start).collect();
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
        // Shards that there are keep their terms.
        change(&self.registry, |topology| {
            let stored = std::mem::take(&mut topology.shards);
            topology.shards = shards
                .iter()
                .zip(&self.shards)
                .map(|((slots, nodes), id)| {
                    let new = shard(slots, nodes.iter().map(|number| &self.all[*number]));
                    let (term, since) = stored
                        .iter()
                        .find(|stored| stored.id == *id)
                        .map_or((new.term, new.since), |stored| (stored.term, stored.since));
                    Shard { id: *id, term, since, ..new }
                })
                .collect();
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
