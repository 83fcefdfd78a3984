// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slots that this process was given by the monitor, and does not use: a child of a fork has the
//! socket as well, so that it cannot leave the kernel yet; or it has left that, and only a child
//! still has it, which cannot give back what its parent was given.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::{self, Stream};
use crate::state::kept::{Given, NOTHING, TO_BE_USED, USED_BY_OTHERS};
use crate::upgrade::monitor;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use freeport_sockets_proto::slab::Side;

/// Ticks between two looks whether others still have a socket: about a millisecond; and whether
/// those do of sockets that this process has no more: about a second.
const LOOK_TICKS: u64 = 2_400_000;
const SWEEP_TICKS: u64 = 2_400_000_000;
/// Sockets that are looked at in one go.
const SWEPT: u32 = 256;

/// Slots of sockets that only others have, and when those were looked at last.
static OF_OTHERS: AtomicU32 = AtomicU32::new(0);
static SWEPT_AT: AtomicU64 = AtomicU64::new(0);

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

    /// Gives back a slot that was kept. False: none was.
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
