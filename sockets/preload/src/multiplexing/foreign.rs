// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of which the library knows nothing, or that others have as well: the kernel alone reports
//! what happens in them, so what is in one of them stays there.

use super::control::forget_set;
use crate::reuse::listener;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::table::{self, What};
use crate::waiting::epoll::{registration, set};
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;

/// Before a descriptor gets into a set of which nothing is known.
#[cold]
pub fn is_registered_elsewhere(descriptor: i32) {
    let Some(stream) = table::stream(descriptor) else { return };
    if stream.shared.is(phase::LISTENS) {
        listener::is_refused(&stream);
    } else {
        stream.bring_back(descriptor, Reason::ForeignSet);
    }
}

/// Before another process gets a set: what is in it comes back into the kernel, which has the set
/// alone from then on.
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

/// What is registered in a set at a place of its list.
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
