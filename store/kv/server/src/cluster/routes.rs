// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the node treats commands on each slot, at present.

use std::sync::Arc;

use freeport_kv_cluster::SlotSet;
use freeport_kv_protocol::slots::SLOTS;

use super::view::View;

/// How a node treats commands on a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotState {
    /// It executes them.
    Served,
    /// It executes reads of clients that have sent `READONLY`. Its primary executes the others.
    Copied,
    /// Another shard serves it.
    Elsewhere,
    /// They wait.
    Stopped,
    /// Nobody serves it.
    Nobody,
}

/// A part of the server that stops slots. Each resumes what it has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopper {
    /// A move of slots to another shard.
    Move,
    /// A planned change of the primary.
    HandOver,
}

/// Slots whose commands wait, by who has stopped them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoppedSlots {
    moving: SlotSet,
    handed_over: SlotSet,
}

impl StoppedSlots {
    /// Slots that one has stopped.
    pub fn by(&mut self, stopper: Stopper) -> &mut SlotSet {
        match stopper {
            Stopper::Move => &mut self.moving,
            Stopper::HandOver => &mut self.handed_over,
        }
    }

    fn has(&self, slot: u16) -> bool {
        self.moving.has(slot) || self.handed_over.has(slot)
    }
}

/// The state of each slot. A value does not change; workers have the last one.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The view that they follow from.
    pub view: Arc<View>,
    /// Slots whose commands wait.
    pub stopped: StoppedSlots,
    /// Another node becomes the primary, and the log may not grow.
    pub hands_over: bool,
    /// Clients of copied slots wait, because the primary cannot execute their commands yet; see
    /// [`View::awaits_primary`].
    pub awaits_primary: bool,
    states: Box<[SlotState]>,
}

impl Routes {
    /// The routes of a view, with slots whose commands wait.
    pub fn new(view: Arc<View>, stopped: StoppedSlots) -> Self {
        let find = |slot| match view.owner(slot) {
            Some(owner) if owner.primary == view.me && stopped.has(slot) => SlotState::Stopped,
            Some(owner) if owner.primary == view.me => SlotState::Served,
            Some(owner) if owner.member(view.me).is_some() => SlotState::Copied,
            Some(_) => SlotState::Elsewhere,
            None => SlotState::Nobody,
        };
        let states = (0..SLOTS).map(find).collect();
        let hands_over = !stopped.handed_over.is_empty();
        Self { awaits_primary: view.awaits_primary(), view, hands_over, stopped, states }
    }

    /// How the node treats commands on a slot.
    ///
    /// # Panics
    /// No slot has that number.
    #[inline]
    pub fn state(&self, slot: u16) -> SlotState {
        self.states[usize::from(slot)]
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_cluster::{NodeId, State, Versioned};

    use super::*;
    use crate::cluster::testing::{presence, shard, topology};

    #[test]
    fn every_slot_has_the_state_that_follows_from_the_view() {
        let [primary, replica, other] = [(); 3].map(|()| NodeId::random());
        let topology = topology(vec![shard("0-99", &[primary, replica]), shard("100", &[other])]);
        let state = State {
            topology: Some(Versioned { revision: Default::default(), topology }),
            ..State::default()
        };
        let states = |me: NodeId, stopped: &str| {
            let view = Arc::new(View::new(me, state.clone()));
            let mut slots = StoppedSlots::default();
            *slots.by(Stopper::Move) = stopped.parse().expect("slots");
            let routes = Routes::new(view, slots);
            [0, 99, 100, 101, 16_383].map(|slot| routes.state(slot))
        };
        use SlotState::{Copied, Elsewhere, Nobody, Served, Stopped};
        assert_eq!(states(primary, ""), [Served, Served, Elsewhere, Nobody, Nobody]);
        assert_eq!(states(primary, "50-101"), [Served, Stopped, Elsewhere, Nobody, Nobody]);
        assert_eq!(states(replica, "0"), [Copied, Copied, Elsewhere, Nobody, Nobody]);
        assert_eq!(states(other, ""), [Elsewhere, Elsewhere, Served, Nobody, Nobody]);
    }

    #[test]
    fn replicas_await_a_primary_that_has_not_begun_its_term() {
        let [primary, replica, other] = [(); 3].map(|()| NodeId::random());
        let map = topology(vec![shard("0-99", &[primary, replica]), shard("100", &[other])]);
        let topology = Some(Versioned { revision: Default::default(), topology: map });
        let mut state = State { topology, ..State::default() };
        let awaits = |me, state: &State| {
            let view = Arc::new(View::new(me, state.clone()));
            Routes::new(view, StoppedSlots::default()).awaits_primary
        };
        assert!(!awaits(replica, &state), "it is not there");
        for (term, expected) in [(0, true), (1, false)] {
            state.nodes.insert(primary, presence(term));
            assert_eq!(awaits(replica, &state), expected);
            assert!(!awaits(primary, &state) && !awaits(other, &state));
        }
    }
}
