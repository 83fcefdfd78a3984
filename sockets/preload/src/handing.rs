// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that are handed on: to another program in this process (`exec`), to one that is begun
//! (`posix_spawn`), to another process in a message (`SCM_RIGHTS`); and sockets that came so.
//!
//! What is handed on comes back into the kernel first, since nobody can know who gets it. It may
//! leave the kernel again in the hands of who got it, once the monitor knows that nobody else has
//! it: so it is told of each time that a socket is handed on.

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

/// Before this process becomes another program: what is not closed by that is handed on.
pub fn becomes_another() {
    each_handed_on(|descriptor, stream| {
        // If it comes to nothing, it may leave the kernel again.
        if !comes_back(stream, descriptor) {
            substitute::put(stream);
        }
        tell(stream, descriptor);
    });
}

/// This process did not become another program. It has what it has passed on from itself, so to
/// speak.
#[cold]
pub fn goes_on() {
    each_handed_on(|_, stream| {
        if stream.shared.is(phase::PASSED) && stream.is_only_here() {
            stream.shared.unmark(phase::PASSED);
            stream.shared.inherited.store(true, Ordering::Relaxed);
            monitor::part(stream.token());
        }
    });
}

/// Before others get a socket: if it listens, they may accept whoever connects to it, so nothing is
/// kept for it any more.
fn others_accept(stream: &Stream) {
    if stream.shared.is(phase::LISTENS) {
        stream.shared.forked.store(true, Ordering::Relaxed);
        entries::let_go();
    }
}

/// Brings a socket back that stays in the kernel.
fn comes_back_for_good(stream: &Stream, descriptor: i32) {
    if !stream.bring_back(descriptor, Reason::HandedOn) {
        substitute::put(stream);
    }
}

/// Brings a socket back, which may leave the kernel again. False: the peer is gone, and has left
/// something in the ring.
pub fn comes_back(stream: &Stream, descriptor: i32) -> bool {
    let was_never = stream.shared.is(phase::NEVER);
    let is_back = stream.bring_back(descriptor, Reason::HandedOn);
    // Of Unix sockets nobody knows whether all that came back was counted.
    if !was_never && !stream.is_unix() {
        stream.keep_no_more();
    }
    is_back
}

/// Before a program is begun that inherits what is not closed by that.
pub fn is_inherited() {
    each_handed_on(|descriptor, stream| {
        others_accept(stream);
        if !comes_back(stream, descriptor) {
            substitute::put(stream);
        }
        stream.is_lent();
    });
}

/// Notes a connected stream socket that came from elsewhere, if it is one.
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

/// Tells the monitor that others may have a socket from now on.
fn tell(stream: &Stream, descriptor: i32) {
    let inherited = stream.shared.inherited.load(Ordering::Relaxed);
    if monitor::pass(stream.token(), descriptor, stream.is_only_here(), inherited) {
        stream.shared.mark(phase::PASSED);
    }
}

/// Visits the streams that a program has which is begun now, with each of their descriptors.
fn each_handed_on(visit: impl Fn(i32, &Stream)) {
    table::each_stream(|descriptor, stream| {
        if process::hands_on(descriptor) {
            visit(descriptor, &stream);
        }
    });
}
