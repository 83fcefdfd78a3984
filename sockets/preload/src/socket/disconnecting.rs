// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `connect` to no address, which takes a TCP connection apart.

use crate::kernel::{memory, raw};
use crate::socket::opening::note;
use crate::state::connection::phase;
use crate::state::table::stream;
use crate::waiting::epoll;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

/// What a socket was before its connection was taken apart.
pub struct Before {
    /// Sets had it.
    is_in_sets: bool,
    /// The connection was over, and the application had every error of it.
    is_over: bool,
}

/// Whether a call of `connect` takes a TCP connection apart, which was brought to its end then: the
/// peer gets a reset, and the socket is a new one.
///
/// Where other descriptors or processes have it as well, it is the kernel's from then on.
pub fn is_disconnected(
    descriptor: i32,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> Option<Before> {
    let stream = stream(descriptor).filter(|stream| !stream.is_unix())?;
    let is_named = length as usize >= size_of::<libc::sa_family_t>();
    if !is_named || !memory::is_there(address.cast::<u8>(), length as usize) {
        return None;
    }
    // SAFETY: the application's address has so many bytes.
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
    // The kernel reports the new socket in its sets, which the library does not know for it.
    epoll::leaves_to_others(&stream);
    if let Some(slot) = stream.slot().filter(|_| stream.shared.is(phase::ATTACHED)) {
        stream.says_disconnected(&slot);
    }
    Some(before)
}

/// A descriptor is that of a socket without a connection now.
pub fn is_anew(descriptor: i32, before: &Before) {
    let nonblocking =
        stream(descriptor).is_some_and(|stream| stream.shared.nonblocking.load(Ordering::Relaxed));
    note(descriptor, nonblocking);
    if before.is_over {
        // The kernel still had its stream, for doorbells, and notes that it was reset.
        let mut error = 0;
        _ = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
    }
    if before.is_in_sets
        && let Some(anew) = stream(descriptor)
    {
        anew.keep(Reason::ForeignSet);
    }
}
