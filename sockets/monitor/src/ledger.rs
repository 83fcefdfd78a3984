// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records for users: counters of events, and the most recent refusals.

use crate::activity::Family;
use crate::end::Place;
use crate::member::Departure;
use crate::slab::{Words, why_returned};
use crate::sums::Sums;
use freeport_sockets_proto::Reason;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// Maximum number of refused ends remembered.
const REFUSED_MAX: usize = 1000;

/// Description of one end of a connection for users.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndNote {
    pub pid: i32,
    pub user: u32,
    pub command: String,
    /// Number of the descriptor, as the process reported it.
    pub descriptor: i32,
    /// Inode of the socket; 0 if it is none.
    pub inode: u64,
    /// Cookie of the socket, which is never reused; 0 if it is none.
    pub cookie: u64,
    pub local: Option<Place>,
    pub remote: Option<Place>,
}

impl EndNote {
    /// Kind of socket; TCP if it was never determined.
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
    /// Number of times it was refused.
    pub times: u64,
}

/// Counters, and the most recent refusals.
pub struct Ledger {
    pub members: u64,
    pub claims: u64,
    pub paired: u64,
    pub slabs: u64,
    /// Connections to the monitor that were not accepted because there were too many.
    pub turned_away: u64,
    /// Connections that both sides have released, and the sums of their words.
    pub ended: u64,
    pub sums: Sums,
    /// Those of them that returned to the kernel, and the reasons.
    pub returned: u64,
    pub returned_for: HashMap<Reason, u64>,
    /// Number of reports of members that they keep a socket in the kernel.
    pub kept: HashMap<Reason, u64>,
    /// Number of such reports that were evicted because a member made too many.
    pub kept_forgotten: u64,
    pub dropped: HashMap<Departure, u64>,
    pub refused: HashMap<Reason, u64>,
    last: VecDeque<Refusal>,
}

impl Ledger {
    /// Creates the ledger of a monitor that starts now.
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

    /// Removes and returns the refusal of an end.
    pub fn forget(&mut self, end: &EndNote) -> Option<Refusal> {
        // Without an inode, the process and descriptor number identify it.
        let name =
            |it: &EndNote| (it.inode, if it.inode == 0 { (it.pid, it.descriptor) } else { (0, 0) });
        let is_it = |it: &Refusal| name(&it.end) == name(end);
        let at = self.last.iter().position(is_it)?;
        self.last.remove(at)
    }

    /// Most recent refusals, oldest first.
    pub fn refusals(&self) -> impl DoubleEndedIterator<Item = &Refusal> {
        self.last.iter()
    }

    /// Records the end of a connection that got its slot at `since`.
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
        let reported: Vec<_> = ledger.refusals().map(|it| (it.reason, it.times)).collect();
        assert_eq!(reported, [(Reason::Policy, 2), (Reason::NotStream, 1)]);
        assert!(ledger.forget(&end(4, 0)).is_some() && ledger.forget(&end(3, 0)).is_none());
        for inode in 0..2 * REFUSED_MAX as u64 {
            ledger.refuse(end(3, 1000 + inode), Reason::PeerPlain, now);
        }
        assert_eq!(ledger.refusals().count(), REFUSED_MAX);
        assert_eq!(ledger.refused[&Reason::PeerPlain], 2 * REFUSED_MAX as u64 + 1);
    }
}
