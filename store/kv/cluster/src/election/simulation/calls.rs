// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls of the registry: they take time, and are lost on either way. A call that has failed for
//! its caller may still take effect later.

use std::time::Duration;

use super::event::{Answer, Call, Event};
use super::node::LEASE;
use super::world::World;
use super::{Flaw, ms};
use crate::registry::{Registry, RegistryError, SwapError};

/// After this time, and four of a usual call's ways, a caller gives up.
const PATIENCE: Duration = Duration::from_millis(300);

impl World {
    /// A node begins a call.
    pub fn call(&mut self, node: usize, call: Call) {
        let incarnation = self.nodes[node].incarnation;
        let failure = failure(&call);
        let is_swap = matches!(call, Call::Swap(_));
        if let Some(process) = self.process(node) {
            process.is_calling |= !is_swap;
        }
        let is_slow = self.random.u32(..100) < 3;
        let (least, most) = (self.latency - ms(10), ms(if is_slow { 250 } else { 10 }));
        let (request, answer) = (least + self.time(most), least + self.time(most));
        let call = self.spoil(node, call);
        let fate = self.random.u32(..100);
        let is_lost = fate < 4 && self.has_faults;
        if is_lost && !self.nodes[node].is_cut {
            // Its answer is lost, and it may be under way for long.
            let late = self.time(ms(if fate < 2 { 2_000 } else { 100 }));
            self.later(late, late, node, None, Event::Effect(call, None));
        } else if !self.nodes[node].is_cut {
            let answer = Some((answer, incarnation));
            return self.later(request, request, node, None, Event::Effect(call, answer));
        }
        let patience = PATIENCE + 4 * least;
        self.later(patience, patience, node, Some(incarnation), Event::Answer(failure));
    }

    fn time(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.random.u64(..=most.as_micros() as u64))
    }

    /// A node that does not know its position, if that is the flaw.
    fn spoil(&mut self, node: usize, mut call: Call) -> Call {
        if let Call::Keep(presence, _) = &mut call
            && let Some(process) = self.process(node)
        {
            let before = process.published.replace(presence.clone());
            if self.flaw == Some(Flaw::OldPositions)
                && presence.sealed.is_some()
                && let Some(before) = before
            {
                presence.position = before.position;
                if let Some(process) = self.process(node) {
                    process.published = Some(before);
                }
            }
        }
        call
    }

    /// A call takes effect.
    pub fn take_effect(&mut self, node: usize, call: Call, answer: Option<(Duration, u64)>) {
        let client = self.client.clone();
        let id = self.nodes[node].id;
        let is_read = matches!(call, Call::Read);
        let result = match call {
            Call::Read => Answer::Read(client.read().ok()),
            Call::Keep(presence, began) => {
                let result = client.keep(id, &presence, LEASE);
                self.later(LEASE, LEASE, node, None, Event::Expire);
                Answer::Keep(presence, began, result)
            }
            Call::Swap(swap) => {
                Answer::Swap(client.swap(Some(swap.expected), swap.absent, &swap.topology))
            }
            Call::Leave(session) => {
                // The process that would get an answer is gone.
                let _ = client.leave(id, session);
                return self.note_leases(node);
            }
        };
        if !is_read {
            self.note_leases(node);
        }
        if let Some((time, incarnation)) = answer {
            self.later(time, time, node, Some(incarnation), Event::Answer(result));
        }
    }

    /// Contents of the registry may have changed: if so, all nodes look at it soon.
    pub fn note_leases(&mut self, node: usize) {
        self.note_failures(node);
        let state = self.client.read().expect("the registry answers");
        if !state.is_news(&self.told) {
            return;
        }
        self.told = state;
        for node in 0..self.nodes.len() {
            if self.nodes[node].process.is_some() {
                self.soon(1, 30, node, Event::Watch);
            }
        }
    }

    /// A node looks at the registry.
    pub fn watch(&mut self, node: usize) {
        if self.nodes[node].is_cut {
            return;
        }
        let state = self.client.read().expect("the registry answers");
        let Some(process) = self.process(node) else { return };
        process.has_news = process.is_calling;
        if !process.is_calling {
            process.agent.saw(state, false);
            self.wake_now(node);
        }
    }

    /// A call is answered.
    pub fn answer(&mut self, node: usize, answer: Answer) {
        let now = self.nodes[node].clock.local(self.now);
        let Some(process) = self.process(node) else { return };
        process.is_calling &= matches!(answer, Answer::Swap(_));
        let agent = &mut process.agent;
        match answer {
            Answer::Read(Some(state)) => agent.saw(state, true),
            Answer::Read(None) => agent.read_failed(now),
            Answer::Keep(presence, began, result) => agent.kept(presence, (began, now), &result),
            Answer::Swap(result) => agent.swapped(now, &result),
        }
        self.wake_now(node);
        if self.process(node).is_some_and(|process| process.has_news) {
            self.watch(node);
        }
    }
}

fn failure(call: &Call) -> Answer {
    let error = || RegistryError::Unavailable("the answer is lost".into());
    match call {
        Call::Keep(presence, began) => Answer::Keep(presence.clone(), *began, Err(error())),
        Call::Swap(_) => Answer::Swap(Err(SwapError::Unknown(error()))),
        Call::Read | Call::Leave(_) => Answer::Read(None),
    }
}
