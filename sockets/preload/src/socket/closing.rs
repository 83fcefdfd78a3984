// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Closing descriptors. A closed descriptor is no longer tracked, and the last one of a socket ends
//! the connection.

use crate::kernel::raw;
use crate::multiplexing;
use crate::process;
use crate::reuse::{listener, resting};
use crate::state::connection::phase;
use crate::state::connections::{self, Stream};
use crate::state::slabs;
use crate::state::table::{self, What, stream};
use crate::upgrade::monitor;
use crate::waiting::epoll;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::flag;

/// Before a descriptor is closed, or replaced by another.
#[inline]
pub fn is_closing(descriptor: i32) {
    if table::get(descriptor).is_some() && !process::is_guest() {
        process::check();
        if let Some(stream) = stream(descriptor) {
            stream.continues_for_callers(descriptor);
        }
        if let Some(what) = table::clear(descriptor) {
            forget(descriptor, what, true);
        }
    }
}

/// Before all descriptors of a range are closed.
pub fn are_closing(first: u32, last: u32) {
    table::each(|descriptor, _| {
        if (first..=last).contains(&descriptor.cast_unsigned()) {
            is_closing(descriptor);
        }
    });
}

/// Handles the end of a tracked descriptor. `is_open`: it is not closed yet.
#[cold]
pub fn forget(descriptor: i32, what: What, is_open: bool) {
    match what {
        What::Set(number) => match another(what) {
            -1 => multiplexing::forget_set(number),
            copy => epoll::continues_as(number, copy),
        },
        What::Stream(number) => {
            let Some(stream) = connections::get(number) else { return };
            stream.parts_from_stray();
            stream.leaves_to_borrowers();
            if is_last_but_for_dead(&stream) {
                stream.drop_dead();
            }
            if stream.shared.references.load(Ordering::Acquire) == 1 {
                if is_open {
                    stream.lingers(descriptor);
                }
                if is_open && resting::keeps(&stream, descriptor) {
                    return;
                }
                resting::has_ended(&stream);
                end(&stream, descriptor, is_open);
            } else if stream.local.descriptor.load(Ordering::Relaxed) == descriptor {
                let other = another(what);
                stream.local.descriptor.store(other, Ordering::Relaxed);
                let slot = stream.slot().filter(|_| stream.shared.is(phase::ATTACHED));
                // If this process has none left, another one holds it by its own number.
                if let Some(slot) = slot.filter(|_| other >= 0) {
                    slot.say_descriptor(other);
                }
            }
            if stream.local.copies.load(Ordering::Relaxed) > 1
                && epoll::loses_descriptor(&stream, descriptor)
            {
                stream.keep(Reason::ForeignSet);
            }
            let is_last_here = stream.local.copies.fetch_sub(1, Ordering::Relaxed) == 1;
            if is_last_here {
                if stream.shared.references.load(Ordering::Acquire) > 1 {
                    epoll::leaves_to_others(&stream);
                }
                stream.gives_back_kept();
                stream.leaves_slab();
                stream.local.slot.store(core::ptr::null_mut(), Ordering::Relaxed);
                slabs::sweep_if_due();
            }
            stream.note_copies();
            let has_slot = stream.shared.phase() & (phase::ATTACHED | phase::HOLDS_SLOT) != 0;
            let is_last = stream.shared.references.load(Ordering::Acquire) == 1;
            if is_last_here && has_slot && !is_last {
                stream.leaves_slot_to_others();
            }
            if stream.shared.references.fetch_sub(1, Ordering::AcqRel) == 1 {
                connections::is_free(number);
            }
        }
    }
}

/// Whether this is the last descriptor of the process, other processes are counted, and it matters
/// whether those still run.
pub fn is_last_but_for_dead(stream: &Stream) -> bool {
    let of_slot = phase::CLAIMED | phase::ATTACHED | phase::HOLDS_SLOT | phase::PASSED;
    !stream.shared.is_alone()
        && stream.local.copies.load(Ordering::Relaxed) == 1
        && stream.shared.references.load(Ordering::Acquire) > 1
        && stream.shared.phase() & of_slot != 0
}

/// Another descriptor of the same object in this process; -1: there is none.
fn another(of: What) -> i32 {
    let mut found = -1;
    table::each(|descriptor, what| {
        if what == of {
            found = descriptor;
        }
    });
    found
}

/// The last descriptor is closed: the peer gets the bytes sent, and then the end.
fn end(stream: &Stream, descriptor: i32, is_open: bool) {
    let shared = stream.shared;
    if shared.is(phase::LISTENS) {
        listener::is_closed(stream);
    }
    let is_claimed = shared.phase() & (phase::CLAIMED | phase::ATTACHED) == phase::CLAIMED;
    epoll::forget_stream(stream, is_open && is_claimed);
    if is_claimed && !stream.gives_back_kept() {
        monitor::withdraw(stream.token());
        if is_open {
            ends_claimed(stream, descriptor);
        }
    }
    if is_open && stream.is_returning(shared.phase()) {
        // The peer may want bytes again that it has not read.
        stream.proceed(descriptor);
    }
    stream.release_slot();
    if shared.is(phase::PASSED) {
        monitor::part(stream.token());
    }
    if !shared.is(phase::ATTACHED) {
        return;
    }
    let Some(slot) = stream.slot() else { return };
    if is_open {
        stream.says_reset(&slot, descriptor);
    }
    slot.say(flag::CLOSED | flag::ENDED);
    if is_open {
        // With unread doorbells the kernel would reset a connection that has ended well.
        stream.take_all_doorbells(descriptor);
    }
    stream.local.slot.store(core::ptr::null_mut(), Ordering::Relaxed);
    let number = |word: &core::sync::atomic::AtomicU32| word.load(Ordering::Relaxed);
    monitor::release(number(&shared.monitor), number(&shared.slab), number(&shared.slot));
}

/// Before the last descriptor except the monitor's is closed. The monitor may have it open for a
/// moment longer, or for as long as it is stopped: this makes the peer see the end at once.
pub fn ends_claimed(stream: &Stream, descriptor: i32) {
    let phase = stream.shared.phase();
    let is_waiting = phase & (phase::CLAIMED | phase::ATTACHED) == phase::CLAIMED;
    if !is_waiting || phase & (phase::NEVER | phase::PASSED) != 0 {
        return;
    }
    if !stream.is_unix() && stream.would_reset(descriptor) {
        raw::disconnect(descriptor);
    } else {
        raw::shutdown(descriptor, libc::SHUT_RDWR as usize);
    }
}
