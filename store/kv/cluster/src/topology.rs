// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The slot map of a cluster: its shards, the nodes of each, and who is primary.

use freeport_kv_protocol::slots::SLOTS;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::id::{NodeId, ShardId};
use crate::slot_set::SlotSet;

/// The slot map. Nodes and operators replace it as a whole, by compare-and-swap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Number of changes until now (`cluster_current_epoch`). Every change counts it up.
    pub epoch: u64,
    /// The shards.
    pub shards: Vec<Shard>,
    /// Slots that are being moved. Each is still served by the shard that it leaves.
    #[serde(default)]
    pub moves: Vec<Move>,
}

/// A primary and its replicas, which have the same slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Its name.
    pub id: ShardId,
    /// Its slots.
    pub slots: SlotSet,
    /// The node that takes writes.
    pub primary: NodeId,
    /// Number of the primary's lease. A primary counts it up whenever it begins a lease, before it
    /// takes writes. So a term is one uninterrupted lease of one process.
    pub term: u64,
    /// The first term of the present primary. A replica without changes of it or a later term is
    /// not elected. 0 in a new shard.
    #[serde(default)]
    pub since: u64,
    /// All nodes, the primary among them.
    pub members: Vec<Member>,
}

/// A node of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its name.
    pub id: NodeId,
    /// Its addresses when it was last seen.
    pub address: Address,
}

/// Slots on their way from one shard to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The shard that they leave.
    pub from: ShardId,
    /// The shard that gets them.
    pub to: ShardId,
    /// The slots.
    pub slots: SlotSet,
}

impl Topology {
    /// The shard of a node.
    pub fn shard_of(&self, node: NodeId) -> Option<&Shard> {
        self.shards.iter().find(|shard| shard.member(node).is_some())
    }

    /// A shard by its name.
    pub fn shard(&self, id: ShardId) -> Option<&Shard> {
        self.shards.iter().find(|shard| shard.id == id)
    }

    /// See [`Topology::shard`].
    pub fn shard_mut(&mut self, id: ShardId) -> Option<&mut Shard> {
        self.shards.iter_mut().find(|shard| shard.id == id)
    }

    /// A node of any shard.
    pub fn member(&self, node: NodeId) -> Option<&Member> {
        self.shards.iter().find_map(|shard| shard.member(node))
    }

    /// The shard that serves a slot.
    pub fn owner(&self, slot: u16) -> Option<&Shard> {
        self.shards.iter().find(|shard| shard.slots.has(slot))
    }

    /// Checks that no slot or node is in two shards, that each primary is a node of its shard, and
    /// that slots are moved from the shard that has them to another.
    ///
    /// # Errors
    /// The first thing that is wrong, as a text.
    pub fn check(&self) -> Result<(), String> {
        let mut taken = SlotSet::default();
        let mut nodes = vec![];
        for (at, shard) in self.shards.iter().enumerate() {
            let id = shard.id;
            if self.shards[..at].iter().any(|other| other.id == id) {
                return Err(format!("there are two shards {id}"));
            }
            let shared = taken.intersection(&shard.slots);
            if !shared.is_empty() {
                return Err(format!("slots {shared} are in shard {id} and in another"));
            }
            taken = taken.union(&shard.slots);
            if shard.since > shard.term {
                return Err(format!("the primary of shard {id} has a term of the future"));
            }
            if shard.member(shard.primary).is_none() {
                return Err(format!("the primary of shard {id} is none of its nodes"));
            }
            nodes.extend(shard.members.iter().map(|member| member.id));
        }
        nodes.sort_unstable();
        if let Some(pair) = nodes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("node {} is twice in the cluster", pair[0]));
        }
        self.moves.iter().enumerate().try_for_each(|(at, one)| self.check_move(at, one))
    }

    fn check_move(&self, at: usize, one: &Move) -> Result<(), String> {
        let Move { from, to, slots } = one;
        if slots.is_empty() || from == to || self.shard(*to).is_none() {
            return Err(format!("slots '{slots}' cannot be moved from {from} to {to}"));
        }
        let foreign = self.shard(*from).map_or(slots.clone(), |from| slots.without(&from.slots));
        if !foreign.is_empty() {
            return Err(format!("slots {foreign} are moved from shard {from}, which lacks them"));
        }
        let mut others = self.moves[..at].iter().map(|other| other.slots.intersection(slots));
        match others.find(|shared| !shared.is_empty()) {
            Some(shared) => Err(format!("slots {shared} are moved twice")),
            None => Ok(()),
        }
    }

    /// Slots that no shard serves.
    pub fn uncovered(&self) -> SlotSet {
        self.shards.iter().fold(SlotSet::all(), |left, shard| left.without(&shard.slots))
    }

    /// All slots have a shard.
    pub fn is_complete(&self) -> bool {
        self.shards.iter().map(|shard| shard.slots.len()).sum::<usize>() == usize::from(SLOTS)
    }
}

impl Shard {
    /// A node of the shard.
    pub fn member(&self, node: NodeId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == node)
    }

    /// The primary.
    ///
    /// # Panics
    /// The topology was not [checked](Topology::check).
    pub fn primary(&self) -> &Member {
        self.member(self.primary).expect("the primary is a node of the shard")
    }

    /// All nodes but the primary.
    pub fn replicas(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.id != self.primary)
    }
}
