// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts that a node publishes with its lease.

use std::time::Duration;

use super::agent::{Agent, Facts};
use super::ballot::{Verdict, rank, verdict};
use super::role::Role;
use crate::id::NodeId;
use crate::registry::{Presence, State};
use crate::topology::Shard;

impl Agent {
    /// The lease has to be prolonged, or its value replaced.
    pub(super) fn presence_to_publish(&self, now: Duration, facts: &Facts) -> Option<Presence> {
        let seen = self.seen.as_ref()?;
        if now < self.keep_after || self.withholds_lease(seen, facts) {
            return None;
        }
        let presence = self.presence(now, facts);
        let is_published = self.published.as_ref().is_some_and(|published| {
            *published == Presence { position: published.position, ..presence.clone() }
        });
        (!is_published || now >= self.lease.next()).then_some(presence)
    }

    fn presence(&self, now: Duration, facts: &Facts) -> Presence {
        let sealed = match self.role {
            Role::Sealed { term } => Some(term),
            _ => None,
        };
        let is_replica = matches!(self.role, Role::Follows(_));
        Presence {
            session: self.me.session,
            address: self.me.address.clone(),
            position: facts.position,
            term: facts.term,
            is_copying: facts.is_copying,
            sealed,
            wants_to_lead: is_replica && self.wish.is_some_and(|end| now < end),
        }
    }

    /// The machine may have lost changes of this primary that a replica has. Without a lease of the
    /// primary, that replica is elected, or gets the place of the primary.
    pub(super) fn withholds_lease(&self, seen: &State, facts: &Facts) -> bool {
        let topology = seen.topology.as_ref().map(|stored| &stored.topology);
        let Some(shard) = topology.and_then(|it| it.shard_of(self.me.node)) else { return false };
        if !self.me.may_have_lost || self.has_begun || shard.primary != self.me.node {
            return false;
        }
        let mut others = seen.nodes.clone();
        others.remove(&self.me.node);
        matches!(verdict(shard, &others), Verdict::Waits(_) | Verdict::Elected(_))
            || self.heir(shard, seen, facts).is_some()
    }

    /// The replica that has most, if that is more than this primary has. The primary was elected,
    /// but has begun no history since, so nobody else can be elected by its own data.
    pub(super) fn heir(&self, shard: &Shard, seen: &State, facts: &Facts) -> Option<NodeId> {
        if facts.term >= shard.since {
            return None;
        }
        let present = shard.replicas().filter_map(|it| Some((it.id, seen.nodes.get(&it.id)?)));
        let best = present.max_by_key(|(node, presence)| rank(*node, presence));
        let has_more = |(_, it): &(NodeId, &Presence)| {
            !it.is_copying && (it.term, it.position) > (facts.term, facts.position)
        };
        best.filter(has_more).map(|(node, _)| node)
    }
}
