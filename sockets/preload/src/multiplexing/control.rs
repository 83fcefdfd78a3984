// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `epoll_ctl`: adding sockets to sets, changing and removing them.

use super::{listening, nested};
use crate::kernel::next::next;
use crate::kernel::{errno, memory, raw};
use crate::process;
use crate::state::connection::phase;
use crate::state::connections::{self, Stream};
use crate::state::table::{self, What};
use crate::waiting::epoll::boards;
use crate::waiting::epoll::changes::{LISTS, each_of, ours, token, unlink, wake_up};
use crate::waiting::epoll::registration::{self, Registration, state};
use crate::waiting::epoll::set::{self, Set};
use core::sync::atomic::Ordering;

/// Notes a new set.
pub fn register_set(descriptor: i32) {
    if let Some(number) = set::add(descriptor)
        && !table::set(descriptor, What::Set(number))
    {
        forget_set(number);
    }
}

/// `epoll_ctl`.
pub fn control(set: u32, operation: i32, descriptor: i32, event: *mut libc::epoll_event) -> isize {
    let Some(set_of) = set::get(set) else { return errno::fail(libc::EBADF) };
    let epoll = set_of.descriptor();
    let kernel = || {
        next!(epoll_ctl(epoll: i32, operation: i32, descriptor: i32, event: *mut libc::epoll_event)
            -> i32) as isize
    };
    let stream = match table::get(descriptor) {
        Some(What::Stream(number)) => connections::get(number),
        Some(What::Set(inner)) => {
            let result = kernel();
            if result == 0 {
                nested::has_changed(set, operation, inner, descriptor, wanted(operation, event));
            }
            return result;
        }
        None => None,
    };
    let Some(stream) = stream else { return kernel() };
    if operation != libc::EPOLL_CTL_DEL && !memory::exists(event, 1) {
        return kernel();
    }
    let Some(_lists) = LISTS.take(true) else { return kernel() };
    let Some(_held) = set_of.lock.take(true) else { return kernel() };
    let wanted = wanted(operation, event);
    if !is_allowed(operation, wanted.events) {
        return kernel();
    }
    let found = find(&stream, set, descriptor);
    match (operation, found) {
        (libc::EPOLL_CTL_ADD, Some(number)) => {
            // SAFETY: the set's lock is held, and no other reference to it is used meanwhile.
            let Some(known) = (unsafe { registration::get(number) }) else { return kernel() };
            if known.is(state::SWITCHED) && !known.is(state::DELETED) {
                return errno::fail(libc::EEXIST);
            }
            if !known.is(state::SWITCHED) {
                // Another process that has the set may have taken it away.
                let added = in_kernel(epoll, operation, number, known, wanted, kernel);
                if added == 0 {
                    change(known, wanted);
                }
                return added;
            }
            known.state &= !state::DELETED;
            change(known, wanted);
            wake_up(set_of, number, known, &stream);
            0
        }
        (libc::EPOLL_CTL_ADD, None) => insert(set, set_of, &stream, descriptor, wanted, kernel),
        (libc::EPOLL_CTL_MOD, Some(number)) => {
            // SAFETY: the set's lock is held, and no other reference to it is used meanwhile.
            let Some(known) = (unsafe { registration::get(number) }) else { return kernel() };
            if known.is(state::DELETED) {
                return errno::fail(libc::ENOENT);
            }
            if known.events & libc::EPOLLEXCLUSIVE as u32 != 0 {
                return errno::fail(libc::EINVAL);
            }
            if !known.is(state::SWITCHED)
                && in_kernel(epoll, operation, number, known, wanted, kernel) != 0
            {
                return -1;
            }
            change(known, wanted);
            if stream.shared.is(phase::LISTENS) {
                listening::has_changed(known, &stream);
            }
            wake_up(set_of, number, known, &stream);
            0
        }
        (libc::EPOLL_CTL_DEL, Some(number)) => {
            // SAFETY: the set's lock is held, and no other reference to it is used meanwhile.
            let Some(known) = (unsafe { registration::get(number) }) else { return kernel() };
            if known.is(state::DELETED) {
                return errno::fail(libc::ENOENT);
            }
            if known.is(state::SWITCHED) {
                known.state |= state::DELETED;
                return 0;
            }
            if kernel() != 0 {
                return -1;
            }
            unlink(number, known, set_of, &stream);
            0
        }
        _ => kernel(),
    }
}

/// Adds or changes a registration in the kernel whose socket's streams are not in rings: under a
/// token, if the socket has a slot.
fn in_kernel(
    epoll: i32,
    operation: i32,
    number: u32,
    known: &Registration,
    wanted: libc::epoll_event,
    kernel: impl Fn() -> isize,
) -> isize {
    if !known.is(state::TOKENED) {
        return kernel();
    }
    let event = libc::epoll_event { u64: token(number), ..wanted };
    errno::from(raw::epoll_ctl(epoll, operation, known.descriptor, event))
}

/// The event that the application gives.
fn wanted(operation: i32, event: *mut libc::epoll_event) -> libc::epoll_event {
    if operation == libc::EPOLL_CTL_DEL || !memory::exists(event, 1) {
        return libc::epoll_event { events: 0, u64: 0 };
    }
    // SAFETY: the application's event, which is not null.
    unsafe { event.read_unaligned() }
}

/// Whether the kernel accepts these events. With `EPOLLEXCLUSIVE` it does not accept all.
fn is_allowed(operation: i32, events: u32) -> bool {
    const EXCLUSIVE: i32 = libc::EPOLLIN
        | libc::EPOLLOUT
        | libc::EPOLLERR
        | libc::EPOLLHUP
        | libc::EPOLLWAKEUP
        | libc::EPOLLET
        | libc::EPOLLEXCLUSIVE;
    events & libc::EPOLLEXCLUSIVE as u32 == 0
        || operation == libc::EPOLL_CTL_ADD && events & !(EXCLUSIVE as u32) == 0
}

fn change(known: &mut Registration, wanted: libc::epoll_event) {
    known.events = wanted.events;
    known.data = wanted.u64;
    known.state &= !(state::FIRED | state::END_SEEN);
    known.state |= state::FRESH;
}

fn insert(
    set: u32,
    set_of: &Set,
    stream: &Stream,
    descriptor: i32,
    wanted: libc::epoll_event,
    kernel: impl Fn() -> isize,
) -> isize {
    let is_switched = stream.shared.is(phase::LOOKS);
    let Some(number) = registration::add() else { return kernel() };
    let is_tokened = stream.shared.is(phase::ATTACHED);
    let added = if is_tokened {
        let event = if is_switched {
            ours(number)
        } else {
            libc::epoll_event { u64: token(number), ..wanted }
        };
        errno::from(raw::epoll_ctl(set_of.descriptor(), libc::EPOLL_CTL_ADD, descriptor, event))
    } else {
        kernel()
    };
    // SAFETY: it is in no list yet.
    let Some(new) = (unsafe { registration::get(number) }).filter(|_| added == 0) else {
        registration::remove(number);
        return added;
    };
    *new = Registration { state: state::USED, set, stream: stream.number, ..Default::default() };
    (new.descriptor, new.made_in) = (descriptor, process::generation());
    change(new, wanted);
    new.next = set_of.first.swap(number + 1, Ordering::Relaxed);
    new.next_of_stream = stream.local.registrations.swap(number + 1, Ordering::Relaxed);
    new.state |= if is_tokened { state::TOKENED } else { 0 };
    if stream.shared.is(phase::LISTENS) {
        listening::insert(set_of, number, new, stream);
    }
    if is_switched {
        new.state |= state::SWITCHED;
        set_of.switched.fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = stream.slot()
            && (set_of.waiters.load(Ordering::SeqCst) > 0 || !set_of.activate(number, new))
        {
            _ = set::park(new, stream, &slot);
            wake_up(set_of, number, new, stream);
        }
    }
    0
}

/// A set is closed.
pub fn forget_set(number: u32) {
    let Some(set_of) = set::get(number) else { return };
    let Some(_lists) = LISTS.take(true) else { return };
    nested::forget_everywhere(number);
    let Some(_held) = set_of.lock.take(true) else { return };
    nested::forget(set_of, |_| true);
    boards::give_up(Some(number));
    let mut next = set_of.first.load(Ordering::Relaxed);
    while let Some(number) = next.checked_sub(1) {
        // SAFETY: the lock is held.
        let Some(known) = (unsafe { registration::get(number) }) else { break };
        next = known.next;
        let stream = known.stream();
        if let Some(stream) = stream {
            unlink(number, known, set_of, &stream);
        }
    }
    set_of.clear();
}

/// The registration of a descriptor in a set.
fn find(stream: &Stream, set: u32, descriptor: i32) -> Option<u32> {
    let mut found = None;
    each_of(stream, |number| {
        // SAFETY: lists are held; what is compared does not change while it is in a list.
        let known = unsafe { registration::get(number) };
        if known.is_some_and(|known| known.set == set && known.descriptor == descriptor) {
            found = Some(number);
        }
    });
    found
}
