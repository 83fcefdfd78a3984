// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets that the library does not track, or that other processes hold as well. The kernel alone
//! reports events of such a set, so sockets in it stay in the kernel.

use crate::kernel::raw;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether this process has received a set from another program or process.
static HAS_FOREIGN: AtomicBool = AtomicBool::new(false);

/// Whether inherited sockets may be in an inherited set.
pub fn has_foreign() -> bool {
    HAS_FOREIGN.load(Ordering::Relaxed)
}

/// Notes an inherited or received descriptor, if it is a set.
#[cold]
pub fn has_come(descriptor: i32) {
    if raw::is_set(descriptor) {
        HAS_FOREIGN.store(true, Ordering::Relaxed);
    }
}
