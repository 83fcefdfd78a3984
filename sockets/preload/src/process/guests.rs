// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Children that run in their parent's memory, as `vfork` makes them: each is a guest there, which
//! may touch nothing but descriptors.
//!
//! Nothing in memory tells such a child from its parent, so the kernel has to be asked. As that
//! takes a system call with each descriptor that is closed, it is asked only in processes that have
//! begun to make a guest at some time. The C library's own guests, of `posix_spawn` and the like,
//! call none of our functions.

use crate::kernel::raw;
use crate::process;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether this process, or one that it was forked from, may ever have begun to make one: that is
/// known where ours stands in front of `vfork`.
static MAY_BE: AtomicBool = AtomicBool::new(!cfg!(target_arch = "x86_64"));

/// Flags of a child that has its parent's memory, and of one that is a thread of the same process.
pub const WITH_MEMORY: u64 = libc::CLONE_VM as u64;
pub const AS_THREAD: u64 = libc::CLONE_THREAD as u64;

/// Before one may be made.
pub fn may_come() {
    MAY_BE.store(true, Ordering::SeqCst);
}

/// Whether this is one.
#[inline]
pub fn is_guest() -> bool {
    MAY_BE.load(Ordering::Relaxed) && is_other_process()
}

#[cold]
fn is_other_process() -> bool {
    process::number() != 0 && raw::process() != process::number()
}

/// Whether a descriptor is what this process knows of it. A guest has descriptors of its own, and
/// may have put something else there.
pub fn has(descriptor: i32) -> bool {
    if !is_guest() {
        return true;
    }
    match raw::is_same(process::number(), raw::process(), descriptor) {
        Ok(same) => same,
        // The kernel does not tell; then it is another one only if it is no connection at all.
        Err(_) => raw::is_connected(descriptor),
    }
}
