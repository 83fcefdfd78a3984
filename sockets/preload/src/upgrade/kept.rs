// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slots that the monitor has assigned to this process and that it does not use. Either a child of
//! a fork holds the socket as well, so that it cannot leave the kernel yet; or the socket has left
//! the kernel and only a child still holds it, which cannot give back its parent's slot.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::{self, Stream};
use crate::state::kept::{Given, NOTHING, TO_BE_USED, USED_BY_OTHERS};
use crate::upgrade::monitor;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use freeport_sockets_proto::slab::Side;

/// Ticks between two checks whether other processes still hold a socket: about a millisecond, or
/// about a second for sockets that this process no longer holds.
const LOOK_TICKS: u64 = 2_400_000;
const SWEEP_TICKS: u64 = 2_400_000_000;
/// Number of sockets that are checked in one go.
const SWEPT: u32 = 256;

/// Number of slots of sockets that only others hold, and when those were checked last.
static OF_OTHERS: AtomicU32 = AtomicU32::new(0);
static SWEPT_AT: AtomicU64 = AtomicU64::new(0);

impl Stream {
    /// Keeps a slot until no other process holds the socket.
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
        if !kept.is(TO_BE_USED) || !self.is_only_here() && !kept.is_time(LOOK_TICKS) {
            return None;
        }
        if !self.is_only_here() {
            self.drop_dead();
        }
        self.is_only_here().then(|| {
            kept.forget();
            kept.get()
        })
    }

    /// Gives back a slot that was kept. False: there was none.
    pub fn gives_back_kept(&self) -> bool {
        let kept = &self.local.kept;
        if !kept.is_own() {
            return false;
        }
        match kept.forget() {
            NOTHING => return false,
            USED_BY_OTHERS => _ = OF_OTHERS.fetch_sub(1, Ordering::Relaxed),
            // Others may claim it.
            _ => self.shared.unmark(phase::CLAIMED),
        }
        let given = kept.get();
        monitor::release(given.monitor, given.slab, given.slot);
        true
    }

    /// This process no longer holds the socket, others do. Its slot is given back when those have
    /// closed it as well.
    pub fn leaves_slot_to_others(&self) {
        let shared = self.shared;
        let number = |word: &AtomicU32| word.load(Ordering::Relaxed);
        let monitor = number(&shared.monitor);
        if monitor != monitor::epoch() {
            // The slot was assigned to another process.
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

/// In the child of a fork: the kept slots are its parent's.
pub fn leave_to_parent() {
    OF_OTHERS.store(0, Ordering::Relaxed);
}

/// Gives back the slots of sockets that only other processes held, and that all have closed.
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
