// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the program has given up system calls (`seccomp`).

use core::sync::atomic::{AtomicBool, Ordering};

static IS_CONFINED: AtomicBool = AtomicBool::new(false);

/// Whether the program has given up system calls, so that the library leaves everything to the
/// kernel.
#[inline]
pub fn is_confined() -> bool {
    IS_CONFINED.load(Ordering::Relaxed)
}

/// Sets that, and returns what it was before.
pub fn set_confined(is_confined: bool) -> bool {
    IS_CONFINED.swap(is_confined, Ordering::Relaxed)
}
