// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that give up system calls (`seccomp`), as servers do before they read what strangers
//! say: the kernel may kill them for what this library would call. So all of theirs comes back into
//! the kernel before that, and the library has no more to do with any descriptor.

use crate::handing::{leaving, substitute};
use crate::kernel::confined::set_confined;
use crate::process;
use crate::reuse;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::table;
use crate::upgrade::monitor;
use freeport_sockets_proto::Reason;

/// Gives up system calls by `give_up`, which gives what is below zero if that cannot be. The guest
/// of its parent does so for the program that it becomes.
#[cold]
pub fn begins(give_up: impl FnOnce() -> isize) -> isize {
    if process::is_guest() {
        return give_up();
    }
    process::check();
    let was_confined = set_confined(true);
    reuse::stops();
    table::each_stream(|descriptor, stream| leave_to_kernel(&stream, descriptor));
    // Whatever it opens from now on.
    monitor::keep(0, Reason::Confined);
    // Sets are the kernel's as soon as nothing in them is past it.
    table::each(|descriptor, _| _ = table::clear(descriptor));
    let result = give_up();
    if result < 0 {
        // What is opened from now on may leave the kernel, as before.
        set_confined(was_confined);
    }
    result
}

fn leave_to_kernel(stream: &Stream, descriptor: i32) {
    if !stream.shared.is(phase::LISTENS) && !stream.bring_back(descriptor, Reason::Confined) {
        substitute::put(stream);
    }
    stream.release_slot();
    if stream.shared.phase() & (phase::CLAIMED | phase::ATTACHED) == phase::CLAIMED {
        monitor::withdraw(stream.token());
    }
    if stream.shared.is(phase::PASSED) {
        monitor::part(stream.token());
    }
    _ = leaving::gives_up(stream);
    table::clear(descriptor);
}
