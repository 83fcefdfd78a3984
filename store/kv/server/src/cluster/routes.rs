// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the node does with commands on each slot, at present.

use std::sync::Arc;

use freeport_kv_cluster::{ShardId, SlotSet};
use freeport_kv_protocol::slots::SLOTS;

use super::view::View;

/// What a node does with commands on a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotState {
    /// It executes them.
    Served,
    /// It executes reads of clients that have sent `READONLY`.
    Copied,
    /// Another shard serves it.
    Elsewhere,
    /// Another shard serves it, and may not know it yet.
    Given,
    /// Another shard still serves it, but everything is here.
    Accepted,
    /// They wait.
    Stopped,
    /// Nobody serves it.
    Nobody,
}

/// Slots that were given to another shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gift {
    /// The slots.
    pub slots: SlotSet,
    /// The shard that has got them.
    pub to: ShardId,
}

/// The state of each slot. A value does not change; workers have the last one.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The view that they follow from.
    pub view: Arc<View>,
    /// Slots whose commands wait.
    pub stopped: SlotSet,
    /// Slots that were given away, and whose new primaries may not know it yet.
    pub gifts: Vec<Gift>,
    /// Slots that are served for clients that were sent here.
    pub accepted: SlotSet,
    states: Box<[SlotState]>,
}

impl Routes {
    /// Routes of a view, while no slot is moved.
    pub fn new(view: View) -> Self {
        let (stopped, accepted) = (SlotSet::default(), SlotSet::default());
        let view = Arc::new(view);
        Self { view, stopped, gifts: vec![], accepted, states: Box::default() }.counted()
    }

    /// What the node does with commands on a slot.
    #[inline]
    pub fn state(&self, slot: u16) -> SlotState {
        self.states[usize::from(slot)]
    }

    /// The same with another view.
    #[must_use]
    pub fn with_view(&self, view: View) -> Self {
        Self { view: Arc::new(view), ..self.clone() }.counted()
    }

    /// The same with other slots that wait.
    #[must_use]
    pub fn with_stopped(&self, stopped: SlotSet) -> Self {
        Self { stopped, ..self.clone() }.counted()
    }

    /// The same with other slots that are accepted.
    #[must_use]
    pub fn with_accepted(&self, accepted: SlotSet) -> Self {
        Self { accepted, ..self.clone() }.counted()
    }

    /// The same with one more gift.
    #[must_use]
    pub fn with_gift(&self, gift: Gift) -> Self {
        let mut gifts = self.without_gift(&gift.slots).gifts;
        gifts.push(gift);
        Self { gifts, ..self.clone() }.counted()
    }

    /// The same without gifts of these slots.
    #[must_use]
    pub fn without_gift(&self, slots: &SlotSet) -> Self {
        let rest = |gift: &Gift| Gift { slots: gift.slots.without(slots), to: gift.to };
        let gifts = self.gifts.iter().map(rest).filter(|gift| !gift.slots.is_empty()).collect();
        Self { gifts, ..self.clone() }.counted()
    }

    fn counted(mut self) -> Self {
        self.states = (0..SLOTS).map(|slot| self.find(slot)).collect();
        self
    }

    fn find(&self, slot: u16) -> SlotState {
        let view = &self.view;
        if self.gifts.iter().any(|gift| gift.slots.has(slot)) {
            return SlotState::Given;
        }
        if self.stopped.has(slot) {
            return SlotState::Stopped;
        }
        let Some(owner) = view.owner(slot) else { return SlotState::Nobody };
        if owner.primary == view.me {
            SlotState::Served
        } else if owner.member(view.me).is_some() {
            SlotState::Copied
        } else if self.accepted.has(slot) {
            SlotState::Accepted
        } else {
            SlotState::Elsewhere
        }
    }
}
