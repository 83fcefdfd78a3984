// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The actions of a node in its shard.

use std::time::Duration;

use super::agent::{Action, Agent, Facts, HandOver, Leader};
use super::ballot::{Verdict, verdict};
use super::change;
use super::role::Role;
use crate::registry::{State, Versioned};
use crate::topology::{Member, Shard};

impl Agent {
    /// The next action that the topology asks for.
    pub(super) fn act(&mut self, now: Duration, facts: &Facts) -> Option<Action> {
        // Nothing here sees another state, and copies of it are large.
        let seen = self.seen.take()?;
        let action = self.act_on(now, &seen, facts);
        self.seen = Some(seen);
        action
    }

    fn act_on(&mut self, now: Duration, seen: &State, facts: &Facts) -> Option<Action> {
        let shard = seen.topology.as_ref().and_then(|it| it.topology.shard_of(self.me.node));
        let (Some(stored), Some(shard)) = (&seen.topology, shard) else {
            return (self.role != Role::None).then(|| self.take(Role::None, Action::Seal));
        };
        let settled = match shard.primary == self.me.node {
            true => self.be_primary(now, (seen, stored, shard), facts),
            false => self.be_replica(now, (seen, stored, shard)),
        };
        settled.or_else(|| self.readdress(now, (stored, shard)))
    }

    /// The topology has the addresses that the node had before.
    fn readdress(
        &mut self,
        now: Duration,
        (stored, shard): (&Versioned, &Shard),
    ) -> Option<Action> {
        let mine = (self.me.node, &self.me.address);
        if shard.member(mine.0)?.address == *mine.1 || !self.lease.is_valid(now) {
            return None;
        }
        let next = change::readdress(&stored.topology, shard.id, mine);
        Some(self.swap(stored, next, None, self.claim))
    }

    fn be_primary(
        &mut self,
        now: Duration,
        (seen, stored, shard): (&State, &Versioned, &Shard),
        facts: &Facts,
    ) -> Option<Action> {
        if self.withholds_lease(seen, facts) {
            return self.give_way((seen, stored, shard), facts);
        }
        if !self.lease.is_valid(now) {
            return None;
        }
        let (term, series) = (shard.term, self.lease.series());
        // Another replacement has made the one that is in doubt impossible.
        let is_in_doubt = self
            .stopped
            .as_ref()
            .is_some_and(|stopped| stopped.is_in_doubt && stopped.term == term);
        // A replica that has sealed this term would never follow.
        let is_sealed = |node: &Member| {
            seen.nodes.get(&node.id).is_some_and(|presence| presence.sealed == Some(term))
        };
        if self.leads(term) && !is_in_doubt && !shard.replicas().any(is_sealed) {
            return self.hand_over(now, (seen, stored, shard), facts);
        }
        if self.claim == Some((term, series)) && !self.leads(term) {
            return Some(self.take(Role::Leads { term, series }, Action::Lead { term }));
        }
        let next = change::renew(&stored.topology, shard.id);
        Some(self.swap(stored, next, None, Some((term + 1, series))))
    }

    /// Makes a replica the primary which has more than this node, when all positions are final.
    fn give_way(
        &mut self,
        (seen, stored, shard): (&State, &Versioned, &Shard),
        facts: &Facts,
    ) -> Option<Action> {
        let heir = self.heir(shard, seen, facts)?;
        let has_sealed = |replica: &Member| {
            let presence = seen.nodes.get(&replica.id);
            presence.is_none_or(|presence| presence.sealed == Some(shard.term))
        };
        shard.replicas().all(has_sealed).then(|| {
            let next = change::elect(&stored.topology, shard.id, heir);
            self.swap(stored, next, None, None)
        })
    }

    /// Lets a replica that wants to lead become the primary.
    fn hand_over(
        &mut self,
        now: Duration,
        (seen, stored, shard): (&State, &Versioned, &Shard),
        facts: &Facts,
    ) -> Option<Action> {
        let term = shard.term;
        let Some(stopped) = &self.stopped else {
            let wants = |member: &&Member| {
                let presence = seen.nodes.get(&member.id);
                presence.is_some_and(|it| it.wants_to_lead && it.term == term)
            };
            if now < self.hand_over_after {
                return None;
            }
            let to = shard.replicas().find(wants)?.id;
            let until = now + self.me.lease / 2;
            self.stopped = Some(HandOver { to, term, until, is_in_doubt: false });
            return Some(Action::Stop);
        };
        // Otherwise commands continue, because the term is another one.
        if stopped.term != term {
            return None;
        }
        if now >= stopped.until || !seen.nodes.contains_key(&stopped.to) {
            self.stopped = None;
            self.hand_over_after = now + self.me.lease;
            return Some(Action::Continue);
        }
        let has_all = |(node, position): &(_, u64)| {
            *node == stopped.to && *position >= facts.position && facts.has_stopped
        };
        let has_all = facts.confirmed.iter().any(has_all);
        let next = || change::hand_over(&stored.topology, shard.id, stopped.to);
        has_all.then(next).map(|next| self.swap(stored, next, None, None))
    }

    fn be_replica(
        &mut self,
        now: Duration,
        (seen, stored, shard): (&State, &Versioned, &Shard),
    ) -> Option<Action> {
        let (term, primary) = (shard.term, shard.primary());
        if self.role == (Role::Sealed { term }) {
            let is_elected = verdict(shard, &seen.nodes) == Verdict::Elected(self.me.node);
            return (is_elected && self.lease.is_valid(now)).then(|| {
                let next = change::elect(&stored.topology, shard.id, self.me.node);
                let claim = Some((term + 1, self.lease.series()));
                self.swap(stored, next, Some(primary.id), claim)
            });
        }
        let Some(presence) = seen.nodes.get(&primary.id) else {
            return Some(self.take(Role::Sealed { term }, Action::Seal));
        };
        let leader = Leader { node: primary.id, address: presence.address.clone(), term };
        let role = Role::Follows(leader.clone());
        (self.role != role).then(|| self.take(role, Action::Follow(leader)))
    }
}
