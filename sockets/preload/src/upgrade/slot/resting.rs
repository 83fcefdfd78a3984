// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What both sides agree on in a slot about the connections that are made over its stream one
//! after the other.

use super::Slot;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::{Side, flag, rest, word};

/// How often the word may change under who wants to change it.
const CHANGES: u32 = 8;

impl Slot {
    /// Where it is between two connections, as [`rest`] says.
    #[inline]
    pub fn rest(&self) -> u64 {
        self.shared_word(Side::First, word::REST).load(Ordering::SeqCst)
    }

    /// Goes from one step to another. False: it is at another one.
    pub fn rest_becomes(&self, from: u64, to: u64) -> bool {
        let word = self.shared_word(Side::First, word::REST);
        word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// No connection is made over it any more. Gives where it was.
    pub fn rest_is_over(&self) -> u64 {
        self.shared_word(Side::First, word::REST).swap(rest::DEAD, Ordering::SeqCst)
    }

    /// Opens a connection, at that time. False: the other side does not look, or has it no more.
    pub fn opens(&self, now: u64) -> bool {
        // Whoever reads it behind the step below sees this one, or a later one.
        self.shared_word(Side::First, word::OPENED_AT).store(now, Ordering::SeqCst);
        self.rest_becomes(rest::READY, rest::OPENED)
    }

    /// Whether the connecting side has opened one that was not accepted yet.
    pub fn is_opened(&self) -> bool {
        matches!(self.rest(), rest::OPENED | rest::LEFT)
    }

    /// Accepts the connection that was opened.
    pub fn accepts(&self) {
        if !self.rest_becomes(rest::OPENED, rest::IN_USE) {
            self.rest_becomes(rest::LEFT, rest::RESTING);
        }
    }

    /// Closes the connection, and keeps the stream. False: the other side has done so before, or
    /// the word is none that it could be.
    pub fn rests_first(&self) -> bool {
        // One is opened, closed or accepted meanwhile; a peer that changes it all the time is not
        // waited for.
        for _ in 0..CHANGES {
            let (from, to) = match self.rest() {
                rest::IN_USE => (rest::IN_USE, rest::RESTING),
                rest::OPENED => (rest::OPENED, rest::LEFT),
                _ => return false,
            };
            if self.rest_becomes(from, to) {
                return true;
            }
        }
        false
    }

    /// Does not keep the stream of a connection, which goes on, or is still to be accepted.
    pub fn never_rests(&self) {
        if !self.rest_becomes(rest::IN_USE, rest::DEAD) {
            self.rest_becomes(rest::RESTING, rest::DEAD);
        }
    }

    /// No connection is made over it any more, unless one is opened. False: one is.
    pub fn rest_ends(&self) -> bool {
        for _ in 0..CHANGES {
            let rest = self.rest();
            if matches!(rest, rest::OPENED | rest::LEFT) {
                return false;
            }
            if self.rest_becomes(rest, rest::DEAD) {
                return true;
            }
        }
        self.rest_is_over();
        true
    }

    /// When the connecting side has opened it.
    pub fn opened_at(&self) -> u64 {
        self.shared_word(Side::First, word::OPENED_AT).load(Ordering::SeqCst)
    }

    /// Whether the peer has closed the connection, and keeps the stream.
    pub fn does_peer_rest(&self) -> bool {
        self.peer_said() & flag::RESTS != 0
    }

    /// Whether each side has taken all that the other one has put into its ring, and neither
    /// writes. Both have closed.
    pub fn is_drained(&self) -> bool {
        let own = |at| self.shared_word(self.side, at).load(Ordering::SeqCst);
        own(word::RECEIVED_BYTES) == self.peer_word(word::SENT_BYTES)
            && self.peer_word(word::RECEIVED_BYTES) == own(word::SENT_BYTES)
            && (own(word::WRITING) | self.peer_word(word::WRITING)) & 1 == 0
    }

    /// What both sides have said of the connection that has ended is not said of the next one.
    pub fn begins_anew(&self) {
        for side in [Side::First, Side::Second] {
            let over = flag::CLOSED | flag::ENDED | flag::RESTS;
            self.shared_word(side, word::FLAGS).fetch_and(!over, Ordering::SeqCst);
        }
    }
}
