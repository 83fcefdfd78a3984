// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread's `errno`.

/// What it is.
#[inline]
pub fn get() -> i32 {
    // SAFETY: takes nothing, and cannot fail.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the C library's place for this thread, which no other thread uses.
    unsafe { *place }
}

/// Sets it.
#[inline]
pub fn set(error: i32) {
    // SAFETY: as above.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *place = error }
}

/// Sets it, and gives what functions of the C library give then.
#[inline]
pub fn fail(error: i32) -> isize {
    set(error);
    -1
}

/// The value, or [`fail`].
#[inline]
pub fn from(result: crate::kernel::raw::Result) -> isize {
    match result {
        Ok(value) => value.cast_signed(),
        Err(error) => fail(error),
    }
}

/// What tells this thread from all others of the process.
#[inline]
pub fn place() -> usize {
    // SAFETY: only its address is used.
    unsafe { libc::__errno_location() as usize }
}
