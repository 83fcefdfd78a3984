// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the monitor remembers for people: how often something happened, and what was refused last.

use crate::activity::Family;
use crate::end::Place;
use crate::member::Departure;
use crate::slab::{Words, why_returned};
use crate::sums::Sums;
use freeport_sockets_proto::Reason;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// How many refused ends are remembered.
const REFUSED_MAX: usize = 1000;

/// One end of a connection, as people want to know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndNote {
    pub pid: i32,
    pub user: u32,
    pub command: String,
    /// The number of the descriptor, as the process said.
    pub descriptor: i32,
    /// The inode of the socket; 0 if it is none.
    pub inode: u64,
    /// What the kernel calls the socket, for good; 0 if it is none.
    pub cookie: u64,
    pub local: Option<Place>,
    pub remote: Option<Place>,
}

impl EndNote {
    /// Which kind of socket it is; that of TCP where that was never looked at.
    pub fn family(&self) -> Family {
        self.local.as_ref().map_or(Family::Tcp, Place::family)
    }
}

/// An end that stays in the kernel.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub end: EndNote,
    pub reason: Reason,
    pub at: Instant,
    /// How often it was refused.
    pub times: u64,
}

/// The counters, and the last refusals.
pub struct Ledger {
    pub members: u64,
    pub claims: u64,
    pub paired: u64,
    pub slabs: u64,
    /// Connections that were not taken, because there were too many.
    pub turned_away: u64,
    /// Connections whose two sides have released them, and what was said in those.
    pub ended: u64,
    pub sums: Sums,
    /// Those of them that came back into the kernel, and why.
    pub returned: u64,
    pub returned_for: HashMap<Reason, u64>,
    /// How often members have said that they keep a socket in the kernel.
    pub kept: HashMap<Reason, u64>,
    /// What was forgotten of that, because a member said too much.
    pub kept_forgotten: u64,
    pub dropped: HashMap<Departure, u64>,
    pub refused: HashMap<Reason, u64>,
    last: VecDeque<Refusal>,
}

impl Ledger {
    /// That of a monitor that begins now.
    pub fn new(now: Instant) -> Self {
        Self {
            members: 0,
            claims: 0,
            paired: 0,
            slabs: 0,
            turned_away: 0,
            ended: 0,
            sums: Sums::new(now),
            returned: 0,
            returned_for: HashMap::new(),
            kept: HashMap::new(),
            kept_forgotten: 0,
            dropped: HashMap::new(),
            refused: HashMap::new(),
            last: VecDeque::new(),
        }
    }

    pub fn refuse(&mut self, end: EndNote, reason: Reason, now: Instant) {
        *self.refused.entry(reason).or_default() += 1;
        self.remember(end, reason, now);
    }

    fn remember(&mut self, end: EndNote, reason: Reason, now: Instant) {
        let times = self.forget(&end).map_or(1, |before| before.times + 1);
        if self.last.len() == REFUSED_MAX {
            self.last.pop_front();
        }
        self.last.push_back(Refusal { end, reason, at: now, times });
    }

    /// Forgets what was refused of an end.
    pub fn forget(&mut self, end: &EndNote) -> Option<Refusal> {
        // Without an inode it is known by its number only.
        let name =
            |it: &EndNote| (it.inode, if it.inode == 0 { (it.pid, it.descriptor) } else { (0, 0) });
        let is_it = |it: &Refusal| name(&it.end) == name(end);
        let at = self.last.iter().position(is_it)?;
        self.last.remove(at)
    }

    /// The last refusals, the oldest first.
    pub fn refusals(&self) -> impl DoubleEndedIterator<Item = &Refusal> {
        self.last.iter()
    }

    /// A connection has ended that was given its slot at `since`.
    pub fn end(&mut self, ends: &[EndNote; 2], words: [Words; 2], since: Instant, now: Instant) {
        self.ended += 1;
        if let Some(reason) = why_returned(&words) {
            self.returned += 1;
            *self.returned_for.entry(reason).or_default() += 1;
            for end in ends {
                self.remember(end.clone(), reason, now);
            }
        }
        self.sums.add(&words, since, now);
    }

    pub fn drop_member(&mut self, why: Departure) {
        *self.dropped.entry(why).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(descriptor: i32, inode: u64) -> EndNote {
        let command = "it".to_owned();
        let (local, remote) = (None, None);
        EndNote { pid: 1, user: 0, command, descriptor, inode, cookie: 0, local, remote }
    }

    #[test]
    fn an_end_is_remembered_once_and_old_ones_are_forgotten() {
        let now = Instant::now();
        let mut ledger = Ledger::new(now);
        ledger.refuse(end(3, 100), Reason::PeerPlain, now);
        ledger.refuse(end(4, 100), Reason::Policy, now);
        ledger.refuse(end(4, 0), Reason::NotStream, now);
        let told: Vec<_> = ledger.refusals().map(|it| (it.reason, it.times)).collect();
        assert_eq!(told, [(Reason::Policy, 2), (Reason::NotStream, 1)]);
        assert!(ledger.forget(&end(4, 0)).is_some() && ledger.forget(&end(3, 0)).is_none());
        for inode in 0..2 * REFUSED_MAX as u64 {
            ledger.refuse(end(3, 1000 + inode), Reason::PeerPlain, now);
        }
        assert_eq!(ledger.refusals().count(), REFUSED_MAX);
        assert_eq!(ledger.refused[&Reason::PeerPlain], 2 * REFUSED_MAX as u64 + 1);
    }
}
