// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What both sides agree on in a slot about the connections that are made over its stream one
//! after the other.

use super::Slot;
use freeport_sockets_proto::slab::rest::{self, Step};
use freeport_sockets_proto::slab::{Side, flag, word};

/// How often the word may change under who wants to change it.
const CHANGES: u32 = 8;

impl Slot {
    /// Where it is between two connections, as [`rest`] says.
    #[inline]
    pub fn rest(&self) -> u64 {
        // CLAIM: each step is allowed from certain numbers only; others are none of them.
        self.shared_word(Side::First, word::REST).load().raw()
    }

    /// Does a step, and gives where it was before. `None`: that is not done there.
    pub fn rest_does(&self, step: Step) -> Option<u64> {
        let word = self.shared_word(Side::First, word::REST);
        // The other side does something meanwhile; one that does so all the time is not waited for.
        for _ in 0..CHANGES {
            let before = self.rest();
            let after = step.from(before)?;
            if word.exchange(before, after) {
                return Some(before);
            }
        }
        None
    }

    /// No connection is made over it any more. Gives where it was.
    pub fn rest_is_over(&self) -> u64 {
        // CLAIM: as above.
        self.shared_word(Side::First, word::REST).swap(rest::DEAD).raw()
    }

    /// Opens a connection, at that time. False: the other side does not look, or has it no more.
    pub fn opens(&self, now: u64) -> bool {
        // Whoever reads it behind the step below sees this one, or a later one.
        self.shared_word(Side::First, word::OPENED_AT).store(now);
        self.rest_does(Step::Open).is_some()
    }

    /// Whether the connecting side has opened one that was not accepted yet.
    pub fn is_opened(&self) -> bool {
        matches!(self.rest(), rest::OPENED | rest::LEFT)
    }

    /// No connection is made over it any more, unless one is opened. False: one is.
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

    /// When the connecting side has opened it.
    pub fn opened_at(&self) -> u64 {
        // CLAIM: only the order follows from it in which connections of that peer are accepted.
        self.shared_word(Side::First, word::OPENED_AT).load().raw()
    }

    /// Whether the peer has closed the connection, and keeps the stream.
    pub fn does_peer_rest(&self) -> bool {
        self.peer_said() & flag::RESTS != 0
    }

    /// Whether each side has taken all that the other one has put into its ring, and neither
    /// writes. Both have closed.
    pub fn is_drained(&self) -> bool {
        // CLAIM: for words of this side as well; a lie keeps a stream that should not be kept, and
        // garbles the next connection of whoever lies.
        let own = |at| self.shared_word(self.side, at).load().raw();
        self.peer_word(word::SENT_BYTES).is(own(word::RECEIVED_BYTES))
            && self.peer_word(word::RECEIVED_BYTES).is(own(word::SENT_BYTES))
            && own(word::WRITING) & 1 == 0
            && self.peer_word(word::WRITING).bits(1) == 0
    }

    /// What both sides have said of the connection that has ended is not said of the next one.
    pub fn begins_anew(&self) {
        for side in [Side::First, Side::Second] {
            let over = flag::CLOSED | flag::ENDED | flag::RESTS;
            self.shared_word(side, word::FLAGS).clear(over);
        }
    }
}
