// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agreement of both sides about the connections that are made, one after the other, over the
//! stream of a slot.

use super::Slot;
use freeport_sockets_proto::slab::rest::{self, Step};
use freeport_sockets_proto::slab::{Side, flag, word};

/// Number of attempts to change the word while the peer changes it as well.
const CHANGES: u32 = 8;

impl Slot {
    /// The state between two connections, as [`rest`] defines it.
    #[inline]
    pub fn rest(&self) -> u64 {
        // CLAIM: each step is allowed from certain values only; any other value allows none.
        self.shared_word(Side::First, word::REST).load().raw()
    }

    /// Does a step, and returns the state before. `None`: the state does not allow it.
    pub fn rest_does(&self, step: Step) -> Option<u64> {
        let word = self.shared_word(Side::First, word::REST);
        // The peer changes it at the same time. A peer that never stops is not waited for.
        for _ in 0..CHANGES {
            let before = self.rest();
            let after = step.from(before)?;
            if word.exchange(before, after) {
                return Some(before);
            }
        }
        None
    }

    /// No connection is made over it any more. Returns the state before.
    pub fn rest_is_over(&self) -> u64 {
        // CLAIM: as above.
        self.shared_word(Side::First, word::REST).swap(rest::DEAD).raw()
    }

    /// Opens a connection, at that time. False: the peer does not look, or no longer keeps it.
    pub fn opens(&self, now: u64) -> bool {
        // A read after the step below sees this time, or a later one.
        self.shared_word(Side::First, word::OPENED_AT).store(now);
        self.rest_does(Step::Open).is_some()
    }

    /// Whether the connecting side has opened a connection that was not accepted yet.
    pub fn is_opened(&self) -> bool {
        matches!(self.rest(), rest::OPENED | rest::LEFT)
    }

    /// No connection is made over it any more, unless one is open. False: one is.
    pub fn rest_ends(&self) -> bool {
        if self.rest_does(Step::End).is_some() {
            return true;
        }
        let is_over = !self.is_opened();
        if is_over {
            self.rest_is_over();
        }
        is_over
    }

    /// When the connecting side has opened the connection.
    pub fn opened_at(&self) -> u64 {
        // CLAIM: it only decides the order in which connections of that peer are accepted.
        self.shared_word(Side::First, word::OPENED_AT).load().raw()
    }

    /// Whether the peer has closed the connection and keeps the stream.
    pub fn does_peer_rest(&self) -> bool {
        self.peer_said() & flag::RESTS != 0
    }

    /// Whether each side has taken all bytes from the other's ring, and neither writes. Both have
    /// closed.
    pub fn is_drained(&self) -> bool {
        // CLAIM: words of this side included. A false value keeps a stream that should not be kept,
        // and garbles the next connection of the peer that wrote it.
        let own = |at| self.shared_word(self.side, at).load().raw();
        self.peer_word(word::SENT_BYTES).is(own(word::RECEIVED_BYTES))
            && self.peer_word(word::RECEIVED_BYTES).is(own(word::SENT_BYTES))
            && own(word::WRITING) & 1 == 0
            && self.peer_word(word::WRITING).bits(1) == 0
    }

    /// Clears the flags of the connection that has ended, for the next one.
    pub fn begins_anew(&self) {
        for side in [Side::First, Side::Second] {
            let over = flag::CLOSED | flag::ENDED | flag::RESTS;
            self.shared_word(side, word::FLAGS).clear(over);
        }
    }
}
