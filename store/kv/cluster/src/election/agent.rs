// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decides what a node does next.

use std::time::Duration;

use super::lease::Lease;
use super::role::Role;
use crate::address::Address;
use crate::id::NodeId;
use crate::registry::{Presence, RegistryError, Revision, State, SwapError, Versioned};
use crate::topology::{Shard, Topology};

/// A node, as it was started.
#[derive(Clone, Debug)]
pub struct Me {
    /// Its name.
    pub node: NodeId,
    /// A random number of the process.
    pub session: u64,
    /// Its addresses.
    pub address: Address,
    /// Time of a lease.
    pub lease: Duration,
    /// The machine may have lost the last changes, because it has been started since. Then a
    /// replica that is present is preferred as primary.
    pub may_have_lost: bool,
}

/// Facts that the agent does not decide: the state of the node's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Bytes of the log.
    pub position: u64,
    /// The term that covers the end of the log; 0 if there never was complete data.
    pub term: u64,
    /// A whole copy of the primary's data replaces that log, and is not complete yet.
    pub is_copying: bool,
    /// Positions that the replicas of this primary have confirmed.
    pub confirmed: Vec<(NodeId, u64)>,
    /// Commands have stopped since [`Action::Stop`], and the log has all of them.
    pub has_stopped: bool,
}

/// The primary that a replica follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Its name.
    pub node: NodeId,
    /// Its addresses.
    pub address: Address,
    /// Its term.
    pub term: u64,
}

/// A change of the topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// Revision of the topology that is replaced.
    pub expected: Revision,
    /// A node that may not have a lease.
    pub absent: Option<NodeId>,
    /// The new topology.
    pub topology: Topology,
}

/// Something that the node has to do. It reports the result before it asks for the next action;
/// only a change of its part in the shard or of the topology may be under way meanwhile, so that
/// neither stops the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the registry; see [`Agent::saw`] and [`Agent::read_failed`].
    Read,
    /// Begin or prolong the lease; see [`Agent::kept`].
    Keep(Presence),
    /// Replace the topology; see [`Agent::swapped`].
    Swap(Box<Swap>),
    /// Be the primary of a term, with a new history; see [`Agent::carried_out`].
    Lead {
        /// The term.
        term: u64,
    },
    /// Be a replica; see [`Agent::carried_out`].
    Follow(Leader),
    /// Take no more changes. When this is done, the position is final; see
    /// [`Agent::carried_out`].
    Seal,
    /// Show this state to clients.
    Show(State),
    /// Commands on slots of the shard wait from now on; see [`Facts::has_stopped`]. Does not wait.
    Stop,
    /// Commands continue.
    Continue,
    /// Nothing until this time, or until there is a new state of the registry or of the log.
    Wait(Duration),
}

/// Decides what a node does next.
#[derive(Debug)]
pub struct Agent {
    pub(super) me: Me,
    pub(super) lease: Lease,
    pub(super) role: Role,
    /// The role that it has when the present action is carried out.
    pending: Option<Role>,
    pub(super) seen: Option<State>,
    shown: Option<State>,
    pub(super) published: Option<Presence>,
    /// Nothing is decided before the registry was read.
    must_read: bool,
    read_after: Duration,
    pub(super) keep_after: Duration,
    act_after: Duration,
    swapping: Option<Swapping>,
    /// The last change of the topology by this node made it the primary of this term, with a lease
    /// of this number.
    pub(super) claim: Option<(u64, u64)>,
    /// Commands wait, because another node becomes the primary.
    pub(super) stopped: Option<HandOver>,
    pub(super) hand_over_after: Duration,
    /// The node wants to lead until this time.
    pub(super) wish: Option<Duration>,
    /// It has had a lease since it was started.
    pub(super) has_begun: bool,
    /// The last action prolonged the lease. If that is due again already, because calls are slow,
    /// other decisions have their turn first.
    pub(super) has_just_kept: bool,
    /// With a lease, it has had another part than the topology asks for since this time.
    owes_since: Option<Duration>,
}

/// Times of a lease after which a node that does not get its part lets its lease end.
const MOST_OWED: u32 = 3;
/// Times of a lease after which a node that lets its lease end tries again.
const AWAY: u32 = 2;

/// A change of the topology that is under way.
#[derive(Debug)]
struct Swapping {
    topology: Topology,
    claim: Option<(u64, u64)>,
}

/// A planned change of the primary.
#[derive(Debug)]
pub(super) struct HandOver {
    /// The next primary.
    pub to: NodeId,
    /// The present term.
    pub term: u64,
    /// When it is given up.
    pub until: Duration,
    /// It is not known if the topology was replaced, or still will be. Commands may continue only
    /// after another change of the topology.
    pub is_in_doubt: bool,
}

impl Agent {
    /// A node that has just started.
    pub fn new(me: Me) -> Self {
        Self {
            lease: Lease::new(me.lease),
            me,
            role: Role::None,
            seen: None,
            shown: None,
            published: None,
            must_read: true,
            read_after: Duration::ZERO,
            keep_after: Duration::ZERO,
            act_after: Duration::ZERO,
            pending: None,
            swapping: None,
            claim: None,
            stopped: None,
            hand_over_after: Duration::ZERO,
            wish: None,
            has_begun: false,
            has_just_kept: false,
            owes_since: None,
        }
    }

    /// The action that the node has to carry out now.
    pub fn next(&mut self, now: Duration, facts: &Facts) -> Action {
        let reads = self.must_read && now >= self.read_after;
        // Reading can take longer than the rest of a lease.
        if reads && !self.has_begun {
            return Action::Read;
        }
        self.let_go_if_owing(now);
        let keep = self.presence_to_publish(now, facts);
        let has_just_kept = std::mem::take(&mut self.has_just_kept);
        match keep {
            Some(presence) if !has_just_kept => self.keep(presence),
            _ if reads => Action::Read,
            keep => self.decide(now, facts).unwrap_or_else(|| match keep {
                Some(presence) => self.keep(presence),
                None => Action::Wait(self.next_time(now)),
            }),
        }
    }

    fn keep(&mut self, presence: Presence) -> Action {
        self.has_just_kept = true;
        Action::Keep(presence)
    }

    /// An action other than those for the lease and the view of the registry.
    fn decide(&mut self, now: Duration, facts: &Facts) -> Option<Action> {
        if self.pending.is_some() || self.swapping.is_some() {
            return None;
        }
        if !self.must_read
            && now >= self.act_after
            && let Some(action) = self.act(now, facts)
        {
            return Some(action);
        }
        if let Some(seen) = &self.seen
            && self.shown.as_ref().is_none_or(|shown| seen.is_news(shown))
        {
            self.shown = self.seen.clone();
            return Some(Action::Show(seen.clone()));
        }
        if self.stopped.as_ref().is_some_and(|stopped| !self.leads(stopped.term)) {
            self.stopped = None;
            return Some(Action::Continue);
        }
        None
    }

    /// The node has another part than the topology asks for: a change of it or of the topology is
    /// under way, or the node is the primary and may not serve.
    fn owes(&self, now: Duration) -> bool {
        let is_primary = self.shard().is_some_and(|shard| shard.primary == self.me.node);
        let is_changing = self.pending.is_some() || self.swapping.is_some();
        is_changing || is_primary && now >= self.serves_until()
    }

    /// A node that does not get its part, for example because a script does not end, would stop
    /// elections by its lease. It lets the lease end, and tries again later.
    fn let_go_if_owing(&mut self, now: Duration) {
        if !self.owes(now) {
            self.owes_since = None;
        }
        let lease = self.me.lease;
        if self.owes_since.is_some_and(|since| now >= since + MOST_OWED * lease) {
            self.owes_since = None;
            // Without a lease, it may take one as soon as the registry answers.
            if now < self.lease.valid_until() + lease {
                self.keep_after = now + AWAY * lease;
            }
        }
    }

    /// There is a state of the registry: one that was asked for, or another that is new. One that
    /// is older than the last is ignored.
    pub fn saw(&mut self, state: State, is_answer: bool) {
        let revision = |state: &State| state.topology.as_ref().map(|stored| stored.revision);
        if self.seen.as_ref().is_some_and(|seen| revision(&state) < revision(seen)) {
            return;
        }
        self.seen = Some(state);
        self.must_read &= !is_answer;
    }

    /// The registry has to be read, because another part of the node has changed it.
    pub fn refresh(&mut self) {
        (self.must_read, self.read_after) = (true, Duration::ZERO);
    }

    /// The registry could not be read.
    pub fn read_failed(&mut self, now: Duration) {
        self.read_after = now + self.pause();
    }

    /// The lease was prolonged with a presence, or not, by a call that lasted from one time to
    /// another.
    pub fn kept(
        &mut self,
        presence: Presence,
        (began, ended): (Duration, Duration),
        result: &Result<(), RegistryError>,
    ) {
        match result {
            Ok(()) => {
                self.lease.prolong(began, ended);
                self.has_begun = true;
                self.published = Some(presence);
                self.owes_since = self.owes_since.or(self.owes(ended).then_some(ended));
            }
            Err(error) => {
                if *error == RegistryError::Taken {
                    self.lease.end();
                }
                self.keep_after = ended + self.pause();
            }
        }
    }

    /// The topology was replaced, or not.
    pub fn swapped(&mut self, now: Duration, result: &Result<Revision, SwapError>) {
        let Some(Swapping { topology, claim }) = self.swapping.take() else { return };
        match result {
            Ok(revision) => {
                self.claim = claim;
                // A later change may have been seen before this answer.
                if let Some(seen) = &mut self.seen
                    && seen.topology.as_ref().is_none_or(|stored| stored.revision < *revision)
                {
                    seen.topology = Some(Versioned { revision: *revision, topology });
                }
            }
            Err(SwapError::Changed | SwapError::Present) => {
                (self.must_read, self.read_after) = (true, now);
            }
            Err(SwapError::Unknown(_)) => {
                (self.must_read, self.read_after) = (true, now);
                self.stopped.iter_mut().for_each(|stopped| stopped.is_in_doubt = true);
            }
            Err(SwapError::Failed(_) | SwapError::Invalid(_)) => {
                self.act_after = now + self.pause();
            }
        }
    }

    /// The node has carried out the last change of its role, or could not. A primary that cannot
    /// lead lets its lease end, so that another node is elected, unless it succeeds before.
    pub fn carried_out(&mut self, now: Duration, is_done: bool) {
        let Some(role) = self.pending.take() else { return };
        let leads = matches!(role, Role::Leads { .. });
        if is_done {
            self.role = role;
            self.keep_after = now;
            if leads {
                self.wish = None;
            }
        } else {
            self.act_after = now + self.pause();
            if leads {
                self.keep_after = now + AWAY * self.me.lease;
            }
        }
    }

    /// An operator wants this node to lead. Returns whether it is a replica; then the primary hands
    /// over within two times of a lease, or nothing happens.
    pub fn wants_to_lead(&mut self, now: Duration) -> bool {
        let is_replica = matches!(self.role, Role::Follows(_));
        self.wish = is_replica.then_some(now + 2 * self.me.lease);
        is_replica
    }

    /// Until when the node may answer clients, unless it is asked again before.
    pub fn serves_until(&self) -> Duration {
        let is_settled = match self.role {
            Role::Leads { series, .. } => series == self.lease.series(),
            _ => self.shard().is_none_or(|shard| shard.primary != self.me.node),
        };
        if is_settled { self.lease.valid_until() } else { Duration::ZERO }
    }

    /// The node has a lease for certain, whether or not it may answer clients.
    pub fn has_lease(&self, now: Duration) -> bool {
        self.lease.is_valid(now)
    }

    /// The node is the primary of a term, with an uninterrupted lease.
    pub(super) fn leads(&self, term: u64) -> bool {
        self.role == Role::Leads { term, series: self.lease.series() }
    }

    /// The shard of this node, as it was last seen.
    pub(super) fn shard(&self) -> Option<&Shard> {
        self.seen.as_ref()?.topology.as_ref()?.topology.shard_of(self.me.node)
    }

    pub(super) fn swap(
        &mut self,
        expected: &Versioned,
        topology: Topology,
        absent: Option<NodeId>,
        claim: Option<(u64, u64)>,
    ) -> Action {
        self.swapping = Some(Swapping { topology: topology.clone(), claim });
        Action::Swap(Box::new(Swap { expected: expected.revision, absent, topology }))
    }

    /// The node has a role when it has carried out an action.
    pub(super) fn take(&mut self, role: Role, action: Action) -> Action {
        self.pending = Some(role);
        action
    }

    /// Time between attempts.
    fn pause(&self) -> Duration {
        self.me.lease / 15
    }

    fn next_time(&self, now: Duration) -> Duration {
        let read = self.must_read.then_some(self.read_after);
        let poll = self.stopped.as_ref().map(|_| now + self.me.lease / 500);
        let keep = self.lease.next().max(self.keep_after);
        let times = [read, poll, self.wish, Some(keep), Some(self.act_after)];
        let latest = now + self.me.lease / 3;
        times.into_iter().flatten().filter(|time| *time > now).fold(latest, Duration::min)
    }
}

#[cfg(test)]
mod tests;
