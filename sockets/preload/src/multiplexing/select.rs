// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `select`, where one of the sockets has its streams in rings: as a `poll` of the same
//! descriptors.

use super::{nested, polling};
use crate::kernel::errno;
use crate::kernel::memory;
use crate::kernel::next::next;
use crate::reuse::listener;
use crate::state::connection::phase;
use crate::state::table::stream;
use crate::waiting::deadline::{Deadline, Until};
use core::ffi::c_void;
use core::ptr;

/// Number of descriptors of a set of the C library. Larger sets are left to the kernel.
const DESCRIPTORS: usize = libc::FD_SETSIZE;
const WORD_BITS: usize = u64::BITS as usize;

/// The events that each of the three sets asks for, and those that are reported there.
const ASKED: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
const REPORTED: [i16; 3] =
    [libc::POLLIN | libc::POLLHUP | libc::POLLERR, libc::POLLOUT | libc::POLLERR, libc::POLLPRI];

type Words = [u64; DESCRIPTORS / WORD_BITS];

/// `select`. `kernel` is the C library's function that the application has called.
pub fn select(
    count: i32,
    sets: [*mut c_void; 3],
    timeout: *mut libc::timeval,
    kernel: impl Fn() -> i32,
) -> i32 {
    let Some(wanted) = wanted(count, sets) else { return kernel() };
    let until = if timeout.is_null() {
        Until::Ready
    } else if !memory::exists(timeout, 1) {
        return kernel();
    } else {
        // SAFETY: the application's time.
        let time = unsafe { timeout.read() };
        let (seconds, rest) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
        let (Ok(seconds), Ok(rest)) = (seconds, rest) else { return kernel() };
        let rest = rest.saturating_mul(1000);
        Until::Nanoseconds(seconds.saturating_mul(1_000_000_000).saturating_add(rest))
    };
    let deadline = Deadline::new(until);
    let result = wait(count, sets, &wanted, until, ptr::null());
    if let (false, Until::Nanoseconds(left)) = (timeout.is_null(), deadline.left()) {
        let (seconds, rest) = (left / 1_000_000_000, left % 1_000_000_000 / 1000);
        let left = libc::timeval { tv_sec: seconds as i64, tv_usec: rest as i64 };
        // SAFETY: as the kernel, which says there what is left.
        unsafe { timeout.write(left) };
    }
    result
}

/// `pselect`. `kernel` is the C library's function that the application has called.
pub fn pselect(
    count: i32,
    sets: [*mut c_void; 3],
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
    kernel: impl Fn() -> i32,
) -> i32 {
    // SAFETY: the application's time.
    match wanted(count, sets).zip(unsafe { Until::time(timeout) }) {
        Some((wanted, until)) => wait(count, sets, &wanted, until, mask),
        None => kernel(),
    }
}

/// The three sets; `None`: the kernel alone can do it.
fn wanted(count: i32, sets: [*mut c_void; 3]) -> Option<[Words; 3]> {
    let number = usize::try_from(count).ok().filter(|number| *number <= DESCRIPTORS)?;
    let mut wanted = [[0; DESCRIPTORS / WORD_BITS]; 3];
    for (words, set) in wanted.iter_mut().zip(sets).filter(|(_, set)| !set.is_null()) {
        if !memory::exists(set.cast::<u64>(), number.div_ceil(WORD_BITS)) {
            return None;
        }
        for (at, word) in words.iter_mut().enumerate().take(number.div_ceil(WORD_BITS)) {
            // SAFETY: the caller gives sets that have all words that `count` reaches.
            let place = unsafe { set.cast::<u64>().add(at) };
            // SAFETY: as above, to be read.
            *word = unsafe { place.read_unaligned() };
        }
    }
    let is_ours = |descriptor: usize| {
        let is_known = || {
            nested::of(descriptor as i32).is_some()
                || stream(descriptor as i32).is_some_and(|stream| {
                    stream.proceed(descriptor as i32);
                    stream.shared.phase() & (phase::LOOKS | phase::SWITCHED) != 0
                        || stream.shared.is(phase::LISTENS) && listener::is_known(&stream)
                })
        };
        has(&wanted, descriptor) && is_known()
    };
    (0..number).any(is_ours).then_some(wanted)
}

fn has(wanted: &[Words; 3], descriptor: usize) -> bool {
    wanted.iter().any(|words| is_in(words, descriptor))
}

fn is_in(words: &Words, descriptor: usize) -> bool {
    words.get(descriptor / WORD_BITS).is_some_and(|word| word >> (descriptor % WORD_BITS) & 1 == 1)
}

fn wait(
    count: i32,
    sets: [*mut c_void; 3],
    wanted: &[Words; 3],
    until: Until,
    mask: *const libc::sigset_t,
) -> i32 {
    let wanted_ones = || (0..count.max(0) as usize).filter(|descriptor| has(wanted, *descriptor));
    let Some(mut copy) = polling::Copy::new(wanted_ones().count()) else {
        return errno::fail(libc::ENOMEM) as i32;
    };
    let list = copy.all();
    let mut length = 0;
    for descriptor in wanted_ones() {
        let Some(place) = list.get_mut(length) else { break };
        place.fd = descriptor as i32;
        for (words, events) in wanted.iter().zip(ASKED) {
            place.events |= if is_in(words, descriptor) { events } else { 0 };
        }
        length += 1;
    }
    let kernel = |fds: *mut libc::pollfd, count: libc::nfds_t, until: Until| {
        let mut place = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = until.as_time(&mut place).cast_const();
        next!(ppoll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: *const libc::timespec,
            mask: *const libc::sigset_t) -> i32)
    };
    let result = polling::poll(list.as_mut_ptr(), length as libc::nfds_t, until, kernel);
    let found = list.get(..length).unwrap_or_default();
    if result < 0 {
        return result;
    }
    if found.iter().any(|one| one.revents & libc::POLLNVAL != 0) {
        return errno::fail(libc::EBADF) as i32;
    }
    report(count, sets, wanted, found)
}

/// Writes the three sets, and returns the number of bits in them.
fn report(count: i32, sets: [*mut c_void; 3], wanted: &[Words; 3], found: &[libc::pollfd]) -> i32 {
    let mut bits = 0;
    let words = (count.max(0) as usize).div_ceil(WORD_BITS);
    for (number, set) in sets.into_iter().enumerate().filter(|(_, set)| !set.is_null()) {
        let mut result: Words = [0; DESCRIPTORS / WORD_BITS];
        let (Some(asked), Some(reported)) = (wanted.get(number), REPORTED.get(number)) else {
            continue;
        };
        for one in found {
            let at = one.fd as usize;
            if one.revents & reported != 0
                && is_in(asked, at)
                && let Some(word) = result.get_mut(at / WORD_BITS)
            {
                *word |= 1 << (at % WORD_BITS);
                bits += 1;
            }
        }
        for (at, word) in result.iter().enumerate().take(words) {
            // SAFETY: the caller gives sets that have all words that `count` reaches.
            let place = unsafe { set.cast::<u64>().add(at) };
            // SAFETY: as above, to be written.
            unsafe { place.write_unaligned(*word) };
        }
    }
    bits
}
