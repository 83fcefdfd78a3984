// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Problems of a cluster, each with what to do about it.

use super::names::short;
use super::session::is_complete;
use freeport_kv_cluster::election::{Verdict, verdict};
use freeport_kv_cluster::{NodeId, Shard, State, Topology};

/// A problem.
#[derive(Debug, PartialEq, Eq)]
pub struct Warning {
    /// The problem, and what to do about it.
    pub text: String,
    /// Clients get errors because of it.
    pub is_outage: bool,
}

/// The problems, those that clients notice first.
pub fn warnings(state: &State, topology: &Topology) -> Vec<Warning> {
    let mut found = vec![];
    let uncovered = topology.uncovered();
    if !uncovered.is_empty() {
        let text = format!("no shard serves slots {uncovered}; their keys cannot be used");
        found.push(Warning { text, is_outage: true });
    }
    topology.shards.iter().for_each(|shard| check_shard(state, topology, shard, &mut found));
    found.sort_by_key(|warning| !warning.is_outage);
    found
}

fn check_shard(state: &State, topology: &Topology, shard: &Shard, found: &mut Vec<Warning>) {
    let id = short(shard.id);
    let mut warn = |text: String, is_outage: bool| found.push(Warning { text, is_outage });
    let is_present = |node| state.nodes.contains_key(node);
    let primary = shard.primary();
    let is_empty = shard.slots.is_empty();
    if !is_present(&primary.id) && is_empty && shard.members.len() == 1 {
        let text = format!(
            "shard {id} has no slots and its node at {} has no lease; start it again, or `freeport \
             kv cluster forget {}`",
            primary.address,
            short(primary.id)
        );
        return warn(text, false);
    }
    if !is_present(&primary.id) {
        let advice = match verdict(shard, &state.nodes) {
            Verdict::Nobody(nodes) => lost(shard, &nodes),
            verdict => verdict.to_string(),
        };
        let address = &primary.address;
        warn(format!("shard {id}: the primary at {address} has no lease; {advice}"), !is_empty);
    }
    for node in shard.replicas() {
        let (name, address) = (short(node.id), &node.address);
        match state.nodes.get(&node.id) {
            None => {
                let text = format!(
                    "shard {id}: the replica at {address} has no lease; start it again, or remove \
                     it with `freeport kv cluster forget {name}`"
                );
                warn(text, false);
            }
            Some(presence) if !is_complete(shard, presence) => {
                warn(format!("shard {id}: the replica at {address} is not complete yet"), false);
            }
            Some(_) => {}
        }
    }
    let has_replicas = topology.shards.iter().any(|shard| shard.members.len() > 1);
    if shard.members.len() == 1 && has_replicas {
        let text = format!(
            "shard {id} has no replica, so no node can replace its primary; add one with \
             `freeport kv cluster add NODE --shard {id}`"
        );
        warn(text, false);
    }
}

/// Advice if no present node can be the primary.
fn lost(shard: &Shard, absent: &[NodeId]) -> String {
    let of = |node: &NodeId| shard.member(*node).map(|member| member.address.to_string());
    let addresses: Vec<String> = absent.iter().filter_map(of).collect();
    let primary = short(shard.primary);
    format!(
        "no node with a lease has all keys; start that at {} again with its folder, or see \
         `freeport kv cluster forget {primary}`",
        addresses.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_kv_cluster::{Address, Member, Presence, SlotSet, planning};

    fn member() -> Member {
        let address = Address { host: "kv".to_owned(), port: 1, ..Address::default() };
        Member { id: NodeId::random(), address }
    }

    fn present(members: &[&Member]) -> State {
        let presence = |node: &Member| Presence {
            session: 1,
            address: node.address.clone(),
            position: 0,
            term: 1,
            is_copying: false,
            sealed: None,
            wants_to_lead: false,
        };
        let nodes = members.iter().map(|node| (node.id, presence(node)));
        State { topology: None, nodes: nodes.collect() }
    }

    #[test]
    fn a_whole_cluster_has_no_problems() {
        let nodes = [member(), member()];
        let all = planning::create(&nodes, 1).expect("there are enough");
        assert_eq!(warnings(&present(&nodes.each_ref()), &all), []);
    }

    #[test]
    fn each_problem_says_what_to_do() {
        let nodes = [member(), member(), member(), member()];
        let mut map = planning::create(&nodes, 1).expect("there are enough");
        let [first, second] = [map.shards[0].clone(), map.shards[1].clone()];
        let (primary, replica) = (first.primary(), &first.members[1]);
        let others: Vec<&Member> = second.members.iter().collect();
        let with = |more: &[&Member]| present(&[&others[..], more].concat());
        let texts = |state: &State, map: &Topology| {
            let found = warnings(state, map);
            found.into_iter().map(|it| (it.is_outage, it.text)).collect::<Vec<_>>()
        };

        let found = texts(&with(&[replica]), &map);
        assert!(found[0].0 && found[0].1.contains("the election waits"), "{found:?}");
        let found = texts(&with(&[]), &map);
        assert!(found[0].0 && found[0].1.contains("forget"), "{found:?}");
        assert_eq!(found.len(), 2);
        let found = texts(&with(&[primary]), &map);
        assert!(!found[0].0 && found[0].1.contains("start it again"), "{found:?}");

        let mut state = with(&[primary, replica]);
        state.nodes.get_mut(&replica.id).expect("it is there").term = 0;
        let found = texts(&state, &map);
        assert!(!found[0].0 && found[0].1.contains("not complete"), "{found:?}");

        map.shards[0].slots = SlotSet::default();
        let found = texts(&with(&[replica]), &map);
        let waits = found.iter().find(|it| it.1.contains("the election waits"));
        assert!(waits.is_some_and(|it| !it.0), "no slots are concerned: {found:?}");
        map.shards[0].members.truncate(1);
        let found = texts(&with(&[]), &map);
        assert!(!found[1].0 && found[1].1.contains("has no slots"), "{found:?}");
        assert_eq!(found.len(), 2, "{found:?}");
        let found = texts(&with(&[primary, replica]), &map);
        assert!(found[0].0 && found[0].1.contains("0-8191"), "{found:?}");
        assert!(!found[1].0 && found[1].1.contains("cluster add NODE"), "{found:?}");
    }
}
