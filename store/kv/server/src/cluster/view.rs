// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cluster, as a node has last seen it in the registry.

use std::collections::BTreeMap;

use freeport_kv_cluster::{Address, Member, NodeId, Presence, Revision, Shard, State, Topology};
use freeport_kv_protocol::slots::SLOTS;

/// In place of a shard: nobody serves the slot.
const NONE: u16 = u16::MAX;

/// The cluster, as a node has last seen it.
#[derive(Clone, Debug)]
pub struct View {
    /// Number of the topology; 0 before there was one.
    pub revision: Revision,
    /// The slot map.
    pub topology: Topology,
    /// The node that sees it.
    pub me: NodeId,
    /// Nodes with a lease.
    pub present: BTreeMap<NodeId, Presence>,
    /// For each slot, the number of its shard in the topology, or [`NONE`].
    owner: Box<[u16]>,
}

impl View {
    /// The view of a node that has not seen a topology.
    pub fn empty(me: NodeId) -> Self {
        Self::new(me, State::default())
    }

    /// The view of a node on the contents of the registry.
    pub fn new(me: NodeId, state: State) -> Self {
        let (revision, topology) = match state.topology {
            Some(versioned) => (versioned.revision, versioned.topology),
            None => (Revision(0), Topology { epoch: 0, shards: vec![], moves: vec![] }),
        };
        let mut owner = vec![NONE; usize::from(SLOTS)].into_boxed_slice();
        for (number, shard) in topology.shards.iter().enumerate() {
            let number = u16::try_from(number).unwrap_or(NONE);
            shard.slots.iter().for_each(|slot| owner[usize::from(slot)] = number);
        }
        Self { revision, topology, me, present: state.nodes, owner }
    }

    /// The shard that serves a slot.
    pub fn owner(&self, slot: u16) -> Option<&Shard> {
        let number = self.owner.get(usize::from(slot)).copied().unwrap_or(NONE);
        self.topology.shards.get(usize::from(number))
    }

    /// The shard of this node; none if it is in no shard.
    pub fn shard(&self) -> Option<&Shard> {
        self.topology.shard_of(self.me)
    }

    /// The node is the primary of its shard.
    pub fn is_primary(&self) -> bool {
        self.shard().is_some_and(|shard| shard.primary == self.me)
    }

    /// The node is a replica of a primary that is there, but has not begun its term yet. Until then
    /// the primary may still send clients to the one before.
    pub fn awaits_primary(&self) -> bool {
        let Some(shard) = self.shard().filter(|shard| shard.primary != self.me) else {
            return false;
        };
        self.present.get(&shard.primary).is_some_and(|presence| presence.term != shard.term)
    }

    /// A node has a lease.
    pub fn is_present(&self, node: NodeId) -> bool {
        self.present.contains_key(&node)
    }

    /// The present addresses of a node: those of its lease, or those that it had.
    pub fn address<'a>(&'a self, member: &'a Member) -> &'a Address {
        self.present.get(&member.id).map_or(&member.address, |presence| &presence.address)
    }
}
