// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the kernel asks whether a silent peer is there still (`SO_KEEPALIVE`). Servers set that on
//! each of their connections, so a stream is kept all the same: when it rests, it gets what it had
//! as it was new.

use crate::kernel::raw;
use core::sync::atomic::{AtomicI32, Ordering};

/// The options of that: their levels and names.
const OPTIONS: [(i32, i32); 4] = [
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
];

/// Whether an option is one of these.
pub fn is_one(level: i32, name: i32) -> bool {
    OPTIONS.contains(&(level, name))
}

/// What a stream had as it was new.
#[derive(Debug)]
pub struct KeepAlive([AtomicI32; OPTIONS.len()]);

impl KeepAlive {
    /// Nothing that is known.
    pub const fn new() -> Self {
        Self([const { AtomicI32::new(0) }; OPTIONS.len()])
    }

    /// Notes what a stream has. False: that cannot be known.
    pub fn note(&self, descriptor: i32) -> bool {
        OPTIONS.iter().zip(&self.0).all(|((level, name), place)| {
            let mut value = 0;
            let known = raw::get_option(descriptor, *level, *name, &mut value);
            place.store(value, Ordering::Relaxed);
            known.is_ok()
        })
    }

    /// Gives that back to the stream. False: the kernel does not take it.
    pub fn put_back(&self, descriptor: i32) -> bool {
        OPTIONS.iter().zip(&self.0).all(|((level, name), place)| {
            let value = place.load(Ordering::Relaxed);
            raw::set_option(descriptor, *level, *name, &value).is_ok()
        })
    }
}
