// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes from one state of a cluster to the next, as lines.

use super::names::short;
use freeport_kv_cluster::{Member, Move, NodeId, Shard, SlotSet, State, Topology};

/// A line for each change.
pub fn events(before: &State, after: &State) -> Vec<String> {
    let empty = Topology { epoch: 0, shards: vec![], moves: vec![] };
    let map = |state: &'_ State| {
        state.topology.as_ref().map_or(empty.clone(), |stored| stored.topology.clone())
    };
    let (old, new) = (map(before), map(after));
    let mut lines = vec![];
    leases(before, after, &mut lines);
    for shard in &new.shards {
        match old.shard(shard.id) {
            None => lines.push(format!(
                "shard {} is new, with slots {} and primary {}",
                short(shard.id),
                text(&shard.slots),
                shard.primary().address
            )),
            Some(old) => shard_events(old, shard, &mut lines),
        }
    }
    let gone = old.shards.iter().filter(|shard| new.shard(shard.id).is_none());
    lines.extend(gone.map(|shard| format!("shard {} is removed", short(shard.id))));
    let line = |verb: &str, one: &Move| {
        let Move { from, to, slots } = one;
        format!("the move of slots {slots} from shard {} to {} {verb}", short(from), short(to))
    };
    let of = |topology: &Topology, other: &Topology| -> Vec<Move> {
        topology.moves.iter().filter(|one| !other.moves.contains(one)).cloned().collect()
    };
    lines.extend(of(&old, &new).iter().map(|one| line("has ended", one)));
    lines.extend(of(&new, &old).iter().map(|one| line("begins", one)));
    lines
}

fn leases(before: &State, after: &State, lines: &mut Vec<String>) {
    let address = |state: &State, node: &NodeId| {
        let address = state.nodes.get(node).map(|presence| presence.address.to_string());
        address.unwrap_or_default()
    };
    for (node, presence) in &after.nodes {
        let (name, place) = (short(node), &presence.address);
        match before.nodes.get(node) {
            None => lines.push(format!("node {name} at {place} has a lease")),
            Some(old) if old.session != presence.session => {
                lines.push(format!("node {name} at {place} has started again"));
            }
            Some(old) if old.sealed != presence.sealed => lines.push(match presence.sealed {
                Some(term) => format!("node {name} at {place} has sealed term {term}"),
                None => format!("node {name} at {place} follows again"),
            }),
            Some(_) => {}
        }
    }
    let lost = before.nodes.keys().filter(|node| !after.nodes.contains_key(node));
    lines.extend(
        lost.map(|node| format!("node {} at {} has no lease", short(node), address(before, node))),
    );
}

fn shard_events(old: &Shard, new: &Shard, lines: &mut Vec<String>) {
    let id = short(new.id);
    let without = |shard: &Shard, other: &Shard| -> Vec<Member> {
        let is_missing = |member: &&Member| other.member(member.id).is_none();
        shard.members.iter().filter(is_missing).cloned().collect()
    };
    for member in without(new, old) {
        lines.push(format!("shard {id} gets the replica {}", member.address));
    }
    if old.primary != new.primary {
        let (place, term) = (&new.primary().address, new.term);
        lines.push(format!("shard {id} has the primary {place} in term {term}"));
    }
    for member in without(old, new) {
        lines.push(format!("shard {id} loses the node {}", member.address));
    }
    let (lost, gained) = (old.slots.without(&new.slots), new.slots.without(&old.slots));
    if !lost.is_empty() {
        lines.push(format!("shard {id} gives slots {lost}"));
    }
    if !gained.is_empty() {
        lines.push(format!("shard {id} gets slots {gained}"));
    }
}

fn text(slots: &SlotSet) -> String {
    if slots.is_empty() { "none".to_owned() } else { slots.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_kv_cluster::{Address, Presence, Revision, Versioned, planning};

    fn state(topology: Topology, nodes: &[(NodeId, u64)]) -> State {
        let presence = |session| Presence {
            session,
            address: Address { host: "kv".to_owned(), port: 1, ..Address::default() },
            position: 0,
            term: 1,
            is_copying: false,
            sealed: None,
            wants_to_lead: false,
        };
        State {
            topology: Some(Versioned { revision: Revision(1), topology }),
            nodes: nodes.iter().map(|(node, session)| (*node, presence(*session))).collect(),
        }
    }

    #[test]
    fn each_change_is_a_line() {
        let node = || Member { id: NodeId::random(), address: Address::default() };
        let nodes = [node(), node(), node()];
        let first = planning::create(&nodes[..2], 0).expect("there are enough");
        let before = state(first.clone(), &[(nodes[0].id, 1), (nodes[1].id, 1)]);
        assert_eq!(events(&before, &before), [""; 0]);
        assert_eq!(events(&State::default(), &before).len(), 4, "two nodes, two shards");

        let [from, to] = [first.shards[0].id, first.shards[1].id];
        let slots: SlotSet = "0-9".parse().expect("slots");
        let one = Move { from, to, slots: slots.clone() };
        let mut next = planning::add_replica(&first, from, nodes[2].clone()).expect("it is free");
        next.moves.push(one);
        let after = state(next.clone(), &[(nodes[0].id, 2), (nodes[2].id, 1)]);
        let lines = events(&before, &after);
        for part in ["started again", "has a lease", "no lease", "gets the replica", "begins"] {
            assert!(lines.iter().any(|line| line.contains(part)), "{part}: {lines:?}");
        }
        assert_eq!(lines.len(), 5, "{lines:?}");

        let mut last = next.clone();
        last.moves.clear();
        last.shards[0].slots = last.shards[0].slots.without(&slots);
        last.shards[0].primary = nodes[2].id;
        last.shards[1].slots = last.shards[1].slots.union(&slots);
        let lines = events(&state(next, &[]), &state(last, &[]));
        for part in ["gives slots 0-9", "gets slots 0-9", "has ended", "has the primary"] {
            assert!(lines.iter().any(|line| line.contains(part)), "{part}: {lines:?}");
        }
        assert_eq!(lines.len(), 4, "{lines:?}");
    }
}
