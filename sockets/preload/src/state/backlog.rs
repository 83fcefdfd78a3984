// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes that a side still has to send again, because its peer wants them through the kernel.
//!
//! The kernel may have no room for all of it at once, for as long as the peer likes. So the rest is
//! sent when there is room, by whatever is done with the connection next: no call that does not
//! block waits for it. What the peer has asked for is copied once, and bounded by what this side
//! has sent.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use freeport_ring::Stopped;

/// The words of it. They are only used with both halves of the connection held.
#[derive(Debug, Default)]
pub struct Backlog {
    /// Whether there is something to be sent: [`NONE`], [`GIVEN_BACK`] or [`UNREAD`].
    stage: AtomicU32,
    /// The area in which the next unread byte is, counted from 1; 0: there is none.
    area: AtomicU32,
    /// Where it is there: the numbers of [`Stopped`].
    stopped: [AtomicU64; 4],
    /// Bytes given back by the peer that are to be sent, and that were.
    given_back: AtomicU64,
    taken: AtomicU64,
    /// Bytes sent in all.
    sent: AtomicU64,
}

const NONE: u32 = 0;
/// What was given back comes first.
const GIVEN_BACK: u32 = 1;
/// Then what was not read in the ring.
const UNREAD: u32 = 2;

impl Backlog {
    /// Nothing is to be sent.
    pub fn forget(&self) {
        self.stage.store(NONE, Ordering::Relaxed);
    }

    /// Whether something is.
    pub fn is_under_way(&self) -> bool {
        self.stage.load(Ordering::Relaxed) != NONE
    }

    /// So many bytes are to be sent that were given back, and what is unread from a place of an
    /// area on.
    pub fn begin(&self, given_back: u64, unread: Option<(u32, Stopped)>) {
        self.given_back.store(given_back, Ordering::Relaxed);
        for word in [&self.taken, &self.sent] {
            word.store(0, Ordering::Relaxed);
        }
        match unread {
            Some((area, stopped)) => self.is_at(area, &stopped),
            None => self.area.store(0, Ordering::Relaxed),
        }
        self.stage.store(GIVEN_BACK, Ordering::Relaxed);
    }

    /// The part of what was given back that is still to be sent: its first byte, and how many.
    pub fn left_of_given_back(&self) -> Option<(usize, usize)> {
        let is_next = self.stage.load(Ordering::Relaxed) == GIVEN_BACK;
        let number = |word: &AtomicU64| usize::try_from(word.load(Ordering::Relaxed)).ok();
        let (all, taken) = number(&self.given_back).zip(number(&self.taken))?;
        let left = all.checked_sub(taken).filter(|left| is_next && *left > 0)?;
        Some((taken, left))
    }

    /// So many bytes more of it were sent.
    pub fn has_sent_given_back(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        self.has_sent(bytes);
    }

    /// All of it was.
    pub fn goes_on_with_unread(&self) {
        self.stage.store(UNREAD, Ordering::Relaxed);
    }

    /// Where the next unread byte is.
    pub fn unread(&self) -> Option<(u32, Stopped)> {
        let area = self.area.load(Ordering::Relaxed).checked_sub(1)?;
        let [head, base, sequence, read] =
            self.stopped.each_ref().map(|word| word.load(Ordering::Relaxed));
        Some((area, Stopped { head, base, sequence, read }))
    }

    /// The next unread byte is there.
    pub fn is_at(&self, area: u32, stopped: &Stopped) {
        let numbers = [stopped.head, stopped.base, stopped.sequence, stopped.read];
        for (word, value) in self.stopped.iter().zip(numbers) {
            word.store(value, Ordering::Relaxed);
        }
        self.area.store(area + 1, Ordering::Relaxed);
    }

    /// So many bytes more were sent.
    pub fn has_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// How many bytes were.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}
