// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending and receiving.

use crate::handing::control;
use crate::kernel::next::next;
use crate::kernel::parts::Parts;
use crate::kernel::{errno, memory};
use crate::socket::unix;
use crate::state::connections::Stream;
use crate::state::table::stream;
use crate::waiting::deadline::{Deadline, Until};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::slice;
use freeport_sockets_proto::Reason;

/// One buffer as the only part of a list.
fn part(buffer: *const c_void, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: buffer.cast_mut(), iov_len: bytes }
}

/// Receives on the slow path. A function of its own, so that the fast path reserves no stack for
/// it.
#[inline(never)]
fn receive_in_steps(
    stream: Stream,
    fd: c_int,
    part: libc::iovec,
    flags: c_int,
    kernel: impl Fn() -> isize,
) -> isize {
    stream.receive(fd, Parts::one(&part), flags, kernel)
}

/// Sends on the slow path.
#[inline(never)]
fn send_in_steps(
    stream: Stream,
    fd: c_int,
    part: libc::iovec,
    flags: c_int,
    kernel: impl Fn() -> isize,
) -> isize {
    stream.send(fd, Parts::one(&part), flags, kernel)
}

/// Receives into one buffer.
#[inline(always)]
fn receive(
    stream: Stream,
    fd: c_int,
    buffer: *mut c_void,
    bytes: usize,
    flags: c_int,
    kernel: impl Fn() -> isize,
) -> isize {
    if !buffer.is_null() && bytes <= isize::MAX as usize {
        // SAFETY: the application's room for `bytes` bytes.
        let into = unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes) };
        if let Some(received) = stream.receive_at_once(fd, into, flags) {
            return received;
        }
    }
    receive_in_steps(stream, fd, part(buffer, bytes), flags, kernel)
}

/// Sends one buffer.
#[inline(always)]
fn send_from(
    stream: Stream,
    fd: c_int,
    buffer: *const c_void,
    bytes: usize,
    flags: c_int,
    kernel: impl Fn() -> isize,
) -> isize {
    if !buffer.is_null() && bytes <= isize::MAX as usize {
        // SAFETY: the application's bytes.
        let from = unsafe { slice::from_raw_parts(buffer.cast::<u8>(), bytes) };
        if let Some(sent) = stream.send_at_once(fd, from, flags) {
            return sent;
        }
    }
    send_in_steps(stream, fd, part(buffer, bytes), flags, kernel)
}

/// `read(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn read(fd: c_int, buffer: *mut c_void, bytes: usize) -> isize {
    let kernel = move || next!(read(fd: c_int, buffer: *mut c_void, bytes: usize) -> isize);
    match stream(fd) {
        // Reading zero bytes does not wait, unlike receiving zero bytes.
        Some(stream) if bytes > 0 => receive(stream, fd, buffer, bytes, 0, kernel),
        _ => kernel(),
    }
}

/// `readv(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    let kernel = || next!(readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize);
    let Some(stream) = stream(fd) else { return kernel() };
    let Ok(number) = usize::try_from(count) else { return kernel() };
    // SAFETY: the caller upholds the contract of the libc function this replaces.
    match unsafe { Parts::new(parts, number) } {
        Some(list) if list.bytes() != Some(0) => stream.receive(fd, list, 0, kernel),
        _ => kernel(),
    }
}

/// `recv(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recv(
    fd: c_int,
    buffer: *mut c_void,
    bytes: usize,
    flags: c_int,
) -> isize {
    let kernel =
        move || next!(recv(fd: c_int, buffer: *mut c_void, bytes: usize, flags: c_int) -> isize);
    match stream(fd) {
        Some(stream) => receive(stream, fd, buffer, bytes, flags, kernel),
        None => kernel(),
    }
}

/// `recvfrom(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    bytes: usize,
    flags: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> isize {
    let kernel = move || {
        next!(recvfrom(fd: c_int, buffer: *mut c_void, bytes: usize, flags: c_int,
            address: *mut libc::sockaddr, length: *mut libc::socklen_t) -> isize)
    };
    let Some(stream) = stream(fd) else { return kernel() };
    let wants_name = !address.is_null() && !length.is_null();
    // SAFETY: it is not null, so the caller gives a place that holds the length.
    let room = if wants_name { unsafe { *length } } else { 0 };
    let result = receive(stream, fd, buffer, bytes, flags, kernel);
    if result >= 0 && wants_name {
        // TCP gives no address; the kernel reports a length of zero.
        let has_name = stream.brings_name(fd, result, bytes);
        let room = usize::try_from(room.cast_signed()).unwrap_or(0);
        // SAFETY: the caller gives `room` bytes for an address.
        let found = if has_name { unsafe { unix::peer_name(fd, address.cast(), room) } } else { 0 };
        // SAFETY: it is not null, so the caller gives a place for the length.
        unsafe { *length = found };
    }
    result
}

/// `recvmsg(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvmsg(
    fd: c_int,
    message: *mut libc::msghdr,
    flags: c_int,
) -> isize {
    if !memory::exists(message, 1) {
        return next!(recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize);
    }
    let is_of_kernel = Cell::new(false);
    // SAFETY: the caller upholds the contract of the libc function this replaces, so it is null or
    // a message that can be read.
    let room =
        unsafe { message.as_ref() }.map(|message| (message.msg_namelen, message.msg_controllen));
    let kernel = || {
        if is_of_kernel.replace(true) {
            let (name, control) = room.unwrap_or_default();
            // The previous call has received a doorbell.
            // SAFETY: the caller gives a message to be filled; a second call comes only after it
            // was found not to be null.
            let message = unsafe { &mut *message };
            (message.msg_namelen, message.msg_controllen) = (name, control);
        }
        let received = next!(recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize);
        if received >= 0 {
            // SAFETY: the caller upholds the contract of the libc function this replaces.
            unsafe { control::has_come(message, flags) };
        }
        received
    };
    let Some(stream) = stream(fd) else { return kernel() };
    // SAFETY: it is not null, so the caller gives a message that can be read.
    let list = unsafe { (*message).msg_iov };
    // SAFETY: as above.
    let count = unsafe { (*message).msg_iovlen };
    // SAFETY: the parts of a message are what `readv` takes.
    let parts = unsafe { Parts::new(list, count) };
    let Some(parts) = parts else { return kernel() };
    let (name, control) = room.unwrap_or_default();
    let mut asked = flags;
    if stream.is_unix() && flags & libc::MSG_WAITALL != 0 && control > 0 {
        // The wait ends at ancillary data, of which only the kernel knows.
        stream.stays_in_kernel(fd, Reason::Ancillary);
        asked &= !libc::MSG_WAITALL;
    }
    let result = stream.receive(fd, parts, asked, kernel);
    if result >= 0 && !is_of_kernel.get() {
        let has_name = stream.brings_name(fd, result, parts.bytes().unwrap_or(0));
        // SAFETY: it is not null, so the caller gives a message that can be read.
        let at = unsafe { (*message).msg_name.cast::<u8>() };
        let has_name = has_name && !at.is_null();
        // SAFETY: the caller's message has room for `name` bytes of a name.
        let length = if has_name { unsafe { unix::peer_name(fd, at, name as usize) } } else { 0 };
        // SAFETY: the caller gives the message to be filled.
        let message = unsafe { &mut *message };
        message.msg_namelen = length;
        message.msg_controllen = 0;
        message.msg_flags = flags & libc::MSG_CMSG_CLOEXEC;
    }
    result
}

/// `write(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn write(fd: c_int, buffer: *const c_void, bytes: usize) -> isize {
    let kernel = move || next!(write(fd: c_int, buffer: *const c_void, bytes: usize) -> isize);
    match stream(fd) {
        Some(stream) => send_from(stream, fd, buffer, bytes, 0, kernel),
        None => kernel(),
    }
}

/// `writev(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn writev(
    fd: c_int,
    parts: *const libc::iovec,
    count: c_int,
) -> isize {
    let kernel = || next!(writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> isize);
    let Some(stream) = stream(fd) else { return kernel() };
    let Ok(number) = usize::try_from(count) else { return kernel() };
    // SAFETY: the caller upholds the contract of the libc function this replaces.
    match unsafe { Parts::new(parts, number) } {
        // Writing no parts does not report an end, unlike sending zero bytes.
        Some(list) if list.bytes() != Some(0) => stream.send(fd, list, 0, kernel),
        _ => kernel(),
    }
}

/// `send(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn send(
    fd: c_int,
    buffer: *const c_void,
    bytes: usize,
    flags: c_int,
) -> isize {
    let kernel =
        move || next!(send(fd: c_int, buffer: *const c_void, bytes: usize, flags: c_int) -> isize);
    match stream(fd) {
        Some(stream) => send_from(stream, fd, buffer, bytes, flags, kernel),
        None => kernel(),
    }
}

/// `sendto(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    bytes: usize,
    flags: c_int,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> isize {
    let kernel = move || {
        next!(sendto(fd: c_int, buffer: *const c_void, bytes: usize, flags: c_int,
            address: *const libc::sockaddr, length: libc::socklen_t) -> isize)
    };
    match stream(fd) {
        // The kernel refuses an address, since the socket is connected.
        Some(stream) if stream.is_unix() && length > 0 && !address.is_null() => kernel(),
        Some(stream) => send_from(stream, fd, buffer, bytes, flags, kernel),
        None => kernel(),
    }
}

/// `sendmsg(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmsg(
    fd: c_int,
    message: *const libc::msghdr,
    flags: c_int,
) -> isize {
    let kernel = || next!(sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> isize);
    if !memory::exists(message, 1) {
        return kernel();
    }
    // SAFETY: the caller upholds the contract of the libc function this replaces.
    unsafe { control::is_sent(message) };
    let Some(stream) = stream(fd) else { return kernel() };
    // SAFETY: it is not null, so the caller gives a message, which nothing changes meanwhile.
    let header = unsafe { &*message };
    let is_only_data = header.msg_controllen == 0;
    if !memory::exists(header.msg_control.cast::<u8>(), header.msg_controllen) && !is_only_data {
        return errno::fail(libc::EFAULT);
    }
    if !is_only_data {
        stream.stays_in_kernel(fd, Reason::Ancillary);
    }
    if stream.is_unix() && header.msg_namelen > 0 && !header.msg_name.is_null() {
        // The kernel refuses, since the socket is connected.
        return kernel();
    }
    // SAFETY: the parts of a message are what `writev` takes.
    let parts = unsafe { Parts::new(header.msg_iov, header.msg_iovlen) };
    match parts {
        Some(list) => stream.send(fd, list, flags, kernel),
        None => kernel(),
    }
}

/// `__read_chk`: `read` into a buffer of known size.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: usize,
    room: usize,
) -> isize {
    if bytes > room || stream(fd).is_none() {
        return next!(__read_chk(fd: c_int, buffer: *mut c_void, bytes: usize, room: usize)
            -> isize);
    }
    // SAFETY: the caller upholds the contract of the libc function this replaces; the same below.
    unsafe { read(fd, buffer, bytes) }
}

/// `__recv_chk`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: usize,
    room: usize,
    flags: c_int,
) -> isize {
    if bytes > room || stream(fd).is_none() {
        return next!(__recv_chk(fd: c_int, buffer: *mut c_void, bytes: usize, room: usize,
            flags: c_int) -> isize);
    }
    // SAFETY: see above.
    unsafe { recv(fd, buffer, bytes, flags) }
}

/// `__recvfrom_chk`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: usize,
    room: usize,
    flags: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> isize {
    if bytes > room || stream(fd).is_none() {
        return next!(__recvfrom_chk(fd: c_int, buffer: *mut c_void, bytes: usize, room: usize,
            flags: c_int, address: *mut libc::sockaddr, length: *mut libc::socklen_t) -> isize);
    }
    // SAFETY: see above.
    unsafe { recvfrom(fd, buffer, bytes, flags, address, length) }
}

/// `sendfile(2)` and its 64-bit name: through memory, if the stream is in a ring.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendfile(
    out: c_int,
    from: c_int,
    offset: *mut libc::off_t,
    count: usize,
) -> isize {
    let kernel = || {
        let (place, bytes) = (offset, count);
        next!(sendfile(out: c_int, from: c_int, place: *mut libc::off_t, bytes: usize) -> isize)
    };
    match stream(out) {
        Some(stream) => crate::data::files::send(&stream, out, from, offset, count, kernel),
        None => kernel(),
    }
}

/// See [`sendfile`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendfile64(
    out: c_int,
    from: c_int,
    offset: *mut libc::off_t,
    count: usize,
) -> isize {
    // SAFETY: the caller upholds the contract of the libc function this replaces.
    unsafe { sendfile(out, from, offset, count) }
}

/// Largest number of messages that the kernel accepts at once.
const MESSAGES: libc::c_uint = 1024;

/// `sendmmsg(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    messages: *mut libc::mmsghdr,
    count: libc::c_uint,
    flags: c_int,
) -> c_int {
    let count = count.min(MESSAGES);
    if stream(fd).is_none() || messages.is_null() {
        for number in 0..if messages.is_null() { 0 } else { count } {
            // SAFETY: the caller gives `count` messages.
            let message = unsafe { messages.add(number as usize) };
            // SAFETY: it is one of them.
            let header = unsafe { &raw const (*message).msg_hdr };
            // SAFETY: as above; each is a message as `sendmsg` takes it.
            unsafe { control::is_sent(header) };
        }
        return next!(sendmmsg(fd: c_int, messages: *mut libc::mmsghdr, count: libc::c_uint,
            flags: c_int) -> c_int);
    }
    for done in 0..count {
        // SAFETY: the caller gives `count` messages.
        let message = unsafe { messages.add(done as usize) };
        // SAFETY: it is one of them.
        let header = unsafe { &raw const (*message).msg_hdr };
        // SAFETY: as above; each is a message as `sendmsg` takes it.
        let sent = unsafe { sendmsg(fd, header, flags) };
        if sent < 0 {
            return if done > 0 { done as c_int } else { -1 };
        }
        // SAFETY: as above; the caller has the lengths filled in.
        unsafe { (*message).msg_len = sent as libc::c_uint };
    }
    count as c_int
}

/// `recvmmsg(2)`. The time-out is checked between messages, as in the kernel.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    messages: *mut libc::mmsghdr,
    count: libc::c_uint,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    let kernel = || {
        let received = next!(recvmmsg(fd: c_int, messages: *mut libc::mmsghdr,
            count: libc::c_uint, flags: c_int, timeout: *mut libc::timespec) -> c_int);
        for number in 0..received.max(0) as usize {
            // SAFETY: the caller gives at least as many messages as the kernel has filled.
            let message = unsafe { messages.add(number) };
            // SAFETY: it is one of them.
            let header = unsafe { &raw const (*message).msg_hdr };
            // SAFETY: as above; the kernel has filled it.
            unsafe { control::has_come(header, flags) };
        }
        received
    };
    if stream(fd).is_none() || messages.is_null() {
        return kernel();
    }
    // SAFETY: the caller upholds the contract of the libc function this replaces.
    let deadline = match unsafe { Until::time(timeout) } {
        Some(until) => Deadline::new(until),
        None => return kernel(),
    };
    let mut each = flags & !libc::MSG_WAITFORONE;
    for done in 0..count {
        // SAFETY: the caller gives `count` messages.
        let message = unsafe { messages.add(done as usize) };
        // SAFETY: it is one of them.
        let header = unsafe { &raw mut (*message).msg_hdr };
        // SAFETY: as above; each is a message as `recvmsg` takes it.
        let received = unsafe { recvmsg(fd, header, each) };
        if received < 0 {
            return if done > 0 { done as c_int } else { -1 };
        }
        // SAFETY: as above; the caller has the lengths filled in.
        unsafe { (*message).msg_len = received as libc::c_uint };
        if flags & libc::MSG_WAITFORONE != 0 {
            each |= libc::MSG_DONTWAIT;
        }
        if deadline.is_over() {
            return done as c_int + 1;
        }
    }
    count as c_int
}

/// `splice(2)`: through memory, if a stream is in a ring.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn splice(
    from: c_int,
    from_offset: *mut libc::loff_t,
    to: c_int,
    to_offset: *mut libc::loff_t,
    count: usize,
    flags: libc::c_uint,
) -> isize {
    let kernel = || {
        next!(splice(from: c_int, from_offset: *mut libc::loff_t, to: c_int,
            to_offset: *mut libc::loff_t, count: usize, flags: libc::c_uint) -> isize)
    };
    if stream(from).is_none() && stream(to).is_none() {
        return kernel();
    }
    if !from_offset.is_null() || !to_offset.is_null() {
        // One of the two is a pipe, and a pipe or a socket takes no offset: the kernel refuses.
        return kernel();
    }
    crate::data::files::splice(from, to, count, flags, kernel)
}
