// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a node publishes with its lease.

use std::time::Duration;

use super::agent::{Agent, Facts};
use super::ballot::can_lead;
use super::role::Role;
use crate::registry::Presence;

impl Agent {
    /// The lease has to be prolonged, or its value replaced.
    pub(super) fn presence_to_publish(&self, now: Duration, facts: &Facts) -> Option<Presence> {
        if now < self.keep_after || self.seen.is_none() || self.withholds_lease() {
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
            sealed,
            wants_to_lead: is_replica && self.wish.is_some_and(|end| now < end),
        }
    }

    /// The machine may have lost changes of this primary that a replica has. Without a lease of the
    /// primary, that replica is elected.
    pub(super) fn withholds_lease(&self) -> bool {
        let Some(shard) = self.shard() else { return false };
        let nodes = self.seen.iter().flat_map(|seen| &seen.nodes);
        let mut others = nodes.filter(|(node, _)| **node != self.me.node);
        self.me.may_have_lost
            && !self.has_begun
            && shard.primary == self.me.node
            && others.any(|(node, it)| shard.member(*node).is_some() && can_lead(shard, it))
    }
}
