// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes that ask the kernel through rings of its own (`io_uring`): what is done there with a
//! socket nobody sees.
//!
//! A ring that `liburing` has made is used through its functions, which are seen: what it is asked
//! for is looked at before the kernel is. Programs that ask for their files so are none of ours. As
//! soon as anything is asked of a descriptor that is known here, or a ring is made or used by
//! instructions of the program's own, all of its sockets are in the kernel for good.

use crate::process;
use crate::state::connection::phase;
use crate::state::table;
use crate::upgrade::monitor;
use freeport_sockets_proto::Reason;

/// Makes a ring by `make`, which gives what is below zero if there is none. What is asked for there
/// will not be seen.
#[cold]
pub fn begins(make: impl FnOnce() -> isize) -> isize {
    let made = make();
    if made >= 0 {
        takes_sockets();
    }
    made
}

/// From now on all sockets are in the kernel.
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
