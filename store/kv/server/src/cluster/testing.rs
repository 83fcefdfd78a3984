// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slot maps for tests.

use std::sync::Arc;

use freeport_kv_cluster::{
    Address, Member, NodeId, Presence, Shard, ShardId, State, Topology, Versioned,
};

use super::{Routes, StoppedSlots, View};

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

/// The lease of a node with data of a term.
pub fn presence(term: u64) -> Presence {
    Presence {
        session: 1,
        address: Address::default(),
        position: 0,
        term,
        is_copying: false,
        sealed: None,
        wants_to_lead: false,
    }
}

/// The routes of a replica whose primary has a lease with data of a term, and begins term 1.
pub fn routes_of_replica(term: u64) -> Routes {
    let [primary, replica] = [(); 2].map(|()| NodeId::random());
    let topology = topology(vec![shard("0-16383", &[primary, replica])]);
    let topology = Some(Versioned { revision: Default::default(), topology });
    let state = State { topology, nodes: [(primary, presence(term))].into() };
    Routes::new(Arc::new(View::new(replica, state)), StoppedSlots::default())
}
