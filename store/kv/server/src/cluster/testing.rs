// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slot maps for tests.

use freeport_kv_cluster::{Address, Member, NodeId, Shard, ShardId, Topology};

/// A shard whose first node is the primary. The node of number `n` has port `7000 + n`.
pub fn shard(slots: &str, nodes: &[NodeId]) -> Shard {
    let member = |(number, id): (usize, &NodeId)| Member {
        id: *id,
        address: Address {
            host: "10.0.0.1".into(),
            port: 7_000 + number as u16,
            ..Address::default()
        },
    };
    Shard {
        id: ShardId::random(),
        slots: slots.parse().expect("slots"),
        primary: nodes[0],
        term: 1,
        since: 0,
        members: nodes.iter().enumerate().map(member).collect(),
    }
}

/// A slot map that is right.
pub fn topology(shards: Vec<Shard>) -> Topology {
    let topology = Topology { epoch: 1, shards, moves: vec![] };
    topology.check().expect("it is right");
    topology
}
