// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for a set: `epoll_wait`.

use super::tour::Tour;
use super::{listening, nested, reporting, retiring};
use crate::kernel::{errno, memory, raw};
use crate::process;
use crate::process::barrier::Owed;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Sleep;
use crate::underlay::ASK_TICKS;
use crate::upgrade::monitor;
use crate::waiting::Wait;
use crate::waiting::deadline::{Deadline, Until};
use crate::waiting::epoll::registration::{self, Registration, state};
use crate::waiting::epoll::set::{self, Set};
use crate::waiting::epoll::{boards, changes, sharing};
use core::slice;
use core::sync::atomic::Ordering;

/// Number of doorbells of a socket that are left before they are taken. The kernel sends at most
/// ten unacknowledged segments, however short; and the peer's kernel acknowledges them when they
/// are taken, or 40 milliseconds later.
const DOORBELLS: u32 = 4;

/// Number of sockets whose peers' cores are looked at.
const SHARING: usize = 16;

/// Ticks for which doorbells are expected after one: about a millisecond.
const ANSWERED_TICKS: u64 = 2_400_000;

/// Counts a thread as a sleeper of a set until this is dropped.
struct Waiter<'a>(&'a Set);

impl<'a> Waiter<'a> {
    fn new(set: &'a Set) -> Self {
        set.waiters.fetch_add(1, Ordering::SeqCst);
        Self(set)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.waiters.fetch_sub(1, Ordering::SeqCst);
    }
}

/// `epoll_wait`. `kernel` is the C library's function that the application has called, with the
/// room, its length and the time-out.
pub fn wait(
    number: u32,
    events: *mut libc::epoll_event,
    count: i32,
    until: Until,
    kernel: impl Fn(*mut libc::epoll_event, i32, Until) -> i32,
) -> i32 {
    process::check();
    let set = match set::get(number) {
        // Only the first entry of the room is checked: few are filled at once.
        Some(set) if count > 0 && memory::exists(events, 1) => set,
        _ => return kernel(events, count, until),
    };
    // SAFETY: the application's room for `count` events, where the kernel could write as well.
    let room = unsafe { slice::from_raw_parts_mut(events, count as usize) };
    let deadline = Deadline::new(until);
    let mut wait = Wait::new();
    retiring::park_silent(set);
    loop {
        let found = look(set, number, room);
        if found > 0 {
            let rest = room.get_mut(found..).unwrap_or_default();
            return (found + ask_at_times(set, number, rest)) as i32;
        }
        let has_active = set.active_count() > 0 || listening::are_busy(set);
        if has_active || deadline.is_over() {
            let found = if has_active && !expects_doorbells(set) {
                ask_at_times(set, number, room)
            } else {
                ask(set, number, room)
            };
            if found > 0 || deadline.is_over() {
                return found as i32;
            }
        }
        if has_active && wait.step(|| shares_core(set)) {
            continue;
        }
        match sleep(set, number, room, &deadline, &kernel) {
            Slept::Found(found) => return found as i32,
            Slept::Failed => return -1,
            Slept::Nothing if deadline.is_over() => return 0,
            Slept::Nothing => wait = Wait::new(),
        }
    }
}

/// Looks at the active registrations, and reports those that are ready.
fn look(set: &Set, number: u32, room: &mut [libc::epoll_event]) -> usize {
    let mut found = look_at_rings(set, number, room);
    found += nested::look(set, room.get_mut(found..).unwrap_or_default());
    found + listening::look(set, number, room.get_mut(found..).unwrap_or_default())
}

fn look_at_rings(set: &Set, number: u32, room: &mut [libc::epoll_event]) -> usize {
    let round = set.round.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    if set.active_count() == 0 && !set.reads_boards() {
        return 0;
    }
    let Some(held) = set.lock.take(true) else { return 0 };
    boards::look(set);
    let mut tour = Tour::new(set.active_count(), set.turn.load(Ordering::Relaxed) as usize);
    let mut found = 0;
    let mut leaving = None;
    while found < room.len()
        && let Some(place) = tour.next(set.active_count())
    {
        // SAFETY: the lock is held, and each reference is used before the next is made.
        let Some((_, known)) = (unsafe { set.active(place) }) else { break };
        if known.is(state::DELETED) || known.set != number {
            set.deactivate(place, known);
            tour.is_taken_out(set.active_count());
            continue;
        }
        if let Some(stream) = known.stream().filter(Stream::leaves_rings) {
            leaving = Some(stream);
            continue;
        }
        if let Some(event) = room.get_mut(found)
            && report(known, event)
        {
            known.round = round;
            found += 1;
        }
    }
    if found > 0 {
        set.turn.store(tour.place() as u32, Ordering::Relaxed);
    }
    drop(held);
    if let Some(stream) = leaving {
        leaves_rings(&stream);
    }
    found
}

/// Reports a registration if it is ready.
#[inline]
fn report(known: &mut Registration, event: &mut libc::epoll_event) -> bool {
    let Some(stream) = known.stream() else { return false };
    let Some(slot) = stream.slot() else { return false };
    let ready = known.ready(&stream, &slot);
    if ready != 0 {
        *event = libc::epoll_event { events: ready, u64: known.data };
    }
    ready != 0
}

/// Whether the kernel has reported something recently. If so, an idle thread asks it with each
/// look, since doorbells are likely to follow.
fn expects_doorbells(set: &Set) -> bool {
    raw::ticks().wrapping_sub(set.answered.load(Ordering::Relaxed)) < ANSWERED_TICKS
}

/// Asks the kernel, unless that was done a moment ago.
fn ask_at_times(set: &Set, number: u32, room: &mut [libc::epoll_event]) -> usize {
    let (now, asked) = (raw::ticks(), set.asked.load(Ordering::Relaxed));
    if room.is_empty() || now.wrapping_sub(asked) < ASK_TICKS {
        return 0;
    }
    ask(set, number, room)
}

fn ask(set: &Set, number: u32, room: &mut [libc::epoll_event]) -> usize {
    set.asked.store(raw::ticks(), Ordering::Relaxed);
    match raw::epoll_ready(set.descriptor(), room) {
        Ok(count @ 1..) => {
            set.answered.store(set.asked.load(Ordering::Relaxed), Ordering::Relaxed);
            translate(set, number, room, count)
        }
        _ => 0,
    }
}

/// The result of a sleep.
enum Slept {
    Found(usize),
    Nothing,
    Failed,
}

/// Parks the active registrations, looks once more, and sleeps in the kernel.
fn sleep(
    set: &Set,
    number: u32,
    room: &mut [libc::epoll_event],
    deadline: &Deadline,
    kernel: impl Fn(*mut libc::epoll_event, i32, Until) -> i32,
) -> Slept {
    // The thread has time now.
    monitor::read_mail_at_times();
    let waiter = Waiter::new(set);
    let _sleepers = listening::sleep(set);
    let found = listening::look(set, number, room);
    if found > 0 {
        return Slept::Found(found);
    }
    // With one waiter in a process of one thread, a doorbell wakes the reader of the boards.
    let is_alone = process::has_one_thread()
        && set.waiters.load(Ordering::SeqCst) == 1
        && set.nested.load(Ordering::Relaxed) == 0;
    let boards_sleep = is_alone.then(Sleep::next);
    // With the lock held: a thread that activates one has either seen the waiter, or is done.
    let has_active = set.lock.take(true).is_some_and(|_held| {
        match boards_sleep {
            Some(number) => boards::sleep(set, number),
            None => boards::leave_all(set),
        }
        set.active_count() > 0
    });
    if has_active || set.nested.load(Ordering::Relaxed) != 0 {
        let mut activations = 0;
        // Announcements of nested sets are not known here.
        let mut owed = Owed(set.nested.load(Ordering::Relaxed) != 0);
        if let Some(_held) = set.lock.take(true) {
            set.each_active(|known, stream, slot| {
                owed = owed | set::park(known, stream, slot);
                if let Some(number) = boards_sleep {
                    boards::sleeps_with(set, known, stream, number);
                }
            });
            activations = set.activations.load(Ordering::Relaxed);
        }
        owed.pass();
        let found = look(set, number, room);
        if found > 0 {
            drop(waiter);
            boards::wake(set);
            unpark_active(set);
            return Slept::Found(found);
        }
        if let Some(_held) = set.lock.take(true) {
            if set.activations.load(Ordering::Relaxed) != activations {
                // Another thread has made some active, which were not parked before the barrier.
                return Slept::Nothing;
            }
            // SAFETY: the lock is held.
            while let Some((_, known)) = unsafe { set.active(0) } {
                set.deactivate(0, known);
            }
        }
    }
    let before = errno::get();
    let count = kernel(room.as_mut_ptr(), room.len() as i32, sharing::turn(deadline.left()));
    drop(waiter);
    boards::wake(set);
    let Ok(count) = usize::try_from(count) else { return Slept::Failed };
    errno::set(before);
    if count == 0 {
        sharing::look();
    }
    set.asked.store(raw::ticks(), Ordering::Relaxed);
    match translate(set, number, room, count) {
        0 => Slept::Nothing,
        found => Slept::Found(found),
    }
}

/// Takes back the announcements of active registrations, unless others sleep.
fn unpark_active(set: &Set) {
    if set.waiters.load(Ordering::SeqCst) > 0 {
        return;
    }
    if let Some(_held) = set.lock.take(true) {
        set.each_active(set::unpark);
    }
}

/// Turns the kernel's reports into those for the application, and returns their number.
fn translate(set: &Set, number: u32, room: &mut [libc::epoll_event], count: usize) -> usize {
    let mut kept = 0;
    for at in 0..count {
        let Some(event) = room.get(at).copied() else { break };
        let result = match changes::of_token(event.u64) {
            None => Some(event).filter(|event| {
                !listening::is_reported_already(set, event)
                    && !nested::is_reported_already(set, event)
            }),
            Some(ours) => of_token(set, number, ours, event.events),
        };
        if let Some((place, event)) = room.get_mut(kept).zip(result) {
            *place = event;
            kept += 1;
        }
    }
    kept
}

/// The kernel has reported something of a socket that has a slot.
fn of_token(set: &Set, number: u32, ours: u32, events: u32) -> Option<libc::epoll_event> {
    let held = set.lock.take(true)?;
    // SAFETY: the lock is held.
    let known = unsafe { registration::get(ours) }?;
    if !known.is(state::USED) || known.set != number {
        return None;
    }
    let stream = known.stream()?;
    let descriptor = stream.local.descriptor.load(Ordering::Relaxed);
    if known.is(state::SWITCHED) {
        if !stream.leaves_rings() {
            let event = of_doorbell(set, ours, known, &stream, events);
            let are_many = known.doorbells >= DOORBELLS;
            if are_many {
                known.doorbells = 0;
            }
            drop(held);
            if are_many {
                stream.look_at_underlay(descriptor, 0);
                // Threads that they have woken, in this set or in others, will not find them.
                changes::look_again_everywhere(&stream, None);
            }
            return event;
        }
        drop(held);
        // The kernel reports the state anew, once the connection has come back.
        leaves_rings(&stream);
        return None;
    }
    drop(held);
    stream.proceed(descriptor);
    let _held = set.lock.take(true)?;
    // SAFETY: the lock is held again, and nothing is used from before.
    let known = unsafe { registration::get(ours) }?;
    if !known.is(state::TOKENED) {
        // It has come back in the meantime.
        return None;
    }
    let slot = stream.slot()?;
    if known.is(state::SWITCHED) {
        return of_doorbell(set, ours, known, &stream, 0);
    }
    // Halfway: the ring knows the one stream, the kernel the other.
    if known.is(state::FIRED) {
        // The kernel reports it more than once while the library waits for room.
        return None;
    }
    let (mut events, phase) = (events, stream.shared.phase());
    // Only the library may have asked for room, and it takes the room for what it owes.
    let always = (libc::EPOLLHUP | libc::EPOLLERR) as u32;
    events &= known.events | always;
    if phase & phase::OWES != 0 {
        events &= !(libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
    }
    if phase & phase::RECEIVES != 0 && !stream.is_readable(&slot) {
        events &= !(libc::EPOLLIN | libc::EPOLLRDNORM) as u32;
        stream.prepare_kernel_wait(descriptor, &slot, false);
        if stream.is_readable(&slot) {
            events |= libc::EPOLLIN as u32 & known.events;
        }
    }
    if phase & phase::SENDS != 0 && !stream.is_writable(&slot) {
        events &= !(libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
    }
    events |= reporting::ends_of_rings(&stream, &slot) & (known.events | always);
    if events == 0 {
        changes::rearm(set, ours, known);
        return None;
    }
    if known.events & libc::EPOLLONESHOT as u32 != 0 {
        known.state |= state::FIRED;
    }
    Some(libc::epoll_event { events, u64: known.data })
}

/// A doorbell has rung for a socket whose streams are in rings, or its underlay has ended.
fn of_doorbell(
    set: &Set,
    ours: u32,
    known: &mut Registration,
    stream: &Stream,
    events: u32,
) -> Option<libc::epoll_event> {
    let slot = stream.slot()?;
    let descriptor = stream.local.descriptor.load(Ordering::Relaxed);
    if events & libc::EPOLLERR as u32 != 0 {
        stream.ask_kernel(descriptor);
    }
    stream.kernel_reported(events);
    known.doorbells += 1;
    known.state |= state::RANG;
    if known.is(state::DELETED) {
        return None;
    }
    set.activate(ours, known);
    if set.waiters.load(Ordering::SeqCst) > 0 {
        // Sleepers wake for the doorbell, or get another one.
        _ = set::park(known, stream, &slot);
    } else {
        set::unpark(known, stream, &slot);
        boards::has_rung(set, known.set, stream);
    }
    let round = set.round.load(Ordering::Relaxed);
    let is_reported = core::mem::replace(&mut known.round, round) == round;
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    (!is_reported && report(known, &mut event)).then_some(event)
}

/// Whether a peer waited on this core.
fn shares_core(set: &Set) -> bool {
    let Some(_held) = set.lock.take(true) else { return false };
    boards::say_core(set);
    // Mostly, the newest active ones are waited for.
    let newest = set.active_count().saturating_sub(SHARING)..set.active_count();
    newest.into_iter().any(|place| {
        // SAFETY: the lock is held.
        let known = unsafe { set.active(place) };
        let slot = known.and_then(|(_, known)| known.stream()?.slot());
        slot.is_some_and(|slot| slot.shares_core())
    })
}

/// A socket whose streams were in rings comes back into the kernel, or has come back.
fn leaves_rings(stream: &Stream) {
    stream.proceed(stream.local.descriptor.load(Ordering::Relaxed));
    if !stream.shared.is(phase::LOOKS) {
        changes::has_left(stream);
    }
}
