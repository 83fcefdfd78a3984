// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keep-alive options (`SO_KEEPALIVE`). Servers set them on each of their connections, so a
//! stream is kept nevertheless: when it rests, it gets back the values that it had when it was new.

use crate::kernel::raw;
use core::sync::atomic::{AtomicI32, Ordering};

/// The levels and names of the options.
const OPTIONS: [(i32, i32); 4] = [
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
];

/// Whether an option is a keep-alive option.
pub fn is_one(level: i32, name: i32) -> bool {
    OPTIONS.contains(&(level, name))
}

/// The values that a stream had when it was new.
#[derive(Debug)]
pub struct KeepAlive([AtomicI32; OPTIONS.len()]);

impl KeepAlive {
    /// No values yet.
    pub const fn new() -> Self {
        Self([const { AtomicI32::new(0) }; OPTIONS.len()])
    }

    /// Reads the values of a stream. False: they cannot be read.
    pub fn note(&self, descriptor: i32) -> bool {
        OPTIONS.iter().zip(&self.0).all(|((level, name), place)| {
            let mut value = 0;
            let known = raw::get_option(descriptor, *level, *name, &mut value);
            place.store(value, Ordering::Relaxed);
            known.is_ok()
        })
    }

    /// Restores the values of the stream. False: the kernel refuses them.
    pub fn put_back(&self, descriptor: i32) -> bool {
        OPTIONS.iter().zip(&self.0).all(|((level, name), place)| {
            let value = place.load(Ordering::Relaxed);
            raw::set_option(descriptor, *level, *name, &value).is_ok()
        })
    }
}
