// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Moves of slots between the shards of a fleet of ours.

use fastrand::Rng;
use freeport_kv_cluster::{Move, Shard, SlotSet, SwapError, Topology, planning};

use super::fleet::Fleet;

/// Slots that move with the one that is asked for, at most.
const MORE: u16 = 200;

/// Slots that are on their way.
pub struct Moving {
    /// Numbers of the primaries that have had them, and that get them.
    pub from: usize,
    pub to: usize,
    one: Move,
}

impl Moving {
    /// Begins to move a slot, and others, from the shard that has it to another.
    ///
    /// # Panics
    /// The registry does not answer, or the cluster has one shard.
    pub fn begin(fleet: &Fleet, slot: u16, random: &mut Rng) -> Self {
        let registry = fleet.registry();
        loop {
            let state = registry.read().expect("the registry answers");
            let versioned = state.topology.expect("there is a cluster");
            let topology = &versioned.topology;
            let one = choose(topology, slot, random);
            let next = planning::begin_moves(topology, std::slice::from_ref(&one));
            let next = next.unwrap_or_else(|error| panic!("{one:?}: {error}"));
            match registry.swap(Some(versioned.revision), None, &next) {
                Ok(_) => {
                    let [from, to] = [one.from, one.to].map(|id| {
                        let shard = topology.shard(id).expect("it was found there");
                        fleet.number_of(shard.primary().address.port)
                    });
                    return Self { from, to, one };
                }
                Err(SwapError::Changed) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The other shard has all of the slots.
    pub fn has_ended(&self, fleet: &Fleet) -> bool {
        let Ok(state) = fleet.registry().read() else { return false };
        let topology = state.topology.expect("there is a cluster").topology;
        let owner = topology.shard(self.one.to).expect("shards stay");
        topology.moves.is_empty() && self.one.slots.without(&owner.slots).is_empty()
    }
}

fn choose(topology: &Topology, slot: u16, random: &mut Rng) -> Move {
    let from = topology.owner(slot).expect("all slots have a shard");
    let others: Vec<&Shard> = topology.shards.iter().filter(|shard| shard.id != from.id).collect();
    let to = others[random.usize(..others.len())].id;
    let more = slot..=slot.saturating_add(random.u16(..MORE));
    let slots: SlotSet = more.filter(|slot| from.slots.has(*slot)).collect();
    Move { from: from.id, to, slots }
}
