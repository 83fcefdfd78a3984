// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A member: a process with claims and slots, and its outgoing messages.

use crate::activity::Counts;
use crate::kept::Kept;
use crate::process::Process;
use freeport_sockets_proto::message::{Bytes, Reply};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

/// Identifier of a member, unique for the lifetime of the monitor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u64);

/// A message to a member, with a slab and its notices if needed.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The encoded message.
    pub bytes: Bytes,
    /// Descriptors sent with it.
    pub memory: Option<[Arc<File>; 2]>,
}

/// Reason for dropping a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Departure {
    /// It sent a malformed message.
    Malformed,
    /// It sent too many useless messages.
    Flood,
    /// It did not read its messages.
    Unread,
}

impl Departure {
    /// Explanation for users.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Malformed => "it sent a malformed message",
            Self::Flood => "it sent too many useless messages",
            Self::Unread => "it does not read its messages",
        }
    }
}

/// Number of useless messages a member may send in a burst, and per second.
const USELESS_AT_ONCE: f64 = 1000.0;
const USELESS_A_SECOND: f64 = 100.0;

/// State of a member.
pub struct Member {
    pub process: Process,
    pub greeting: Greeting,
    pub membarrier: bool,
    /// Number of its claims that wait for the other end.
    pub waiting: usize,
    /// Slabs that it was given, or that are queued for it.
    pub slabs: BTreeSet<u32>,
    pub outbox: VecDeque<Outgoing>,
    /// Sockets that it keeps in the kernel.
    pub kept: Kept,
    /// Counts of its connections that have ended: TCP, then Unix sockets.
    pub ended: [Counts; 2],
    patience: f64,
    since: Instant,
}

/// State of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Greeting {
    /// No message has arrived yet.
    Awaited,
    /// The versions match.
    Done,
    /// The versions differ: nothing is done for it.
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

    /// Queues a message for the server to send.
    pub fn say(&mut self, reply: &Reply, memory: Option<[Arc<File>; 2]>) {
        self.outbox.push_back(Outgoing { bytes: reply.encode(), memory });
    }

    /// Charges a useless message of this weight; returns whether the member is still within its
    /// limit.
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
