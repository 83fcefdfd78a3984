// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread's `errno`.

/// What it is.
#[inline]
pub fn get() -> i32 {
    // SAFETY: the C library's place for this thread.
    unsafe { *libc::__errno_location() }
}

/// Sets it.
#[inline]
pub fn set(error: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error }
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
