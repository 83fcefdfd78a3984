// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for a condition. Tests wait for what they need, and never for a time.

use std::thread;
use std::time::{Duration, Instant};

/// Time limit for a condition. Only a hang reaches it, even on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until `is_so` returns true.
///
/// # Panics
/// If the condition does not hold within [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not within {} s: {what}", PATIENCE.as_secs());
        thread::sleep(PAUSE);
    }
}
