// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bell for the thread that answers the primary: the log of the replica has advanced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Counts how often the log has advanced, while somebody waits for it.
#[derive(Debug, Default)]
pub struct Progress {
    count: Mutex<u64>,
    changed: Condvar,
    is_awaited: AtomicBool,
}

impl Progress {
    /// The log has advanced. One load while no thread answers a primary.
    #[inline]
    pub fn notify(&self) {
        if self.is_awaited.load(Ordering::Acquire) {
            *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            self.changed.notify_all();
        }
    }

    /// Nobody waits at present, nor until the next [`Progress::wait`].
    pub fn rest(&self) {
        self.is_awaited.store(false, Ordering::Release);
    }

    /// Waits until the count differs from the one that was seen last, or for a time. Returns the
    /// present one.
    pub fn wait(&self, seen: u64, time: Duration) -> u64 {
        self.is_awaited.store(true, Ordering::Release);
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(count, time, |count| *count == seen);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
