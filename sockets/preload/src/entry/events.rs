// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for several descriptors.

use crate::kernel::next::next;
use crate::multiplexing::{self, polling, select};
use crate::socket::closing;
use crate::state::table::{self, What};
use crate::waiting::deadline::Until;
use core::ffi::{c_int, c_void};

const NO_TIME: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };

/// `epoll_create(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_create(size: c_int) -> c_int {
    let fd = next!(epoll_create(size: c_int) -> c_int);
    created(fd)
}

/// `epoll_create1(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_create1(flags: c_int) -> c_int {
    let fd = next!(epoll_create1(flags: c_int) -> c_int);
    created(fd)
}

fn created(fd: c_int) -> c_int {
    if fd >= 0 && crate::process::begin() && !crate::process::is_guest() {
        closing::is_closing(fd);
        multiplexing::register_set(fd);
    }
    fd
}

fn set(fd: c_int) -> Option<u32> {
    match table::get(fd) {
        Some(What::Set(number)) => Some(number),
        _ => None,
    }
}

/// `epoll_ctl(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    match set(epoll) {
        Some(number) => multiplexing::control(number, operation, fd, event) as c_int,
        None => {
            if operation == libc::EPOLL_CTL_ADD {
                multiplexing::is_registered_elsewhere(fd);
            }
            next!(epoll_ctl(epoll: c_int, operation: c_int, fd: c_int,
                event: *mut libc::epoll_event) -> c_int)
        }
    }
}

/// `epoll_wait(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_wait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    count: c_int,
    timeout: c_int,
) -> c_int {
    let kernel = |events: *mut libc::epoll_event, count: c_int, until: Until| {
        let timeout = until.as_milliseconds();
        next!(epoll_wait(epoll: c_int, events: *mut libc::epoll_event, count: c_int,
            timeout: c_int) -> c_int)
    };
    match set(epoll) {
        Some(number) => {
            multiplexing::wait(number, events, count, Until::milliseconds(timeout), kernel)
        }
        None => kernel(events, count, Until::milliseconds(timeout)),
    }
}

/// `epoll_pwait(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_pwait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    count: c_int,
    timeout: c_int,
    mask: *const libc::sigset_t,
) -> c_int {
    let kernel = |events: *mut libc::epoll_event, count: c_int, until: Until| {
        let timeout = until.as_milliseconds();
        next!(epoll_pwait(epoll: c_int, events: *mut libc::epoll_event, count: c_int,
            timeout: c_int, mask: *const libc::sigset_t) -> c_int)
    };
    match set(epoll) {
        Some(number) => {
            multiplexing::wait(number, events, count, Until::milliseconds(timeout), kernel)
        }
        None => kernel(events, count, Until::milliseconds(timeout)),
    }
}

/// `epoll_pwait2(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_pwait2(
    epoll: c_int,
    events: *mut libc::epoll_event,
    count: c_int,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let direct = |events: *mut libc::epoll_event, timeout: *const libc::timespec| {
        next!(epoll_pwait2(epoll: c_int, events: *mut libc::epoll_event, count: c_int,
            timeout: *const libc::timespec, mask: *const libc::sigset_t) -> c_int)
    };
    let kernel = |events: *mut libc::epoll_event, count: c_int, until: Until| {
        let mut place = NO_TIME;
        let timeout = until.as_time(&mut place).cast_const();
        next!(epoll_pwait2(epoll: c_int, events: *mut libc::epoll_event, count: c_int,
            timeout: *const libc::timespec, mask: *const libc::sigset_t) -> c_int)
    };
    // SAFETY: as of the function that this stands for.
    match set(epoll).zip(unsafe { Until::time(timeout) }) {
        Some((number, until)) => multiplexing::wait(number, events, count, until, kernel),
        None => direct(events, timeout),
    }
}

/// `poll(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn poll(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: c_int,
) -> c_int {
    let kernel = |fds: *mut libc::pollfd, count: libc::nfds_t, until: Until| {
        let timeout = until.as_milliseconds();
        next!(poll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int)
    };
    polling::poll(fds, count, Until::milliseconds(timeout), kernel)
}

/// `__poll_chk`: `poll` where the compiler knows how long the list is.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __poll_chk(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: c_int,
    room: usize,
) -> c_int {
    if room / size_of::<libc::pollfd>() < count as usize {
        return next!(__poll_chk(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int,
            room: usize) -> c_int);
    }
    // SAFETY: as of the function that this stands for.
    unsafe { poll(fds, count, timeout) }
}

/// `ppoll(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ppoll(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let kernel = |fds: *mut libc::pollfd, count: libc::nfds_t, until: Until| {
        let mut place = NO_TIME;
        let timeout = until.as_time(&mut place).cast_const();
        next!(ppoll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: *const libc::timespec,
            mask: *const libc::sigset_t) -> c_int)
    };
    // SAFETY: as of the function that this stands for.
    match unsafe { Until::time(timeout) } {
        Some(until) => polling::poll(fds, count, until, kernel),
        None => crate::kernel::errno::fail(libc::EINVAL) as c_int,
    }
}

/// `__ppoll_chk`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __ppoll_chk(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
    room: usize,
) -> c_int {
    if room / size_of::<libc::pollfd>() < count as usize {
        return next!(__ppoll_chk(fds: *mut libc::pollfd, count: libc::nfds_t,
            timeout: *const libc::timespec, mask: *const libc::sigset_t, room: usize) -> c_int);
    }
    // SAFETY: as of the function that this stands for.
    unsafe { ppoll(fds, count, timeout, mask) }
}

/// `select(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn select(
    count: c_int,
    readable: *mut c_void,
    writable: *mut c_void,
    exceptional: *mut c_void,
    timeout: *mut libc::timeval,
) -> c_int {
    let kernel = || {
        next!(select(count: c_int, readable: *mut c_void, writable: *mut c_void,
            exceptional: *mut c_void, timeout: *mut libc::timeval) -> c_int)
    };
    select::select(count, [readable, writable, exceptional], timeout, kernel)
}

/// `pselect(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pselect(
    count: c_int,
    readable: *mut c_void,
    writable: *mut c_void,
    exceptional: *mut c_void,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let kernel = || {
        next!(pselect(count: c_int, readable: *mut c_void, writable: *mut c_void,
            exceptional: *mut c_void, timeout: *const libc::timespec, mask: *const libc::sigset_t)
            -> c_int)
    };
    select::pselect(count, [readable, writable, exceptional], timeout, mask, kernel)
}
