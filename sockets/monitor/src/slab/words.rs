// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words that both sides of a slot write, as the monitor reads them for users.

use crate::activity::Counts;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab;
use std::ops::Range;

/// Offsets of the words in which a side counts.
pub(super) const COUNTS: Range<usize> = slab::word::SENT_BYTES..slab::word::REUSED + 8;
/// Offsets of the words of its state before those.
const STATE: Range<usize> = 0..slab::word::CORE;
/// Number of words that are read.
const WORDS: usize = (STATE.end + COUNTS.end - COUNTS.start) / 8;

/// Words of one side of a slot, for users: no decision depends on them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Words([u64; WORDS]);

#[cfg(test)]
impl Words {
    /// Returns a copy with another word at an offset of [`slab::word`].
    pub fn with(mut self, offset: usize, value: u64) -> Self {
        self.0[place(offset) / 8] = value;
        self
    }
}

impl Words {
    /// Reads the words from the bytes of a side, starting with its state.
    pub(super) fn of_side(bytes: &[u8]) -> Self {
        let words = bytes[STATE].chunks_exact(8).chain(bytes[COUNTS].chunks_exact(8));
        let mut words = words.map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
        Self(std::array::from_fn(|_| words.next().unwrap_or_default()))
    }

    /// Number of operations that sent.
    pub fn sends(self) -> u64 {
        self.at(slab::word::WRITING) / 2
    }

    /// Returns the word at an offset of [`slab::word`].
    pub fn at(self, offset: usize) -> u64 {
        self.0.get(place(offset) / 8).copied().unwrap_or_default()
    }

    /// Counts of this side of a slot, with the peer's count of its doorbells.
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

    /// Reason for which the side wants the connection in the kernel, if it gave one.
    fn reason(&self) -> Option<Reason> {
        u16::try_from(self.at(slab::word::REASON)).ok().and_then(Reason::from_number)
    }

    /// Whether the side sends through the kernel again.
    pub fn has_returned(&self) -> bool {
        self.at(slab::word::FLAGS) & slab::flag::LEAVES != 0
    }
}

/// Index in bytes, among the words kept here, of the word at an offset of [`slab::word`].
fn place(offset: usize) -> usize {
    match offset.checked_sub(COUNTS.start) {
        Some(behind) => STATE.end + behind,
        None => offset,
    }
}

/// Number of connections made over a stream, not counting the first, as confirmed by both sides.
pub fn reused(words: &[Words; 2]) -> u64 {
    let [first, second] = words.map(|it| it.at(slab::word::REUSED));
    first.min(second)
}

/// Reason of a connection that has returned to the kernel; `None` if it has not.
pub fn why_returned(words: &[Words; 2]) -> Option<Reason> {
    let has_returned = words.iter().any(Words::has_returned);
    has_returned.then(|| words.iter().find_map(Words::reason).unwrap_or(Reason::HandedOn))
}

/// Reason for which a connection with a slot is in the kernel, again or still; `None` if it is not.
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
