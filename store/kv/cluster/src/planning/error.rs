// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons why a change of the slot map is refused.

use std::fmt;

use crate::id::{NodeId, ShardId};
use crate::slot_set::SlotSet;

/// A change of the slot map is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// There are not enough nodes for one shard.
    TooFewNodes {
        /// Number of nodes.
        nodes: usize,
        /// Replicas that each shard should have.
        replicas: usize,
    },
    /// The node is in a shard already.
    IsMember {
        /// The node.
        node: NodeId,
        /// Its shard.
        shard: ShardId,
    },
    /// No shard has this name.
    NoShard(ShardId),
    /// No shard has this node.
    NoNode(NodeId),
    /// The node is the primary, and its shard has replicas.
    IsPrimary {
        /// The node.
        node: NodeId,
        /// Its shard.
        shard: ShardId,
    },
    /// The node is the only one of a shard that has slots.
    HasSlots {
        /// The node.
        node: NodeId,
        /// Its shard.
        shard: ShardId,
        /// The slots.
        slots: SlotSet,
    },
    /// Slots are being moved from or to the shard.
    IsMoving(ShardId),
    /// There is no other shard that could take the slots.
    NoOtherShard(ShardId),
    /// The move makes no sense: why.
    Move(String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewNodes { nodes: 0, .. } => formatter
                .write_str("no node is there; start some with `freeport kv serve --cluster`"),
            Self::TooFewNodes { nodes, replicas } => write!(
                formatter,
                "a shard with {replicas} replicas needs {} nodes, and there are {nodes}; start \
                 more nodes, or ask for fewer replicas",
                replicas + 1
            ),
            Self::IsMember { node, shard } => {
                write!(formatter, "node {node} is in shard {shard} already; remove it there first")
            }
            Self::NoShard(id) => write!(formatter, "the cluster has no shard {id}"),
            Self::NoNode(id) => write!(formatter, "no shard has node {id}"),
            Self::IsPrimary { node, shard } => write!(
                formatter,
                "node {node} is the primary of shard {shard}; let a replica take its place first"
            ),
            Self::HasSlots { node, shard, slots } => write!(
                formatter,
                "node {node} is the only one of shard {shard}, which has slots {slots}; add a \
                 replica, or move the slots first"
            ),
            Self::IsMoving(id) => write!(
                formatter,
                "slots are being moved from or to shard {id}; wait for the end, or cancel the move"
            ),
            Self::NoOtherShard(id) => {
                write!(formatter, "no shard but {id} could take its slots; add one first")
            }
            Self::Move(reason) => formatter.write_str(reason),
        }
    }
}

impl std::error::Error for PlanError {}
