// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for a list of descriptors: `poll`, and `select` in terms of it.

use super::nested;
use super::reporting::{ends_of_rings, events_of};
use crate::kernel::{errno, memory, raw};
use crate::process;
use crate::process::barrier::Owed;
use crate::reuse::listener;
use crate::state::connection::phase;
use crate::state::connections::{self, Stream};
use crate::state::slot::Slot;
use crate::state::table::{self, What};
use crate::underlay::ASK_TICKS;
use crate::waiting::Wait;
use crate::waiting::deadline::{Deadline, Until};
use crate::waiting::epoll::look_again;
use core::mem;
use core::slice;
use core::sync::atomic::Ordering;

/// Number of descriptors for which there is room on the stack.
const FEW: usize = 128;
/// The longest wait in the kernel alone for a socket that is halfway.
const HALFWAY_NANOSECONDS: u64 = 1_000_000;

/// A copy of the application's list, which the kernel may write to.
pub struct Copy {
    few: [libc::pollfd; FEW],
    many: Option<*mut libc::pollfd>,
    count: usize,
}

impl Copy {
    /// Room for `count` descriptors, all unused. `None`: no memory.
    pub fn new(count: usize) -> Option<Self> {
        let nothing = libc::pollfd { fd: -1, events: 0, revents: 0 };
        let many = match count {
            ..=FEW => None,
            _ => Some(raw::map(count * size_of::<libc::pollfd>(), false, None).ok()?.cast()),
        };
        Some(Self { few: [nothing; FEW], many, count })
    }

    /// All entries.
    pub fn all(&mut self) -> &mut [libc::pollfd] {
        match self.many {
            // SAFETY: mapped for `count` entries.
            Some(many) => unsafe { slice::from_raw_parts_mut(many, self.count) },
            None => self.few.get_mut(..self.count).unwrap_or_default(),
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if let Some(many) = self.many {
            raw::unmap(many.cast(), self.count * size_of::<libc::pollfd>());
        }
    }
}

/// The socket of a descriptor.
#[inline]
fn stream_of(descriptor: i32) -> Option<Stream> {
    match table::get(descriptor) {
        Some(What::Stream(number)) => connections::get(number),
        _ => None,
    }
}

/// The socket of a descriptor, if its streams are in rings.
#[inline]
fn switched(descriptor: i32) -> Option<(Stream, Slot)> {
    let stream = stream_of(descriptor).filter(|stream| stream.shared.is(phase::LOOKS))?;
    stream.slot().map(|slot| (stream, slot))
}

/// The socket of a descriptor, if it is halfway: one of its streams is in a ring, or is about to
/// be.
#[inline]
fn halfway(descriptor: i32) -> Option<(Stream, Slot)> {
    let stream = stream_of(descriptor)?;
    let phase = stream.shared.phase();
    if phase & phase::SWITCHED == 0 || phase & phase::LOOKS != 0 {
        return None;
    }
    stream.slot().map(|slot| (stream, slot))
}

/// The listener of a descriptor, if it may get connections without the kernel.
fn listening(descriptor: i32) -> Option<Stream> {
    stream_of(descriptor)
        .filter(|stream| stream.shared.is(phase::LISTENS) && listener::is_known(stream))
}

/// The events that the kernel may report of a socket that is halfway, out of `events`. For a stream
/// that is in a ring, the ring decides.
fn without_rings(events: i16, (stream, slot): &(Stream, Slot)) -> i16 {
    let (mut events, phase) = (events, stream.shared.phase());
    if phase & phase::RECEIVES != 0 && !stream.is_readable(slot) {
        events &= !(libc::POLLIN | libc::POLLRDNORM);
    }
    if phase & phase::SENDS != 0 && !stream.is_writable(slot) {
        events &= !(libc::POLLOUT | libc::POLLWRNORM);
    }
    events
}

/// The events to report for the stream that is in a ring.
fn of_rings(events: i16, (stream, slot): &(Stream, Slot)) -> i16 {
    let (mut ready, phase) = (0, stream.shared.phase());
    if phase & phase::RECEIVES != 0 && stream.is_readable(slot) {
        ready |= events & (libc::POLLIN | libc::POLLRDNORM);
    }
    let ends = (ends_of_rings(stream, slot) as u16).cast_signed();
    ready | ends & (events | libc::POLLHUP)
}

/// Whether a descriptor may become ready without the kernel knowing.
fn is_known(descriptor: i32) -> bool {
    switched(descriptor).is_some()
        || halfway(descriptor).is_some()
        || nested::of(descriptor).is_some()
        || listening(descriptor).is_some_and(|stream| listener::has(&stream))
}

/// Whether the socket of a descriptor is on its way out of the kernel, or has left it.
fn leaves(descriptor: i32) -> bool {
    stream_of(descriptor).is_some_and(|stream| {
        stream.proceed(descriptor);
        switched(descriptor).is_some() || halfway(descriptor).is_some()
    })
}

/// `poll`. `kernel` is the C library's function that the application has called.
pub fn poll(
    descriptors: *mut libc::pollfd,
    count: libc::nfds_t,
    until: Until,
    kernel: impl Fn(*mut libc::pollfd, libc::nfds_t, Until) -> i32,
) -> i32 {
    process::check();
    if count == 0 || count > 1 << 20 || !memory::exists(descriptors, count as usize) {
        return kernel(descriptors, count, until);
    }
    // SAFETY: the application's list has `count` entries.
    let asked = unsafe { slice::from_raw_parts_mut(descriptors, count as usize) };
    for one in asked.iter() {
        if let Some(stream) = stream_of(one.fd) {
            stream.proceed(one.fd);
        }
    }
    let deadline = Deadline::new(until);
    if !asked.iter().any(|one| is_known(one.fd)) {
        // Connections to listeners come through the kernel only, until they are opened again.
        let has_more = close_listeners(asked);
        let result =
            if has_more { 0 } else { in_kernel(asked, || kernel(descriptors, count, until)) };
        open_listeners(asked);
        // A socket that leaves the kernel during the call gets a doorbell there, which does not
        // tell all that is ready.
        let has_rung = result > 0 && asked.iter().any(|one| one.revents != 0 && leaves(one.fd));
        if !has_more && !has_rung {
            return result;
        }
    }
    let Some(mut copy) = Copy::new(asked.len()) else { return errno::fail(libc::ENOMEM) as i32 };
    asked.iter().filter_map(|one| nested::of(one.fd)).for_each(nested::enter);
    let result = poll_mixed(asked, &mut copy, &deadline, kernel);
    asked.iter().filter_map(|one| nested::of(one.fd)).for_each(nested::leave);
    result
}

/// Waits in the kernel alone. Peers of sockets that switch in the meantime keep ringing doorbells.
fn in_kernel(asked: &[libc::pollfd], kernel: impl Fn() -> i32) -> i32 {
    let each = |by: u32| {
        for stream in asked.iter().filter_map(|one| stream_of(one.fd)) {
            stream.shared.kernel_receives.fetch_add(by, Ordering::SeqCst);
        }
    };
    each(1);
    let result = kernel();
    each(1_u32.wrapping_neg());
    result
}

/// Before the kernel waits alone. True: there is a connection for a listener.
fn close_listeners(asked: &[libc::pollfd]) -> bool {
    let listeners = asked.iter().filter_map(|one| listening(one.fd));
    listeners.fold(false, |is_ready, stream| listener::closes(&stream) | is_ready)
}

/// After the kernel has waited alone.
fn open_listeners(asked: &[libc::pollfd]) {
    asked.iter().filter_map(|one| listening(one.fd)).for_each(|stream| listener::opens(&stream));
}

fn poll_mixed(
    asked: &mut [libc::pollfd],
    copy: &mut Copy,
    deadline: &Deadline,
    kernel: impl Fn(*mut libc::pollfd, libc::nfds_t, Until) -> i32,
) -> i32 {
    let (mut wait, mut kernel_asked) = (Wait::new(), 0);
    loop {
        let mut found = look(asked);
        let now = raw::ticks();
        let is_time = now.wrapping_sub(kernel_asked) >= ASK_TICKS;
        if is_time || deadline.is_over() {
            kernel_asked = now;
            for one in asked.iter() {
                if let Some(stream) = stream_of(one.fd) {
                    stream.proceed(one.fd);
                }
            }
            if asked.iter().any(|one| one.fd >= 0 && switched(one.fd).is_none()) {
                found += ask_for_others(asked, copy, &kernel);
            }
            found += ask_for_ends(asked);
        }
        if found > 0 {
            // The other entries are as of the last call of the kernel.
            return count_ready(asked);
        }
        if deadline.is_over() {
            return 0;
        }
        if is_worth_looking(asked) && wait.step(|| shares_core(asked)) {
            continue;
        }
        let result = sleep(asked, copy, deadline.left(), &kernel);
        if result != 0 {
            return result;
        }
        (wait, kernel_asked) = (Wait::new(), 0);
    }
}

/// Fills in the events of sockets whose streams are in rings, and of sets and listeners; returns
/// how many are ready.
fn look(asked: &mut [libc::pollfd]) -> usize {
    let mut found = 0;
    for one in asked {
        one.revents = match switched(one.fd) {
            Some((stream, slot)) => ready(one, &stream, &slot),
            None if nested::of(one.fd).is_some_and(nested::is_ready) => one.events & libc::POLLIN,
            None if listening(one.fd).is_some_and(|stream| listener::is_ready(&stream)) => {
                one.events & (libc::POLLIN | libc::POLLRDNORM)
            }
            None => 0,
        };
        found += usize::from(one.revents != 0);
    }
    found
}

/// The events of a socket whose streams are in rings.
fn ready(one: &libc::pollfd, stream: &Stream, slot: &Slot) -> i16 {
    let events = u32::from(one.events.cast_unsigned());
    (events_of(stream, slot, events) as u16).cast_signed()
}

/// Asks the kernel for the ends of sockets whose streams are in rings; returns how many more are
/// ready because of that.
fn ask_for_ends(asked: &mut [libc::pollfd]) -> usize {
    let mut found = 0;
    for one in asked {
        if let Some((stream, slot)) = switched(one.fd)
            && stream.ask_kernel_at_times(one.fd)
        {
            let now = ready(one, &stream, &slot);
            let before = mem::replace(&mut one.revents, now);
            found += usize::from(before == 0 && one.revents != 0);
        }
    }
    found
}

fn count_ready(asked: &[libc::pollfd]) -> i32 {
    asked.iter().filter(|one| one.revents != 0).count() as i32
}

/// Asks the kernel for all others, without waiting.
fn ask_for_others(
    asked: &mut [libc::pollfd],
    copy: &mut Copy,
    kernel: impl Fn(*mut libc::pollfd, libc::nfds_t, Until) -> i32,
) -> usize {
    let all = copy.all();
    for (place, one) in all.iter_mut().zip(asked.iter()) {
        *place = *one;
        if switched(one.fd).is_some() {
            place.fd = -1;
        } else if let Some(halfway) = halfway(one.fd) {
            place.events = without_rings(one.events, &halfway) | libc::POLLRDHUP;
        }
    }
    let ready = kernel(all.as_mut_ptr(), all.len() as libc::nfds_t, Until::Nanoseconds(0));
    let mut found = 0;
    for (place, one) in all.iter().zip(asked) {
        if place.fd >= 0 {
            let is_looked_at = nested::of(one.fd).is_some() || listening(one.fd).is_some();
            let seen = if is_looked_at { one.revents } else { 0 };
            one.revents = if ready > 0 { place.revents } else { 0 } | seen;
            if let Some(halfway) = halfway(one.fd) {
                // An end that was not read up to yet does not count, except for a reset.
                let is_known = halfway.0.shared.is(phase::RECEIVES);
                let known = if is_known { i16::MAX } else { libc::POLLHUP };
                halfway.0.kernel_reported(u32::from((one.revents & known).cast_unsigned()));
                let always = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
                one.revents &= one.events | always;
                one.revents |= of_rings(one.events, &halfway);
            }
            found += usize::from(one.revents != 0);
        }
    }
    found
}

/// Whether something may arrive soon without the kernel knowing.
fn is_worth_looking(asked: &[libc::pollfd]) -> bool {
    asked.iter().any(|one| match listening(one.fd) {
        Some(stream) => listener::is_busy(&stream),
        None => {
            switched(one.fd).is_some() || nested::of(one.fd).is_some() || halfway(one.fd).is_some()
        }
    })
}

fn shares_core(asked: &[libc::pollfd]) -> bool {
    asked.iter().fold(false, |shares, one| {
        shares | switched(one.fd).is_some_and(|(_, slot)| slot.shares_core())
    })
}

/// Announces sleep on all sockets, looks once more, and sleeps in the kernel. 0: the caller has to
/// look again.
fn sleep(
    asked: &mut [libc::pollfd],
    copy: &mut Copy,
    mut left: Until,
    kernel: impl Fn(*mut libc::pollfd, libc::nfds_t, Until) -> i32,
) -> i32 {
    let owed = announce_sleep(asked);
    close_listeners(asked);
    owed.pass();
    let result = if look(asked) > 0 {
        count_ready(asked)
    } else {
        let all = copy.all();
        for (place, one) in all.iter_mut().zip(asked.iter()) {
            *place = *one;
            if let Some((stream, _)) = switched(one.fd) {
                place.events = libc::POLLIN | libc::POLLRDHUP;
                if stream.shared.is(phase::OWES) {
                    // Bytes that it has to send first are sent when there is room.
                    place.events |= libc::POLLOUT;
                }
                if stream.shared.is(phase::KERNEL_END) {
                    // The kernel would report the end again and again, and nothing else.
                    place.fd = -1;
                }
            } else if let Some(halfway) = halfway(one.fd) {
                // It will not be halfway for long, and no doorbell is certain.
                left = left.at_most(HALFWAY_NANOSECONDS);
                place.events = without_rings(one.events, &halfway);
            }
        }
        let before = errno::get();
        let (at, count) = (all.as_mut_ptr(), all.len() as libc::nfds_t);
        let ready = in_kernel(asked, || kernel(at, count, left));
        if ready > 0 {
            errno::set(before);
            after_sleep(asked, all);
        }
        if ready < 0 { -1 } else { 0 }
    };
    open_listeners(asked);
    announce_awake(asked);
    result
}

/// Records the events that the kernel has reported of sockets whose streams are in rings.
fn after_sleep(asked: &[libc::pollfd], all: &[libc::pollfd]) {
    for (one, place) in asked.iter().zip(all) {
        let Some((stream, _)) = switched(one.fd).filter(|_| place.revents != 0) else { continue };
        stream.look_at_underlay(one.fd, 1);
        stream.kernel_reported(u32::from(place.revents.cast_unsigned()));
        look_again(&stream, libc::EPOLLIN | libc::EPOLLOUT);
    }
}

fn announce_sleep(asked: &[libc::pollfd]) -> Owed {
    let mut owed = Owed(false);
    for one in asked {
        let Some((stream, slot)) = switched(one.fd) else {
            // Announcements of sets and listeners are not known here.
            owed = owed | Owed(nested::of(one.fd).is_some() || listening(one.fd).is_some());
            continue;
        };
        stream.shared.sleepers.fetch_add(1, Ordering::SeqCst);
        owed = owed | stream.announce_data_sleep(one.fd, &slot);
        if one.events & libc::POLLOUT != 0 {
            owed = owed | stream.announce_room_sleep(&slot);
        }
    }
    owed
}

fn announce_awake(asked: &[libc::pollfd]) {
    for one in asked {
        let Some((stream, slot)) = switched(one.fd) else { continue };
        stream.announce_data_awake(&slot);
        stream.shared.sleepers.fetch_sub(1, Ordering::SeqCst);
        if one.events & libc::POLLOUT != 0 {
            stream.announce_room_awake(&slot);
        }
    }
}
