// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A larger buffer for what a Unix socket sends while a connection comes back into the kernel.

use crate::kernel::raw;

/// The largest send buffer that the default settings of the system allow, and the value that
/// reading the option returns for it.
const SEND_BUFFER: i32 = 212_992;
const READ_SEND_BUFFER: i32 = 2 * SEND_BUFFER;

/// A larger send buffer of a Unix socket, until this is dropped.
pub struct LargeBuffer {
    descriptor: i32,
    before: Option<i32>,
}

impl LargeBuffer {
    /// For that socket.
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

/// Sets the size. Reading it returns twice as much.
fn set_send_buffer(descriptor: i32, bytes: i32) {
    _ = raw::set_option(descriptor, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes);
}
