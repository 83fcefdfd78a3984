// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What both sides of a slot write into it, as the monitor reads it for people.

use crate::activity::Counts;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab;
use std::ops::Range;

/// The words in which a side counts.
pub(super) const COUNTS: Range<usize> = slab::word::SENT_BYTES..slab::word::REUSED + 8;
/// The words of its state before those.
const STATE: Range<usize> = 0..slab::word::CORE;
/// All of them.
const WORDS: usize = (STATE.end + COUNTS.end - COUNTS.start) / 8;

/// What a side says in its slot, for people: nothing is decided by it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Words([u64; WORDS]);

#[cfg(test)]
impl Words {
    /// The same with another one at an offset of [`slab::word`].
    pub fn with(mut self, offset: usize, value: u64) -> Self {
        self.0[place(offset) / 8] = value;
        self
    }
}

impl Words {
    /// From the bytes of a side, the first word of its state first.
    pub(super) fn of_side(bytes: &[u8]) -> Self {
        let words = bytes[STATE].chunks_exact(8).chain(bytes[COUNTS].chunks_exact(8));
        let mut words = words.map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
        Self(std::array::from_fn(|_| words.next().unwrap_or_default()))
    }

    /// How often it has sent.
    pub fn sends(self) -> u64 {
        self.at(slab::word::WRITING) / 2
    }

    /// The one at an offset of [`slab::word`].
    pub fn at(self, offset: usize) -> u64 {
        self.0.get(place(offset) / 8).copied().unwrap_or_default()
    }

    /// What this side of a slot has counted, and what the other one says of its doorbells.
    pub fn counts(&self, peer: &Self) -> Counts {
        Counts {
            sends: self.sends(),
            receives: self.at(slab::word::RECEIVES),
            sent_bytes: self.at(slab::word::SENT_BYTES),
            received_bytes: self.at(slab::word::RECEIVED_BYTES),
            doorbells: self.at(slab::word::DOORBELLS),
            peer_doorbells: peer.at(slab::word::DOORBELLS),
            sleeps: self.at(slab::word::SLEEPS),
        }
    }

    /// Why the side wants the connection in the kernel, if it has said so.
    fn reason(&self) -> Option<Reason> {
        u16::try_from(self.at(slab::word::REASON)).ok().and_then(Reason::from_number)
    }

    /// Whether the side's stream is the kernel's again.
    pub fn has_returned(&self) -> bool {
        self.at(slab::word::FLAGS) & slab::flag::LEAVES != 0
    }
}

/// Where the word at an offset of [`slab::word`] is among those that are kept, in bytes.
fn place(offset: usize) -> usize {
    match offset.checked_sub(COUNTS.start) {
        Some(behind) => STATE.end + behind,
        None => offset,
    }
}

/// How many connections both sides say that were made over a stream besides the first.
pub fn reused(words: &[Words; 2]) -> u64 {
    let [first, second] = words.map(|it| it.at(slab::word::REUSED));
    first.min(second)
}

/// Why a connection of which both sides say that is in the kernel again. `None`: it is not.
pub fn why_returned(words: &[Words; 2]) -> Option<Reason> {
    let has_returned = words.iter().any(Words::has_returned);
    has_returned.then(|| words.iter().find_map(Words::reason).unwrap_or(Reason::HandedOn))
}

/// Why a connection that has a slot is in the kernel, be it again or still. `None`: it is not.
pub fn why_in_kernel(words: &[Words; 2]) -> Option<Reason> {
    let is_said = |flag| words.iter().any(|it| it.at(slab::word::FLAGS) & flag != 0);
    if is_said(slab::flag::LEAVES) {
        return why_returned(words);
    }
    if is_said(slab::flag::DECLINED) {
        return Some(words.iter().find_map(Words::reason).unwrap_or(Reason::Untold));
    }
    (!is_said(slab::flag::SWITCHED)).then_some(Reason::Leaving)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_its_own_words_and_the_peers_doorbells() {
        let own = Words::default()
            .with(slab::word::WRITING, 8)
            .with(slab::word::SENT_BYTES, 40)
            .with(slab::word::RECEIVES, 2)
            .with(slab::word::DOORBELLS, 1);
        let peer = Words::default().with(slab::word::DOORBELLS, 5).with(slab::word::SENT_BYTES, 9);
        let counts = own.counts(&peer);
        let expected = Counts {
            sends: 4,
            receives: 2,
            sent_bytes: 40,
            doorbells: 1,
            peer_doorbells: 5,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
    }
}
