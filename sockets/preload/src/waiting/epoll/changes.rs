// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes in sets when a socket leaves the kernel, comes back, has news, or is closed.

use super::numbers::with_number;
use super::one_shot;
use super::registration::{self, Registration, state};
use super::set::{self, Set};
use crate::kernel::raw;
use crate::process::lock::Lock;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use core::sync::atomic::Ordering;

/// Held while lists of registrations change; taken before a set's lock.
pub static LISTS: Lock = Lock::new();

/// Marks the data of the library's own registrations: the application's data will not have it.
const TOKEN: u64 = 0x46_72_65_65_70_6f << 16;
const TOKEN_MASK: u64 = !((1 << 18) - 1);

/// The data that the kernel reports for one of the library's registrations.
pub const fn token(number: u32) -> u64 {
    TOKEN << 2 | number as u64
}

/// The registration for which the kernel has reported something, if it is one of the library's.
#[inline]
pub const fn of_token(data: u64) -> Option<u32> {
    if data & TOKEN_MASK == (TOKEN << 2) & TOKEN_MASK {
        Some((data & !TOKEN_MASK) as u32)
    } else {
        None
    }
}

/// After a change: threads that sleep on the set have to look, since it may be ready already.
pub fn wake_up(set_of: &Set, number: u32, known: &mut Registration, stream: &Stream) {
    if !known.is(state::SWITCHED) {
        return;
    }
    if set_of.waiters.load(Ordering::SeqCst) > 0 {
        report_at_once(set_of, number, known);
    } else if let Some(slot) = stream.slot()
        && set_of.activate(number, known)
    {
        set::unpark(known, stream, &slot);
    }
}

/// Makes the kernel report a registration whose socket's streams are in rings at once.
pub fn report_at_once(set_of: &Set, number: u32, known: &Registration) {
    let (epoll, event) = (set_of.descriptor(), at_once(number));
    with_number(known, || {
        _ = raw::epoll_ctl(epoll, libc::EPOLL_CTL_MOD, known.descriptor, event);
    });
}

/// Makes the kernel report doorbells only, as usual.
pub fn report_doorbells(set_of: &Set, number: u32, known: &Registration) {
    replace(set_of, known, ours(number));
}

/// Sets that want one of these events look at a socket again before they sleep: its state may have
/// changed since it was parked.
#[cold]
pub fn look_again(stream: &Stream, events: i32) {
    if stream.local.registrations.load(Ordering::Relaxed) == 0 {
        return;
    }
    let Some(_lists) = LISTS.take(true) else { return };
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            if known.events & events as u32 != 0 && !known.is(state::DELETED) {
                wake_up(set_of, number, known, stream);
            }
        });
    });
}

/// The same in all sets, whatever events they want, except in `but`.
pub fn look_again_everywhere(stream: &Stream, but: Option<u32>) {
    let Some(_lists) = LISTS.take(true) else { return };
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            if !known.is(state::DELETED) && Some(known.set) != but {
                wake_up(set_of, number, known, stream);
            }
        });
    });
}

/// The application has done something that wakes waits for one of these events, edge-triggered
/// ones as well.
pub fn has_news(stream: &Stream, events: u32) {
    if stream.local.registrations.load(Ordering::Relaxed) == 0 {
        return;
    }
    let Some(_lists) = LISTS.take(true) else { return };
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            let wanted = known.events | (libc::EPOLLHUP | libc::EPOLLERR) as u32;
            if wanted & events == 0 {
                return;
            }
            if known.is(state::TOKENED) && !known.is(state::SWITCHED) {
                // The kernel does not know of it: it reports the current state once more.
                let event = libc::epoll_event { events: known.of_kernel(), u64: token(number) };
                replace(set_of, known, event);
                return;
            }
            known.state |= state::FRESH;
            wake_up(set_of, number, known, stream);
        });
    });
}

/// The events that the kernel reports of a socket whose streams are in rings.
pub fn ours(number: u32) -> libc::epoll_event {
    let events = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
    libc::epoll_event { events, u64: token(number) }
}

/// The same, so that the kernel reports it at once: it looks anew at what is registered, and finds
/// that it can be written.
fn at_once(number: u32) -> libc::epoll_event {
    let event = ours(number);
    libc::epoll_event { events: event.events | libc::EPOLLOUT as u32, ..event }
}

/// A socket has a slot: the kernel reports it under a token, since its bytes may be doorbells.
pub fn has_attached(stream: &Stream) {
    let Some(_lists) = LISTS.take(true) else { return };
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            let (epoll, descriptor) = (set_of.descriptor(), known.descriptor);
            let is_once = known.events & libc::EPOLLONESHOT as u32 != 0;
            if is_once && one_shot::was_reported(epoll, descriptor) {
                known.state |= state::FIRED;
            }
            let event = libc::epoll_event { events: known.of_kernel(), u64: token(number) };
            if replace(set_of, known, event) {
                known.state |= state::TOKENED;
            }
        });
    });
}

/// Arms a registration again, after a report of the kernel that was not for the application.
pub fn rearm(set_of: &Set, number: u32, known: &Registration) {
    if known.events & libc::EPOLLONESHOT as u32 != 0 {
        let event = libc::epoll_event { events: known.events, u64: token(number) };
        replace(set_of, known, event);
    }
}

/// Calls `visit` with a registration and its set, which is locked for that. Lists are held.
pub fn with_set(number: u32, visit: impl FnOnce(&Set, &mut Registration)) {
    // SAFETY: only its set is read, which does not change while it is in a list.
    let set = unsafe { registration::get(number) }.map(|known| known.set);
    let Some(set_of) = set.and_then(set::get) else { return };
    let Some(_held) = set_of.lock.take(true) else { return };
    // SAFETY: the lock is held now.
    if let Some(known) = unsafe { registration::get(number) } {
        visit(set_of, known);
    }
}

/// In all sets of this process, the socket's rings are looked at from now on. True: the kernel has
/// accepted that in all of them.
pub fn has_switched(stream: &Stream, slot: &Slot) -> bool {
    let Some(_lists) = LISTS.take(true) else { return false };
    let mut is_awake = true;
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            if known.is(state::SWITCHED) {
                return;
            }
            // Sleepers of the set have to look: no doorbell rings for bytes already in the ring.
            let has_waiters = set_of.waiters.load(Ordering::SeqCst) > 0;
            let event = if has_waiters { at_once(number) } else { ours(number) };
            if !replace(set_of, known, event) {
                is_awake = false;
                return;
            }
            known.state |= state::SWITCHED | state::TOKENED | state::FRESH;
            set_of.switched.fetch_add(1, Ordering::Relaxed);
            if has_waiters || !set_of.activate(number, known) {
                // It is announced once for the kernel that waited so far, and once for this set.
                _ = set::park(known, stream, slot);
            }
        });
    });
    is_awake
}

/// A socket is looked at no more, wherever it waits: in all sets of this process the kernel reports
/// what the application wants. It does so under tokens as long as something is left in the ring.
pub fn has_left(stream: &Stream) {
    if stream.local.registrations.load(Ordering::Relaxed) == 0 {
        return;
    }
    let Some(_lists) = LISTS.take(true) else { return };
    let is_attached = stream.shared.is(phase::ATTACHED);
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            let before = if is_attached { state::SWITCHED } else { state::TOKENED };
            if !known.is(before) {
                return;
            }
            if known.is(state::SWITCHED) {
                set_of.switched.fetch_sub(1, Ordering::Relaxed);
                if let Some(at) = set_of.place_of(number) {
                    set_of.deactivate(at, known);
                }
            }
            if known.is(state::DELETED) {
                delete(set_of, known);
                known.state &= !state::SWITCHED;
                return unlink(number, known, set_of, stream);
            }
            let data = if is_attached { token(number) } else { known.data };
            let event = libc::epoll_event { events: known.of_kernel(), u64: data };
            known.forget_rings();
            known.state |= if is_attached { state::TOKENED } else { 0 };
            replace(set_of, known, event);
        });
    });
}

/// The kernel has no room for bytes that have to be sent first. It reports room under tokens, so
/// that they are sent whatever the application waits for.
pub fn waits_for_room(stream: &Stream) {
    report_room(stream, libc::EPOLLOUT as u32);
}

/// All those bytes were sent.
pub fn has_room(stream: &Stream) {
    report_room(stream, 0);
}

fn report_room(stream: &Stream, room: u32) {
    if stream.local.registrations.load(Ordering::Relaxed) == 0 {
        return;
    }
    let Some(_lists) = LISTS.take(true) else { return };
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            if known.is(state::SWITCHED) {
                // It reports that once more, whenever there is room again.
                report_at_once(set_of, number, known);
            } else if known.is(state::TOKENED) {
                let events = known.of_kernel() & !(libc::EPOLLONESHOT as u32) | room;
                let events = if room == 0 { known.of_kernel() } else { events };
                replace(set_of, known, libc::epoll_event { events, u64: token(number) });
            }
        });
    });
}

/// Replaces the event of a registration in the kernel. False: the kernel refuses.
pub fn replace(set_of: &Set, known: &Registration, event: libc::epoll_event) -> bool {
    let mut operation = libc::EPOLL_CTL_MOD;
    if known.events & libc::EPOLLEXCLUSIVE as u32 != 0 {
        // Exclusive registrations cannot be changed.
        delete(set_of, known);
        operation = libc::EPOLL_CTL_ADD;
    }
    with_number(known, || {
        raw::epoll_ctl(set_of.descriptor(), operation, known.descriptor, event).is_ok()
    })
}

/// Deletes a registration in the kernel.
pub fn delete(set_of: &Set, known: &Registration) {
    let nothing = libc::epoll_event { events: 0, u64: 0 };
    let (epoll, operation) = (set_of.descriptor(), libc::EPOLL_CTL_DEL);
    with_number(known, || _ = raw::epoll_ctl(epoll, operation, known.descriptor, nothing));
}

/// A descriptor of a set is closed, and the set has another one.
pub fn continues_as(number: u32, descriptor: i32) {
    if let Some(set_of) = set::get(number) {
        set_of.moves_to(descriptor);
    }
}

/// Visits the registrations of a socket; the visitor may unlink what it visits.
pub fn each_of(stream: &Stream, mut visit: impl FnMut(u32)) {
    let mut next = stream.local.registrations.load(Ordering::Relaxed);
    while let Some(number) = next.checked_sub(1) {
        // SAFETY: lists are held.
        let Some(known) = (unsafe { registration::get(number) }) else { return };
        next = known.next_of_stream;
        visit(number);
    }
}

/// Takes a registration out of all lists.
pub fn unlink(number: u32, known: &mut Registration, set_of: &Set, stream: &Stream) {
    if known.is(state::SWITCHED) {
        set_of.switched.fetch_sub(1, Ordering::Relaxed);
        if let Some(at) = set_of.place_of(number) {
            set_of.deactivate(at, known);
        }
        if let Some(slot) = stream.slot() {
            set::unpark(known, stream, &slot);
        }
    }
    if stream.shared.is(phase::LISTENS) {
        set_of.forget_listener(number);
    }
    let (next, next_of_stream) = (known.next, known.next_of_stream);
    cut(&set_of.first, number, next, |known| &mut known.next);
    let of_stream = &stream.local.registrations;
    cut(of_stream, number, next_of_stream, |known| &mut known.next_of_stream);
    registration::remove(number);
}

/// Takes a number out of a list that begins at `first`.
fn cut(
    first: &core::sync::atomic::AtomicU32,
    number: u32,
    behind: u32,
    link: impl Fn(&mut Registration) -> &mut u32,
) {
    let mut at = first.load(Ordering::Relaxed);
    if at == number + 1 {
        first.store(behind, Ordering::Relaxed);
        return;
    }
    while let Some(before) = at.checked_sub(1) {
        // SAFETY: lists are held, and it is another one than what is cut out.
        let Some(known) = (unsafe { registration::get(before) }) else { return };
        let place = link(known);
        if *place == number + 1 {
            *place = behind;
            return;
        }
        at = *place;
    }
}
