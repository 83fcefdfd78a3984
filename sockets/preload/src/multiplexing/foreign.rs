// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets in sets that the library does not track, or that are passed to other processes. The
//! kernel alone reports events of such a set, so sockets in it come back into the kernel.

use super::control::forget_set;
use crate::reuse::listener;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::table::{self, What};
use crate::waiting::epoll::{registration, set};
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

/// Before a descriptor is added to a set that is not tracked.
#[cold]
pub fn is_registered_elsewhere(descriptor: i32) {
    let Some(stream) = table::stream(descriptor) else { return };
    if stream.shared.is(phase::LISTENS) {
        listener::is_refused(&stream);
    } else {
        stream.bring_back(descriptor, Reason::ForeignSet);
    }
}

/// Before another process gets a set: its sockets come back into the kernel, and the set is no
/// longer tracked.
#[cold]
pub fn is_passed(number: u32) {
    let mut place = 0;
    while let Some((descriptor, stream)) = registered(number, place) {
        if stream.shared.is(phase::LISTENS) {
            listener::is_refused(&stream);
        } else {
            stream.bring_back(descriptor, Reason::ForeignSet);
        }
        place += 1;
    }
    table::each(|descriptor, what| {
        if what == What::Set(number) {
            table::clear(descriptor);
        }
    });
    forget_set(number);
}

/// The registration at a place of a set's list: its descriptor and its socket.
fn registered(number: u32, place: usize) -> Option<(i32, Stream)> {
    let set_of = set::get(number)?;
    let _held = set_of.lock.take(true)?;
    let mut next = set_of.first.load(Ordering::Relaxed);
    for _ in 0..place {
        // SAFETY: the lock is held; so it is below.
        next = unsafe { registration::get(next.checked_sub(1)?) }?.next;
    }
    // SAFETY: see above.
    let known = unsafe { registration::get(next.checked_sub(1)?) }?;
    Some((known.descriptor, known.stream()?))
}
