// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For each slab of this process, the set that reads its [board](crate::state::slot::Board).

use crate::state::slabs::SLABS;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use freeport_sockets_proto::slab::SLOTS;

/// The reader of a slab's board.
pub struct Reader {
    /// The number of the set, counted from 1; 0: none.
    pub set: AtomicU32,
    /// Whether it reads the board now; if so, `next` is the next slab that the set reads, counted
    /// from 1.
    pub reads: AtomicBool,
    pub next: AtomicU32,
    /// The round of the set in which there was a mark last.
    pub round: AtomicU32,
    /// Number of sleeps since then.
    pub sleeps: AtomicU32,
    pub board: AtomicPtr<u8>,
    /// The registrations of the slots for which a mark was enough last, counted from 1.
    pub registrations: [AtomicU32; SLOTS as usize],
}

/// The readers, in the order of slabs.
pub static READERS: [Reader; SLABS] = [const {
    Reader {
        set: AtomicU32::new(0),
        reads: AtomicBool::new(false),
        next: AtomicU32::new(0),
        round: AtomicU32::new(0),
        sleeps: AtomicU32::new(0),
        board: AtomicPtr::new(core::ptr::null_mut()),
        registrations: [const { AtomicU32::new(0) }; SLOTS as usize],
    }
}; SLABS];

/// Whether the board of a slab is read.
pub fn is_read(place: u32) -> bool {
    READERS.get(place as usize).is_some_and(|reader| reader.reads.load(Ordering::Acquire))
}

/// Resets the reader of a place that a new slab takes.
pub fn is_new(place: u32) {
    if let Some(reader) = READERS.get(place as usize) {
        reader.set.store(0, Ordering::Relaxed);
        reader.board.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
}
