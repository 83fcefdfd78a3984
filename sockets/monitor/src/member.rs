// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A member: a process that has claims and slots, and what is to be sent to it.

use crate::activity::Counts;
use crate::kept::Kept;
use crate::process::Process;
use freeport_sockets_proto::message::{Bytes, Reply};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

/// What a member is called as long as the monitor lives; never given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u64);

/// A message for a member, perhaps with a slab and its notices.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// What is sent.
    pub bytes: Bytes,
    /// The descriptors that go with it.
    pub memory: Option<[Arc<File>; 2]>,
}

/// Why a member was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Departure {
    /// It sent what is no message.
    Malformed,
    /// It sent much that is of no use.
    Flood,
    /// It did not read what was sent to it.
    Unread,
}

impl Departure {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Malformed => "it sent what is no message",
            Self::Flood => "it sent too much that is of no use",
            Self::Unread => "it does not read what it is sent",
        }
    }
}

/// Useless messages that a member may send at once, and each second.
const USELESS_AT_ONCE: f64 = 1000.0;
const USELESS_A_SECOND: f64 = 100.0;

/// What the monitor keeps of a member.
pub struct Member {
    pub process: Process,
    pub greeting: Greeting,
    pub membarrier: bool,
    /// How many of its claims wait for the other end.
    pub waiting: usize,
    /// The slabs that it was given, or that wait for it.
    pub slabs: BTreeSet<u32>,
    pub outbox: VecDeque<Outgoing>,
    /// What it keeps in the kernel.
    pub kept: Kept,
    /// What it has counted in connections that have ended: TCP's, and those of Unix sockets.
    pub ended: [Counts; 2],
    patience: f64,
    since: Instant,
}

/// How far the beginning went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Greeting {
    /// It has said nothing yet.
    Awaited,
    /// It is of the same version.
    Done,
    /// It is of another one: nothing is done for it.
    Foreign,
}

impl Member {
    pub fn new(process: Process, now: Instant) -> Self {
        Self {
            process,
            greeting: Greeting::Awaited,
            membarrier: false,
            waiting: 0,
            slabs: BTreeSet::new(),
            outbox: VecDeque::new(),
            kept: Kept::default(),
            ended: [Counts::default(); 2],
            patience: USELESS_AT_ONCE,
            since: now,
        }
    }

    /// Puts a message where the server finds it.
    pub fn say(&mut self, reply: &Reply, memory: Option<[Arc<File>; 2]>) {
        self.outbox.push_back(Outgoing { bytes: reply.encode(), memory });
    }

    /// It has sent something of no use; whether that is still bearable.
    pub fn bear(&mut self, weight: f64, now: Instant) -> bool {
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        self.since = now;
        self.patience = (self.patience + seconds * USELESS_A_SECOND).min(USELESS_AT_ONCE) - weight;
        self.patience >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Peer;
    use std::time::Duration;

    #[test]
    fn useless_messages_are_borne_for_a_while() {
        let start = Instant::now();
        let mut member = Member::new(Process::of(Peer { pid: 0, user: 0 }), start);
        assert!((0..1000).all(|_| member.bear(1.0, start)));
        assert!(!member.bear(1.0, start));
        let later = start + Duration::from_secs(1);
        assert!((0..99).all(|_| member.bear(1.0, later)));
        assert!(!member.bear(1.0, later));
    }
}
