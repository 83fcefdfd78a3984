// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `sendfile` and `splice`, through memory of the library if a stream is in a ring.

use crate::kernel::parts::Parts;
use crate::kernel::{errno, raw};
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::table::stream;
use core::ffi::c_void;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

/// Number of bytes that are moved at once.
const BYTES: usize = 16 << 10;

/// `sendfile` to a stream socket. `kernel` is the C library's function that the application has
/// called.
pub fn send(
    out: &Stream,
    descriptor: i32,
    from: i32,
    offset: *mut libc::off_t,
    count: usize,
    kernel: impl Fn() -> isize,
) -> isize {
    out.proceed(descriptor);
    if raw::kind_of_file(from) == Ok(libc::S_IFSOCK) {
        // The kernel refuses, and the bytes there may be doorbells.
        return kernel();
    }
    while !out.shared.is(phase::SENDS) {
        if let Some(result) = out.send_by_kernel(descriptor, 0, None, &kernel) {
            return result;
        }
    }
    let mut buffer = [0_u8; BYTES];
    let mut done = 0;
    while done < count {
        let wanted = (count - done).min(BYTES);
        let at = buffer.as_mut_ptr();
        let got = if offset.is_null() {
            raw::read(from, at, wanted)
        } else {
            // SAFETY: the application's offset.
            raw::read_at(from, at, wanted, unsafe { *offset })
        };
        let got = match got {
            Ok(0) => break,
            Ok(got) => got,
            Err(error) if done == 0 => return errno::fail(error),
            Err(_) => break,
        };
        let part = libc::iovec { iov_base: at.cast::<c_void>(), iov_len: got };
        // `sendfile` raises SIGPIPE as well.
        let sent = out.send(descriptor, Parts::one(&part), 0, || {
            errno::from(raw::send_from(descriptor, at, got))
        });
        let moved = usize::try_from(sent).unwrap_or(0);
        if offset.is_null() {
            raw::seek_back(from, got - moved);
        } else {
            // SAFETY: see above.
            unsafe { *offset += moved as libc::off_t };
        }
        done += moved;
        if sent < 0 && done == 0 {
            return -1;
        }
        if moved < got {
            break;
        }
    }
    done as isize
}

/// `splice` from or to a stream socket. `kernel` is the C library's function that the application
/// has called.
pub fn splice(
    from: i32,
    to: i32,
    count: usize,
    flags: libc::c_uint,
    kernel: impl Fn() -> isize,
) -> isize {
    let (source, sink) = (stream(from), stream(to));
    let is_pipe = |descriptor| raw::kind_of_file(descriptor) == Ok(libc::S_IFIFO);
    if !is_pipe(if source.is_some() { to } else { from }) {
        // One of the two has to be a pipe: the kernel refuses.
        return kernel();
    }
    for (stream, descriptor) in [(&source, from), (&sink, to)] {
        if let Some(stream) = stream {
            stream.proceed(descriptor);
        }
    }
    if let Some(source) = source {
        if source.shared.is(phase::ATTACHED) {
            return from_stream(&source, from, to, count, flags);
        }
        // Doorbells would be spliced as well.
        source.keep(Reason::Spliced);
        let moved = kernel();
        if let Ok(moved @ 1..) = u64::try_from(moved) {
            source.has_moved(from, moved);
        }
        return moved;
    }
    if let Some(sink) = sink {
        loop {
            if sink.shared.is(phase::SENDS) {
                return to_stream(&sink, from, to, count, flags);
            }
            if let Some(result) = sink.send_by_kernel(to, 0, None, &kernel) {
                return result;
            }
        }
    }
    kernel()
}

/// To a pipe: no more than the pipe accepts, so that nothing is lost.
fn from_stream(source: &Stream, from: i32, to: i32, count: usize, flags: u32) -> isize {
    let mut buffer = [0_u8; BYTES];
    let at = buffer.as_mut_ptr();
    let part = libc::iovec { iov_base: at.cast::<c_void>(), iov_len: count.min(BYTES) };
    let waits_for_pipe = flags & libc::SPLICE_F_NONBLOCK == 0;
    // A TCP socket waits nevertheless.
    let waits = waits_for_pipe || !source.is_unix();
    let no_wait = if waits { 0 } else { libc::MSG_DONTWAIT };
    let receive = |part: &libc::iovec, flags| {
        let flags = flags | no_wait;
        source.receive(from, Parts::one(part), flags, || {
            errno::from(raw::receive_at(from, part.iov_base.cast(), part.iov_len, flags))
        })
    };
    if raw::wait_writable(to, waits_for_pipe).is_err() {
        return errno::fail(libc::EAGAIN);
    }
    // Copied first, and taken when the pipe has it.
    let seen = receive(&part, libc::MSG_PEEK);
    if seen <= 0 {
        return seen;
    }
    let written = match raw::write(to, at, seen as usize) {
        Ok(written) => written,
        Err(error) => return errno::fail(error),
    };
    receive(&libc::iovec { iov_base: at.cast(), iov_len: written }, 0)
}

/// From a pipe: as long as it has more, as the kernel does.
fn to_stream(sink: &Stream, from: i32, to: i32, count: usize, flags: u32) -> isize {
    let mut moved = 0;
    loop {
        let wanted = count - moved;
        let piece = piece_to_stream(sink, from, to, wanted, flags);
        match usize::try_from(piece) {
            Err(_) if moved == 0 => return piece,
            Err(_) => break,
            Ok(bytes) => moved += bytes,
        }
        let is_over = piece == 0 || moved == count || !sink.shared.is(phase::SENDS);
        if is_over || raw::wait_readable(from, false).is_err() {
            break;
        }
    }
    moved.cast_signed()
}

fn piece_to_stream(sink: &Stream, from: i32, to: i32, count: usize, flags: u32) -> isize {
    if flags & libc::SPLICE_F_NONBLOCK != 0 && raw::wait_readable(from, false).is_err() {
        return errno::fail(libc::EAGAIN);
    }
    if sink.shared.nonblocking.load(Ordering::Relaxed)
        && !sink.slot().is_some_and(|slot| sink.is_writable(&slot))
    {
        return errno::fail(libc::EAGAIN);
    }
    let mut buffer = [0_u8; BYTES];
    let at = buffer.as_mut_ptr();
    let got = match raw::read(from, at, count.min(BYTES)) {
        Ok(0) => return 0,
        Ok(got) => got,
        Err(error) => return errno::fail(error),
    };
    let mut sent = 0;
    // Bytes taken from the pipe cannot be put back, so all of them are sent.
    while sent < got {
        // SAFETY: inside the buffer.
        let rest = unsafe { at.add(sent) };
        let part = libc::iovec { iov_base: rest.cast::<c_void>(), iov_len: got - sent };
        let more = sink
            .send(to, Parts::one(&part), 0, || errno::from(raw::send_from(to, rest, got - sent)));
        if more < 0 {
            if errno::get() != libc::EAGAIN {
                return if sent > 0 { sent as isize } else { -1 };
            }
            raw::yield_now();
        } else {
            sent += more as usize;
        }
    }
    sent as isize
}
