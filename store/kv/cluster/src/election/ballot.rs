// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choice of a shard's next primary.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use crate::id::NodeId;
use crate::registry::Presence;
use crate::topology::{Member, Shard};

/// How far the election of a shard's primary is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The primary has a lease.
    HasPrimary,
    /// It has none, and these replicas have not sealed its term yet.
    Waits(Vec<NodeId>),
    /// No replica that has a lease has the data: one of these nodes has to be started, or started
    /// again if it gets a whole copy, because its old data are at hand then.
    Nobody(Vec<NodeId>),
    /// This replica is the best.
    Elected(NodeId),
}

/// Counts what the nodes of a shard have published.
///
/// The replica with changes of the latest term wins, among those with the highest position, among
/// those with the smallest id. Changes from before the first term of the lost primary do not
/// suffice: that replica has never followed it. If the best gets a whole copy, its data are not at
/// hand, and nobody is elected, since the others lack some of them.
pub fn verdict(shard: &Shard, nodes: &BTreeMap<NodeId, Presence>) -> Verdict {
    if nodes.contains_key(&shard.primary) {
        return Verdict::HasPrimary;
    }
    let present = || {
        let replicas = shard.replicas();
        replicas.filter_map(|member| nodes.get(&member.id).map(|presence| (member.id, presence)))
    };
    let unsealed = present().filter(|(_, presence)| presence.sealed != Some(shard.term));
    let unsealed: Vec<_> = unsealed.map(|(node, _)| node).collect();
    if !unsealed.is_empty() {
        return Verdict::Waits(unsealed);
    }
    let best = present().max_by_key(|(node, presence)| rank(*node, presence));
    match best {
        Some((node, presence)) if can_lead(shard, presence) => Verdict::Elected(node),
        _ => {
            let may_help = |member: &&Member| {
                nodes.get(&member.id).is_none_or(|it| it.is_copying && has_data(shard, it))
            };
            Verdict::Nobody(shard.members.iter().filter(may_help).map(|it| it.id).collect())
        }
    }
}

/// A replica has the data of its shard, as far as one that lags behind can have it.
fn can_lead(shard: &Shard, presence: &Presence) -> bool {
    has_data(shard, presence) && !presence.is_copying
}

/// The same, but a copy may be about to replace these data.
fn has_data(shard: &Shard, presence: &Presence) -> bool {
    presence.term > 0 && presence.term >= shard.since
}

/// Among equals, one that can lead wins.
pub(super) fn rank(node: NodeId, presence: &Presence) -> (u64, u64, bool, Reverse<NodeId>) {
    (presence.term, presence.position, !presence.is_copying, Reverse(node))
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |nodes: &[NodeId]| {
            let nodes: Vec<_> = nodes.iter().map(NodeId::to_string).collect();
            nodes.join(", ")
        };
        match self {
            Self::HasPrimary => formatter.write_str("the primary has a lease"),
            Self::Waits(nodes) => {
                write!(formatter, "the election waits for the last position of {}", list(nodes))
            }
            Self::Nobody(nodes) => write!(
                formatter,
                "no node that is present has all data; start one of {}, again if it runs",
                list(nodes)
            ),
            Self::Elected(node) => write!(formatter, "{node} becomes the primary"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::id::ShardId;
    use crate::slot_set::SlotSet;

    fn node(number: u8) -> NodeId {
        format!("{number:040x}").parse().expect("an id")
    }

    fn presence((term, position): (u64, u64), sealed: Option<u64>) -> Presence {
        let address = Address::default();
        Presence {
            session: 1,
            address,
            position,
            term,
            is_copying: false,
            sealed,
            wants_to_lead: false,
        }
    }

    /// Node 0 is the primary with term 7, and has been since term 5.
    fn count(nodes: &[(u8, Presence)]) -> Verdict {
        let members = (0..4).map(|number| Member { id: node(number), address: Address::default() });
        let shard = Shard {
            id: ShardId::random(),
            slots: SlotSet::all(),
            primary: node(0),
            term: 7,
            since: 5,
            members: members.collect(),
        };
        verdict(&shard, &nodes.iter().map(|(at, it)| (node(*at), it.clone())).collect())
    }

    #[test]
    fn the_best_replica_is_elected_when_all_have_sealed() {
        let best = (3, presence((7, 10), Some(7)));
        let older = (1, presence((6, 99), Some(7)));
        let shorter = (2, presence((7, 9), Some(7)));
        let all = [older.clone(), shorter.clone(), best.clone()];
        assert_eq!(count(&all), Verdict::Elected(node(3)));
        assert_eq!(count(&all[..2]), Verdict::Elected(node(2)));
        assert_eq!(count(&all[..1]), Verdict::Elected(node(1)));
        let equal = [(2, presence((7, 10), Some(7))), best.clone()];
        assert_eq!(count(&equal), Verdict::Elected(node(2)), "the smaller id of equals");
        let primary = (0, presence((7, 50), None));
        assert_eq!(count(&[primary, best]), Verdict::HasPrimary);
    }

    #[test]
    fn a_replica_that_may_have_more_is_waited_for() {
        let best = (3, presence((7, 10), Some(7)));
        for sealed in [None, Some(6)] {
            let late = (1, presence((7, 5), sealed));
            assert_eq!(count(&[late, best.clone()]), Verdict::Waits(vec![node(1)]));
        }
    }

    #[test]
    fn nobody_without_the_data_is_elected() {
        let never = (1, presence((0, 0), Some(7)));
        let long_ago = (2, presence((4, 1_000), Some(7)));
        assert_eq!(count(&[never, long_ago]), Verdict::Nobody(vec![node(0), node(3)]));
        let copying = |position| Presence { is_copying: true, ..presence((7, position), Some(7)) };
        let whole = (3, presence((7, 5), Some(7)));
        assert_eq!(count(&[(1, copying(4)), whole.clone()]), Verdict::Elected(node(3)));
        assert_eq!(count(&[(1, copying(5)), whole.clone()]), Verdict::Elected(node(3)));
        let nobody = Verdict::Nobody(vec![node(0), node(1), node(2)]);
        assert_eq!(count(&[(1, copying(6)), whole]), nobody, "the third lacks a change");
    }
}
