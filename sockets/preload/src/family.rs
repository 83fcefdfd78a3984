// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which processes of a family of forks have a socket, and with how many descriptors. A process
//! that is killed tells nobody that it has it no more: the others look for that when it matters.
//!
//! What is counted may be more than there is, for a moment or for good: then a socket stays where
//! it is. It is never less. So descriptors are counted before a process is noted to have them, and
//! noted to be gone before they count no more.
//!
//! A child may be killed before it has noted itself. So its parent notes that it *expects* one
//! before the fork, and which one it is behind it. Where that note is, both keep in mind: a child
//! that comes late would find what stands for the next one elsewhere. Who has lost its place notes
//! itself in another.

pub mod lent;

use crate::kernel::raw;
use crate::state::connections::Stream;
use crate::state::holders::{Parent, note, note_of};
use core::sync::atomic::Ordering;

impl Stream {
    /// How many descriptors of the socket this process has.
    fn copies(&self) -> u32 {
        let copies = self.local.copies.load(Ordering::Relaxed);
        copies.saturating_sub(self.local.given_up.load(Ordering::Relaxed))
    }

    /// Notes how many descriptors of the socket this process has, if others may have some as well.
    pub fn note_copies(&self) {
        if self.shared.is_alone() {
            return;
        }
        let (holders, copies) = (&self.shared.holders, self.copies());
        if !holders.set(copies) {
            self.drop_dead();
            holders.set(copies);
        }
    }

    /// Notes that the process is about to have a child, which will have as many, unless it does
    /// already.
    pub fn expect_child(&self) {
        let expected = &self.local.expected;
        if expected.load(Ordering::Relaxed) != 0 {
            return;
        }
        let (holders, copies) = (&self.shared.holders, self.copies());
        let place = holders.expect(copies).or_else(|| {
            self.drop_dead();
            holders.expect(copies)
        });
        expected.store(place.unwrap_or(0), Ordering::Relaxed);
    }

    /// Notes which child that was; `None`: there is none, or it is not known.
    pub fn knows_child(&self, child: Option<i32>) {
        let place = self.local.expected.swap(0, Ordering::Relaxed);
        if let Some(own) = note(0) {
            let child = child.and_then(|child| note_of(child, 0));
            self.shared.holders.replace_expected(place, own, child);
        }
    }

    /// Notes in the child of a fork how many descriptors it has; `parent`: that has expected it.
    pub fn note_in_child(&self, parent: Option<Parent>) {
        let place = self.local.expected.swap(0, Ordering::Relaxed);
        let holders = &self.shared.holders;
        let stands_for = |it: Parent| {
            note(0).is_some_and(|own| holders.replace_expected(place, it.note(), Some(own)))
        };
        if !parent.is_some_and(stands_for) {
            self.note_copies();
        }
    }

    /// Counts the descriptors of those no more that are dead.
    #[cold]
    pub fn drop_dead(&self) {
        let copies = self.shared.holders.take_dead(raw::is_alive);
        if copies > 0 {
            let least = self.local.copies.load(Ordering::Relaxed);
            let less = |count: u32| Some(count.saturating_sub(copies).max(least));
            let references = &self.shared.references;
            _ = references.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
        }
    }
}
