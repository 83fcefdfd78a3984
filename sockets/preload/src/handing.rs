// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that other processes get, and those that this one got from others.

use crate::connection::phase;
use crate::connections::{self, Stream};
use crate::table::{self, What};
use crate::{opening, process, raw};

/// Before another process gets a copy of this descriptor, by a message over a Unix socket.
pub fn is_passed(descriptor: i32) {
    if let Some(stream) = opening::stream(descriptor) {
        stays(&stream);
    }
}

/// Before this process becomes another program: what is not closed by that comes back.
pub fn becomes_another() {}

/// Before a program is begun that inherits what is not closed on exec.
pub fn is_inherited() {
    table::each(|descriptor, what| {
        if let What::Stream(number) = what
            && let Some(stream) = connections::get(number)
            && process::hands_on(descriptor)
        {
            stays(&stream);
        }
    });
}

/// A descriptor that came from elsewhere: if it is a connected stream socket, it is noted, as one
/// that others may have too.
pub fn adopt(descriptor: i32) {
    let mut family = 0_i32;
    let known = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_DOMAIN, &mut family);
    if known.is_err() || !matches!(family, libc::AF_INET | libc::AF_INET6) {
        return;
    }
    let flags = raw::fcntl(descriptor, libc::F_GETFL, 0).unwrap_or(0);
    opening::note(descriptor, flags & libc::O_NONBLOCK != 0);
    if let Some(stream) = opening::stream(descriptor) {
        stays(&stream);
    }
}

/// A socket that several have stays in the kernel, if it is there.
fn stays(stream: &Stream) {
    if !stream.shared.is(phase::ATTACHED) {
        stream.shared.mark(phase::NEVER);
    }
}
