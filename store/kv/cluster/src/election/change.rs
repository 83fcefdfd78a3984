// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of the topology that nodes make on their own.

use crate::address::Address;
use crate::id::{NodeId, ShardId};
use crate::topology::{Shard, Topology};

/// The primary of a shard begins a term with its new lease.
pub(super) fn renew(topology: &Topology, shard: ShardId) -> Topology {
    change(topology, shard, |shard| shard.term += 1)
}

/// A replica becomes the primary, because the one before has no lease. Replicas that do not follow
/// it afterwards cannot be elected any more.
pub(super) fn elect(topology: &Topology, shard: ShardId, node: NodeId) -> Topology {
    change(topology, shard, |shard| {
        shard.primary = node;
        shard.term += 1;
        shard.since = shard.term;
    })
}

/// The primary makes a replica the primary, which has everything. The others, and the old primary,
/// may have it too, so they can be elected if the new one is lost at once.
pub(super) fn hand_over(topology: &Topology, shard: ShardId, node: NodeId) -> Topology {
    change(topology, shard, |shard| {
        shard.primary = node;
        shard.since = shard.term;
        shard.term += 1;
    })
}

/// A node of a shard has other addresses.
pub(super) fn readdress(
    topology: &Topology,
    shard: ShardId,
    (node, address): (NodeId, &Address),
) -> Topology {
    change(topology, shard, |shard| {
        let members = shard.members.iter_mut().filter(|member| member.id == node);
        members.for_each(|member| member.address = address.clone());
    })
}

fn change(topology: &Topology, shard: ShardId, change: impl FnOnce(&mut Shard)) -> Topology {
    let mut topology = topology.clone();
    topology.epoch += 1;
    if let Some(shard) = topology.shard_mut(shard) {
        change(shard);
    }
    topology
}
