// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of which the library knows nothing, or that others have as well: the kernel alone reports
//! what happens in them, so what is in one of them stays there.

use crate::kernel::raw;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether this process was given a set by another program or process.
static HAS_FOREIGN: AtomicBool = AtomicBool::new(false);

/// Whether what this process was given may be in a set that it was given.
pub fn has_foreign() -> bool {
    HAS_FOREIGN.load(Ordering::Relaxed)
}

/// Notes a descriptor that came from elsewhere, if it is a set.
#[cold]
pub fn has_come(descriptor: i32) {
    if raw::is_set(descriptor) {
        HAS_FOREIGN.store(true, Ordering::Relaxed);
    }
}
