// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes of clients, and the links between primaries and replicas.

use super::event::Event;
use super::node::{Node, Part, Waiting};
use super::world::World;
use super::{Flaw, ms};
use crate::id::NodeId;

/// A replica with more writes before it gets a whole copy.
const BACKLOG: usize = 100;

impl World {
    /// A client of a shard writes to a node that takes it, and waits for some replicas.
    pub fn write(&mut self, node: usize) -> Result<(), String> {
        let shard = self.nodes[node].shard;
        let is_open = |it: &Node| {
            let stopped = it.process.as_ref().is_none_or(|process| process.has_stopped);
            it.shard == shard
                && it.is_running(self.now)
                && it.serves(self.now).is_some()
                && !stopped
        };
        if let Some(primary) = self.nodes.iter().position(is_open) {
            self.last_number += 1;
            let write = self.last_number;
            let it = &mut self.nodes[primary];
            it.log.writes.push(write);
            if self.random.u32(..4) == 0 {
                it.durable = it.log.end();
            }
            let position = it.log.end();
            let replicas = self.random.usize(1..=2);
            if let Some(process) = self.process(primary) {
                process.waiting.push(Waiting { write, position, replicas });
            }
            self.wake_now(primary);
        }
        if self.has_faults {
            self.later(ms(5), ms(40), node, None, Event::Write);
        }
        Ok(())
    }

    /// A replica gets the next writes of its primary.
    pub fn pull(&mut self, node: usize) {
        let Some(process) = self.process(node) else { return };
        let Part::Follows { leader } = process.part else { return };
        self.soon(5, 60, node, Event::Pull);
        let link = (node.min(leader), node.max(leader));
        let leads = self.nodes[leader]
            .process
            .as_ref()
            .is_some_and(|process| matches!(process.part, Part::Leads { .. }));
        if !leads || !self.nodes[leader].is_running(self.now) || self.cut_links.contains(&link) {
            return;
        }
        let others = self.nodes[leader].log.clone();
        let is_far = self.nodes[node].log.end() + BACKLOG < others.end();
        let continues = others.covers(self.nodes[node].log.place()) && !is_far;
        let (count, is_copied) = (self.random.usize(0..=4), self.random.u32(..4) == 0);
        let is_synced = self.random.u32(..4) == 0;
        let it = &mut self.nodes[node];
        let Some(process) = &mut it.process else { return };
        if process.is_copying && is_copied {
            it.log = others.clone();
            process.is_copying = false;
        } else if continues {
            process.is_copying = false;
            it.log.continue_with(&others, count);
        } else {
            process.is_copying = true;
        }
        it.durable = if is_synced { it.log.end() } else { it.durable.min(it.log.end()) };
        it.has_lost &= it.log.end() < others.end();
        if process.is_copying {
            self.note_failures(node);
        } else {
            let (id, position) = (it.id, it.log.end());
            self.soon(0, 20, leader, Event::Confirm(id, position));
        }
        self.wake_now(node);
    }

    /// A primary learns how far a replica is, and answers its clients if it may.
    pub fn confirm(&mut self, node: usize, replica: NodeId, position: usize) -> Result<(), String> {
        let ignores_fence = self.flaw == Some(Flaw::OpenFence);
        let local = self.nodes[node].clock.local(self.now);
        let shard = self.nodes[node].shard;
        let Some(process) = self.nodes[node].process.as_mut() else { return Ok(()) };
        let Part::Leads { term } = process.part else { return Ok(()) };
        let confirmed = process.confirmed.entry(replica).or_default();
        *confirmed = position.max(*confirmed);
        if local >= process.fence && !ignores_fence {
            return Ok(());
        }
        let has = |waiting: &Waiting| {
            let confirmed = process.confirmed.values();
            confirmed.filter(|position| **position >= waiting.position).count() >= waiting.replicas
        };
        let (done, waiting) = process.waiting.iter().partition(|waiting| has(waiting));
        let done: Vec<Waiting> = done;
        let primary = (term, process.has_stopped);
        process.waiting = waiting;
        for Waiting { write, replicas, .. } in done {
            self.clients[shard].acknowledge(primary, write, replicas)?;
        }
        self.wake_now(node);
        Ok(())
    }
}
