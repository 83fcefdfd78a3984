// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies that wait for the append log: a client gets no reply to a change before the log has it.
//!
//! Output of a connection is marked with the end of the log at that time, which lies behind all
//! that it can depend on. It is sent when the log is safe up to there.

use std::collections::VecDeque;

use freeport_kv_journal::Position;

/// Marks of a connection at most; further output waits with the last of them.
const MARKS: usize = 64;

/// Marks of a connection's output.
#[derive(Debug, Default)]
pub struct Holding {
    /// Output is held unless a mark has released it; otherwise everything may be sent.
    pub is_on: bool,
    /// The output behind the last mark has the reply of a command that has changed something.
    pub has_written: bool,
    /// The connection is in its worker's list of those whose output has to be marked.
    pub is_unmarked: bool,
    /// It is in the list of those with marked output that waits.
    pub is_listed: bool,
    /// It is in the list of those whose output waits for the lease of the node.
    pub is_fenced: bool,
    /// Output up to here depends on the lease, counted as the ends of marks.
    guarded: u64,
    marks: VecDeque<Mark>,
    /// Bytes of output that were ever sent and removed.
    removed: u64,
    /// Output up to here may be sent, counted as the ends of marks.
    free: u64,
}

/// Output that waits for a position of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    position: Position,
    /// End of the output, counted from the first byte of the connection.
    end: u64,
    has_written: bool,
}

impl Holding {
    /// Marks of a connection whose output is held.
    pub fn on() -> Self {
        Self { is_on: true, ..Self::default() }
    }

    /// Output up to its present end is held until the log is safe up to a position, which never
    /// lies before an earlier one.
    pub fn mark(&mut self, output_bytes: usize, position: Position) {
        let end = self.removed + output_bytes as u64;
        if end == self.marks.back().map_or(self.free, |last| last.end) {
            return;
        }
        let has_written = std::mem::take(&mut self.has_written);
        let is_full = self.marks.len() >= MARKS;
        let is_same = |last: &Mark| (last.position, last.has_written) == (position, has_written);
        match self.marks.back_mut() {
            Some(last) if is_full || is_same(last) => {
                let has_written = last.has_written | has_written;
                *last = Mark { position, end, has_written };
            }
            _ => self.marks.push_back(Mark { position, end, has_written }),
        }
    }

    /// The log is safe up to a position. While it fails, replies that report no change are sent
    /// too, unless they are behind one that does.
    pub fn release(&mut self, released: Position, is_failing: bool) {
        let is_free = |mark: &&Mark| mark.position <= released || is_failing && !mark.has_written;
        while let Some(mark) = self.marks.front().filter(is_free) {
            self.free = mark.end;
            self.marks.pop_front();
        }
    }

    /// Everything may be sent: the log with the marked positions is gone.
    pub fn release_all(&mut self) {
        self.is_listed = false;
        if let Some(last) = self.marks.pop_back() {
            self.free = last.end;
            self.marks.clear();
        }
    }

    /// Number of bytes at the front of the output that may be sent.
    #[inline]
    pub fn sendable(&self, output_bytes: usize) -> usize {
        match self.is_on {
            false => output_bytes,
            // Less than the output, so it is a size.
            true => (self.free - self.removed) as usize,
        }
    }

    /// The output depends on the lease of the node.
    #[inline]
    pub fn guard(&mut self, output_bytes: usize) {
        self.guarded = self.removed + output_bytes as u64;
    }

    /// Number of bytes that depend on the lease, behind those that were sent.
    #[inline]
    pub fn guarded(&self, sent: usize) -> u64 {
        self.guarded.saturating_sub(self.removed + sent as u64)
    }

    /// Bytes at the front of the output were sent, and are removed.
    #[inline]
    pub fn remove(&mut self, bytes: usize) {
        if self.is_on {
            self.removed += bytes as u64;
        }
    }

    /// Output waits for the log.
    pub fn is_waiting(&self) -> bool {
        !self.marks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_sent_as_far_as_the_log_is_safe() {
        let mut holding = Holding::on();
        assert_eq!(holding.sendable(10), 0, "it has no mark");
        holding.mark(10, Position(100));
        holding.mark(25, Position(100));
        holding.mark(30, Position(200));
        holding.release(Position(99), false);
        assert_eq!(holding.sendable(30), 0);
        holding.release(Position(100), false);
        assert_eq!((holding.sendable(30), holding.is_waiting()), (25, true));
        holding.remove(25);
        assert_eq!(holding.sendable(5), 0);
        holding.release(Position(200), false);
        assert_eq!((holding.sendable(5), holding.is_waiting()), (5, false));
        holding.remove(5);
        holding.mark(0, Position(300));
        assert!(!holding.is_waiting(), "there is no output");
    }

    #[test]
    fn replies_of_reads_are_sent_while_the_log_fails() {
        let mut holding = Holding::on();
        holding.mark(10, Position(100));
        holding.has_written = true;
        holding.mark(20, Position(100));
        holding.mark(30, Position(100));
        holding.release(Position(0), true);
        assert_eq!(holding.sendable(30), 10, "the write waits, and what is behind it");
        holding.release(Position(100), false);
        assert_eq!(holding.sendable(30), 30);
    }

    #[test]
    fn marks_are_bounded() {
        let mut holding = Holding::on();
        holding.has_written = true;
        (1..=1_000).for_each(|at| holding.mark(at, Position(at as u64)));
        assert_eq!(holding.marks.len(), MARKS);
        holding.release(Position(500), false);
        assert_eq!(holding.sendable(1_000), MARKS - 1);
        holding.release(Position(1_000), false);
        assert_eq!(holding.sendable(1_000), 1_000);
    }

    #[test]
    fn output_depends_on_the_lease_until_it_is_sent() {
        let mut holding = Holding::on();
        holding.guard(10);
        assert_eq!((holding.guarded(0), holding.guarded(9), holding.guarded(10)), (10, 1, 0));
        holding.remove(4);
        assert_eq!(holding.guarded(0), 6);
        holding.remove(6);
        assert_eq!(holding.guarded(0), 0, "what follows was not guarded");
    }

    #[test]
    fn without_a_log_everything_is_sent() {
        let mut holding = Holding::default();
        holding.remove(7);
        assert_eq!(holding.sendable(10), 10);
    }
}
