// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes that submit operations through rings of the kernel (`io_uring`), which the library
//! does not see.
//!
//! A ring made by `liburing` is used through its functions, which the library replaces: it reads
//! the entries before the kernel does. Programs that use rings for files only are not affected. As
//! soon as an entry names a tracked descriptor, or a ring is made or used by instructions of the
//! program's own, all sockets of the process stay in the kernel for good.

use crate::process;
use crate::state::connection::phase;
use crate::state::table;
use crate::upgrade::monitor;
use freeport_sockets_proto::Reason;

/// Makes a ring by `make`, whose result is below zero on failure. The library will not see its
/// entries.
#[cold]
pub fn begins(make: impl FnOnce() -> isize) -> isize {
    let made = make();
    if made >= 0 {
        takes_sockets();
    }
    made
}

/// Brings all sockets into the kernel for good.
#[cold]
pub fn takes_sockets() {
    if process::uring::begins() {
        return;
    }
    monitor::keep(0, Reason::IoUring);
    table::each_stream(|descriptor, stream| {
        if stream.shared.phase() & (phase::LISTENS | phase::NEVER) == 0 {
            stream.bring_back(descriptor, Reason::IoUring);
        }
    });
}
