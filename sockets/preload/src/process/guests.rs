// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Children that run in their parent's memory, as `vfork` makes them. Each is a guest there, which
//! may change nothing but its descriptors.
//!
//! Nothing in memory tells such a child from its parent, so the kernel has to be asked. As that
//! takes a system call for each closed descriptor, it is asked only in processes that have ever
//! made a guest. The C library's own guests, of `posix_spawn` and the like, call none of the
//! library's functions.

use crate::kernel::raw;
use crate::process;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether this process, or one of its ancestors, may have made a guest: that is known on machines
/// where the library replaces `vfork`.
static MAY_BE: AtomicBool = AtomicBool::new(!cfg!(target_arch = "x86_64"));

/// The flag of a child that has its parent's memory, and that of a thread of the same process.
pub const WITH_MEMORY: u64 = libc::CLONE_VM as u64;
pub const AS_THREAD: u64 = libc::CLONE_THREAD as u64;

/// Before a guest may be made.
pub fn may_come() {
    MAY_BE.store(true, Ordering::SeqCst);
}

/// Whether this is a guest.
#[inline]
pub fn is_guest() -> bool {
    MAY_BE.load(Ordering::Relaxed) && is_other_process()
}

#[cold]
fn is_other_process() -> bool {
    process::number() != 0 && raw::process() != process::number()
}

/// Whether a descriptor refers to the file that the process tracks. A guest has its own
/// descriptors, and may have put another file there.
pub fn has(descriptor: i32) -> bool {
    if !is_guest() {
        return true;
    }
    match raw::is_same(process::number(), raw::process(), descriptor) {
        Ok(same) => same,
        // The kernel does not tell. Then it counts as another one only if it is no connection.
        Err(_) => raw::is_connected(descriptor),
    }
}
