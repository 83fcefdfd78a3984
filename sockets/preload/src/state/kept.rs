// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A slot that this process was given by the monitor and does not use: see
//! [`kept`](crate::upgrade::kept).

use crate::kernel::raw;
use crate::process;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use freeport_sockets_proto::slab::Side;

/// A slot as the monitor gives it.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// The address where it is mapped.
    pub start: *mut u8,
    /// The place of its slab in this process's table.
    pub place: u32,
    /// The monitor's name of the slab.
    pub slab: u32,
    /// Its number there.
    pub slot: u32,
    /// The side that is this one.
    pub side: Side,
    /// Whether both sides pass fences.
    pub fenced: bool,
    /// The peer's process.
    pub peer: u32,
    /// The kernel's name of the peer's socket (`SO_COOKIE`).
    pub cookie: u64,
    /// The epoch of the monitor that assigned it.
    pub monitor: u32,
}

/// The slot that is kept for a socket. All zero: none.
#[derive(Debug)]
pub struct Kept {
    /// The purpose.
    what: AtomicU32,
    /// The generation of the process that keeps it.
    by: AtomicU32,
    /// When [`is_time`](Self::is_time) returned true last, in [ticks](raw::ticks).
    looked: AtomicU64,
    start: AtomicPtr<u8>,
    place: AtomicU32,
    slab: AtomicU32,
    slot: AtomicU32,
    side: AtomicU32,
    fenced: AtomicU32,
    peer: AtomicU32,
    cookie: AtomicU64,
    monitor: AtomicU32,
}

/// Nothing is kept.
pub const NOTHING: u32 = 0;
/// It is used as soon as no other process holds the socket.
pub const TO_BE_USED: u32 = 1;
/// It is given back as soon as no process holds the socket.
pub const USED_BY_OTHERS: u32 = 2;

impl Kept {
    /// Whether a slot is kept for that purpose. In a child of the process that was given it, this
    /// is a copy without meaning.
    pub fn is(&self, what: u32) -> bool {
        self.what.load(Ordering::Relaxed) == what
            && self.by.load(Ordering::Relaxed) == process::generation()
    }

    /// Keeps a slot for that purpose.
    pub fn set(&self, what: u32, given: &Given) {
        let words = [
            (&self.place, given.place),
            (&self.slab, given.slab),
            (&self.slot, given.slot),
            (&self.side, given.side as u32),
            (&self.fenced, u32::from(given.fenced)),
            (&self.peer, given.peer),
            (&self.monitor, given.monitor),
            (&self.by, process::generation()),
            (&self.what, what),
        ];
        self.start.store(given.start, Ordering::Relaxed);
        self.cookie.store(given.cookie, Ordering::Relaxed);
        words.into_iter().for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    /// The slot.
    pub fn get(&self) -> Given {
        let number = |word: &AtomicU32| word.load(Ordering::Relaxed);
        Given {
            start: self.start.load(Ordering::Relaxed),
            place: number(&self.place),
            slab: number(&self.slab),
            slot: number(&self.slot),
            side: if number(&self.side) == 0 { Side::First } else { Side::Second },
            fenced: number(&self.fenced) != 0,
            peer: number(&self.peer),
            cookie: self.cookie.load(Ordering::Relaxed),
            monitor: number(&self.monitor),
        }
    }

    /// Whether this process was given it, and not its parent.
    pub fn is_own(&self) -> bool {
        self.by.load(Ordering::Relaxed) == process::generation()
    }

    /// Keeps nothing from now on, and returns the purpose until now.
    pub fn forget(&self) -> u32 {
        self.what.swap(NOTHING, Ordering::Relaxed)
    }

    /// Whether `ticks` have passed since this last returned true.
    pub fn is_time(&self, ticks: u64) -> bool {
        let now = raw::ticks();
        let is_time = now.wrapping_sub(self.looked.load(Ordering::Relaxed)) > ticks;
        if is_time {
            self.looked.store(now, Ordering::Relaxed);
        }
        is_time
    }
}
