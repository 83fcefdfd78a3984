// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of nodes.

use super::event::{Call, Event};
use super::ms;
use super::node::Node;
use super::world::World;
use crate::registry::Registry;

impl World {
    /// A node has a fault, unless enough others of its shard have one.
    pub fn fault(&mut self, node: usize) {
        if !self.has_faults {
            return;
        }
        self.later(ms(300), ms(4_000), node, None, Event::Fault);
        if self.failures(node) >= self.random.usize(1..=2) || self.nodes[node].process.is_none() {
            return;
        }
        let duration = self.random.u64(50..4_000);
        match self.random.u32(..9) {
            0 => self.kill(node, false),
            1 => self.kill(node, true),
            2 | 3 => self.nodes[node].paused_until = self.now + ms(duration),
            4 | 5 => {
                self.nodes[node].is_cut = true;
                self.later(ms(duration), ms(duration), node, None, Event::Join);
            }
            6 => self.cut_link(node, duration),
            7 => self.end(node),
            _ => {
                let now = self.nodes[node].clock.local(self.now);
                if let Some(process) = self.process(node) {
                    process.agent.wants_to_lead(now);
                }
                self.wake_now(node);
            }
        }
        self.note_failures(node);
    }

    fn kill(&mut self, node: usize, is_machine: bool) {
        self.nodes[node].process = None;
        if is_machine {
            let end = self.nodes[node].log.end();
            let left = self.random.usize(self.nodes[node].durable.min(end)..=end);
            let it = &mut self.nodes[node];
            it.log.cut(left);
            it.durable = left;
            it.has_lost |= left < end;
            it.is_rebooted = true;
        }
        self.later(ms(10), ms(3_000), node, None, Event::Start);
    }

    /// A node ends as an operator wants it.
    fn end(&mut self, node: usize) {
        let Some(presence) = self.process(node).and_then(|process| process.published.take()) else {
            return;
        };
        self.nodes[node].process = None;
        let leave = Call::Leave(presence.session);
        self.later(ms(0), ms(20), node, None, Event::Effect(leave, None));
        self.later(ms(10), ms(3_000), node, None, Event::Start);
    }

    /// A node starts.
    pub fn start(&mut self, node: usize) {
        if self.nodes[node].process.is_none() {
            self.last_number += 1;
            let session = self.last_number;
            self.nodes[node].start(session);
            self.wake_now(node);
        }
    }

    fn cut_link(&mut self, node: usize, duration: u64) {
        let shard = self.nodes[node].shard;
        let others = (0..self.nodes.len()).filter(|other| self.nodes[*other].shard == shard);
        let others: Vec<usize> = others.filter(|other| *other != node).collect();
        let other = others[self.random.usize(..others.len())];
        let (first, second) = (node.min(other), node.max(other));
        self.cut_links.insert((first, second));
        self.later(ms(duration), ms(duration), first, None, Event::Connect(second));
    }

    /// Number of nodes of a node's shard that have failed.
    fn failures(&self, node: usize) -> usize {
        let state = self.client.read().expect("the registry answers");
        let has_failed = |it: &&Node| {
            let has_lease = state.nodes.contains_key(&it.id);
            let is_copying = it.process.as_ref().is_some_and(|process| process.is_copying);
            !it.is_running(self.now) || it.is_cut || it.has_lost || !has_lease || is_copying
        };
        let shard = self.nodes[node].shard;
        self.nodes.iter().filter(|it| it.shard == shard).filter(has_failed).count()
    }

    /// The number of failed nodes may have changed.
    pub fn note_failures(&mut self, node: usize) {
        let failures = self.failures(node);
        self.clients[self.nodes[node].shard].failed(failures);
    }
}
