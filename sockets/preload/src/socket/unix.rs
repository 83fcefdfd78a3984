// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The special behaviour of Unix stream sockets.
//!
//! Their bytes come with the sender's name, and a side that has shut down receiving refuses what
//! its peer sends. Other ancillary data, descriptors and credentials, is left to the kernel: a
//! socket on which that is requested comes back there, and stays.

use crate::kernel::parts::Parts;
use crate::kernel::{errno, raw};
use crate::socket::opening;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::table;
use core::ptr;
use freeport_sockets_proto::Reason;

/// Offset of the path in an address: an unnamed address is no longer than that.
const NAME: usize = core::mem::offset_of!(libc::sockaddr_un, sun_path);
/// Whether a socket is a Unix stream socket.
pub fn is_stream(family: i32, kind: i32, protocol: i32) -> bool {
    let kind = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    family == libc::AF_UNIX && kind == libc::SOCK_STREAM && matches!(protocol, 0 | libc::PF_UNIX)
}

/// Notes a new one.
#[cold]
pub fn note(descriptor: i32, nonblocking: bool) {
    opening::note(descriptor, nonblocking);
    if let Some(stream) = table::stream(descriptor) {
        stream.shared.mark(phase::UNIX);
    }
}

impl Stream {
    /// Before something that only the kernel does: a Unix socket comes back there, and stays.
    #[cold]
    pub fn stays_in_kernel(&self, descriptor: i32, reason: Reason) {
        if self.is_unix() {
            self.bring_back(descriptor, reason);
        }
    }

    /// Whether a receive of `wanted` bytes with that result also returns the sender's name. A
    /// receive of zero bytes returns it as well, if there are bytes.
    pub fn brings_name(&self, descriptor: i32, received: isize, wanted: usize) -> bool {
        self.is_unix()
            && (received > 0 || received == 0 && wanted == 0 && self.has_come(descriptor))
    }

    /// Whether something can be received now.
    #[cold]
    fn has_come(&self, descriptor: i32) -> bool {
        let mut byte = [0_u8];
        let part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
        let (before, flags) = (errno::get(), libc::MSG_PEEK | libc::MSG_DONTWAIT);
        let kernel = || errno::from(raw::receive_at(descriptor, part.iov_base.cast(), 1, flags));
        let seen = self.receive(descriptor, Parts::one(&part), flags, kernel);
        errno::set(before);
        seen > 0
    }
}

/// Fills in the sender's address of received bytes, as the kernel does: the peer's, if it has one.
///
/// # Safety
/// There is room for `room` bytes at `name`.
pub unsafe fn peer_name(descriptor: i32, name: *mut u8, room: usize) -> libc::socklen_t {
    // SAFETY: an address of zeroes is valid.
    let mut peer: libc::sockaddr_storage = unsafe { core::mem::zeroed() };
    let length = match raw::address(descriptor, true, &mut peer) {
        Ok(length) if length > NAME => length,
        _ => return 0,
    };
    let from = ptr::from_ref(&peer).cast::<u8>();
    // SAFETY: the caller gives the room, and no more is copied than the address has.
    unsafe { ptr::copy_nonoverlapping(from, name, room.min(length).min(size_of_val(&peer))) };
    length as libc::socklen_t
}
