// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is particular to Unix stream sockets.
//!
//! They have names besides their bytes, and a side that reads no more refuses what its peer sends.
//! What else can go along with bytes, descriptors and who has sent them, is the kernel's: a socket
//! on which that is asked for comes back there, and stays.

use crate::kernel::parts::Parts;
use crate::kernel::{errno, raw};
use crate::socket::connection::phase;
use crate::socket::connections::Stream;
use crate::socket::opening;
use crate::upgrade::slot::Slot;
use core::ptr;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::flag;

/// Where the path of an address begins: what has no name is no longer than that.
const NAME: usize = core::mem::offset_of!(libc::sockaddr_un, sun_path);
/// The last area that a ring goes on in. When the connection comes back, what was not read there
/// and what was not read before it left have to find room in the kernel, which takes much less than
/// with TCP.
pub const LAST_AREA: u32 = 4;
/// As large a buffer for sending as anybody may have who changes no settings of the system, and the
/// same as it is read.
const SEND_BUFFER: i32 = 212_992;
const READ_SEND_BUFFER: i32 = 2 * SEND_BUFFER;
/// `SO_PASSPIDFD` and `SO_INQ`, which are newer than the C library may be.
const PASS_PIDFD: i32 = 76;
const INQ: i32 = 84;

/// Whether a socket is a Unix stream socket.
pub fn is_stream(family: i32, kind: i32, protocol: i32) -> bool {
    let kind = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    family == libc::AF_UNIX && kind == libc::SOCK_STREAM && matches!(protocol, 0 | libc::PF_UNIX)
}

/// Notes a new one.
#[cold]
pub fn note(descriptor: i32, nonblocking: bool) {
    opening::note(descriptor, nonblocking);
    if let Some(stream) = opening::stream(descriptor) {
        stream.shared.mark(phase::UNIX);
    }
}

/// Whether an option makes the kernel do with each message what is not done with rings.
pub fn is_extra(level: i32, name: i32) -> bool {
    const EXTRAS: [i32; 6] = [
        libc::SO_PASSCRED,
        libc::SO_PASSSEC,
        libc::SO_PEEK_OFF,
        libc::SO_RCVLOWAT,
        PASS_PIDFD,
        INQ,
    ];
    level == libc::SOL_SOCKET && EXTRAS.contains(&name)
}

/// Whether a socket has none of those: it may be accepted with what its listener has.
pub fn is_plain(descriptor: i32) -> bool {
    let is = |name, usual: i32| {
        let mut value = usual;
        // An option that the kernel does not know is not set.
        _ = raw::get_option(descriptor, libc::SOL_SOCKET, name, &mut value);
        value == usual
    };
    is(libc::SO_PASSCRED, 0)
        && is(libc::SO_PASSSEC, 0)
        && is(libc::SO_PEEK_OFF, -1)
        && is(PASS_PIDFD, 0)
        && is(INQ, 0)
}

impl Stream {
    /// Whether it is a Unix socket.
    #[inline]
    pub fn is_unix(&self) -> bool {
        self.shared.is(phase::UNIX)
    }

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

    /// Whether what this side sends is refused, because the peer reads nothing more.
    #[inline]
    pub fn is_refused(&self, slot: &Slot) -> bool {
        self.is_unix() && slot.peer_said() & flag::DEAF != 0
    }

    /// Of the events of `poll`, those of a Unix socket that has ended in one direction or both.
    #[cold]
    pub fn unix_ends(&self, slot: &Slot) -> u32 {
        let (phase, said) = (self.shared.phase(), slot.peer_said());
        let is_gone = phase & (phase::KERNEL_END | phase::READ_SHUT) == phase::KERNEL_END
            || said & flag::CLOSED != 0;
        let reads = !is_gone && phase & phase::READ_SHUT == 0 && said & flag::ENDED == 0;
        let writes = !is_gone && phase & phase::ENDED == 0 && said & flag::DEAF == 0;
        let mut ready = 0;
        if !reads {
            ready |= libc::EPOLLRDHUP as u32;
        }
        if !reads && !writes {
            ready |= libc::EPOLLHUP as u32;
        }
        if self.has_error() {
            ready |= libc::EPOLLERR as u32;
        }
        ready
    }
}

/// While this lives, the kernel takes more from a socket, if it is a Unix socket.
pub struct LargeBuffer {
    descriptor: i32,
    before: Option<i32>,
}

impl LargeBuffer {
    /// For this socket.
    pub fn new(descriptor: i32) -> Self {
        let option = |name| {
            let mut value = 0_i32;
            raw::get_option(descriptor, libc::SOL_SOCKET, name, &mut value).ok().map(|_| value)
        };
        let is_unix = option(libc::SO_DOMAIN) == Some(libc::AF_UNIX);
        let before = option(libc::SO_SNDBUF).filter(|size| is_unix && *size < READ_SEND_BUFFER);
        if before.is_some() {
            set_send_buffer(descriptor, SEND_BUFFER);
        }
        Self { descriptor, before }
    }
}

impl Drop for LargeBuffer {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set_send_buffer(self.descriptor, before / 2);
        }
    }
}

/// What is read is twice as much.
fn set_send_buffer(descriptor: i32, bytes: i32) {
    _ = raw::set_option(descriptor, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes);
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
