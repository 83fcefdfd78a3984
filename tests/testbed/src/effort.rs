// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Effort of a test: the usual amount, or more in a long run.

use crate::variable;

/// Returns whether this is a long run (`FREEPORT_LONG`).
pub fn is_long() -> bool {
    std::env::var_os(variable::LONG).is_some()
}

/// Returns `long` in a long run, otherwise `usual`.
pub fn usual_or_long<T>(usual: T, long: T) -> T {
    if is_long() { long } else { usual }
}

/// Reads a number from an environment variable.
///
/// # Panics
/// If the variable is set to something that is not a number.
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Returns the first seed of random tests: `FREEPORT_SEED`, or 1.
pub fn seed() -> u64 {
    number(variable::SEED).unwrap_or(1)
}
