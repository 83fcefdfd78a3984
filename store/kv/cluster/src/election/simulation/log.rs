// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of a node, as far as elections depend on it: writes have numbers, and histories say
//! which primary has written what.

/// A log. A position is a number of writes.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The writes.
    pub writes: Vec<u64>,
    histories: Vec<History>,
}

/// A part of a log that one primary has written.
#[derive(Clone, Copy, Debug)]
struct History {
    id: u64,
    term: u64,
    start: usize,
}

impl Log {
    /// A primary begins to write. Histories that its log has not reached are dropped.
    pub fn begin(&mut self, id: u64, term: u64) {
        self.histories.retain(|history| history.start <= self.writes.len());
        self.histories.push(History { id, term, start: self.writes.len() });
    }

    /// The end.
    pub fn end(&self) -> usize {
        self.writes.len()
    }

    /// The term that covers the end; 0 if there is none.
    pub fn term(&self) -> u64 {
        self.last().map_or(0, |history| history.term)
    }

    /// The place from where a replica continues: a history, and the end.
    pub fn place(&self) -> (u64, usize) {
        (self.last().map_or(0, |history| history.id), self.end())
    }

    fn last(&self) -> Option<&History> {
        self.histories.iter().rev().find(|history| history.start <= self.end())
    }

    /// A place of another log is one of this log.
    pub fn covers(&self, (id, position): (u64, usize)) -> bool {
        let Some(at) = self.histories.iter().position(|history| history.id == id) else {
            return false;
        };
        let next = self.histories.get(at + 1).map_or(self.end(), |next| next.start);
        position <= next.min(self.end())
    }

    /// Continues with at most a number of writes of another log, which has the place of this one.
    pub fn continue_with(&mut self, other: &Self, count: usize) {
        self.histories.clone_from(&other.histories);
        let end = (self.end() + count).min(other.end());
        self.writes.extend_from_slice(&other.writes[self.end()..end]);
    }

    /// The machine has lost everything behind a position.
    pub fn cut(&mut self, end: usize) {
        self.writes.truncate(end);
        self.histories.retain(|history| history.start <= end);
    }
}
