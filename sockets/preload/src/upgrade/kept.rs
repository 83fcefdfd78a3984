// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slots that this process was given by the monitor, and does not use: a child of a fork has the
//! socket as well, so that it cannot leave the kernel yet; or it has left that, and only a child
//! still has it, which cannot give back what its parent was given.

use crate::kernel::raw;
use crate::process;
use crate::socket::connection::phase;
use crate::socket::connections::{self, Stream};
use crate::upgrade::monitor;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use freeport_sockets_proto::slab::Side;

/// A slot as the monitor gives it.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// Where it is mapped.
    pub start: *mut u8,
    /// The place of its slab among those of this process.
    pub place: u32,
    /// What the monitor calls the slab.
    pub slab: u32,
    /// Its number there.
    pub slot: u32,
    /// Which of its sides is this one.
    pub side: Side,
    /// Whether both sides pass fences.
    pub fenced: bool,
    /// The process at the other end.
    pub peer: u32,
    /// What the kernel calls the other end.
    pub cookie: u64,
    /// Which of the monitors that this process has had gave it.
    pub monitor: u32,
}

/// What is kept for a socket. All zero: nothing.
#[derive(Debug)]
pub struct Kept {
    /// What for.
    what: AtomicU32,
    /// In which of the processes that forks have made.
    by: AtomicU32,
    /// When it was looked last whether it is time, in [ticks](raw::ticks).
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

const NOTHING: u32 = 0;
/// To be used as soon as nobody else has the socket.
const TO_BE_USED: u32 = 1;
/// To be given back as soon as nobody has the socket.
const USED_BY_OTHERS: u32 = 2;

/// Ticks between two looks whether others still have a socket: about a millisecond; and whether
/// those do of sockets that this process has no more: about a second.
const LOOK_TICKS: u64 = 2_400_000;
const SWEEP_TICKS: u64 = 2_400_000_000;
/// Sockets that are looked at in one go.
const SWEPT: u32 = 256;

/// Slots of sockets that only others have, and when those were looked at last.
static OF_OTHERS: AtomicU32 = AtomicU32::new(0);
static SWEPT_AT: AtomicU64 = AtomicU64::new(0);

impl Kept {
    /// Of a child of who was given it, this is a copy that means nothing.
    fn is(&self, what: u32) -> bool {
        self.what.load(Ordering::Relaxed) == what
            && self.by.load(Ordering::Relaxed) == process::generation()
    }

    fn set(&self, what: u32, given: &Given) {
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

    fn get(&self) -> Given {
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

    fn is_time(&self) -> bool {
        let now = raw::ticks();
        let is_time = now.wrapping_sub(self.looked.load(Ordering::Relaxed)) > LOOK_TICKS;
        if is_time {
            self.looked.store(now, Ordering::Relaxed);
        }
        is_time
    }
}

impl Stream {
    /// Keeps a slot until nobody else has the socket.
    pub fn keeps(&self, given: &Given) {
        self.uses_slab(given.place);
        self.local.kept.set(TO_BE_USED, given);
    }

    /// Whether a slot waits for the socket to be this process's alone.
    pub fn keeps_slot(&self) -> bool {
        self.local.kept.is(TO_BE_USED)
    }

    /// The slot that was kept, if it can be used now.
    pub fn take_kept(&self) -> Option<Given> {
        let kept = &self.local.kept;
        if !kept.is(TO_BE_USED) || !self.is_only_here() && !kept.is_time() {
            return None;
        }
        if !self.is_only_here() {
            self.drop_dead();
        }
        self.is_only_here().then(|| {
            kept.what.store(NOTHING, Ordering::Relaxed);
            kept.get()
        })
    }

    /// Gives back a slot that was kept. False: none was.
    pub fn gives_back_kept(&self) -> bool {
        let kept = &self.local.kept;
        if kept.by.load(Ordering::Relaxed) != process::generation() {
            return false;
        }
        match kept.what.swap(NOTHING, Ordering::Relaxed) {
            NOTHING => return false,
            USED_BY_OTHERS => _ = OF_OTHERS.fetch_sub(1, Ordering::Relaxed),
            // Others may claim it.
            _ => self.shared.unmark(phase::CLAIMED),
        }
        let given = kept.get();
        monitor::release(given.monitor, given.slab, given.slot);
        true
    }

    /// This process has the socket no more, others have: its slot is given back when those have it
    /// no more, either.
    pub fn leaves_slot_to_others(&self) {
        let shared = self.shared;
        let number = |word: &AtomicU32| word.load(Ordering::Relaxed);
        let monitor = number(&shared.monitor);
        if monitor != monitor::epoch() {
            // Who was given it is another process.
            return;
        }
        let (slab, slot) = (number(&shared.slab), number(&shared.slot));
        let given = Given {
            start: core::ptr::null_mut(),
            place: 0,
            slab,
            slot,
            side: Side::First,
            fenced: false,
            peer: 0,
            cookie: 0,
            monitor,
        };
        self.local.kept.set(USED_BY_OTHERS, &given);
        OF_OTHERS.fetch_add(1, Ordering::Relaxed);
    }
}

/// In the child of a fork: nothing of it is its own.
pub fn leave_to_parent() {
    OF_OTHERS.store(0, Ordering::Relaxed);
}

/// Gives back the slots of sockets that only others had, and that nobody has any more.
pub fn sweep() {
    let (now, swept) = (raw::ticks(), SWEPT_AT.load(Ordering::Relaxed));
    if OF_OTHERS.load(Ordering::Relaxed) == 0 || now.wrapping_sub(swept) < SWEEP_TICKS {
        return;
    }
    SWEPT_AT.store(now, Ordering::Relaxed);
    let mut left = SWEPT;
    connections::each(|stream| {
        if left == 0 || !stream.local.kept.is(USED_BY_OTHERS) {
            return;
        }
        left -= 1;
        stream.drop_dead();
        if stream.shared.references.load(Ordering::Acquire) == 0 {
            stream.gives_back_kept();
        }
    });
}
