// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that programs have inherited which this process began (`posix_spawn`, `system`, `popen`,
//! `vfork`). Nobody tells when those, or what they have begun in turn, are done with them. So a
//! socket that is used goes on in the kernel, and its process looks now and then whether anybody
//! else still has it. If not, it may leave the kernel again: should others have moved bytes, the
//! kernel's counts say so.

use crate::kernel::{processes, raw};
use crate::state::connection::phase;
use crate::state::connections::Stream;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Programs that are just being begun, and have not inherited yet what they will.
static BEGINNING: AtomicU32 = AtomicU32::new(0);
/// When it may be looked next, in [ticks](raw::ticks): that takes a hundredth of the time at most.
static LOOKS_AT: AtomicU64 = AtomicU64::new(0);
const PART: u64 = 100;

/// Operations behind which a socket is tried again that others may have.
pub const AGAIN: u64 = 64;

/// That a program is being begun, until this is dropped.
pub struct Beginning(());

impl Beginning {
    /// Before anything is inherited.
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

/// In the child of a fork: others of its parent's threads are not there.
pub fn forget_beginning() {
    BEGINNING.store(0, Ordering::Relaxed);
}

impl Stream {
    /// A program inherits it. That counts as one descriptor more, however many inherit it.
    pub fn is_lent(&self) {
        if self.shared.mark(phase::LENT) & phase::LENT == 0 {
            self.shared.references.fetch_add(1, Ordering::AcqRel);
            self.local.lent_at.store(processes::now(), Ordering::Relaxed);
        }
    }

    /// Looks whether those that it was lent to are done with it, if only they may have it, and if
    /// it is time to look.
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
            && processes::nobody_else_has(inode, since)
            && BEGINNING.load(Ordering::SeqCst) == 0;
        let after = raw::ticks();
        LOOKS_AT.store(after + PART * after.wrapping_sub(before), Ordering::Relaxed);
        if is_back {
            self.counts_lent_no_more();
        }
    }

    /// Before its last descriptor here is closed: what others have of it is the kernel's.
    pub fn leaves_to_borrowers(&self) {
        if self.shared.is(phase::LENT) && self.shared.references.load(Ordering::Acquire) == 2 {
            self.counts_lent_no_more();
        }
    }

    fn counts_lent_no_more(&self) {
        let shared = self.shared;
        // Another thread may have found the same.
        let lent = |phase: u32| (phase & phase::LENT != 0).then_some(phase & !phase::LENT);
        if shared.phase.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lent).is_ok() {
            shared.references.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
