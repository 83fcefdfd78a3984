// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node of the simulation: its disk, its clock, and its process.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::log::Log;
use crate::address::Address;
use crate::election::{Agent, Facts, Me};
use crate::id::NodeId;
use crate::registry::Presence;

/// Time of a lease.
pub const LEASE: Duration = Duration::from_millis(1_000);

/// A node.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// Its shard.
    pub shard: usize,
    /// Bytes that are on its disk, or in the memory of the system.
    pub log: Log,
    /// Bytes that a crash of the machine does not lose.
    pub durable: usize,
    /// The machine has lost the end of the log, and the node has not caught up since.
    pub has_lost: bool,
    /// The machine has crashed, and no process has had a part since.
    pub is_rebooted: bool,
    /// Its clock.
    pub clock: Clock,
    /// It does not run until this time.
    pub paused_until: Duration,
    /// It does not reach the registry.
    pub is_cut: bool,
    /// Number of the process.
    pub incarnation: u64,
    /// The process.
    pub process: Option<Process>,
}

/// A clock that is not quite right.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Its time at the begin.
    pub offset: Duration,
    /// Its speed in thousandths.
    pub rate: u32,
}

impl Clock {
    /// Its time at a true time.
    pub fn local(self, time: Duration) -> Duration {
        self.offset + time * self.rate / 1_000
    }

    /// The true time at its time, rounded up.
    pub fn global(self, time: Duration) -> Duration {
        time.saturating_sub(self.offset) * 1_000 / self.rate + Duration::from_micros(1)
    }
}

/// A process.
#[derive(Debug)]
pub struct Process {
    /// The agent that is tested.
    pub agent: Agent,
    /// Its part.
    pub part: Part,
    /// Until when it may answer, by its clock.
    pub fence: Duration,
    /// A call of the registry that does not change the topology is under way.
    pub is_calling: bool,
    /// It looks at the registry after that call.
    pub has_news: bool,
    /// A change of its part is under way.
    pub is_changing: bool,
    /// Number of the event that runs the agent.
    pub run: u64,
    /// The replica gets a whole copy.
    pub is_copying: bool,
    /// Positions that replicas have confirmed.
    pub confirmed: BTreeMap<NodeId, usize>,
    /// Writes that wait for replicas.
    pub waiting: Vec<Waiting>,
    /// Clients wait.
    pub has_stopped: bool,
    /// The presence that it has published last.
    pub published: Option<Presence>,
}

/// The part of a process in its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// None.
    Idle,
    /// It takes writes.
    Leads {
        /// Its term.
        term: u64,
    },
    /// It takes the log of a node.
    Follows {
        /// Number of the node.
        leader: usize,
    },
}

/// A client waits until a number of replicas have its write.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The write.
    pub write: u64,
    /// End of the log behind it.
    pub position: usize,
    /// Number of replicas.
    pub replicas: usize,
}

impl Node {
    /// Starts a process.
    pub fn start(&mut self, session: u64) {
        self.incarnation += 1;
        let may_have_lost = self.is_rebooted;
        let (node, address) = (self.id, Address::default());
        let me = Me { node, session, address, lease: LEASE, may_have_lost };
        self.process = Some(Process {
            agent: Agent::new(me),
            part: Part::Idle,
            fence: Duration::ZERO,
            is_calling: false,
            has_news: false,
            is_changing: false,
            run: 0,
            is_copying: false,
            confirmed: BTreeMap::new(),
            waiting: vec![],
            has_stopped: false,
            published: None,
        });
    }

    /// The facts that the agent gets.
    pub fn facts(&self) -> Facts {
        let Some(process) = &self.process else { return Facts::default() };
        let confirmed = process.confirmed.iter();
        Facts {
            position: self.log.end() as u64,
            term: self.log.term(),
            is_copying: process.is_copying,
            confirmed: confirmed.map(|(node, position)| (*node, *position as u64)).collect(),
            has_stopped: process.has_stopped,
        }
    }

    /// It runs.
    pub fn is_running(&self, now: Duration) -> bool {
        self.process.is_some() && self.paused_until <= now
    }

    /// It is a primary whose fence is open at a time: its term.
    pub fn serves(&self, now: Duration) -> Option<u64> {
        let process = self.process.as_ref()?;
        match process.part {
            Part::Leads { term } if self.clock.local(now) < process.fence => Some(term),
            _ => None,
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (term, end) = (self.log.term(), self.log.end());
        write!(formatter, "{} of shard {}: {end} writes to term {term}", self.id, self.shard)?;
        match &self.process {
            Some(Process { part, is_copying, published, .. }) => {
                write!(formatter, ", {part:?}, copies: {is_copying}, {published:?}")
            }
            None => formatter.write_str(", no process"),
        }
    }
}
