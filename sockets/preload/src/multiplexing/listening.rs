// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Listeners in sets. The kernel reports connections that come through it; others are looked for
//! here, and a thread that is about to sleep prevents them until it is awake again.

use crate::reuse::entries;
use crate::reuse::listener::{self, Sleeper};
use crate::state::connections::Stream;
use crate::waiting::epoll::registration::{self, Registration, state};
use crate::waiting::epoll::set::{LISTENERS, Set};
use core::sync::atomic::Ordering;

/// The events of a listener.
const READY: u32 = (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;

/// A listener was added to a set, whose lock is held. If only the kernel can do what the
/// application wants, all its connections come through the kernel from then on.
pub fn insert(set_of: &Set, number: u32, known: &Registration, stream: &Stream) {
    let sleeps = set_of.waiters.load(Ordering::SeqCst) > 0;
    let is_free = |place: &&core::sync::atomic::AtomicU32| place.load(Ordering::Relaxed) == 0;
    match set_of.listening.iter().find(is_free) {
        Some(place) if !sleeps => place.store(number + 1, Ordering::Relaxed),
        _ => listener::is_refused(stream),
    }
    has_changed(known, stream);
}

/// The application wants these events of a listener from now on. One-shot reports are known to the
/// kernel alone.
pub fn has_changed(known: &Registration, stream: &Stream) {
    if known.events & libc::EPOLLONESHOT as u32 != 0 {
        listener::is_refused(stream);
    }
}

/// Visits the listeners of a set. Its lock is held.
fn each(set_of: &Set, mut visit: impl FnMut(&mut Registration, &Stream)) {
    for place in &set_of.listening {
        let Some(number) = place.load(Ordering::Relaxed).checked_sub(1) else { continue };
        // SAFETY: the lock is held.
        if let Some(known) = unsafe { registration::get(number) }
            && let Some(stream) = known.stream()
        {
            visit(known, &stream);
        }
    }
}

fn has_any(set_of: &Set) -> bool {
    set_of.listening.iter().any(|place| place.load(Ordering::Relaxed) != 0)
}

/// A thread waits for the set from outside, and only the kernel wakes it.
pub fn are_for_kernel(set_of: &Set) {
    each(set_of, |_, stream| listener::is_refused(stream));
}

/// Whether one of them has a connection that came without the kernel. The set's lock is held.
pub fn are_ready(set_of: &Set) -> bool {
    let mut are_ready = false;
    if entries::are_any() {
        each(set_of, |known, stream| {
            are_ready |= known.events & READY != 0 && listener::is_ready(stream);
        });
    }
    are_ready
}

/// Whether it is worth looking for a while before sleeping.
pub fn are_busy(set_of: &Set) -> bool {
    let mut are_busy = false;
    if entries::are_any()
        && has_any(set_of)
        && let Some(_held) = set_of.lock.take(true)
    {
        each(set_of, |_, stream| are_busy |= listener::is_busy(stream));
    }
    are_busy
}

/// Reports listeners that got connections without the kernel, and returns their number.
pub fn look(set_of: &Set, number: u32, room: &mut [libc::epoll_event]) -> usize {
    if !entries::are_any() || !has_any(set_of) {
        return 0;
    }
    let Some(_held) = set_of.lock.take(true) else { return 0 };
    let round = set_of.round.load(Ordering::Relaxed);
    let mut found = 0;
    each(set_of, |known, stream| {
        if known.set == number
            && let Some(place) = room.get_mut(found)
            && is_reported(known, stream)
        {
            *place = libc::epoll_event { events: known.events & READY, u64: known.data };
            known.round = round;
            found += 1;
        }
    });
    found
}

fn is_reported(known: &mut Registration, stream: &Stream) -> bool {
    if known.events & READY == 0 || !listener::is_ready(stream) {
        return false;
    }
    let arrivals = listener::arrivals(stream);
    let is_news = known.is(state::FRESH) || arrivals != known.arrivals;
    if known.events & libc::EPOLLET as u32 != 0 {
        known.state &= !state::FRESH;
        known.arrivals = arrivals;
    }
    is_news || known.events & libc::EPOLLET as u32 == 0
}

/// Whether the kernel's report of a listener is to be dropped, since the listener was reported a
/// moment ago, and will be again as long as a connection waits there.
pub fn is_reported_already(set_of: &Set, event: &libc::epoll_event) -> bool {
    let (events, data) = (event.events, event.u64);
    if events & !READY != 0 || !entries::are_any() || !has_any(set_of) {
        return false;
    }
    let Some(_held) = set_of.lock.take(true) else { return false };
    let round = set_of.round.load(Ordering::Relaxed);
    let mut is_reported = false;
    each(set_of, |known, _| {
        is_reported |=
            known.data == data && known.round == round && known.events & libc::EPOLLET as u32 == 0;
    });
    is_reported
}

/// Marks the listeners of a set as slept on until this is dropped.
pub fn sleep(set_of: &Set) -> [Option<Sleeper>; LISTENERS] {
    let mut sleepers = [const { None }; LISTENERS];
    if has_any(set_of)
        && let Some(_held) = set_of.lock.take(true)
    {
        let mut places = sleepers.iter_mut();
        each(set_of, |_, stream| {
            if let Some(place) = places.next() {
                *place = Some(Sleeper::new(stream).0);
            }
        });
    }
    sleepers
}
