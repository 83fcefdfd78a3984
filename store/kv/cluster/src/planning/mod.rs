// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes that an operator makes to a cluster, as functions from one slot map to the next.
//!
//! Nothing here talks to a registry or to nodes. The caller swaps the result for the topology that
//! it was made from, and begins again if another change came first.

mod balance;
mod change;
mod error;
mod spread;

pub use balance::{highest, rebalance};
pub use change::{
    add_replica, add_shard, begin_moves, cancel_moves, create, forget, give_away, remove,
};
pub use error::PlanError;
pub use spread::spread;

#[cfg(test)]
mod tests {
    use crate::{Address, Member, Move, NodeId, Shard, ShardId, SlotSet, Topology};

    pub(super) fn set(text: &str) -> SlotSet {
        text.parse().expect("a set of slots")
    }

    pub(super) fn node() -> Member {
        let address = Address { host: "localhost".to_owned(), port: 6379, ..Address::default() };
        Member { id: NodeId::random(), address }
    }

    /// Shards of one node each, with these slots.
    pub(super) fn topology(slots: &[&str]) -> Topology {
        let shards = slots.iter().map(|slots| {
            let member = node();
            let (id, primary) = (ShardId::random(), member.id);
            Shard { id, slots: set(slots), primary, term: 1, since: 0, members: vec![member] }
        });
        Topology { epoch: 5, shards: shards.collect(), moves: vec![] }
    }

    /// The topology after moves from it are done.
    pub(super) fn carried_out(topology: &Topology, moves: &[Move]) -> Topology {
        let mut after = topology.clone();
        for Move { from, to, slots } in moves {
            let source = after.shard_mut(*from).expect("there is such a shard");
            assert!(slots.without(&source.slots).is_empty(), "it has them");
            source.slots = source.slots.without(slots);
            let target = after.shard_mut(*to).expect("there is such a shard");
            target.slots = target.slots.union(slots);
        }
        assert_eq!(after.check(), Ok(()));
        after
    }
}
