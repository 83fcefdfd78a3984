// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Making and connecting sockets, and their options.

use crate::kernel::errno;
use crate::kernel::memory;
use crate::kernel::next::next;
use crate::kernel::raw;
use crate::reuse::accepting::{self, Way};
use crate::reuse::{self, connecting, listener};
use crate::socket::unix;
use crate::socket::{closing, disconnecting, opening, shutting};
use crate::state::connection::phase;
use crate::state::table::stream;
use crate::upgrade::options;
use crate::waiting::epoll;
use core::ffi::{c_int, c_void};
use core::slice;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

/// `socket(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    let fd = next!(socket(family: c_int, kind: c_int, protocol: c_int) -> c_int);
    if fd >= 0
        && let Some(note) = opening::note_of(family, kind, protocol)
    {
        note(fd, kind & libc::SOCK_NONBLOCK != 0);
    }
    fd
}

/// `socketpair(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn socketpair(
    family: c_int,
    kind: c_int,
    protocol: c_int,
    ends: *mut c_int,
) -> c_int {
    let result = next!(socketpair(family: c_int, kind: c_int, protocol: c_int, ends: *mut c_int)
        -> c_int);
    if result == 0 && unix::is_stream(family, kind, protocol) {
        for end in 0..2 {
            // SAFETY: the caller gives room for two descriptors.
            let place = unsafe { ends.add(end) };
            // SAFETY: the kernel has written two descriptors there.
            let fd = unsafe { place.read_unaligned() };
            unix::note(fd, kind & libc::SOCK_NONBLOCK != 0);
        }
    }
    result
}

/// `bind(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn bind(
    fd: c_int,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    let result =
        next!(bind(fd: c_int, address: *const libc::sockaddr, length: libc::socklen_t) -> c_int);
    if result == 0
        && let Some(stream) = stream(fd)
    {
        // Later connections over the same stream would have that address as well.
        stream.shared.mark(phase::TUNED);
    }
    result
}

/// `listen(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn listen(fd: c_int, backlog: c_int) -> c_int {
    let result = next!(listen(fd: c_int, backlog: c_int) -> c_int);
    if let Some(stream) = stream(fd).filter(|_| result == 0) {
        stream.shared.mark(phase::LISTENS | phase::NEVER);
        listener::listens(&stream, backlog);
        if stream.local.registrations.load(Ordering::Relaxed) != 0 {
            // A wait on a set may already sleep in the kernel.
            listener::is_refused(&stream);
        }
    }
    result
}

/// `connect(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn connect(
    fd: c_int,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    let kernel = || {
        next!(connect(fd: c_int, address: *const libc::sockaddr,
            length: libc::socklen_t) -> c_int)
    };
    if let Some(before) = disconnecting::is_disconnected(fd, address, length) {
        let result = kernel();
        disconnecting::is_anew(fd, &before);
        return result;
    }
    let Some(stream) = stream(fd).filter(|stream| reuse::is_on() && !stream.is_unix()) else {
        return kernel();
    };
    if stream.has_just_connected() {
        return 0;
    }
    if let Some(result) = connecting::connect(&stream, fd, address, length) {
        return errno::from(result) as c_int;
    }
    let result = kernel();
    if result == 0 || errno::get() == libc::EINPROGRESS {
        connecting::is_made(&stream, fd, address, length);
    }
    result
}

/// `accept(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept(
    fd: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    accept_by(fd, address, length, 0, || {
        next!(accept(fd: c_int, address: *mut libc::sockaddr,
            length: *mut libc::socklen_t) -> c_int)
    })
}

/// `accept4(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
    flags: c_int,
) -> c_int {
    accept_by(fd, address, length, flags, || {
        next!(accept4(fd: c_int, address: *mut libc::sockaddr,
            length: *mut libc::socklen_t, flags: c_int) -> c_int)
    })
}

/// Accepts, without the kernel or by it.
fn accept_by(
    fd: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
    flags: c_int,
    kernel: impl Fn() -> c_int,
) -> c_int {
    let nonblocking = flags & libc::SOCK_NONBLOCK != 0;
    let is_known = flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) == 0;
    let Some(listener) = stream(fd).filter(|it| is_known && it.shared.is(phase::LISTENS)) else {
        return accepted(fd, kernel(), nonblocking);
    };
    let sleeper = match accepting::accept(&listener, fd, flags) {
        Way::Done(Ok(new)) => return named(new, address, length),
        Way::Done(Err(error)) => return errno::fail(error) as c_int,
        Way::Kernel(sleeper) => sleeper,
    };
    let before = errno::get();
    let new = accepted(fd, kernel(), nonblocking);
    drop(sleeper);
    if new < 0
        && errno::get() == libc::EAGAIN
        && let Some(Ok(new)) = listener::take(&listener, flags)
    {
        // Another thread has accepted the kernel's connection first.
        errno::set(before);
        return named(new, address, length);
    }
    if let Some(stream) = stream(new) {
        accepting::is_made(&listener, &stream, new);
    }
    new
}

fn accepted(listener: c_int, new: c_int, nonblocking: bool) -> c_int {
    if new >= 0
        && let Some(note) = note_of_accepted(listener)
    {
        note(new, nonblocking);
        if let (Some(listener), Some(new)) = (stream(listener), stream(new))
            && let Some(reason) = listener.kept_for_options()
        {
            // It inherits the options of its listener.
            new.keep(reason);
        }
    }
    new
}

/// The function that notes a socket accepted there, if it is a stream. The kernel is asked about an
/// untracked listener.
fn note_of_accepted(listener: c_int) -> Option<fn(c_int, bool)> {
    if let Some(stream) = stream(listener) {
        return Some(if stream.is_unix() { unix::note } else { opening::note });
    }
    let option = |name| {
        let mut value: c_int = 0;
        raw::get_option(listener, libc::SOL_SOCKET, name, &mut value).map(|_| value)
    };
    let family = option(libc::SO_DOMAIN).ok()?;
    let kind = option(libc::SO_TYPE).ok()?;
    let protocol = option(libc::SO_PROTOCOL).unwrap_or(-1);
    opening::note_of(family, kind, protocol)
}

/// `shutdown(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn shutdown(fd: c_int, how: c_int) -> c_int {
    match stream(fd).and_then(|stream| shutting::shutdown(&stream, fd, how)) {
        Some(result) => result as c_int,
        None => next!(shutdown(fd: c_int, how: c_int) -> c_int),
    }
}

/// `setsockopt(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: libc::socklen_t,
) -> c_int {
    if let Some(stream) = stream(fd) {
        reuse::is_tuned(&stream, level, name);
        if stream.is_unix() && options::is_of_unix(level, name) {
            let is_least = level == libc::SOL_SOCKET && name == libc::SO_RCVLOWAT;
            let reason = if is_least { Reason::LowWater } else { Reason::Ancillary };
            stream.stays_in_kernel(fd, reason);
        }
        let is_ours = stream.shared.is(phase::SENDS) && !stream.is_unix();
        let has_value =
            length as usize >= size_of::<c_int>() && memory::exists(value.cast::<c_int>(), 1);
        if !stream.is_unix()
            && let Some(reason) = options::of_tcp(level, name)
        {
            stream.bring_back(fd, reason);
        }
        if is_ours && level == libc::IPPROTO_TCP && name == libc::TCP_NODELAY && has_value {
            // Doorbells must not be delayed, so the application's value is only recorded.
            // SAFETY: the caller upholds the contract of the libc function this replaces.
            let wanted = unsafe { value.cast::<c_int>().read_unaligned() } != 0;
            stream.shared.no_delay.store(wanted, Ordering::Relaxed);
            return 0;
        }
        if level == libc::SOL_SOCKET && name == libc::SO_RCVLOWAT && has_value && !stream.is_unix()
        {
            // SAFETY: see above.
            let wanted = unsafe { value.cast::<c_int>().read_unaligned() };
            if stream.shared.is(phase::ATTACHED) {
                // The kernel would not report doorbells below it.
                let wanted = if wanted < 0 { i32::MAX } else { wanted.max(1) };
                stream.waits_for(wanted.unsigned_abs());
                if stream.slot().is_some_and(|slot| stream.is_readable(&slot)) {
                    // The kernel wakes waits as well, whether the data was reported or not.
                    epoll::has_news(&stream, libc::EPOLLIN as u32);
                }
                return 0;
            }
            if wanted > 1 {
                stream.keep(Reason::LowWater);
            }
        }
    }
    next!(setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void,
        length: libc::socklen_t) -> c_int)
}

/// `getsockopt(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut libc::socklen_t,
) -> c_int {
    if options::takes_bytes(level, name)
        && let Some(stream) = stream(fd).filter(|stream| !stream.is_unix())
    {
        stream.bring_back(fd, Reason::Option);
    }
    let result = next!(getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void,
        length: *mut libc::socklen_t) -> c_int);
    if let Some(stream) = stream(fd).filter(|_| result == 0)
        && stream.shared.is(phase::SENDS)
    {
        // SAFETY: the kernel has written the length there.
        let written = unsafe { *length as usize };
        // SAFETY: the kernel has written that many bytes there.
        let bytes = unsafe { slice::from_raw_parts_mut(value.cast::<u8>(), written) };
        if (level, name) == (libc::IPPROTO_TCP, libc::TCP_INFO)
            && let Some((place, state)) = bytes.first_mut().zip(stream.tcp_state())
        {
            *place = state;
        }
        let known = match (level, name) {
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {
                Some(c_int::from(stream.shared.no_delay.load(Ordering::Relaxed)))
            }
            (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => {
                let low_water = stream.shared.low_water.load(Ordering::Relaxed);
                (low_water > 0).then_some(low_water.cast_signed())
            }
            (libc::SOL_SOCKET, libc::SO_ERROR) => {
                let given = bytes.first_chunk().map(|given| c_int::from_ne_bytes(*given));
                given.and_then(|given| stream.error_besides(given))
            }
            _ => None,
        };
        if let Some(known) = known {
            for (place, byte) in bytes.iter_mut().zip(known.to_ne_bytes()) {
                *place = byte;
            }
        }
    }
    result
}

/// `getpeername(2)`: fails after a connection has ended in both directions.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getpeername(
    fd: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    if stream(fd).is_some_and(|stream| stream.has_no_peer()) {
        return errno::fail(libc::ENOTCONN) as c_int;
    }
    next!(getpeername(fd: c_int, address: *mut libc::sockaddr, length: *mut libc::socklen_t)
        -> c_int)
}

/// Writes the address of an accepted connection's peer, if the program wants it, and returns the
/// result of `accept`.
fn named(new: i32, address: *mut libc::sockaddr, length: *mut libc::socklen_t) -> i32 {
    if address.is_null() {
        return new;
    }
    match raw::address_into(new, address, length) {
        Ok(_) => new,
        Err(error) => {
            // The connection is lost, as in the kernel.
            closing::is_closing(new);
            _ = raw::close(new);
            errno::fail(error) as i32
        }
    }
}
