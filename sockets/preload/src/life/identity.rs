// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes that give up rights, as servers do before they read what strangers say: what they
//! cannot have by a descriptor, they shall not have by memory either.
//!
//! Slabs that no connection of this process is in leave its memory. So do those that the process
//! had before it was forked: its parent may have connections of other clients there. Its own
//! connections in them come back into the kernel before.

use crate::kernel::identity;
use crate::process;
use crate::state::slabs;
use crate::state::table;
use crate::upgrade::monitor;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

/// Changes who the process is by `change`, which gives what is not zero if that cannot be.
#[cold]
pub fn changes(change: impl FnOnce() -> isize) -> isize {
    if process::is_guest() {
        return change();
    }
    process::check();
    let who = || (identity::user(), identity::group());
    let before = who();
    let result = change();
    if result == 0 && who() != before {
        has_changed();
    }
    result
}

fn has_changed() {
    if process::generation() > 0 {
        table::each_stream(|descriptor, stream| {
            let place = stream.local.slab.load(Ordering::Relaxed).checked_sub(1);
            if place.is_some_and(slabs::has_forked) {
                stream.bring_back(descriptor, Reason::Shared);
                stream.release_slot();
            }
        });
    }
    monitor::leaves_unused_slabs();
}
