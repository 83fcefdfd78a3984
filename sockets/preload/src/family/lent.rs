// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets inherited by programs that this process started (`posix_spawn`, `system`, `popen`,
//! `vfork`). No event reports when those programs, or their own children, have closed them. So such
//! a socket stays in the kernel while it is used, and its process checks now and then whether any
//! other process still holds it. If none does, it may leave the kernel again: if others have moved
//! bytes, the kernel's counts show that.

use crate::kernel::{processes, raw};
use crate::state::connection::phase;
use crate::state::connections::Stream;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Number of programs that are being started, and have not inherited their descriptors yet.
static BEGINNING: AtomicU32 = AtomicU32::new(0);
/// The earliest time of the next check, in [ticks](raw::ticks). Checks take at most a hundredth of
/// the time.
static LOOKS_AT: AtomicU64 = AtomicU64::new(0);
const PART: u64 = 100;

/// Number of operations after which a lent socket is checked again.
pub const AGAIN: u64 = 64;

/// Counts a program as being started until this is dropped.
pub struct Beginning(());

impl Beginning {
    /// Begins, before anything is inherited.
    pub fn new() -> Self {
        BEGINNING.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        BEGINNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// In the child of a fork, which has no other thread that starts a program.
pub fn forget_beginning() {
    BEGINNING.store(0, Ordering::Relaxed);
}

impl Stream {
    /// Notes that a program inherits it. That counts as one more descriptor, however many programs
    /// inherit it.
    pub fn is_lent(&self) {
        if self.shared.mark(phase::LENT) & phase::LENT == 0 {
            self.shared.references.fetch_add(1, Ordering::AcqRel);
            self.local.lent_at.store(processes::now(), Ordering::Relaxed);
        }
    }

    /// Checks whether the programs that inherited it have closed it, if only they may hold it and
    /// if a check is due.
    #[cold]
    pub fn takes_back(&self, descriptor: i32) {
        let shared = self.shared;
        let copies = self.local.copies.load(Ordering::Relaxed);
        let is_only_lent = || shared.references.load(Ordering::Acquire) == copies + 1;
        let before = raw::ticks();
        let is_time = before >= LOOKS_AT.load(Ordering::Relaxed);
        if !shared.is(phase::LENT) || !is_only_lent() || !is_time {
            return;
        }
        let Ok(inode) = raw::inode(descriptor) else { return };
        let since = self.local.lent_at.load(Ordering::Relaxed);
        let is_back = BEGINNING.load(Ordering::SeqCst) == 0
            && processes::is_held_by_no_other(inode, since)
            && BEGINNING.load(Ordering::SeqCst) == 0;
        let after = raw::ticks();
        LOOKS_AT.store(after + PART * after.wrapping_sub(before), Ordering::Relaxed);
        if is_back {
            self.stops_counting_lent();
        }
    }

    /// Before its last descriptor here is closed: descriptors of other programs are the kernel's.
    pub fn leaves_to_borrowers(&self) {
        if self.shared.is(phase::LENT) && self.shared.references.load(Ordering::Acquire) == 2 {
            self.stops_counting_lent();
        }
    }

    fn stops_counting_lent(&self) {
        let shared = self.shared;
        // Another thread may have done the same.
        let lent = |phase: u32| (phase & phase::LENT != 0).then_some(phase & !phase::LENT);
        if shared.phase.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lent).is_ok() {
            shared.references.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
