// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of offsets and lengths against the size of the memory they refer to.

use crate::error::Error;

/// Refuses a range that is not inside.
///
/// # Errors
/// [`Error::OutOfRange`], with the range and the size.
pub fn within(what: &'static str, at: usize, bytes: usize, size: usize) -> Result<(), Error> {
    match at.checked_add(bytes) {
        Some(end) if end <= size => Ok(()),
        _ => Err(Error::OutOfRange { what, at, bytes, size }),
    }
}

/// Refuses an offset that is not that of a word inside.
///
/// # Errors
/// [`Error::OutOfRange`], with the range and the size.
pub fn word_within(what: &'static str, at: usize, size: usize) -> Result<(), Error> {
    if at.is_multiple_of(8) {
        within(what, at, 8, size)
    } else {
        Err(Error::OutOfRange { what, at, bytes: 8, size })
    }
}
