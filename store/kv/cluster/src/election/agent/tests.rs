// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decisions of one agent, step by step.

use super::*;
use crate::id::ShardId;
use crate::slot_set::SlotSet;
use crate::topology::Member;

const LEASE: Duration = Duration::from_millis(1_000);

/// A node with the registry that it sees.
struct Trial {
    agent: Agent,
    state: State,
    facts: Facts,
    now: Duration,
    /// Time of a call that prolongs the lease. Other calls take none.
    keep: Duration,
}

impl Trial {
    /// The primary of a shard with some replicas without a lease; it has just started.
    fn new(replicas: usize) -> Self {
        let ids: Vec<_> = (0..=replicas).map(|_| NodeId::random()).collect();
        let (node, address) = (ids[0], Address::default());
        let members = ids.iter().map(|id| Member { id: *id, address: Address::default() });
        let shard = Shard {
            id: ShardId::random(),
            slots: SlotSet::all(),
            primary: node,
            term: 1,
            since: 0,
            members: members.collect(),
        };
        let topology = Topology { epoch: 1, shards: vec![shard], moves: vec![] };
        let topology = Some(Versioned { revision: Revision(1), topology });
        let me = Me { node, session: 1, address, lease: LEASE, may_have_lost: false };
        Self {
            agent: Agent::new(me),
            state: State { topology, nodes: Default::default() },
            facts: Facts::default(),
            now: LEASE,
            keep: LEASE * 2 / 5,
        }
    }

    fn shard(&mut self) -> &mut Shard {
        let stored = self.state.topology.as_mut().expect("there is one");
        &mut stored.topology.shards[0]
    }

    /// A replica has a lease.
    fn present(&mut self, replica: usize, presence: Presence) {
        let node = self.shard().members[replica].id;
        self.state.nodes.insert(node, presence);
        self.agent.saw(self.state.clone(), false);
    }

    fn swap(&mut self, swap: &Swap) -> Result<Revision, SwapError> {
        let revision = Revision(swap.expected.0 + 1);
        self.state.topology = Some(Versioned { revision, topology: swap.topology.clone() });
        Ok(revision)
    }

    /// Carries out actions until one that a test looks for, but not that one.
    fn until(&mut self, is_end: impl Fn(&Action) -> bool) -> Option<Action> {
        for _ in 0..20 {
            let action = self.agent.next(self.now, &self.facts);
            if is_end(&action) {
                return Some(action);
            }
            match action {
                Action::Read => self.agent.saw(self.state.clone(), true),
                Action::Keep(presence) => self.kept(presence),
                Action::Swap(swap) => {
                    let result = self.swap(&swap);
                    self.agent.swapped(self.now, &result);
                }
                Action::Wait(until) => self.now = until,
                _ => {}
            }
        }
        None
    }

    fn kept(&mut self, presence: Presence) {
        let began = self.now;
        self.now += self.keep;
        self.agent.kept(presence, (began, self.now), &Ok(()));
    }

    fn lead(&mut self) {
        assert!(self.until(leads).is_some());
        self.agent.carried_out(self.now, true);
        assert!(self.agent.serves_until() > self.now);
    }
}

fn leads(action: &Action) -> bool {
    matches!(action, Action::Lead { .. })
}

fn keeps(action: &Action) -> bool {
    matches!(action, Action::Keep(_))
}

fn swaps(action: &Action) -> bool {
    matches!(action, Action::Swap(_))
}

fn replica((term, position): (u64, u64), sealed: Option<u64>) -> Presence {
    Presence {
        session: 2,
        address: Address::default(),
        position,
        term,
        is_copying: false,
        sealed,
        wants_to_lead: false,
    }
}

#[test]
fn slow_calls_for_the_lease_leave_turns_to_other_decisions() {
    let mut trial = Trial::new(0);
    trial.lead();
    let shows = |action: &Action| matches!(action, Action::Show(_));
    assert!(trial.until(shows).is_some());
    assert!(trial.agent.serves_until() > trial.now, "the lease lasts");
}

#[test]
fn the_lease_goes_on_while_the_registry_is_read_or_changed() {
    let mut trial = Trial::new(0);
    assert!(trial.until(swaps).is_some());
    let Some(Action::Keep(presence)) = trial.until(keeps) else {
        panic!("the lease is not prolonged during the change");
    };
    trial.keep = LEASE / 10;
    trial.kept(presence);
    assert!(matches!(trial.agent.next(trial.now, &trial.facts), Action::Wait(_)));
    trial.now += LEASE / 2;
    trial.agent.refresh();
    assert!(keeps(&trial.agent.next(trial.now, &trial.facts)), "before it is read");
    assert_eq!(trial.agent.next(trial.now, &trial.facts), Action::Read);
}

#[test]
fn a_node_that_does_not_get_its_part_lets_its_lease_end() {
    let mut trial = Trial::new(0);
    assert!(trial.until(leads).is_some());
    let begin = trial.now;
    while trial.agent.has_lease(trial.now) {
        assert!(trial.now < begin + 6 * LEASE, "it keeps its lease for ever");
        trial.until(|action| matches!(action, Action::Wait(_)));
        trial.now += LEASE / 10;
    }
    assert!(trial.now > begin + 2 * LEASE);
    assert!(!keeps(&trial.agent.next(trial.now, &trial.facts)));
    let again = trial.until(keeps);
    assert!(again.is_some() && trial.now > begin + 4 * LEASE, "it tries again");
    trial.agent.carried_out(trial.now, true);
    assert!(trial.until(swaps).is_some(), "with another lease, it begins another term");
}

#[test]
fn a_hand_over_in_doubt_ends_with_the_next_term() {
    let mut trial = Trial::new(1);
    trial.keep = LEASE / 100;
    trial.lead();
    let (to, term) = (trial.shard().members[1].id, trial.shard().term);
    trial.present(1, Presence { wants_to_lead: true, ..replica((term, 0), None) });
    assert!(trial.until(|action| *action == Action::Stop).is_some());
    trial.facts.has_stopped = true;
    trial.facts.confirmed = vec![(to, 0)];
    assert!(trial.until(swaps).is_some());
    let lost = RegistryError::Unavailable("the answer is lost".into());
    trial.agent.swapped(trial.now, &Err(SwapError::Unknown(lost)));
    trial.state.nodes.clear();
    trial.lead();
    assert_eq!(trial.shard().term, term + 1);
    assert_eq!(trial.until(|action| *action == Action::Continue), Some(Action::Continue));
    assert_eq!(trial.shard().term, term + 1, "one other term suffices");
}

/// The node was elected, and its machine has failed before its term began.
#[test]
fn a_primary_that_has_lost_changes_gives_way_to_a_replica_that_has_them() {
    let mut trial = Trial::new(2);
    trial.agent.me.may_have_lost = true;
    (trial.shard().term, trial.shard().since) = (4, 4);
    (trial.facts.term, trial.facts.position) = (2, 18);
    let heir = trial.shard().members[1].id;
    trial.present(1, replica((2, 19), Some(4)));
    trial.present(2, replica((2, 17), None));
    assert_eq!(trial.until(|action| keeps(action) || swaps(action)), None, "one is not sealed");
    trial.present(2, replica((2, 17), Some(4)));
    let Some(Action::Swap(swap)) = trial.until(|action| keeps(action) || swaps(action)) else {
        panic!("it takes a lease");
    };
    let shard = &swap.topology.shards[0];
    assert_eq!((shard.primary, shard.term, shard.since), (heir, 5, 5));
}

#[test]
fn a_primary_that_has_most_leads_after_a_failure_of_its_machine() {
    let mut trial = Trial::new(1);
    trial.agent.me.may_have_lost = true;
    (trial.shard().term, trial.shard().since) = (4, 4);
    (trial.facts.term, trial.facts.position) = (2, 18);
    trial.present(1, replica((2, 18), Some(4)));
    trial.lead();
}
