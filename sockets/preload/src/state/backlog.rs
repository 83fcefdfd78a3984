// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes that a side still has to send again, because its peer wants them through the kernel.
//!
//! The kernel may lack room for all of it, for as long as the peer does not read. So each later
//! operation on the connection sends what fits, and no non-blocking call waits for it. The request
//! of the peer is copied once, and bounded by what this side has sent.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use freeport_ring::Stopped;

/// The backlog. It is only used with both halves of the connection held.
#[derive(Debug, Default)]
pub struct Backlog {
    /// The stage of sending: [`NONE`], [`GIVEN_BACK`] or [`UNREAD`].
    stage: AtomicU32,
    /// The area of the next unread byte, counted from 1; 0: there is none.
    area: AtomicU32,
    /// Its place in the area: the numbers of [`Stopped`].
    stopped: [AtomicU64; 4],
    /// Number of bytes given back by the peer, and number of those that were sent.
    given_back: AtomicU64,
    taken: AtomicU64,
    /// Number of bytes sent in all.
    sent: AtomicU64,
}

const NONE: u32 = 0;
/// Bytes that the peer has given back come first.
const GIVEN_BACK: u32 = 1;
/// Bytes that were not read in the ring come second.
const UNREAD: u32 = 2;

impl Backlog {
    /// Nothing is to be sent.
    pub fn forget(&self) {
        self.stage.store(NONE, Ordering::Relaxed);
    }

    /// Whether something is to be sent.
    pub fn is_under_way(&self) -> bool {
        self.stage.load(Ordering::Relaxed) != NONE
    }

    /// Begins with `given_back` bytes that the peer has given back, and the unread bytes from a
    /// place of an area on.
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

    /// The offset and length of the given-back bytes that are still to be sent.
    pub fn left_of_given_back(&self) -> Option<(usize, usize)> {
        let is_next = self.stage.load(Ordering::Relaxed) == GIVEN_BACK;
        let number = |word: &AtomicU64| usize::try_from(word.load(Ordering::Relaxed)).ok();
        let (all, taken) = number(&self.given_back).zip(number(&self.taken))?;
        let left = all.checked_sub(taken).filter(|left| is_next && *left > 0)?;
        Some((taken, left))
    }

    /// Records that `bytes` more of the given-back ones were sent.
    pub fn has_sent_given_back(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        self.has_sent(bytes);
    }

    /// All given-back bytes were sent; the unread ones follow.
    pub fn continues_with_unread(&self) {
        self.stage.store(UNREAD, Ordering::Relaxed);
    }

    /// The place of the next unread byte.
    pub fn unread(&self) -> Option<(u32, Stopped)> {
        let area = self.area.load(Ordering::Relaxed).checked_sub(1)?;
        let [head, base, sequence, read] =
            self.stopped.each_ref().map(|word| word.load(Ordering::Relaxed));
        Some((area, Stopped { head, base, sequence, read }))
    }

    /// Sets the place of the next unread byte.
    pub fn is_at(&self, area: u32, stopped: &Stopped) {
        let numbers = [stopped.head, stopped.base, stopped.sequence, stopped.read];
        for (word, value) in self.stopped.iter().zip(numbers) {
            word.store(value, Ordering::Relaxed);
        }
        self.area.store(area + 1, Ordering::Relaxed);
    }

    /// Records that `bytes` more were sent.
    pub fn has_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Number of bytes sent in all.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}
