// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets inside other sets, and sets that are polled.
//!
//! A wait on the outer set does not look at rings of the inner one, so those stay parked while the
//! inner set is in the outer one: each of their doorbells makes the kernel report the inner set.
//! Data that has arrived and was not read, for which no doorbell rings again, is looked at before
//! the outer set sleeps.

use super::listening;
use crate::kernel::raw;
use crate::process::barrier::Owed;
use crate::state::connections::{self, Stream};
use crate::state::slot::Slot;
use crate::state::table::{self, What};
use crate::waiting::epoll::registration::{self, Registration, state};
use crate::waiting::epoll::set::{self, Set};
use crate::waiting::epoll::{boards, changes};
use core::sync::atomic::Ordering;

/// Depth of nesting that is looked into; the kernel allows no more.
const DEPTH: u32 = 5;
/// Largest number of connections of an inner set whose doorbells are taken.
const DOORBELLS_OF: usize = 64;

/// The set of a descriptor.
pub fn of(descriptor: i32) -> Option<u32> {
    match table::get(descriptor) {
        Some(What::Set(number)) => Some(number),
        _ => None,
    }
}

/// A thread waits for a set from outside: in another set, or by polling it.
pub fn enter(number: u32) {
    let Some(inner) = set::get(number) else { return };
    inner.waiters.fetch_add(1, Ordering::SeqCst);
    let Some(_held) = inner.lock.take(true) else { return };
    boards::leave_all(inner);
    inner.each_active(|known, stream, slot| _ = set::park(known, stream, slot));
    listening::are_for_kernel(inner);
}

/// Ends such a wait.
pub fn leave(number: u32) {
    let Some(inner) = set::get(number) else { return };
    let less = |waiters: u32| waiters.checked_sub(1);
    _ = inner.waiters.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
}

/// Whether a wait for the set would return now because of its rings.
pub fn is_ready(number: u32) -> bool {
    is_ready_within(number, DEPTH)
}

fn is_ready_within(number: u32, depth: u32) -> bool {
    let Some(inner) = set::get(number).filter(|_| depth > 0) else { return false };
    let Some(_held) = inner.lock.take(true) else { return false };
    let mut found = false;
    inner.each_active(|known, stream, slot| {
        found |= known.set == number && known.would_be_ready(stream, slot);
    });
    found |= listening::are_ready(inner);
    each(inner, |known| found |= is_ready_within(known.stream, depth - 1));
    found
}

/// Visits the sets that are in one. Its lock is held.
fn each(outer: &Set, mut visit: impl FnMut(&mut Registration)) {
    let mut next = outer.nested.load(Ordering::Relaxed);
    while let Some(number) = next.checked_sub(1) {
        // SAFETY: the lock is held.
        let Some(known) = (unsafe { registration::get(number) }) else { return };
        next = known.next;
        visit(known);
    }
}

/// Reports the nested sets that are ready, and returns their number.
pub fn look(outer: &Set, room: &mut [libc::epoll_event]) -> usize {
    if outer.nested.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let Some(_held) = outer.lock.take(true) else { return 0 };
    let round = outer.round.load(Ordering::Relaxed);
    let mut found = 0;
    each(outer, |known| {
        let ready = known.events & libc::EPOLLIN as u32;
        if ready != 0
            && known.state & state::FIRED == 0
            && let Some(place) = room.get_mut(found)
            && is_ready(known.stream)
        {
            *place = libc::epoll_event { events: ready, u64: known.data };
            if known.events & libc::EPOLLONESHOT as u32 != 0 {
                known.state |= state::FIRED;
            }
            known.round = round;
            found += 1;
        }
    });
    found
}

/// Whether the kernel's report of a nested set is to be dropped: the set was reported a moment ago,
/// or has only doorbells, which are taken then.
pub fn is_reported_already(outer: &Set, event: &libc::epoll_event) -> bool {
    let (events, data) = (event.events, event.u64);
    if outer.nested.load(Ordering::Relaxed) == 0 || events & !(libc::EPOLLIN as u32) != 0 {
        return false;
    }
    let (mut is_reported, mut inner) = (false, None);
    {
        let Some(_held) = outer.lock.take(true) else { return false };
        let round = outer.round.load(Ordering::Relaxed);
        each(outer, |known| {
            // Only the kernel knows which edges were reported.
            if known.data == data && known.events & libc::EPOLLET as u32 == 0 {
                is_reported |= known.round == round;
                inner = Some((known.stream, known.descriptor));
            }
        });
    }
    let Some((number, descriptor)) = inner.filter(|_| !is_reported) else { return is_reported };
    let Some(inner) = set::get(number) else { return false };
    if is_ready(number) || has_any(inner) || !take_doorbells(inner, number) {
        return false;
    }
    // Data that arrived in the meantime may have rung before the sleep was announced anew.
    !has_any(inner) && raw::wait(descriptor, libc::POLLIN, 0).is_err()
}

/// Whether a connection of a set is ready, including parked ones, which only doorbells announce.
fn has_any(inner: &Set) -> bool {
    let Some(_held) = inner.lock.take(true) else { return true };
    let mut has_any = false;
    each_switched(inner, |_, known, stream, slot| has_any |= known.would_be_ready(stream, slot));
    has_any
}

/// Takes the doorbells of a set's connections, as far as no thread sleeps for them, and announces
/// the set's sleep anew. False: there are too many connections for that.
fn take_doorbells(inner: &Set, number: u32) -> bool {
    let (mut streams, mut count) = ([0; DOORBELLS_OF], 0);
    {
        let Some(_held) = inner.lock.take(true) else { return false };
        each_switched(inner, |_, _, stream, _| {
            if let Some(place) = streams.get_mut(count) {
                *place = stream.number;
            }
            count += 1;
        });
    }
    if count > streams.len() {
        return false;
    }
    for stream in streams.iter().take(count).filter_map(|number| connections::get(*number)) {
        let descriptor = stream.local.descriptor.load(Ordering::Relaxed);
        stream.look_at_underlay(descriptor, 0);
        // The set itself has nothing ready, as was checked above.
        changes::look_again_everywhere(&stream, Some(number));
    }
    let mut owed = Owed::default();
    {
        let Some(_held) = inner.lock.take(true) else { return false };
        each_switched(inner, |place, known, stream, slot| {
            // A report that was requested at once is no longer needed either.
            changes::report_doorbells(inner, place, known);
            owed = owed | set::park(known, stream, slot);
        });
    }
    owed.pass();
    true
}

/// Visits the connections of a set that are in rings. Its lock is held.
fn each_switched(set: &Set, mut visit: impl FnMut(u32, &mut Registration, &Stream, &Slot)) {
    let mut next = set.first.load(Ordering::Relaxed);
    while let Some(number) = next.checked_sub(1) {
        // SAFETY: the lock is held.
        let Some(known) = (unsafe { registration::get(number) }) else { return };
        next = known.next;
        if known.is(state::SWITCHED)
            && !known.is(state::DELETED)
            && let Some(stream) = known.stream()
            && let Some(slot) = stream.slot()
        {
            visit(number, known, &stream, &slot);
        }
    }
}

/// The kernel has added, changed or removed a set in another one.
pub fn has_changed(
    outer: u32,
    operation: i32,
    inner: u32,
    descriptor: i32,
    wanted: libc::epoll_event,
) {
    let Some(set_of) = set::get(outer) else { return };
    let Some(_held) = set_of.lock.take(true) else { return };
    match operation {
        libc::EPOLL_CTL_ADD => {
            let Some(number) = registration::add() else { return };
            // SAFETY: it is in no list yet.
            if let Some(new) = unsafe { registration::get(number) } {
                let next = set_of.nested.swap(number + 1, Ordering::Relaxed);
                *new = Registration { state: state::USED, set: outer, next, ..Default::default() };
                (new.stream, new.descriptor) = (inner, descriptor);
                (new.events, new.data) = (wanted.events, wanted.u64);
                enter(inner);
            }
        }
        libc::EPOLL_CTL_MOD => each(set_of, |known| {
            if known.descriptor == descriptor {
                (known.events, known.data) = (wanted.events, wanted.u64);
                known.state &= !state::FIRED;
            }
        }),
        _ => forget(set_of, |known| known.descriptor == descriptor),
    }
}

/// Removes nested sets from one. Its lock is held.
pub fn forget(outer: &Set, is_it: impl Fn(&Registration) -> bool) {
    let (mut kept, mut next) = (0, outer.nested.swap(0, Ordering::Relaxed));
    while let Some(number) = next.checked_sub(1) {
        // SAFETY: the lock is held.
        let Some(known) = (unsafe { registration::get(number) }) else { break };
        next = known.next;
        if is_it(known) {
            leave(known.stream);
            registration::remove(number);
        } else {
            known.next = kept;
            kept = number + 1;
        }
    }
    outer.nested.store(kept, Ordering::Relaxed);
}

/// A set is closed: the kernel has removed it from the sets that it was in.
pub fn forget_everywhere(number: u32) {
    for outer in set::all().filter(|outer| outer.nested.load(Ordering::Relaxed) != 0) {
        if let Some(_held) = outer.lock.take(true) {
            forget(outer, |known| known.stream == number);
        }
    }
}
