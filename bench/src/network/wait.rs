// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for a condition, without assumptions on how long it takes.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// Time limit of all waiting here: long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Interval between two polls.
const PAUSE: Duration = Duration::from_millis(5);

/// Repeats `attempt` until it returns a value; `what` describes the condition.
///
/// # Errors
/// No value within [`PATIENCE`].
pub fn until<T>(what: &str, attempt: impl FnMut() -> Option<T>) -> Result<T> {
    until_within(PATIENCE, what, attempt)
}

/// The same with another time limit.
pub(super) fn until_within<T>(
    patience: Duration,
    what: &str,
    mut attempt: impl FnMut() -> Option<T>,
) -> Result<T> {
    let begin = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return Ok(found);
        }
        if begin.elapsed() > patience {
            bail!("{what}: not within {} s", patience.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
}
