// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `connect` with `AF_UNSPEC`, which dissolves a TCP connection.

use crate::kernel::{memory, raw};
use crate::socket::opening::note;
use crate::state::connection::phase;
use crate::state::table::stream;
use crate::waiting::epoll;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

/// The state of a socket before its connection was dissolved.
pub struct Before {
    /// It was in sets.
    is_in_sets: bool,
    /// The connection was over, and all its errors had been reported.
    is_over: bool,
}

/// Handles a call of `connect` that dissolves a TCP connection: the peer gets a reset, and the
/// socket will be a new one. `None`: the call does not do that.
///
/// If other descriptors or processes hold the socket as well, it stays in the kernel from then on.
pub fn is_disconnected(
    descriptor: i32,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> Option<Before> {
    let stream = stream(descriptor).filter(|stream| !stream.is_unix())?;
    let is_named = length as usize >= size_of::<libc::sa_family_t>();
    if !is_named || !memory::exists(address.cast::<u8>(), length as usize) {
        return None;
    }
    // SAFETY: the application's address has that many bytes.
    let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() };
    if i32::from(family) != libc::AF_UNSPEC {
        return None;
    }
    if stream.shared.references.load(Ordering::Acquire) > 1 {
        stream.bring_back(descriptor, Reason::Shared);
        return None;
    }
    let before = Before {
        is_in_sets: stream.local.registrations.load(Ordering::Relaxed) != 0,
        is_over: stream.has_no_peer() && !stream.has_error(),
    };
    // The kernel will report the new socket in its sets, and the library must not.
    epoll::leaves_to_others(&stream);
    if let Some(slot) = stream.slot().filter(|_| stream.shared.is(phase::ATTACHED)) {
        stream.says_disconnected(&slot);
    }
    Some(before)
}

/// Notes the socket without a connection that a descriptor refers to now.
pub fn is_anew(descriptor: i32, before: &Before) {
    let nonblocking =
        stream(descriptor).is_some_and(|stream| stream.shared.nonblocking.load(Ordering::Relaxed));
    note(descriptor, nonblocking);
    if before.is_over {
        // The kernel's stream was still open, for doorbells, and the kernel records a reset of it.
        let mut error = 0;
        _ = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
    }
    if before.is_in_sets
        && let Some(anew) = stream(descriptor)
    {
        anew.keep(Reason::ForeignSet);
    }
}
