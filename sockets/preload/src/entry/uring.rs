// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of `liburing` that make rings: it does that by instructions of its own.

use crate::kernel::next::Next;
use crate::process::uring;
use core::ffi::{c_int, c_uint, c_void};
use core::mem;

/// Calls the function behind ours, and gives what it gives, which is an error below zero.
macro_rules! make {
    ($name:literal($($argument:ident: $kind:ty),*)) => {{
        static NEXT: Next = Next::new($name);
        let found = NEXT.get();
        if found.is_null() {
            return -libc::ENOSYS;
        }
        // SAFETY: the function of that name has this type, and the arguments are the program's.
        let make = || unsafe {
            let function: unsafe extern "C-unwind" fn($($kind),*) -> c_int = mem::transmute(found);
            function($($argument),*) as isize
        };
        uring::begins(make) as c_int
    }};
}

/// `io_uring_queue_init(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_init(
    entries: c_uint,
    ring: *mut c_void,
    flags: c_uint,
) -> c_int {
    make!(c"io_uring_queue_init"(entries: c_uint, ring: *mut c_void, flags: c_uint))
}

/// `io_uring_queue_init_params(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_init_params(
    entries: c_uint,
    ring: *mut c_void,
    parameters: *mut c_void,
) -> c_int {
    make!(c"io_uring_queue_init_params"(entries: c_uint, ring: *mut c_void,
        parameters: *mut c_void))
}

/// `io_uring_queue_init_mem(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_init_mem(
    entries: c_uint,
    ring: *mut c_void,
    parameters: *mut c_void,
    memory: *mut c_void,
    bytes: usize,
) -> c_int {
    make!(c"io_uring_queue_init_mem"(entries: c_uint, ring: *mut c_void, parameters: *mut c_void,
        memory: *mut c_void, bytes: usize))
}

/// `io_uring_queue_mmap(3)`, which programs call that have made the ring themselves.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_mmap(
    fd: c_int,
    parameters: *mut c_void,
    ring: *mut c_void,
) -> c_int {
    make!(c"io_uring_queue_mmap"(fd: c_int, parameters: *mut c_void, ring: *mut c_void))
}

/// `io_uring_setup(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_setup(entries: c_uint, parameters: *mut c_void) -> c_int {
    make!(c"io_uring_setup"(entries: c_uint, parameters: *mut c_void))
}
