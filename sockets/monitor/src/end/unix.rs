// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses of Unix sockets, for users.

use super::Place;
use crate::text::decoded;
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

type Ask = unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

/// Returns the address of this end, and of its peer.
pub fn places(socket: BorrowedFd<'_>) -> [Place; 2] {
    [libc::getsockname as Ask, libc::getpeername as Ask].map(|ask| Place::Unix(path(socket, ask)))
}

/// Returns the path, or `@` and the abstract name; empty if the socket is unbound.
fn path(socket: BorrowedFd<'_>, ask: Ask) -> String {
    // SAFETY: all zero is a valid value.
    let mut found: libc::sockaddr_un = unsafe { zeroed() };
    let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: there is room for the address, and `length` is its size.
    if unsafe { ask(socket.as_raw_fd(), (&raw mut found).cast(), &mut length) } != 0 {
        return String::new();
    }
    let bytes = found.sun_path.map(i8::cast_unsigned);
    let length = (length as usize).saturating_sub(offset_of!(libc::sockaddr_un, sun_path));
    let bytes = bytes.get(..length).unwrap_or(&bytes);
    match bytes.split_first() {
        None => String::new(),
        Some((0, name)) => format!("@{}", decoded(name)),
        Some(_) => {
            let path = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            decoded(path)
        }
    }
}
