// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parking what is silent without sleeping: a set on which nobody ever sleeps, because there is
//! always something, would have all of its sockets looked at that ever had something.

use crate::kernel::raw;
use crate::process::barrier::Owed;
use crate::waiting::epoll::registration::Registration;
use crate::waiting::epoll::set::{self, Set};
use core::sync::atomic::Ordering;

/// So many are looked at each time.
const MANY: usize = 64;
/// Looks at which nothing was reported of a socket that is silent.
const SILENT_ROUNDS: u32 = 256;
/// The same of a set that reads boards, where it costs little to become active again.
const MANY_BESIDE_BOARDS: usize = 24;
const SILENT_ROUNDS_BESIDE_BOARDS: u32 = 32;
/// Ticks between two times, which cost a barrier each: about half a millisecond.
const AGAIN_TICKS: u64 = 1_200_000;

/// Parks those active sockets of a set of which nothing was reported for long, if many have become
/// active since that was done last. From then on the kernel reports their doorbells.
#[inline]
pub fn park_silent(set: &Set) {
    let (count, stayed) = (set.active_count(), set.stayed.load(Ordering::Relaxed) as usize);
    if count < stayed {
        set.stayed.store(count as u32, Ordering::Relaxed);
    } else if count - stayed >= limits(set).0 {
        park_silent_at_times(set);
    }
}

/// How many are many, and for how many rounds one is not silent yet.
fn limits(set: &Set) -> (usize, u32) {
    if set.reads_boards() {
        (MANY_BESIDE_BOARDS, SILENT_ROUNDS_BESIDE_BOARDS)
    } else {
        (MANY, SILENT_ROUNDS)
    }
}

#[cold]
fn park_silent_at_times(set: &Set) {
    let (now, parked) = (raw::ticks(), set.parked.load(Ordering::Relaxed));
    // Who sleeps parks all, and expects them to be as they are.
    if now.wrapping_sub(parked) < AGAIN_TICKS || set.waiters.load(Ordering::SeqCst) > 0 {
        return;
    }
    set.parked.store(now, Ordering::Relaxed);
    let Some(_held) = set.lock.take(true) else { return };
    let since = set.round.load(Ordering::Relaxed).wrapping_sub(limits(set).1);
    let (mut are_any, mut owed) = (false, Owed(false));
    set.each_active(|known, stream, slot| {
        if is_silent(known, since) {
            owed = owed | set::park(known, stream, slot);
            are_any = true;
        }
    });
    if are_any {
        owed.pass();
        deactivate_silent(set, since);
        set.stayed.store(set.active_count() as u32, Ordering::Relaxed);
    }
}

/// Whether it was reported last before that round.
fn is_silent(known: &Registration, since: u32) -> bool {
    since.wrapping_sub(known.round).cast_signed() > 0
}

/// Behind the barrier, with the lock held: what has come meanwhile stays active.
fn deactivate_silent(set: &Set, since: u32) {
    let mut place = 0;
    // SAFETY: the lock is held, and each reference is used before the next is made.
    while let Some((_, known)) = unsafe { set.active(place) } {
        let slotted = known.stream().and_then(|stream| Some((stream, stream.slot()?)));
        match slotted.filter(|_| is_silent(known, since)) {
            Some((stream, slot))
                if stream.leaves_rings() || known.would_be_ready(&stream, &slot) =>
            {
                set::unpark(known, &stream, &slot);
                place += 1;
            }
            // What is last comes to this place.
            Some(_) => set.deactivate(place, known),
            None => place += 1,
        }
    }
}
