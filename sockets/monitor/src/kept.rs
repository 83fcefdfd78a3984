// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that a member reports as kept in the kernel, with the reasons. The report is trusted for
//! the member's own process only, and no decision depends on it.

use freeport_sockets_proto::Reason;
use std::collections::VecDeque;
use std::time::Instant;

/// Maximum number of sockets remembered of a member.
const SOCKETS_MAX: usize = 512;

/// A socket that stays in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Socket {
    /// Its inode.
    pub inode: u64,
    /// Reason for staying there.
    pub reason: Reason,
    /// Time of the report.
    pub at: Instant,
}

/// Sockets that a member keeps in the kernel.
#[derive(Default, Debug)]
pub struct Kept {
    /// Oldest first.
    sockets: VecDeque<Socket>,
    all: Option<Reason>,
}

impl Kept {
    /// Records that the member keeps the socket with this inode in the kernel; 0 means all its
    /// sockets. Returns whether another socket was evicted for that.
    pub fn note(&mut self, inode: u64, reason: Reason, at: Instant) -> bool {
        if inode == 0 {
            self.all = Some(reason);
            return false;
        }
        self.sockets.retain(|it| it.inode != inode);
        let is_full = self.sockets.len() == SOCKETS_MAX;
        if is_full {
            self.sockets.pop_front();
        }
        self.sockets.push_back(Socket { inode, reason, at });
        is_full
    }

    /// Returns the report on a socket.
    pub fn of(&self, inode: u64) -> Option<&Socket> {
        self.sockets.iter().find(|it| it.inode == inode)
    }

    /// Returns the reports on all sockets, oldest first.
    pub fn all_sockets(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.iter()
    }

    /// Reason for which it keeps all its sockets in the kernel, if it does.
    pub fn all(&self) -> Option<Reason> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_each_of_the_last_sockets_is_known() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        kept.note(7, Reason::Shared, now);
        kept.note(7, Reason::Urgent, now);
        assert_eq!(kept.of(7).map(|it| it.reason), Some(Reason::Urgent));
        assert_eq!((kept.of(8), kept.all()), (None, None));
        for inode in 8..8 + SOCKETS_MAX as u64 {
            assert_eq!(kept.note(inode, Reason::Stdio, now), inode == 7 + SOCKETS_MAX as u64);
        }
        assert!(kept.of(7).is_none() && kept.of(8).is_some());
        kept.note(0, Reason::Confined, now);
        assert_eq!((kept.all(), kept.of(0)), (Some(Reason::Confined), None));
    }
}
