// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams of the C library (`FILE`) on sockets. They read and write by internal functions, which
//! bypass the library: so a socket with a stream stays in the kernel, or if it has left the kernel,
//! its stream is made of the library's functions.

use super::variadic::{Arguments, variadic};
use crate::kernel::next::next;
use crate::kernel::raw;
use crate::state::table::stream;
use core::ffi::{c_char, c_int, c_void};
use freeport_sockets_proto::Reason;

/// The functions that a stream is made of.
#[repr(C)]
#[derive(Clone, Copy)]
struct Functions {
    read: unsafe extern "C-unwind" fn(*mut c_void, *mut c_char, usize) -> isize,
    write: unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize) -> isize,
    seek: *const c_void,
    close: unsafe extern "C-unwind" fn(*mut c_void) -> c_int,
}

const FUNCTIONS: Functions = Functions {
    read: read_stream,
    write: write_stream,
    seek: core::ptr::null(),
    close: close_stream,
};

unsafe extern "C-unwind" fn read_stream(fd: *mut c_void, into: *mut c_char, bytes: usize) -> isize {
    // SAFETY: the stream's buffer.
    unsafe { super::data::read(fd.addr() as c_int, into.cast(), bytes) }
}

unsafe extern "C-unwind" fn write_stream(
    fd: *mut c_void,
    from: *const c_char,
    bytes: usize,
) -> isize {
    // SAFETY: the stream's buffer. A stream treats 0 as a failure.
    unsafe { write_all(fd.addr() as c_int, from.cast(), bytes).max(0) }
}

unsafe extern "C-unwind" fn close_stream(fd: *mut c_void) -> c_int {
    // SAFETY: closes a descriptor.
    unsafe { super::descriptors::close(fd.addr() as c_int) }
}

/// Writes all bytes; returns the number written, or -1 if none were.
unsafe fn write_all(fd: c_int, from: *const u8, bytes: usize) -> isize {
    let mut done = 0;
    while done < bytes {
        // SAFETY: the caller gives `bytes` bytes, and `done` is less.
        let rest = unsafe { from.add(done) };
        // SAFETY: that many of them are left.
        let written = unsafe { super::data::write(fd, rest.cast(), bytes - done) };
        if written <= 0 {
            return if done > 0 { done as isize } else { -1 };
        }
        done += written as usize;
    }
    done as isize
}

/// `fdopen(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut libc::FILE {
    let has_left = stream(fd).is_some_and(|stream| {
        stream.proceed(fd);
        !stream.bring_back(fd, Reason::Stdio)
    });
    if !has_left {
        return next!(fdopen(fd: c_int, mode: *const c_char) -> *mut libc::FILE);
    }
    let (cookie, functions) = (core::ptr::without_provenance_mut::<c_void>(fd as usize), FUNCTIONS);
    next!(fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions)
        -> *mut libc::FILE)
}

/// Number of bytes of formatted output for which no memory is mapped.
const SHORT: usize = 2048;

/// `vdprintf(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn vdprintf(
    fd: c_int,
    format: *const c_char,
    arguments: Arguments,
) -> c_int {
    if stream(fd).is_none() {
        return next!(vdprintf(fd: c_int, format: *const c_char, arguments: Arguments) -> c_int);
    }
    // SAFETY: the caller upholds the contract of the libc function this replaces. The list that is
    // used up is a copy.
    let mut again = unsafe { *arguments };
    let mut short = [0_u8; SHORT];
    let print = |at: *mut u8, room: usize, arguments: Arguments| {
        next!(vsnprintf(at: *mut u8, room: usize, format: *const c_char, arguments: Arguments)
            -> c_int)
    };
    let length = print(short.as_mut_ptr(), SHORT, arguments);
    let Ok(bytes) = usize::try_from(length) else { return length };
    if bytes < SHORT {
        // SAFETY: that many were printed.
        return unsafe { write_all(fd, short.as_ptr(), bytes) as c_int };
    }
    let Ok(long) = raw::map(bytes + 1, false, None) else {
        return crate::kernel::errno::fail(libc::ENOMEM) as c_int;
    };
    print(long.cast(), bytes + 1, &raw mut again);
    // SAFETY: see above.
    let written = unsafe { write_all(fd, long.cast(), bytes) };
    raw::unmap(long.cast(), bytes + 1);
    written as c_int
}

/// `__vdprintf_chk`: `vdprintf` that checks the format.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __vdprintf_chk(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    arguments: Arguments,
) -> c_int {
    if stream(fd).is_none() {
        return next!(__vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char,
            arguments: Arguments) -> c_int);
    }
    // SAFETY: the caller upholds the contract of the libc function this replaces.
    unsafe { vdprintf(fd, format, arguments) }
}

variadic!(
    /// `dprintf(3)`.
    dprintf, "rdx", "16", vdprintf
);
variadic!(
    /// `__dprintf_chk`: `dprintf` that checks the format.
    __dprintf_chk, "rcx", "24", __vdprintf_chk
);
