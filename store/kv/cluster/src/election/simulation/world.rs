// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The world of a simulation: true time, nodes, the registry, and what happens next.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

use super::checks::{Clients, check_primaries};
use super::event::{Call, Change, Event};
use super::node::{Clock, Node, Part, Process};
use super::{Flaw, ms};
use crate::address::Address;
use crate::election::Action;
use crate::id::{NodeId, ShardId};
use crate::memory::{MemoryClient, MemoryRegistry};
use crate::registry::{Registry, State};
use crate::slot_set::SlotSet;
use crate::topology::{Member, Shard, Topology};

/// Nodes of a shard.
const MEMBERS: usize = 3;
/// How long there are faults.
const TROUBLE: Duration = Duration::from_secs(12);
/// Within this time after the last fault, everything is right again.
const RECOVERY: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct Due {
    node: usize,
    /// The process that it concerns; none: the node.
    incarnation: Option<u64>,
    event: Event,
}

/// The world.
pub struct World {
    /// Random numbers.
    pub random: fastrand::Rng,
    /// True time.
    pub now: Duration,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Clients of each shard.
    pub clients: Vec<Clients>,
    /// Pairs of nodes that do not reach each other, the smaller first.
    pub cut_links: BTreeSet<(usize, usize)>,
    /// Faults still happen.
    pub has_faults: bool,
    /// Number of the last write, history or process.
    pub last_number: u64,
    /// Number of changes of primaries.
    pub changes: u64,
    /// Longest time of a usual call of the registry, each way.
    pub latency: Duration,
    /// An agent cannot decide while its node's part changes.
    waits_for_changes: bool,
    pub(super) flaw: Option<Flaw>,
    pub(super) registry: MemoryRegistry,
    pub(super) client: MemoryClient,
    /// Contents of the registry of which all nodes have had news.
    pub(super) told: State,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    due: std::collections::HashMap<u64, Due>,
    last_event: u64,
}

impl World {
    /// A new cluster whose nodes start.
    pub fn new(seed: u64, flaw: Option<Flaw>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let shards = random.usize(1..=2);
        let mut id = || -> NodeId {
            let digits: String = (0..5).map(|_| format!("{:08x}", random.u32(..))).collect();
            digits.parse().expect("an id")
        };
        let ids: Vec<NodeId> = (0..shards * MEMBERS).map(|_| id()).collect();
        let latency = ms([10, 10, 10, 150, 200][random.usize(..5)]);
        // With slow calls, no lease would outlast a change.
        let waits_for_changes = random.bool() && latency == ms(10);
        let registry = MemoryRegistry::with_time_by_hand();
        let client = registry.client();
        client.swap(None, None, &topology(&ids)).expect("a new cluster");
        let mut node = |(number, id): (usize, &NodeId)| Node {
            id: *id,
            shard: number / MEMBERS,
            log: Default::default(),
            durable: 0,
            has_lost: false,
            is_rebooted: false,
            clock: Clock {
                offset: ms(random.u64(0..1_000_000)),
                rate: match flaw {
                    Some(Flaw::SlowClocks) => 700,
                    _ => random.u32(950..=1_050),
                },
            },
            paused_until: Duration::ZERO,
            is_cut: false,
            incarnation: 0,
            process: None,
        };
        let nodes: Vec<Node> = ids.iter().enumerate().map(&mut node).collect();
        let mut world = Self {
            clients: (0..shards).map(|_| Clients::default()).collect(),
            nodes,
            random,
            now: Duration::ZERO,
            cut_links: BTreeSet::new(),
            has_faults: true,
            last_number: 0,
            changes: 0,
            latency,
            waits_for_changes,
            flaw,
            registry,
            client,
            told: State::default(),
            queue: BinaryHeap::new(),
            due: Default::default(),
            last_event: 0,
        };
        for node in 0..world.nodes.len() {
            world.later(ms(0), ms(300), node, None, Event::Start);
            world.later(ms(500), ms(3_000), node, None, Event::Fault);
        }
        (0..shards)
            .for_each(|shard| world.later(ms(0), ms(10), shard * MEMBERS, None, Event::Write));
        world
    }

    /// Lives through the time of faults, and until everything is right again.
    ///
    /// # Errors
    /// Something has happened that may not.
    pub fn live(&mut self) -> Result<(), String> {
        while self.now < TROUBLE {
            self.step()?;
        }
        self.heal();
        while !self.is_right() {
            if self.now > TROUBLE + RECOVERY {
                return Err(self.describe());
            }
            self.step()?;
        }
        for node in self.nodes.iter().filter(|node| node.serves(self.now).is_some()) {
            self.clients[node.shard].check_log(node)?;
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(Node::to_string).collect();
        format!("there still is no order at {:?}:\n{}", self.now, nodes.join("\n"))
    }

    /// Every shard has a primary, and all its other nodes have the same log.
    fn is_right(&self) -> bool {
        (0..self.clients.len()).all(|shard| {
            let members = || self.nodes.iter().filter(|node| node.shard == shard);
            let mut primaries = members().filter(|node| node.serves(self.now).is_some());
            let Some(primary) = primaries.next() else { return false };
            members().all(|node| {
                let is_copying = node.process.as_ref().is_none_or(|process| process.is_copying);
                !is_copying && node.log.place() == primary.log.place()
            })
        })
    }

    fn step(&mut self) -> Result<(), String> {
        let Reverse((time, number)) = self.queue.pop().expect("there always is a next event");
        let Due { node, incarnation, event } = self.due.remove(&number).expect("it is due");
        self.registry.advance(time - self.now);
        self.now = time;
        if incarnation.is_some() {
            let it = &self.nodes[node];
            if incarnation != Some(it.incarnation) || it.process.is_none() {
                return Ok(());
            }
            let paused_until = it.paused_until;
            if paused_until > time {
                self.push(paused_until, node, incarnation, event);
                return Ok(());
            }
        }
        self.happen(node, event)?;
        let shard = self.nodes[node].shard;
        check_primaries(&self.nodes, shard, self.now)
    }

    fn happen(&mut self, node: usize, event: Event) -> Result<(), String> {
        match event {
            Event::Run(run) => {
                if self.process(node).is_some_and(|process| process.run == run) {
                    self.run(node);
                }
            }
            Event::Effect(call, answer) => self.take_effect(node, call, answer),
            Event::Answer(answer) => self.answer(node, answer),
            Event::Watch => self.watch(node),
            Event::Change(change) => self.change(node, change)?,
            Event::Pull => self.pull(node),
            Event::Confirm(replica, position) => self.confirm(node, replica, position)?,
            Event::Write => self.write(node)?,
            Event::Expire => self.note_leases(node),
            Event::Start => self.start(node),
            Event::Fault => self.fault(node),
            Event::Join => {
                self.nodes[node].is_cut = false;
                self.note_failures(node);
                self.soon(1, 30, node, Event::Watch);
            }
            Event::Connect(other) => {
                self.cut_links.remove(&(node, other));
            }
        }
        Ok(())
    }

    /// The process of a node.
    pub fn process(&mut self, node: usize) -> Option<&mut Process> {
        self.nodes[node].process.as_mut()
    }

    /// Something happens between two times from now.
    pub fn later(
        &mut self,
        least: Duration,
        most: Duration,
        node: usize,
        incarnation: Option<u64>,
        event: Event,
    ) {
        let micros = self.random.u64(least.as_micros() as u64..=most.as_micros() as u64);
        self.push(self.now + Duration::from_micros(micros), node, incarnation, event);
    }

    /// Something happens to the present process of a node between two times from now.
    pub fn soon(&mut self, least: u64, most: u64, node: usize, event: Event) {
        let incarnation = Some(self.nodes[node].incarnation);
        self.later(ms(least), ms(most), node, incarnation, event);
    }

    fn push(&mut self, time: Duration, node: usize, incarnation: Option<u64>, event: Event) {
        self.last_event += 1;
        self.queue.push(Reverse((time, self.last_event)));
        self.due.insert(self.last_event, Due { node, incarnation, event });
    }

    /// Runs the agent at a time.
    pub fn wake(&mut self, node: usize, time: Duration) {
        let incarnation = Some(self.nodes[node].incarnation);
        let Some(process) = self.process(node) else { return };
        process.run += 1;
        let run = process.run;
        self.push(time.max(self.now), node, incarnation, Event::Run(run));
    }

    /// The agent of a node acts until it waits.
    fn run(&mut self, node: usize) {
        loop {
            let now = self.nodes[node].clock.local(self.now);
            let facts = self.nodes[node].facts();
            let (waits, flaw) = (self.waits_for_changes, self.flaw);
            let Some(process) = self.process(node) else { return };
            if process.is_calling || process.is_changing && waits {
                return;
            }
            if flaw == Some(Flaw::LeaseFirst) {
                process.agent.has_just_kept = false;
            }
            let action = process.agent.next(now, &facts);
            process.fence = process.agent.serves_until();
            match action {
                Action::Read => self.call(node, Call::Read),
                Action::Keep(presence) => self.call(node, Call::Keep(presence, now)),
                Action::Swap(swap) => self.call(node, Call::Swap(swap)),
                Action::Lead { term } => self.begin_change(node, Change::Lead(term)),
                Action::Follow(leader) => self.begin_change(node, Change::Follow(leader)),
                Action::Seal => self.begin_change(node, Change::Seal),
                Action::Stop => self.soon(0, 20, node, Event::Change(Change::Stop)),
                Action::Continue => process.has_stopped = false,
                Action::Show(_) => {}
                Action::Wait(until) => {
                    let until = self.nodes[node].clock.global(until);
                    return self.wake(node, until.max(self.now + ms(1)));
                }
            }
        }
    }

    /// The part of a node changes, which waits for its workers.
    fn begin_change(&mut self, node: usize, change: Change) {
        if let Some(process) = self.process(node) {
            process.is_changing = true;
        }
        self.nodes[node].is_rebooted = false;
        let most = if self.random.bool() { 20 } else { 600 };
        self.soon(0, most, node, Event::Change(change));
    }

    /// The agent has learned something.
    pub fn wake_now(&mut self, node: usize) {
        if let Some(process) = self.process(node) {
            process.fence = process.agent.serves_until();
        }
        self.wake(node, self.now);
    }

    fn change(&mut self, node: usize, change: Change) -> Result<(), String> {
        let now = self.nodes[node].clock.local(self.now);
        if !matches!(change, Change::Stop)
            && let Some(process) = self.process(node)
        {
            process.is_changing = false;
        }
        if !matches!(change, Change::Stop) && self.random.u32(..100) < 2 && self.has_faults {
            if let Some(process) = self.process(node) {
                process.agent.carried_out(now, false);
            }
            self.wake_now(node);
            return Ok(());
        }
        match change {
            Change::Lead(term) => {
                self.last_number += 1;
                let history = self.last_number;
                self.nodes[node].log.begin(history, term);
                self.nodes[node].has_lost = false;
                self.changes += 1;
                self.take_part(node, Part::Leads { term });
            }
            Change::Follow(leader) => {
                let leader = self.nodes.iter().position(|other| other.id == leader.node);
                let leader = leader.expect("the leader is a node");
                self.take_part(node, Part::Follows { leader });
                self.soon(0, 10, node, Event::Pull);
            }
            Change::Seal => {
                self.take_part(node, Part::Idle);
            }
            Change::Stop => {
                if let Some(process) = self.process(node) {
                    process.has_stopped = true;
                }
                self.wake_now(node);
                return Ok(());
            }
        }
        if let Some(process) = self.process(node) {
            process.agent.carried_out(now, true);
        }
        self.wake_now(node);
        // A primary that was replaced while it began its term may not answer.
        if self.nodes[node].serves(self.now).is_some() {
            self.clients[self.nodes[node].shard].check_log(&self.nodes[node])?;
        }
        Ok(())
    }

    fn take_part(&mut self, node: usize, part: Part) {
        let Some(process) = self.process(node) else { return };
        if !matches!(part, Part::Leads { .. }) {
            process.waiting.clear();
            process.confirmed.clear();
        }
        process.part = part;
    }

    fn heal(&mut self) {
        self.has_faults = false;
        self.cut_links.clear();
        for node in 0..self.nodes.len() {
            self.nodes[node].is_cut = false;
            if self.nodes[node].process.is_none() {
                self.later(ms(0), ms(1_000), node, None, Event::Start);
            }
            self.soon(0, 50, node, Event::Watch);
        }
    }
}

fn topology(nodes: &[NodeId]) -> Topology {
    let slots = SlotSet::all();
    let half: SlotSet = (0..8_192).collect();
    let count = nodes.len() / MEMBERS;
    let shards = nodes.chunks(MEMBERS).enumerate().map(|(number, members)| Shard {
        id: ShardId::random(),
        slots: match (count, number) {
            (1, _) => slots.clone(),
            (_, 0) => half.clone(),
            _ => slots.without(&half),
        },
        primary: members[0],
        term: 1,
        since: 0,
        members: members.iter().map(|id| Member { id: *id, address: Address::default() }).collect(),
    });
    Topology { epoch: 1, shards: shards.collect(), moves: vec![] }
}
