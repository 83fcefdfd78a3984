// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties that the kernel reports for any socket.

use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Returns the cookie of a socket's network namespace.
pub fn namespace(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut cookie = 0_u64;
    option(socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, &mut cookie)?;
    Some(cookie)
}

/// Returns the cookie of a socket.
pub fn cookie(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut cookie = 0_u64;
    option(socket, libc::SOL_SOCKET, libc::SO_COOKIE, &mut cookie)?;
    Some(cookie)
}

/// Reads an option that is a number.
pub fn number(socket: BorrowedFd<'_>, level: i32, name: i32) -> Option<i32> {
    let mut value = 0_i32;
    option(socket, level, name, &mut value)?;
    Some(value)
}

/// Reads an option of a socket into a value that consists of numbers only.
pub fn option<T: Copy>(socket: BorrowedFd<'_>, level: i32, name: i32, into: &mut T) -> Option<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let value = (into as *mut T).cast();
    // SAFETY: `into` has room for `length` bytes; each caller passes a type for which any bytes are
    // valid.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, value, &mut length) };
    (result == 0).then_some(())
}

/// Returns the inode of a socket.
pub fn inode(socket: BorrowedFd<'_>) -> Option<u64> {
    // SAFETY: all zero is a valid value of this structure.
    let mut about: libc::stat = unsafe { zeroed() };
    // SAFETY: the structure has room for the answer.
    let result = unsafe { libc::fstat(socket.as_raw_fd(), &mut about) };
    (result == 0).then_some(about.st_ino)
}
