// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The last entries of a log that clients ask for, each with its number since the server has
//! started.

use std::collections::VecDeque;

/// The last entries, the latest first.
#[derive(Debug)]
pub struct Numbered<T> {
    next: u64,
    entries: VecDeque<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { next: 0, entries: VecDeque::new() }
    }
}

impl<T> Numbered<T> {
    /// Adds an entry that is made with its number, and forgets the oldest above a count.
    pub fn add(&mut self, entries_max: usize, entry: impl FnOnce(u64) -> T) {
        self.entries.push_front(entry(self.next));
        self.next += 1;
        self.entries.truncate(entries_max);
    }

    /// The first of the latest `searched` entries that is like this, to be changed. It becomes the
    /// latest.
    pub fn renew(&mut self, searched: usize, is_it: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let at = self.entries.iter().take(searched).position(is_it)?;
        let entry = self.entries.remove(at)?;
        self.entries.push_front(entry);
        self.entries.front_mut()
    }

    /// The latest entries.
    pub fn latest(&self, count: usize) -> Vec<T>
    where
        T: Clone,
    {
        self.entries.iter().take(count).cloned().collect()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets all entries; numbers continue.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
