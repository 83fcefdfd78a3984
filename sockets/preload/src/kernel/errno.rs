// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread's `errno`.

/// The value.
#[inline]
pub fn get() -> i32 {
    // SAFETY: takes nothing, and cannot fail.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the C library's place for this thread, which no other thread uses.
    unsafe { *place }
}

/// Sets the value.
#[inline]
pub fn set(error: i32) {
    // SAFETY: as above.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *place = error }
}

/// Sets the value, and returns -1, as functions of the C library do.
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

/// The address of this thread's `errno`, which differs between threads of the process.
#[inline]
pub fn place() -> usize {
    // SAFETY: only its address is used.
    unsafe { libc::__errno_location() as usize }
}
