// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Moves of slots after which all shards have equally many.

use crate::id::ShardId;
use crate::slot_set::SlotSet;
use crate::topology::{Move, Topology};

/// A shard while moves are planned.
struct Load {
    id: ShardId,
    /// Slots that it serves, and that no move takes from it yet.
    movable: SlotSet,
    /// Number of slots that it will have after the moves under way.
    count: usize,
    /// Number of slots that it should have.
    goal: usize,
}

/// The fewest moves of slots after which all shards but the leaving ones have the same number of
/// slots, give or take one, and the leaving ones have none. Moves under way count as done. If they
/// bring a shard more than its share, its surplus stays until they are done.
pub fn rebalance(topology: &Topology, leaving: &[ShardId]) -> Vec<Move> {
    let mut loads: Vec<Load> =
        topology.shards.iter().map(|shard| load(topology, shard.id)).collect();
    set_goals(&mut loads, leaving);
    let mut moves: Vec<Move> = vec![];
    let mut to = 0;
    for from in 0..loads.len() {
        while let surplus @ 1.. = surplus(&loads[from]) {
            while to < loads.len() && loads[to].count >= loads[to].goal {
                to += 1;
            }
            let Some(target) = loads.get_mut(to) else { return moves };
            let count = surplus.min(target.goal - target.count);
            target.count += count;
            let target = target.id;
            let source = &mut loads[from];
            let slots = highest(&source.movable, count);
            source.movable = source.movable.without(&slots);
            source.count -= count;
            moves.push(Move { from: source.id, to: target, slots });
        }
    }
    moves
}

/// The `count` highest slots of a set, or all if it has fewer.
pub fn highest(slots: &SlotSet, count: usize) -> SlotSet {
    slots.iter().skip(slots.len().saturating_sub(count)).collect()
}

/// Slots that a shard serves, and that no move takes from it.
pub(super) fn movable(topology: &Topology, id: ShardId) -> SlotSet {
    let slots = topology.shard(id).map(|shard| shard.slots.clone()).unwrap_or_default();
    let leaving = topology.moves.iter().filter(|one| one.from == id);
    leaving.fold(slots, |left, one| left.without(&one.slots))
}

fn load(topology: &Topology, id: ShardId) -> Load {
    let movable = movable(topology, id);
    let coming = topology.moves.iter().filter(|one| one.to == id);
    let count = movable.len() + coming.map(|one| one.slots.len()).sum::<usize>();
    Load { id, movable, count, goal: 0 }
}

/// Those that have the most get the remainder, so that fewer slots are moved.
fn set_goals(loads: &mut [Load], leaving: &[ShardId]) {
    let total: usize = loads.iter().map(|load| load.count).sum();
    let mut staying: Vec<&mut Load> =
        loads.iter_mut().filter(|load| !leaving.contains(&load.id)).collect();
    let shards = staying.len().max(1);
    staying.sort_by_key(|load| std::cmp::Reverse(load.count));
    for (number, load) in staying.into_iter().enumerate() {
        load.goal = total / shards + usize::from(number < total % shards);
    }
}

/// Slots that can be taken from a shard that has too many.
fn surplus(load: &Load) -> usize {
    load.count.saturating_sub(load.goal).min(load.movable.len())
}

#[cfg(test)]
mod tests {
    use freeport_kv_protocol::slots::SLOTS;

    use super::*;
    use crate::planning::begin_moves;
    use crate::planning::tests::{carried_out, topology};

    fn counts(topology: &Topology) -> Vec<usize> {
        topology.shards.iter().map(|shard| shard.slots.len()).collect()
    }

    fn moved(moves: &[Move]) -> usize {
        moves.iter().map(|one| one.slots.len()).sum()
    }

    #[test]
    fn a_new_shard_gets_an_equal_share_of_each_other() {
        let before = topology(&["0-8191", "8192-16383", ""]);
        let moves = rebalance(&before, &[]);
        assert_eq!(moves.len(), 2);
        assert_eq!(moved(&moves), 5461);
        let mut after = counts(&carried_out(&before, &moves));
        after.sort_unstable();
        assert_eq!(after, [5461, 5461, 5462]);
    }

    #[test]
    fn a_leaving_shard_gives_all_its_slots() {
        let before = topology(&["0-99", "100-8000", "8001-16383"]);
        let leaving = before.shards[2].id;
        let after = carried_out(&before, &rebalance(&before, &[leaving]));
        assert_eq!(counts(&after), [8192, 8192, 0]);
        let alone = topology(&["0-16383"]);
        assert_eq!(rebalance(&alone, &[alone.shards[0].id]), [], "there is no other shard");
    }

    #[test]
    fn moves_under_way_count_as_done() {
        let before = topology(&["0-16383", ""]);
        let moves = rebalance(&before, &[]);
        let under_way = begin_moves(&before, &moves).expect("they can be moved");
        assert_eq!(rebalance(&under_way, &[]), []);
        // The second shard would have to give slots that it does not have yet.
        let back = rebalance(&under_way, &[before.shards[1].id]);
        assert_eq!(back, []);
    }

    #[test]
    fn random_clusters_are_balanced_by_the_fewest_moves() {
        for seed in 0..200 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let shards = rng.usize(1..9);
            let mut sets = vec![SlotSet::default(); shards];
            let mut owner = rng.usize(..shards);
            for slot in 0..SLOTS {
                if rng.u16(..500) == 0 {
                    owner = rng.usize(..shards);
                }
                sets[owner].insert(slot);
            }
            let texts: Vec<String> = sets.iter().map(SlotSet::to_string).collect();
            let before = topology(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let leaving: Vec<ShardId> =
                before.shards[..rng.usize(..shards)].iter().map(|shard| shard.id).collect();
            let moves = rebalance(&before, &leaving);
            let after = carried_out(&before, &moves);
            assert!(after.is_complete(), "seed {seed}");

            let (left, stay) = after.shards.split_at(leaving.len());
            assert!(left.iter().all(|shard| shard.slots.is_empty()), "seed {seed}");
            let share = usize::from(SLOTS) / stay.len();
            let more = stay.iter().filter(|shard| shard.slots.len() == share + 1).count();
            let equal = stay.iter().filter(|shard| shard.slots.len() == share).count();
            assert_eq!((more, equal + more), (usize::from(SLOTS) % stay.len(), stay.len()));

            // A shard that stays has to give what it has above its share; the best choice of those
            // that keep one more are the largest.
            let mut sizes: Vec<usize> =
                before.shards[leaving.len()..].iter().map(|shard| shard.slots.len()).collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            let least = sizes
                .iter()
                .enumerate()
                .map(|(number, size)| size.saturating_sub(share + usize::from(number < more)));
            let must = before.shards[..leaving.len()].iter().map(|shard| shard.slots.len());
            assert_eq!(moved(&moves), must.chain(least).sum::<usize>(), "seed {seed}");
            assert_eq!(rebalance(&after, &leaving), [], "seed {seed}: once is enough");
        }
    }
}
