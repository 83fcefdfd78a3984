// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is particular to Unix stream sockets.
//!
//! They have names besides their bytes, and a side that reads no more refuses what its peer sends.
//! What else can go along with bytes, descriptors and who has sent them, is the kernel's: a socket
//! on which that is asked for comes back there, and stays.

use crate::kernel::parts::Parts;
use crate::kernel::{errno, raw};
use crate::socket::opening;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::table;
use core::ptr;
use freeport_sockets_proto::Reason;

/// Where the path of an address begins: what has no name is no longer than that.
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

    /// Whether receiving so many bytes, which gave this, also gives the name of who sent them. Who
    /// receives none of those that are there gets it as well.
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

/// Fills in who has sent what was received, as the kernel does: the peer if it has a name.
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
    // SAFETY: as the caller says, and no more than there is.
    unsafe { ptr::copy_nonoverlapping(from, name, room.min(length).min(size_of_val(&peer))) };
    length as libc::socklen_t
}
