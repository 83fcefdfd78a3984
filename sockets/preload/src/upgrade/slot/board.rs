// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The boards of a slab: where a side is told by a bit that something has happened on a connection,
//! and so needs no doorbell. Who waits for many connections in one set reads one word for 64 of
//! them there.
//!
//! The side says whether it reads its board just now. The peer sets the bit, and then looks whether
//! that is so still; the side says that it reads no more, and then takes the bits. Both are
//! exchanges of words, so one of both sees what the other has done: either the bit is found, or a
//! doorbell rings.
//!
//! A side that sleeps may go on reading its board: whoever marks first rings, and says so behind
//! that; the others only mark, since it is about to wake. So many connections on which something
//! comes at once take one doorbell of the kernel's. Each sleep has a number of its own: who is late
//! to say that he has rung says it of a sleep that is over, which nobody believes.

use super::Slot;
use super::shared::SharedWord;
use core::sync::atomic::{AtomicU64, Ordering};
use freeport_ring::{Claimed, Mapped};
use freeport_sockets_proto::slab::{self, Side, board};

/// The board of this side in a slab.
#[derive(Clone, Copy, Debug)]
pub struct Board(Mapped);

impl Board {
    /// The one that begins there.
    ///
    /// # Safety
    /// It is one, and stays mapped for as long as this is used.
    pub const unsafe fn at(start: *mut u8) -> Self {
        // SAFETY: as the caller says.
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

    /// Says that it is read from now on, before who reads it sleeps.
    pub fn is_read(&self) {
        self.word(board::READER).store(board::AWAKE);
    }

    /// Says that who reads it sleeps, for the time of that number; what is marked until then has to
    /// be taken behind that.
    pub fn sleeps(&self, sleep: Sleep) {
        self.word(board::READER).store(sleep.0);
    }

    /// Says that it is read no more; what is marked until then has to be taken behind that.
    pub fn is_left(&self) {
        self.word(board::READER).store(board::NOBODY);
    }

    /// Takes the marks: a bit for each slot.
    #[inline]
    pub fn take_marks(&self) -> u64 {
        let marks = self.word(board::MARKS);
        // CLAIM: who is marked without a reason is looked at once more.
        if marks.load().is(0) { 0 } else { marks.swap(0).raw() }
    }

    /// Marks a slot again, for the next look.
    pub fn mark(&self, bit: u64) {
        self.word(board::MARKS).set(bit);
    }

    /// A mark is enough for no slot.
    pub fn forget(&self) {
        self.word(board::IS_ENOUGH).store(0);
    }

    /// Says on which core who reads it waits.
    pub fn say_core(&self, core: u64) {
        let word = self.word(board::CORE);
        if !word.glance().is(core) {
            word.note(core);
        }
    }

    /// On which core who reads it waited last, and that a mark is enough for all of `bits`.
    fn core(&self, bits: u64) -> Option<Claimed> {
        self.is_enough(bits).then(|| self.word(board::CORE).glance())
    }

    /// Whether it is read, and a mark is enough for all of `bits`.
    fn is_enough(&self, bits: u64) -> bool {
        !self.word(board::READER).load().is(board::NOBODY)
            && self.word(board::IS_ENOUGH).load().bits(bits) == bits
    }

    /// The sleep of who reads it, if nobody has rung in that.
    fn sleep(&self) -> Option<Sleep> {
        // CLAIM: who says that it sleeps is rung for, as if it read no board.
        let reader = self.word(board::READER).load().raw();
        Some(Sleep(reader)).filter(|sleep| sleep.0 != board::NOBODY && sleep.0 % 2 == 0)
    }

    /// Somebody has rung in that sleep.
    fn has_rung_in(&self, sleep: Sleep) {
        self.word(board::READER).exchange(sleep.0, sleep.0 + 1);
    }

    /// How many slots a mark is enough for.
    pub fn enough(&self) -> u32 {
        // CLAIM: how often a board is looked at follows from it, within bounds.
        self.word(board::IS_ENOUGH).glance().raw().count_ones()
    }
}

/// The number of a time for which a set sleeps: even, and never zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sleep(u64);

impl Sleep {
    /// Another one than all of this process before.
    pub fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(2, Ordering::Relaxed) + 2)
    }
}

/// What has to be done behind a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// Nothing: the peer looks.
    ByMark,
    /// A doorbell has to ring, and [that it did](Slot::has_rung_for_board) be said: the peer sleeps.
    ToRing(Sleep),
    /// A doorbell has to ring: the peer reads no board for this connection.
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

    /// Tells the peer by a mark that it has to look at this connection.
    pub fn marks_for_peer(&self) -> Told {
        let (board, bit) = (self.board_of(self.side.other()), self.bit());
        if !board.is_enough(bit) {
            return Told::NotAtAll;
        }
        board.mark(bit);
        match board.sleep() {
            _ if !board.is_enough(bit) => Told::NotAtAll,
            Some(sleep) => Told::ToRing(sleep),
            None => Told::ByMark,
        }
    }

    /// A doorbell has rung for the peer's board, in that sleep: others need not.
    pub fn has_rung_for_board(&self, sleep: Sleep) {
        self.board_of(self.side.other()).has_rung_in(sleep);
    }

    /// On which core the peer waited last, if it waits for this connection by its board.
    pub fn core_of_peer_board(&self) -> Option<Claimed> {
        self.board_of(self.side.other()).core(self.bit())
    }

    /// Says whether a mark is enough to wake all who sleep on this socket. The lock of the
    /// receiving half is held, so that nobody goes to sleep meanwhile whom a mark does not wake.
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
