// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The next slot map for each kind of change. Each counts the epoch up.

use freeport_kv_protocol::slots::SLOTS;

use crate::id::{NodeId, ShardId};
use crate::planning::balance::{movable, rebalance};
use crate::planning::{PlanError, spread};
use crate::slot_set::SlotSet;
use crate::topology::{Member, Move, Shard, Topology};

/// A first slot map: nodes are [spread](fn@spread) over shards, which have equal ranges of slots.
///
/// # Errors
/// [`PlanError::TooFewNodes`].
pub fn create(nodes: &[Member], replicas: usize) -> Result<Topology, PlanError> {
    let groups = spread(nodes, replicas)?;
    let count = groups.len();
    let first = |number: usize| (number * usize::from(SLOTS) / count) as u16;
    let shards = groups.into_iter().enumerate().map(|(number, members)| Shard {
        id: ShardId::random(),
        slots: (first(number)..first(number + 1)).collect(),
        primary: members[0].id,
        term: 1,
        since: 0,
        members,
    });
    Ok(Topology { epoch: 1, shards: shards.collect(), moves: vec![] })
}

/// Adds a node to a shard, as a replica.
///
/// # Errors
/// There is no such shard, or the node is in one already.
pub fn add_replica(
    topology: &Topology,
    shard: ShardId,
    node: Member,
) -> Result<Topology, PlanError> {
    let mut next = next(topology);
    check_free(topology, node.id)?;
    next.shard_mut(shard).ok_or(PlanError::NoShard(shard))?.members.push(node);
    Ok(next)
}

/// Adds a shard without slots, whose primary is a node.
///
/// # Errors
/// The node is in a shard already.
pub fn add_shard(topology: &Topology, node: Member) -> Result<Topology, PlanError> {
    let mut next = next(topology);
    check_free(topology, node.id)?;
    next.shards.push(Shard {
        id: ShardId::random(),
        slots: SlotSet::default(),
        primary: node.id,
        term: 1,
        since: 0,
        members: vec![node],
    });
    Ok(next)
}

/// Removes a replica; or a shard without slots, with its only node.
///
/// # Errors
/// The node is in no shard, or the shard needs it.
pub fn remove(topology: &Topology, node: NodeId) -> Result<Topology, PlanError> {
    let shard = topology.shard_of(node).ok_or(PlanError::NoNode(node))?;
    let id = shard.id;
    let mut next = next(topology);
    if shard.members.len() > 1 {
        if shard.primary == node {
            return Err(PlanError::IsPrimary { node, shard: id });
        }
        let shard = next.shard_mut(id).expect("it is a copy");
        shard.members.retain(|member| member.id != node);
        return Ok(next);
    }
    if topology.moves.iter().any(|one| one.from == id || one.to == id) {
        return Err(PlanError::IsMoving(id));
    }
    if !shard.slots.is_empty() {
        return Err(PlanError::HasSlots { node, shard: id, slots: shard.slots.clone() });
    }
    next.shards.retain(|shard| shard.id != id);
    Ok(next)
}

/// Begins to move all slots of a shard to the others, in equal numbers as far as possible.
///
/// # Errors
/// There is no such shard, or no other.
pub fn give_away(topology: &Topology, shard: ShardId) -> Result<Topology, PlanError> {
    topology.shard(shard).ok_or(PlanError::NoShard(shard))?;
    if topology.shards.len() < 2 {
        return Err(PlanError::NoOtherShard(shard));
    }
    begin_moves(topology, &rebalance(topology, &[shard]))
}

/// Removes a node that will never come back. If it was the only one of its shard, the other shards
/// get its slots, without the keys: those are lost.
///
/// # Errors
/// The node is in no shard, or is the primary of replicas, or there is no other shard.
pub fn forget(topology: &Topology, node: NodeId) -> Result<Topology, PlanError> {
    let shard = topology.shard_of(node).ok_or(PlanError::NoNode(node))?;
    if shard.members.len() > 1 {
        return remove(topology, node);
    }
    let id = shard.id;
    if topology.shards.len() < 2 {
        return Err(PlanError::NoOtherShard(id));
    }
    let mut next = next(topology);
    next.moves.retain(|one| one.from != id && one.to != id);
    // Slots of the others stay with their keys.
    let lost = rebalance(&next, &[id]).into_iter().filter(|one| one.from == id);
    for Move { to, slots, .. } in lost {
        let target = next.shard_mut(to).expect("slots are moved to shards that there are");
        target.slots = target.slots.union(&slots);
    }
    next.shards.retain(|shard| shard.id != id);
    Ok(next)
}

/// Begins moves of slots. Moves between the same two shards become one.
///
/// # Errors
/// A shard does not exist, or lacks the slots, or they are being moved already.
pub fn begin_moves(topology: &Topology, moves: &[Move]) -> Result<Topology, PlanError> {
    let mut next = next(topology);
    for one in moves {
        for shard in [one.from, one.to] {
            next.shard(shard).ok_or(PlanError::NoShard(shard))?;
        }
        let missing = one.slots.without(&movable(&next, one.from));
        if one.slots.is_empty() || one.from == one.to {
            let reason = "name at least one slot, and two shards".to_owned();
            return Err(PlanError::Move(reason));
        }
        if !missing.is_empty() {
            return Err(PlanError::Move(format!(
                "shard {} lacks slots {missing}, or they are being moved",
                one.from
            )));
        }
        let same = |other: &&mut Move| (other.from, other.to) == (one.from, one.to);
        match next.moves.iter_mut().find(same) {
            Some(other) => other.slots = other.slots.union(&one.slots),
            None => next.moves.push(one.clone()),
        }
    }
    Ok(next)
}

/// Ends moves of these slots: they stay where they are.
///
/// # Errors
/// None of the slots is being moved.
pub fn cancel_moves(topology: &Topology, slots: &SlotSet) -> Result<Topology, PlanError> {
    let mut next = next(topology);
    for one in &mut next.moves {
        one.slots = one.slots.without(slots);
    }
    next.moves.retain(|one| !one.slots.is_empty());
    if next.moves == topology.moves {
        return Err(PlanError::Move(format!("none of slots {slots} is being moved")));
    }
    Ok(next)
}

fn next(topology: &Topology) -> Topology {
    Topology { epoch: topology.epoch + 1, ..topology.clone() }
}

fn check_free(topology: &Topology, node: NodeId) -> Result<(), PlanError> {
    let shard = topology.shard_of(node);
    shard.map_or(Ok(()), |shard| Err(PlanError::IsMember { node, shard: shard.id }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::{carried_out, node, set, topology};

    #[test]
    fn a_first_map_is_complete_and_even() {
        for (nodes, replicas, shards) in [(1, 0, 1), (6, 1, 3), (7, 0, 7), (8, 2, 2)] {
            let nodes: Vec<Member> = (0..nodes).map(|_| node()).collect();
            let map = create(&nodes, replicas).expect("there are enough");
            assert_eq!((map.epoch, map.shards.len()), (1, shards));
            assert!(map.is_complete() && map.check().is_ok());
            let sizes = map.shards.iter().map(|shard| shard.slots.len());
            let even = usize::from(SLOTS) / shards;
            assert!(sizes.into_iter().all(|size| size == even || size == even + 1));
            assert!(map.shards.iter().all(|shard| shard.slots.ranges().len() == 1));
        }
    }

    #[test]
    fn replicas_come_and_go() {
        let before = topology(&["0-16383"]);
        let (shard, replica) = (before.shards[0].id, node());
        let with = add_replica(&before, shard, replica.clone()).expect("it is free");
        assert_eq!((with.epoch, with.check()), (before.epoch + 1, Ok(())));
        let again = add_replica(&with, shard, replica.clone());
        assert_eq!(again, Err(PlanError::IsMember { node: replica.id, shard }));
        let primary = before.shards[0].primary;
        let refused = remove(&with, primary);
        assert_eq!(refused, Err(PlanError::IsPrimary { node: primary, shard }));
        let without = remove(&with, replica.id).expect("it is a replica");
        assert_eq!(without.shards, before.shards);
        assert_eq!(remove(&without, replica.id), Err(PlanError::NoNode(replica.id)));
    }

    #[test]
    fn a_shard_leaves_without_its_slots() {
        let before = topology(&["0-8191", "8192-16383"]);
        let [first, second] = [&before.shards[0], &before.shards[1]];
        let slots = second.slots.clone();
        let refused = PlanError::HasSlots { node: second.primary, shard: second.id, slots };
        assert_eq!(remove(&before, second.primary), Err(refused));
        let moving = give_away(&before, second.id).expect("there is another shard");
        let refused = PlanError::IsMoving(second.id);
        assert_eq!(remove(&moving, second.primary), Err(refused));
        let empty = carried_out(&before, &moving.moves);
        let after = remove(&empty, second.primary).expect("it has no slots");
        assert_eq!(after.shards.len(), 1);
        assert!(after.is_complete());
        assert_eq!(give_away(&after, first.id), Err(PlanError::NoOtherShard(first.id)));
    }

    #[test]
    fn slots_of_a_lost_shard_go_to_the_others() {
        let before = topology(&["0-99", "100-8000", "8001-16383"]);
        let (lost, other) = (&before.shards[2], &before.shards[0]);
        let one = Move { from: lost.id, to: other.id, slots: set("9000-9001") };
        let moving = begin_moves(&before, &[one]).expect("it has them");
        let after = forget(&moving, lost.primary).expect("there are others");
        assert!(after.is_complete() && after.check().is_ok() && after.moves.is_empty());
        assert_eq!(after.shards.len(), 2);
        // The others do not have equally many.
        let uneven = topology(&["0-9999", "10000-10009", "10010-16000", "16001-16383", ""]);
        for lost in &uneven.shards {
            let after = forget(&uneven, lost.primary).expect("there are others");
            assert!(after.is_complete() && after.check().is_ok() && after.moves.is_empty());
            for shard in &after.shards {
                let before = uneven.shard(shard.id).expect("it was there");
                assert!(before.slots.without(&shard.slots).is_empty(), "it keeps its slots");
            }
        }
        let alone = topology(&["0-16383"]);
        let shard = &alone.shards[0];
        assert_eq!(forget(&alone, shard.primary), Err(PlanError::NoOtherShard(shard.id)));
    }

    #[test]
    fn moves_begin_once_and_can_be_cancelled() {
        let before = topology(&["0-8191", "8192-16383"]);
        let [from, to] = [before.shards[0].id, before.shards[1].id];
        let one = |slots: &str| Move { from, to, slots: set(slots) };
        let moving = begin_moves(&before, &[one("0-9"), one("20")]).expect("it has them");
        assert_eq!(moving.moves, [one("0-9,20")]);
        assert_eq!(moving.check(), Ok(()));
        for wrong in ["", "9", "8192"] {
            let error = begin_moves(&moving, &[one(wrong)]).expect_err(wrong);
            assert!(matches!(error, PlanError::Move(_)), "{error}");
        }
        let less = cancel_moves(&moving, &set("5-30")).expect("some are moved");
        assert_eq!(less.moves, [one("0-4")]);
        assert!(cancel_moves(&less, &set("5-30")).is_err());
        assert_eq!(cancel_moves(&less, &SlotSet::all()).expect("some are moved").moves, []);
    }
}
