// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Boards that a set reads: a word for 64 connections, where peers mark those that have news.
//!
//! In a set of thousands, most sockets are silent for long, and so are parked. If each needed a
//! doorbell through the kernel, many connections would cost more per message than a few. So a set
//! reads the boards of the slabs in which several of its sockets are parked. A board belongs to one
//! set; sockets of other sets in the same slab use doorbells.
//!
//! While the set sleeps, the first mark on each board comes with a doorbell. This needs a process
//! with one thread: the thread that the doorbell wakes has to be the one that reads the board.
//!
//! A mark is enough for a socket only if no other thread sleeps on it, no other process holds it,
//! and a doorbell has rung for its registration before: that doorbell has woken threads that waited
//! in the kernel since before the socket left it.

use super::changes;
use super::registration::{self, Registration, state};
use super::set::{self, Set};
use crate::process;
use crate::state::connections::Stream;
use crate::state::readers::{READERS, Reader};
use crate::state::slabs;
use crate::state::slot::{Board, Sleep, Slot};
use core::sync::atomic::{AtomicU32, Ordering};

/// Least number of sockets for which a board is read.
const FEW: u32 = 2;
/// Looks at a board without any mark before it is left, until a doorbell rings there again.
const SILENT_ROUNDS: u32 = 4096;
/// Consecutive sleeps without any mark before a board is left.
const SILENT_SLEEPS: u32 = 64;

/// The reader of the slab of a socket's slot, with the slab's place.
fn reader_of(stream: &Stream) -> Option<(u32, &'static Reader)> {
    let place = stream.local.slab.load(Ordering::Relaxed).checked_sub(1)?;
    Some((place, READERS.get(place as usize)?))
}

/// Whether its set, whose lock is held, needs no more than a mark for a registration that is about
/// to be parked.
pub fn are_enough(known: &Registration, stream: &Stream, slot: &Slot) -> bool {
    // If a ring is full, others may wait for room.
    let is_full = stream.shared.send.was_full.load(Ordering::Relaxed);
    if !known.is(state::RANG) || is_full || !stream.shared.is_alone() {
        return false;
    }
    let (Some((_, reader)), Some(number)) = (reader_of(stream), registration::number_of(known))
    else {
        return false;
    };
    let own = known.set + 1;
    match reader.set.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => reader.board.store(slot.board().start(), Ordering::Relaxed),
        Err(other) if other != own => return false,
        Err(_) => {}
    }
    let Some(place) = reader.registrations.get(slot.number() as usize) else { return false };
    place.store(number + 1, Ordering::Relaxed);
    true
}

/// A doorbell has rung for a socket of a set that is awake. From now on the set reads its board, if
/// that is worth it. The set's lock is held.
pub fn has_rung(set: &Set, number: u32, stream: &Stream) {
    let Some((place, reader)) = reader_of(stream) else { return };
    if reader.set.load(Ordering::Acquire) != number + 1 || reader.reads.load(Ordering::Relaxed) {
        return;
    }
    let Some(board) = reader.board() else { return };
    if board.enough() >= FEW {
        reader.begins(place, set);
        board.say_core(process::core());
        board.is_read();
    }
}

/// A set that starts a sleep has parked a registration: the set becomes the reader of its board, if
/// that is worth it. The set's lock is held.
pub fn sleeps_with(set: &Set, known: &Registration, stream: &Stream, sleep: Sleep) {
    let Some((place, reader)) = reader_of(stream) else { return };
    let is_own = reader.set.load(Ordering::Acquire) == known.set + 1;
    if !is_own || reader.reads.load(Ordering::Relaxed) {
        return;
    }
    let Some(board) = reader.board() else { return };
    if board.enough() >= FEW {
        reader.begins(place, set);
        board.sleeps(sleep);
    }
}

/// Makes the registrations active that are marked on the boards of a set. Its lock is held.
#[inline]
pub fn look(set: &Set) {
    if set.reads_boards() {
        look_at_all(set);
    }
}

fn look_at_all(set: &Set) {
    let round = set.round.load(Ordering::Relaxed);
    let mut link = &set.boards;
    while let Some((place, reader)) = behind(link) {
        let Some(board) = reader.board() else { return };
        let marks = board.take_marks();
        if marks != 0 {
            reader.was_marked(round);
            reader.activate(set, marks);
        }
        let silence = round.wrapping_sub(reader.round.load(Ordering::Relaxed));
        if silence > SILENT_ROUNDS || !slabs::is_in_use(place) {
            link.store(reader.next.load(Ordering::Relaxed), Ordering::Relaxed);
            reader.leave(set);
        } else {
            link = &reader.next;
        }
    }
}

/// Records on the boards of a set the core on which it waits. Its lock is held.
pub fn say_core(set: &Set) {
    let (core, mut link) = (process::core(), &set.boards);
    while let Some((_, reader)) = behind(link) {
        if let Some(board) = reader.board() {
            board.say_core(core);
        }
        link = &reader.next;
    }
}

fn behind(link: &AtomicU32) -> Option<(u32, &'static Reader)> {
    let place = link.load(Ordering::Relaxed).checked_sub(1)?;
    Some((place, READERS.get(place as usize)?))
}

/// The only waiter of a set starts a sleep. On each board that is worth it, only the first mark
/// comes with a doorbell from now on; registrations marked before become active. The set's lock is
/// held.
pub fn sleep(set: &Set, sleep: Sleep) {
    let round = set.round.load(Ordering::Relaxed);
    let mut link = &set.boards;
    while let Some((place, reader)) = behind(link) {
        let Some(board) = reader.board() else { return };
        let sleeps = reader.sleeps.fetch_add(1, Ordering::Relaxed);
        if sleeps > SILENT_SLEEPS || board.enough() < FEW || !slabs::is_in_use(place) {
            link.store(reader.next.load(Ordering::Relaxed), Ordering::Relaxed);
            reader.leave(set);
            continue;
        }
        board.sleeps(sleep);
        let marks = board.take_marks();
        if marks != 0 {
            reader.was_marked(round);
            reader.activate(set, marks);
        }
        link = &reader.next;
    }
}

/// A sleep of a set has ended.
pub fn wake(set: &Set) {
    if !set.reads_boards() {
        return;
    }
    let Some(_held) = set.lock.take(true) else { return };
    let mut link = &set.boards;
    while let Some((_, reader)) = behind(link) {
        if let Some(board) = reader.board() {
            board.is_read();
        }
        link = &reader.next;
    }
}

/// A set is about to sleep: its sockets use doorbells from now on, and the registrations marked
/// until then are active. Its lock is held.
pub fn leave_all(set: &Set) {
    while let Some((_, reader)) = behind(&set.boards) {
        set.boards.store(reader.next.load(Ordering::Relaxed), Ordering::Relaxed);
        reader.leave(set);
    }
}

impl Reader {
    fn board(&self) -> Option<Board> {
        let start = self.board.load(Ordering::Relaxed);
        // SAFETY: the board of a slab, which stays mapped while its board is read, and while a
        // socket is in it.
        (!start.is_null()).then(|| unsafe { Board::at(start) })
    }

    /// The set becomes the reader. The caller writes the board's state afterwards.
    fn begins(&self, place: u32, set: &Set) {
        self.reads.store(true, Ordering::Relaxed);
        self.next.store(set.boards.swap(place + 1, Ordering::Relaxed), Ordering::Relaxed);
        self.was_marked(set.round.load(Ordering::Relaxed));
    }

    fn was_marked(&self, round: u32) {
        self.round.store(round, Ordering::Relaxed);
        self.sleeps.store(0, Ordering::Relaxed);
    }

    fn leave(&self, set: &Set) {
        if let Some(board) = self.board() {
            board.is_left();
            let marks = board.take_marks();
            self.activate(set, marks);
        }
        // Last: the slab may be unmapped from now on.
        self.reads.store(false, Ordering::Release);
    }

    /// Makes the marked registrations active. A peer may set any mark: each is checked.
    fn activate(&self, set: &Set, mut marks: u64) {
        let is_awake = set.waiters.load(Ordering::SeqCst) == 0;
        while marks != 0 {
            let bit = marks & marks.wrapping_neg();
            marks &= !bit;
            let Some(place) = self.registrations.get(bit.trailing_zeros() as usize) else { return };
            let Some(number) = place.load(Ordering::Relaxed).checked_sub(1) else { continue };
            // SAFETY: the lock is held, of the set that is compared.
            let Some(known) = (unsafe { registration::get(number) }) else { continue };
            let is_here = known.set + 1 == self.set.load(Ordering::Relaxed);
            if !is_here || !known.is(state::USED | state::SWITCHED) || known.is(state::DELETED) {
                continue;
            }
            if !set.activate(number, known) {
                // The kernel reports it, as if a doorbell had rung.
                changes::report_at_once(set, number, known);
            } else if is_awake
                && let Some(stream) = known.stream()
                && let Some(slot) = stream.slot()
            {
                set::unpark(known, &stream, &slot);
            }
        }
    }
}

/// Before a fork, or when the set `of` is closed: boards are no longer read, and marks are enough
/// for no socket.
pub fn give_up(of: Option<u32>) {
    for (place, reader) in READERS.iter().enumerate().take(slabs::count()) {
        let Some(number) = reader.set.load(Ordering::Acquire).checked_sub(1) else { continue };
        if of.is_some_and(|of| of != number) {
            continue;
        }
        let Some(set) = set::get(number) else { continue };
        let held = set.lock.take(true);
        if of.is_none() && held.is_none() {
            continue;
        }
        leave_all(set);
        // A slab without connections has nothing to reset, and may be unmapped already.
        if let Some(board) = reader.board().filter(|_| slabs::is_in_use(place as u32)) {
            board.forget();
        }
        reader.set.store(0, Ordering::Release);
    }
}

/// In the child of a fork: the readers are its parent's.
pub fn forget_all() {
    for reader in READERS.get(..slabs::count()).unwrap_or_default() {
        let number = reader.set.swap(0, Ordering::Relaxed).checked_sub(1);
        reader.reads.store(false, Ordering::Relaxed);
        if let Some(set) = number.and_then(set::get) {
            set.boards.store(0, Ordering::Relaxed);
        }
    }
}
