// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes that ask the kernel through rings of its own (`io_uring`): what is done there with a
//! socket nobody sees, so all of theirs are in the kernel from the time when they make the first.

use crate::socket::connection::phase;
use crate::socket::opening;
use crate::upgrade::monitor;
use core::sync::atomic::{AtomicBool, Ordering};
use freeport_sockets_proto::Reason;

/// Whether this process has made one, or the one that it was forked from.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Whether sockets stay in the kernel for that.
pub fn is_used() -> bool {
    IS_USED.load(Ordering::Relaxed)
}

/// Makes one by `make`, which gives what is below zero if there is none.
#[cold]
pub fn begins(make: impl FnOnce() -> isize) -> isize {
    let made = make();
    if made >= 0 && !IS_USED.swap(true, Ordering::Relaxed) {
        monitor::keep(0, Reason::IoUring);
        opening::each_stream(|descriptor, stream| {
            if stream.shared.phase() & (phase::LISTENS | phase::NEVER) == 0 {
                stream.bring_back(descriptor, Reason::IoUring);
            }
        });
    }
    made
}
