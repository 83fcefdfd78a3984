// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for what will be so in a moment, without guessing how long a moment is.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// How long anything here is waited for: long enough for a machine that does much else.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// How often it is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// Tries again until it gives something; `what` says what is waited for.
///
/// # Errors
/// It gave nothing for as long as there is patience.
pub fn until<T>(what: &str, attempt: impl FnMut() -> Option<T>) -> Result<T> {
    until_within(PATIENCE, what, attempt)
}

/// The same with another patience.
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
