// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fence: whether the lease of a node lasts.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the lease of a node lasts.
#[derive(Debug, Default)]
pub struct Fence {
    is_closed: AtomicBool,
}

impl Fence {
    /// The lease lasts.
    #[inline]
    pub fn is_valid(&self) -> bool {
        !self.is_closed.load(Ordering::Relaxed)
    }
}
