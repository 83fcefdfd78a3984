// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a process has of sockets that others have as well, when it is over or becomes another
//! program: the others are told that it has them no more.
//!
//! A process that is killed tells nobody: the others look for that, as
//! [`family`](crate::family) says.

use crate::kernel::raw;
use crate::process;
use crate::reuse;
use crate::socket::closing;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::table;
use core::sync::atomic::Ordering;

/// When the process is over.
pub fn is_over() {
    if !process::is_guest() {
        process::check();
        reuse::stops();
        table::each_stream(|descriptor, stream| {
            if !gives_up(&stream) {
                closing::ends_claimed(&stream, descriptor);
                abandons(&stream, descriptor, true);
            }
        });
    }
}

/// Before the process becomes another program, which does not have what is closed by that.
pub fn gives_up_closed() {
    table::each_stream(|descriptor, stream| {
        let flags = raw::fcntl(descriptor, libc::F_GETFD, 0);
        if flags.is_ok_and(|flags| flags & libc::FD_CLOEXEC == 0) {
            return;
        }
        if !gives_up(&stream) {
            abandons(&stream, descriptor, process::has_one_thread());
        }
    });
}

/// It has become no other program.
#[cold]
pub fn takes_back() {
    table::each_stream(|descriptor, stream| {
        let given_up = stream.local.given_up.swap(0, Ordering::Relaxed);
        stream.shared.references.fetch_add(given_up, Ordering::AcqRel);
        let resets = stream.local.resets.swap(0, Ordering::Relaxed);
        if resets != 0 {
            stream.resets_not(descriptor, resets == FORCED);
        }
        stream.note_copies();
    });
}

/// Told, and the kernel made to do it; see [`Local`](crate::state::connections::Local).
const FORCED: u32 = 2;

/// The last descriptor of all is closed by the kernel. `is_over`: if so, nobody in this process
/// sleeps on it afterwards.
fn abandons(stream: &Stream, descriptor: i32, is_over: bool) {
    if let Some(slot) = stream.slot().filter(|_| stream.shared.is(phase::ATTACHED)) {
        let is_forced = stream.says_reset(&slot, descriptor);
        if is_over {
            // The kernel would take them for what was not read, and reset what has ended well.
            stream.take_all_doorbells(descriptor);
        }
        stream.local.resets.store(if is_forced { FORCED } else { 1 }, Ordering::Relaxed);
    }
}

/// One descriptor less, unless it is the last one of all.
pub fn gives_up(stream: &Stream) -> bool {
    stream.parts_from_stray();
    if closing::is_last_but_for_dead(stream) {
        stream.drop_dead();
    }
    let given_up = stream.local.given_up.fetch_add(1, Ordering::Relaxed) + 1;
    stream.note_copies();
    let less = |count: u32| if count > 1 { Some(count - 1) } else { None };
    let references = &stream.shared.references;
    let is_given_up = references.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less).is_ok();
    if !is_given_up {
        // The others look whether it is still there.
        stream.local.given_up.store(given_up - 1, Ordering::Relaxed);
        stream.note_copies();
    }
    is_given_up
}
