// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flags of maps and of their updates, with the kernel's numbers.

use super::ErrorNumber;

/// Update: insert or replace.
pub const ANY: u64 = 0;
/// Update: insert only.
pub const NOEXIST: u64 = 1;
/// Update: replace only; of a full queue, the oldest value gives way.
pub const EXIST: u64 = 2;
/// Update: under the lock in the value, which nobody else can have here.
pub const LOCK: u64 = 4;

/// Map: elements are not made in advance.
pub const NO_PREALLOC: u32 = 1;
/// Map: programs may only read.
pub const READ_ONLY_TO_PROGRAMS: u32 = 1 << 7;
/// Map: programs may only write.
pub const WRITE_ONLY_TO_PROGRAMS: u32 = 1 << 8;

/// Checks what an update asks for against whether the element exists.
///
/// # Errors
/// `EINVAL` for unknown flags, `EEXIST` and `ENOENT` where the flags exclude this update.
pub(crate) fn check(flags: u64, exists: bool) -> Result<(), ErrorNumber> {
    match flags & !LOCK {
        ANY => Ok(()),
        NOEXIST if exists => Err(ErrorNumber::EEXIST),
        EXIST if !exists => Err(ErrorNumber::ENOENT),
        NOEXIST | EXIST => Ok(()),
        _ => Err(ErrorNumber::EINVAL),
    }
}
