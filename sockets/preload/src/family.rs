// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes of a family of forks that hold a socket, and their numbers of descriptors. A
//! killed process cannot report that it no longer holds a socket: the others check when it matters.
//!
//! A count may be too high, for a moment or for good: then a socket stays where it is. It is never
//! too low. So descriptors are counted before a process is noted to have them, and the note is
//! removed before they are no longer counted.
//!
//! A child may be killed before it has noted itself. So its parent notes before the fork that it
//! *expects* a child, and after the fork which process that is. Both remember the place of that
//! note, since a child that is late must not take the note of the next child. A process that has
//! lost its place notes itself in another.

pub mod lent;

use crate::kernel::raw;
use crate::state::connections::Stream;
use crate::state::holders::{Parent, note, note_of};
use core::sync::atomic::Ordering;

impl Stream {
    /// Number of descriptors of the socket in this process.
    fn copies(&self) -> u32 {
        let copies = self.local.copies.load(Ordering::Relaxed);
        copies.saturating_sub(self.local.given_up.load(Ordering::Relaxed))
    }

    /// Notes the number of descriptors in this process, if other processes may hold the socket.
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

    /// Notes that the process is about to have a child with as many descriptors, unless that is
    /// noted already.
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

    /// Notes the process of the expected child; `None`: there is none, or it is not known.
    pub fn knows_child(&self, child: Option<i32>) {
        let place = self.local.expected.swap(0, Ordering::Relaxed);
        if let Some(own) = note(0) {
            let child = child.and_then(|child| note_of(child, 0));
            self.shared.holders.replace_expected(place, own, child);
        }
    }

    /// Notes in the child of a fork its number of descriptors. `parent` has expected it.
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

    /// Stops counting the descriptors of processes that have exited.
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
