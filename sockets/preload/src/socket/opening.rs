// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that are new, or known by another descriptor.

use crate::kernel::{confined, raw};
use crate::process;
use crate::socket::{closing, unix};
use crate::state::connections;
use crate::state::table::{self, What};
use crate::upgrade::monitor;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

/// Notes a new stream socket, as `socket` and `accept` give it.
///
/// Who makes one as the guest of its parent, below `vfork`, leaves a mark there that means nothing:
/// the number is not open, and whoever opens it says anew what it is.
#[cold]
pub fn note(descriptor: i32, nonblocking: bool) {
    if descriptor < 0 || confined::is_confined() || !process::begin() {
        return;
    }
    is_new(descriptor);
    monitor::read_mail_at_times();
    let Some(stream) = connections::add() else { return };
    stream.gives_back_kept();
    stream.shared.nonblocking.store(nonblocking, Ordering::Relaxed);
    stream.local.descriptor.store(descriptor, Ordering::Relaxed);
    if !table::set(descriptor, What::Stream(stream.number)) {
        stream.shared.references.store(0, Ordering::Release);
    }
}

/// A descriptor is new. What is known of its number is of one that was closed behind our back.
pub fn is_new(descriptor: i32) {
    if let Some(old) = table::clear(descriptor) {
        closing::forget(descriptor, old, false);
    }
}

/// How a descriptor is noted, if it is a stream socket with a peer.
pub fn note_of_connected(descriptor: i32) -> Option<fn(i32, bool)> {
    let option = |name| {
        let mut value = 0_i32;
        raw::get_option(descriptor, libc::SOL_SOCKET, name, &mut value).map(|_| value)
    };
    let (kind, family) = (option(libc::SO_TYPE).ok()?, option(libc::SO_DOMAIN).ok()?);
    // SAFETY: an address of zeroes is valid.
    let mut peer: libc::sockaddr_storage = unsafe { core::mem::zeroed() };
    raw::address(descriptor, true, &mut peer).ok()?;
    note_of(family, kind, option(libc::SO_PROTOCOL).unwrap_or(-1))
}

/// How a socket of a kind is noted; `None`: it is of none that may leave the kernel.
pub fn note_of(family: i32, kind: i32, protocol: i32) -> Option<fn(i32, bool)> {
    if is_stream(family, kind, protocol) {
        Some(note)
    } else if unix::is_stream(family, kind, protocol) {
        Some(unix::note)
    } else {
        None
    }
}

/// Whether a socket is of a kind that may leave the kernel.
fn is_stream(family: i32, kind: i32, protocol: i32) -> bool {
    let kind = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    matches!(family, libc::AF_INET | libc::AF_INET6)
        && kind == libc::SOCK_STREAM
        && matches!(protocol, 0 | libc::IPPROTO_TCP)
}

/// Notes that another descriptor is the same as one that is known. This process is no guest.
pub fn note_same(old: i32, new: i32) {
    if new < 0 || old == new {
        return;
    }
    let what = table::get(old);
    is_new(new);
    if let Some(What::Stream(number)) = what {
        let Some(stream) = connections::get(number) else { return };
        stream.shared.references.fetch_add(1, Ordering::AcqRel);
        stream.local.copies.fetch_add(1, Ordering::Relaxed);
        stream.note_copies();
        if new <= libc::STDERR_FILENO {
            // The C library has streams on those, which go past this one.
            stream.bring_back(old, Reason::Stdio);
        }
        table::set(new, What::Stream(number));
    }
    if let Some(set) = what.filter(|what| matches!(what, What::Set(_))) {
        table::set(new, set);
    }
}
