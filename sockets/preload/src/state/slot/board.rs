// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The boards of a slab. A bit on a board tells a side that something has happened on a connection,
//! so that it needs no doorbell. A thread that waits for many connections in one set reads one word
//! for 64 of them.
//!
//! The side announces whether it reads its board now. The peer sets the bit, and then checks that
//! the board is still read; the side announces that it no longer reads, and then takes the bits.
//! Both are exchanges of words, so one of the two sees what the other has done: either the bit is
//! found, or a doorbell rings.
//!
//! A side may remain the reader of its board while it sleeps. Then the first peer that marks also
//! rings a doorbell, and records that in the board after the doorbell; later peers only mark, since
//! the reader is about to wake. So data on many connections costs one doorbell. Each sleep has its
//! own number, so a late record refers to a past sleep and has no effect.

use super::Slot;
use super::shared::SharedWord;
use core::sync::atomic::{AtomicU64, Ordering};
use freeport_ring::{Claimed, Mapped};
use freeport_sockets_proto::slab::{self, Side, board};

/// The board of this side in a slab.
#[derive(Clone, Copy, Debug)]
pub struct Board(Mapped);

impl Board {
    /// The board that begins there.
    ///
    /// # Safety
    /// A board begins there, and stays mapped for as long as this is used.
    pub const unsafe fn at(start: *mut u8) -> Self {
        // SAFETY: the caller upholds it.
        Self(unsafe { Mapped::new(start) })
    }

    /// Where it begins.
    pub const fn start(&self) -> *mut u8 {
        self.0.start()
    }

    fn word(&self, at: usize) -> SharedWord<'_> {
        // SAFETY: words are offsets in a board.
        let place = unsafe { self.0.start().add(at) };
        // SAFETY: the board stays mapped for as long as this is used; its words are aligned, and
        // all sides access them only as atomics.
        unsafe { SharedWord::at(place) }
    }

    /// The reader is awake from now on, and reads the marks before it sleeps.
    pub fn is_read(&self) {
        self.word(board::READER).store(board::AWAKE);
    }

    /// The reader starts that sleep. It takes the marks set before once more after this call.
    pub fn sleeps(&self, sleep: Sleep) {
        self.word(board::READER).store(sleep.0);
    }

    /// The board is no longer read. Marks set until then have to be taken after this call.
    pub fn is_left(&self) {
        self.word(board::READER).store(board::NOBODY);
    }

    /// Takes the marks: a bit for each slot.
    #[inline]
    pub fn take_marks(&self) -> u64 {
        let marks = self.word(board::MARKS);
        // CLAIM: a connection marked without a reason is looked at once more.
        if marks.load().is(0) { 0 } else { marks.swap(0).raw() }
    }

    /// Marks a slot again, for the next look.
    pub fn mark(&self, bit: u64) {
        self.word(board::MARKS).set(bit);
    }

    /// A mark is enough for no slot from now on.
    pub fn forget(&self) {
        self.word(board::IS_ENOUGH).store(0);
    }

    /// Records the core on which the reader waits.
    pub fn say_core(&self, core: u64) {
        let word = self.word(board::CORE);
        if !word.glance().is(core) {
            word.note(core);
        }
    }

    /// The core on which the reader waited last, if a mark is enough for all of `bits`.
    fn core(&self, bits: u64) -> Option<Claimed> {
        self.is_enough(bits).then(|| self.word(board::CORE).glance())
    }

    /// Whether it is read, and a mark is enough for all of `bits`.
    fn is_enough(&self, bits: u64) -> bool {
        !self.word(board::READER).load().is(board::NOBODY)
            && self.word(board::IS_ENOUGH).load().bits(bits) == bits
    }

    /// The current sleep of the reader, unless a doorbell has rung during it.
    fn sleep(&self) -> Option<Sleep> {
        // CLAIM: a reader that claims to sleep gets a doorbell, as a socket without a board does.
        let reader = self.word(board::READER).load().raw();
        Some(Sleep(reader)).filter(|sleep| sleep.0 != board::NOBODY && sleep.0 % 2 == 0)
    }

    /// Records that a doorbell has rung during that sleep.
    fn has_rung_in(&self, sleep: Sleep) {
        self.word(board::READER).exchange(sleep.0, sleep.0 + 1);
    }

    /// Number of slots for which a mark is enough.
    pub fn enough(&self) -> u32 {
        // CLAIM: it only decides how often a board is looked at, within bounds.
        self.word(board::IS_ENOUGH).glance().raw().count_ones()
    }
}

/// The number of a sleep of a set: even, and never zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sleep(u64);

impl Sleep {
    /// The next number; no earlier sleep of this process has it.
    pub fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(2, Ordering::Relaxed) + 2)
    }
}

/// The next step of a sender that has tried to mark the peer's board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reported {
    /// Nothing: the peer reads the mark.
    ByMark,
    /// Ring a doorbell, since the peer sleeps, and [record it](Slot::has_rung_for_board).
    ToRing(Sleep),
    /// Ring a doorbell: the peer reads no board for this connection.
    NotAtAll,
}

impl Slot {
    /// The board of this side in its slab.
    pub fn board(&self) -> Board {
        self.board_of(self.side)
    }

    fn board_of(&self, side: Side) -> Board {
        Board(self.in_slab(slab::board(side)).at())
    }

    /// The slot's bit.
    fn bit(&self) -> u64 {
        1 << (self.number() & 63)
    }

    /// Marks this connection on the peer's board, if the peer reads it.
    pub fn marks_for_peer(&self) -> Reported {
        let (board, bit) = (self.board_of(self.side.other()), self.bit());
        if !board.is_enough(bit) {
            return Reported::NotAtAll;
        }
        board.mark(bit);
        match board.sleep() {
            _ if !board.is_enough(bit) => Reported::NotAtAll,
            Some(sleep) => Reported::ToRing(sleep),
            None => Reported::ByMark,
        }
    }

    /// Records on the peer's board that a doorbell has rung during that sleep.
    pub fn has_rung_for_board(&self, sleep: Sleep) {
        self.board_of(self.side.other()).has_rung_in(sleep);
    }

    /// The core on which the peer waited last, if it waits for this connection by its board.
    pub fn core_of_peer_board(&self) -> Option<Claimed> {
        self.board_of(self.side.other()).core(self.bit())
    }

    /// Announces whether a mark is enough to wake all sleepers of this socket. The lock of the
    /// receiving half is held, so that no thread falls asleep meanwhile that a mark does not wake.
    pub fn says_marks_are_enough(&self, are_enough: bool) {
        let (board, bit) = (self.board(), self.bit());
        let word = board.word(board::IS_ENOUGH);
        if (word.load().bits(bit) != 0) == are_enough {
            return;
        }
        if are_enough {
            word.set(bit);
        } else {
            word.clear(bit);
        }
    }
}
