// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agreement of both sides, when a connection comes back into the kernel, about bytes that were
//! put into rings and not read: which side sends them again, and from where on.

use super::{Reader, Slot};
use core::sync::atomic::Ordering;
use freeport_ring::{Local, Remote, Stopped};
use freeport_sockets_proto::slab::{self, Side, again, flag, word};

impl Slot {
    /// Prepares to announce what the peer has to send again. False: the peer is done, and sends
    /// nothing again.
    pub fn prepares_again(&self) -> bool {
        self.agree(self.side.other(), 0, again::PREPARED)
    }

    /// Takes the preparation back.
    pub fn wants_nothing_yet(&self) {
        self.agree(self.side.other(), again::PREPARED, 0);
    }

    /// Announces where this side has stopped reading, and how many bytes it gives back.
    pub fn say_stopped(&self, stopped: Option<(u32, Stopped)>, refunded: u64) {
        let mut state = self.state(self.side);
        let nothing = (0, Stopped::default());
        let (area, at) = stopped.map_or(nothing, |(area, at)| (u64::from(area) + 1, at));
        let at = [at.head, at.base, at.sequence, at.read];
        // SAFETY: a word of the slot.
        unsafe { state.set(word::STOPPED_AREA, area) };
        for (word, value) in word::STOPPED.into_iter().zip(at) {
            // SAFETY: as above.
            unsafe { state.set(word, value) };
        }
        // SAFETY: as above.
        unsafe { state.set(word::REFUNDED, refunded) };
        self.own.refunded.store(refunded, Ordering::Relaxed);
        self.agree(self.side.other(), again::PREPARED, again::WANTED);
    }

    /// Whether this side has prepared that and not announced it yet.
    pub fn is_asking_again(&self) -> bool {
        self.shared_word(self.side.other(), word::AGAIN).load().is(again::PREPARED)
    }

    /// Where the peer has stopped reading, and how many bytes it gives back.
    pub fn peer_stopped(&self) -> (Option<(u32, Stopped)>, usize) {
        // CLAIM: compared with where this side is in its own ring, by `ReceiverCursor::behind`.
        let [head, base, sequence, read] = word::STOPPED.map(|at| self.peer_word(at).raw());
        let stopped = Stopped { head, base, sequence, read };
        let area = self.peer_word(word::STOPPED_AREA).within(1, u64::from(slab::AREAS));
        let refunded = self.peer_word(word::REFUNDED).at_most(slab::REFUND_BYTES as u64);
        (area.ok().map(|area| (area as u32 - 1, stopped)), refunded as usize)
    }

    /// Number of bytes that this side has given back.
    pub fn refunded(&self) -> u64 {
        self.own.refunded.load(Ordering::Relaxed)
    }

    /// Takes the task to send again what the peer wants. False: the peer wants nothing, or another
    /// has the task.
    pub fn owes_again(&self) -> bool {
        self.agree(self.side, again::WANTED, again::SENT)
    }

    /// Takes the task to send in the peer's place what this side wants.
    pub fn takes_again(&self) -> bool {
        self.agree(self.side.other(), again::WANTED, again::TAKEN)
    }

    /// Whether this side has done that.
    pub fn has_been_taken_again(&self) -> bool {
        let word = self.shared_word(self.side.other(), word::AGAIN).load();
        // A peer that has sent it has announced before that it leaves.
        word.is(again::SENT) && self.peer_said() & flag::LEAVES == 0
    }

    /// Records that this side has sent `bytes` in the peer's place.
    pub fn has_taken_again(&self, bytes: u64) {
        self.shared_word(self.side.other(), word::AGAIN_BYTES).store(bytes);
        self.agree(self.side.other(), again::TAKEN, again::SENT);
    }

    /// Number of bytes that the peer has sent in the place of this side, which count as sent by
    /// this side. Returned once.
    pub fn sent_by_peer(&self) -> u64 {
        let bytes = self.shared_word(self.side, word::AGAIN_BYTES).swap(0);
        bytes.at_most(slab::SLOT_BYTES as u64)
    }

    /// Whether the peer is about to announce what it wants, or sends it in the place of this side.
    pub fn is_peer_busy_again(&self) -> bool {
        let word = self.shared_word(self.side, word::AGAIN).load();
        [again::PREPARED, again::TAKEN, again::WANTED].iter().any(|step| word.is(*step))
    }

    /// Ends the agreement: the peer can no longer want anything from this side. False: it already
    /// does.
    pub fn refuses_again(&self) -> bool {
        self.agree(self.side, 0, again::REFUSED)
    }

    fn agree(&self, of: Side, from: u64, to: u64) -> bool {
        self.shared_word(of, word::AGAIN).exchange(from, to)
    }

    /// Gives back bytes that came through the kernel, at that offset.
    pub fn give_back(&self, at: usize, bytes: &[u8]) {
        let place = slab::refund(self.number(), self.side);
        let fits = at.saturating_add(bytes.len()) <= slab::REFUND_BYTES;
        if let Some(place) = place.filter(|_| fits) {
            // SAFETY: inside the area for what this side gives back.
            unsafe { self.in_slab(place).write(at, bytes) };
        }
    }

    /// Reads bytes that a reader has given back.
    pub fn read_given_back(&self, by: Reader, at: usize, into: &mut [u8]) {
        let place = slab::refund(self.number(), self.side_of(by));
        let fits = at.saturating_add(into.len()) <= slab::REFUND_BYTES;
        if let Some(place) = place.filter(|_| fits) {
            // SAFETY: inside the area for what that side gives back.
            unsafe { self.in_slab(place).read(at, into) };
        }
    }
}
