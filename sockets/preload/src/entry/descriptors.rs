// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Descriptors: closing, duplicating and controlling them.

use crate::kernel::next::next;
use crate::kernel::raw;
use crate::reuse::{self, entries};
use crate::socket::{closing, opening};
use crate::state::table::stream;
use crate::upgrade::monitor;
use crate::{handing, process};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::Ordering;

/// What `F_SETFL` sets besides.
const OTHER_FLAGS: c_int = libc::O_APPEND | libc::O_ASYNC | libc::O_DIRECT | libc::O_NOATIME;
/// `asm-generic/fcntl.h`: whom a signal goes to, and which.
const F_SETOWN_EX: c_int = 15;
const F_SETSIG: c_int = 10;
/// `asm-generic/ioctls.h` and `sockios.h`: the same.
const FIOASYNC: libc::c_ulong = 0x5452;
const FIOSETOWN: libc::c_ulong = 0x8901;
const SIOCSPGRP: libc::c_ulong = 0x8902;

/// `close(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if monitor::is_ours(fd) || entries::is_ours(fd) {
        // Who closes all that there may be: for him, it is not there.
        return crate::kernel::errno::fail(libc::EBADF) as c_int;
    }
    closing::is_closing(fd);
    next!(close(fd: c_int) -> c_int)
}

/// `close_range(2)`. What is the library's own stays open.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if first > last
        || flags & !(libc::CLOSE_RANGE_CLOEXEC | libc::CLOSE_RANGE_UNSHARE) as c_int != 0
    {
        return next!(close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int);
    }
    if flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0 {
        closing::are_closing(first, last);
        entries::are_closing(first, last);
    }
    let close = |first: c_uint, last: c_uint| {
        let how = flags;
        next!(close_range(first: c_uint, last: c_uint, how: c_int) -> c_int)
    };
    match monitor::descriptor() {
        Some(ours) if (first..=last).contains(&ours) => {
            let below = if first < ours { close(first, ours - 1) } else { 0 };
            let above = if ours < last { close(ours + 1, last) } else { 0 };
            if below != 0 { below } else { above }
        }
        _ => close(first, last),
    }
}

/// `closefrom(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    // SAFETY: closes descriptors only.
    unsafe { close_range(first.max(0).cast_unsigned(), c_uint::MAX, 0) };
}

/// `dup(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    let new = next!(dup(fd: c_int) -> c_int);
    handing::is_copied(fd, new);
    new
}

/// Before a descriptor gets a number. If that is the library's own, it goes without; the child of a
/// `vfork` takes it from itself only.
fn takes_number(to: c_int) {
    if process::is_guest() {
        return;
    }
    if monitor::is_ours(to) {
        monitor::forget();
    }
    if let Ok(number) = u32::try_from(to) {
        entries::are_closing(number, number);
    }
}

/// `dup2(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup2(fd: c_int, to: c_int) -> c_int {
    takes_number(to);
    let ready = fd != to && raw::fcntl(fd, libc::F_GETFD, 0).is_ok();
    if ready {
        closing::is_closing(to);
    }
    let new = next!(dup2(fd: c_int, to: c_int) -> c_int);
    handing::is_copied(fd, new);
    new
}

/// `dup3(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    takes_number(to);
    let is_valid = flags & !libc::O_CLOEXEC == 0;
    let ready = fd != to && is_valid && raw::fcntl(fd, libc::F_GETFD, 0).is_ok();
    if ready {
        closing::is_closing(to);
    }
    let new = next!(dup3(fd: c_int, to: c_int, flags: c_int) -> c_int);
    handing::is_copied(fd, new);
    new
}

/// `fcntl(2)`. Its last argument, if there is one, is a word.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    let result = next!(fcntl(fd: c_int, command: c_int, argument: usize) -> c_int);
    after_fcntl(fd, command, argument, result);
    result
}

/// `fcntl64`, which 64-bit programs call as well.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    let result = next!(fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int);
    after_fcntl(fd, command, argument, result);
    result
}

fn after_fcntl(fd: c_int, command: c_int, argument: usize, result: c_int) {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => handing::is_copied(fd, result),
        libc::F_SETFL if result == 0 => {
            if let Some(stream) = stream(fd) {
                let nonblocking = argument as c_int & libc::O_NONBLOCK != 0;
                stream.shared.nonblocking.store(nonblocking, Ordering::Relaxed);
                if argument as c_int & OTHER_FLAGS != 0 {
                    reuse::is_signalled(&stream);
                }
            }
        }
        libc::F_SETOWN | F_SETOWN_EX | F_SETSIG if result == 0 => {
            if let Some(stream) = stream(fd) {
                reuse::is_signalled(&stream);
            }
        }
        _ => {}
    }
}

/// `ioctl(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ioctl(
    fd: c_int,
    request: libc::c_ulong,
    argument: *mut c_int,
) -> c_int {
    let stream = match request as libc::c_ulong {
        libc::FIONBIO | libc::FIONREAD | libc::TIOCOUTQ => stream(fd),
        FIOASYNC | FIOSETOWN | SIOCSPGRP => stream(fd),
        _ => None,
    };
    let bytes = stream.as_ref().filter(|_| !argument.is_null()).and_then(|stream| match request {
        libc::FIONREAD => stream.readable_bytes(fd),
        libc::TIOCOUTQ => stream.unreceived_bytes(),
        _ => None,
    });
    if let Some(bytes) = bytes {
        // SAFETY: as of the function that this stands for.
        unsafe { *argument = bytes };
        return 0;
    }
    let result = next!(ioctl(fd: c_int, request: libc::c_ulong, argument: *mut c_int) -> c_int);
    let Some(stream) = stream.filter(|_| result == 0) else { return result };
    if request == libc::FIONBIO {
        // SAFETY: the kernel has read it.
        let nonblocking = unsafe { *argument } != 0;
        stream.shared.nonblocking.store(nonblocking, Ordering::Relaxed);
    } else if matches!(request, FIOASYNC | FIOSETOWN | SIOCSPGRP) {
        reuse::is_signalled(&stream);
    }
    result
}

/// `pidfd_getfd(2)`: what comes from another process, which has it as well.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pidfd_getfd(process: c_int, fd: c_int, flags: c_uint) -> c_int {
    let new = next!(pidfd_getfd(process: c_int, fd: c_int, flags: c_uint) -> c_int);
    was_taken(new);
    new
}

/// Notes a descriptor that this process has taken out of another one.
pub fn was_taken(fd: c_int) {
    if fd >= 0 && !process::is_guest() {
        opening::is_new(fd);
        handing::adopt(fd);
    }
}
