// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that are handed on: to another program in this process (`exec`), to a program that is
//! started (`posix_spawn`), to another process in a message (`SCM_RIGHTS`); and sockets that were
//! received this way.
//!
//! A socket that is handed on comes back into the kernel first, since its receiver is unknown. It
//! may leave the kernel again in the receiving process, once the monitor knows that no other
//! process holds it: so the library reports each hand-over to the monitor.

pub mod control;
pub mod file_actions;
pub mod inherited;
pub mod leaving;
pub mod substitute;

use crate::kernel::confined;
use crate::kernel::raw;
use crate::multiplexing;
use crate::process;
use crate::reuse::entries;
use crate::socket::opening;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::table::{self, What, stream};
use crate::upgrade::monitor;
use crate::waiting::epoll;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

/// Before another process gets a copy of a descriptor, in a message.
pub fn is_passed(descriptor: i32) {
    if let Some(set) = multiplexing::nested::of(descriptor).filter(|_| !process::is_guest()) {
        return multiplexing::is_passed(set);
    }
    let Some(stream) = stream(descriptor).filter(|_| process::has(descriptor)) else { return };
    others_accept(&stream);
    comes_back_for_good(&stream, descriptor);
    tell(&stream, descriptor);
}

/// Before this process becomes another program, which inherits descriptors without close-on-exec.
pub fn becomes_another() {
    each_handed_on(|descriptor, stream| {
        // If the `exec` fails, the socket may leave the kernel again.
        if !comes_back(stream, descriptor) {
            substitute::put(stream);
        }
        tell(stream, descriptor);
    });
}

/// The `exec` has failed: the process itself counts as the receiver of its sockets.
#[cold]
pub fn continues() {
    each_handed_on(|_, stream| {
        if stream.shared.is(phase::PASSED) && stream.is_only_here() {
            stream.shared.unmark(phase::PASSED);
            stream.shared.inherited.store(true, Ordering::Relaxed);
            monitor::part(stream.token());
        }
    });
}

/// Before other processes get a socket: if it listens, they may accept its connections, so no
/// streams are kept for it any more.
fn others_accept(stream: &Stream) {
    if stream.shared.is(phase::LISTENS) {
        stream.shared.forked.store(true, Ordering::Relaxed);
        entries::let_go();
    }
}

/// Brings a socket back for good.
fn comes_back_for_good(stream: &Stream, descriptor: i32) {
    if !stream.bring_back(descriptor, Reason::HandedOn) {
        substitute::put(stream);
    }
}

/// Brings a socket back that may leave the kernel again. False: the peer is gone, and has left
/// bytes in the ring.
pub fn comes_back(stream: &Stream, descriptor: i32) -> bool {
    let was_never = stream.shared.is(phase::NEVER);
    let is_back = stream.bring_back(descriptor, Reason::HandedOn);
    // For Unix sockets it is unknown whether all bytes that came back were counted.
    if !was_never && !stream.is_unix() {
        stream.stop_keeping();
    }
    is_back
}

/// Before a program is started that inherits descriptors without close-on-exec.
pub fn is_inherited() {
    each_handed_on(|descriptor, stream| {
        others_accept(stream);
        if !comes_back(stream, descriptor) {
            substitute::put(stream);
        }
        stream.is_lent();
    });
}

/// Notes an inherited or received descriptor, if it is a connected stream socket.
pub fn adopt(descriptor: i32) {
    if confined::is_confined() {
        return;
    }
    let Some(note) = opening::note_of_connected(descriptor) else {
        return epoll::has_come(descriptor);
    };
    let nonblocking =
        raw::fcntl(descriptor, libc::F_GETFL, 0).is_ok_and(|flags| flags & libc::O_NONBLOCK != 0);
    note(descriptor, nonblocking);
    let Some(stream) = stream(descriptor) else { return };
    let shared = stream.shared;
    shared.inherited.store(true, Ordering::Relaxed);
    if descriptor <= libc::STDERR_FILENO {
        stream.keep(Reason::Stdio);
    } else if !stream.takes_counts(descriptor) {
        stream.keep(Reason::Uncounted);
    }
}

/// Notes that another descriptor is the same as one that is known.
pub fn is_copied(old: i32, new: i32) {
    if new < 0 || old == new {
        return;
    }
    if process::is_guest() {
        // The program that this process becomes has it under the other number.
        if matches!(table::get(old), Some(What::Stream(_))) && process::has(old) {
            is_passed(old);
        }
        return;
    }
    opening::note_same(old, new);
}

/// Reports to the monitor that other processes may hold a socket from now on.
fn tell(stream: &Stream, descriptor: i32) {
    let inherited = stream.shared.inherited.load(Ordering::Relaxed);
    if monitor::pass(stream.token(), descriptor, stream.is_only_here(), inherited) {
        stream.shared.mark(phase::PASSED);
    }
}

/// Visits the sockets that a program inherits which is started now, once for each descriptor.
fn each_handed_on(visit: impl Fn(i32, &Stream)) {
    table::each_stream(|descriptor, stream| {
        if process::hands_on(descriptor) {
            visit(descriptor, &stream);
        }
    });
}
