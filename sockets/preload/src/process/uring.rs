// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the program uses sockets through rings of the kernel (`io_uring`).

use core::sync::atomic::{AtomicBool, Ordering};

static IS_USED: AtomicBool = AtomicBool::new(false);

/// Whether the program uses them.
#[inline]
pub fn is_used() -> bool {
    IS_USED.load(Ordering::Relaxed)
}

/// The program uses them from now on. Returns whether it did before.
pub fn begins() -> bool {
    IS_USED.swap(true, Ordering::Relaxed)
}
