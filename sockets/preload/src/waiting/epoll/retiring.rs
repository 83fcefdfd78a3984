// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parking what is silent without sleeping: a set on which nobody ever sleeps, because there is
//! always something, would have all of its sockets looked at that ever had something.

use super::registration::Registration;
use super::set::{self, Set};
use crate::kernel::raw;
use crate::waiting::barrier::Owed;
use core::sync::atomic::Ordering;

/// So many are looked at each time.
const MANY: usize = 64;
/// Looks at which nothing was reported of a socket that is silent.
const SILENT_ROUNDS: u32 = 256;
/// Ticks between two times, which cost a barrier each: about half a millisecond.
const AGAIN_TICKS: u64 = 1_200_000;

/// Parks those active sockets of a set of which nothing was reported for long, if there are many.
/// From then on the kernel reports their doorbells.
#[inline]
pub fn park_silent(set: &Set) {
    if set.active_count() >= MANY {
        park_silent_at_times(set);
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
    let round = set.round.load(Ordering::Relaxed);
    let (mut are_any, mut owed) = (false, Owed(false));
    set.each_active(|known, stream, slot| {
        if is_silent(known, round) {
            owed = owed | set::park(known, stream, slot);
            are_any = true;
        }
    });
    if are_any {
        owed.pass();
        deactivate_silent(set, round);
    }
}

fn is_silent(known: &Registration, round: u32) -> bool {
    round.wrapping_sub(known.round) > SILENT_ROUNDS
}

/// Behind the barrier, with the lock held: what has come meanwhile stays active.
fn deactivate_silent(set: &Set, round: u32) {
    let mut place = 0;
    // SAFETY: the lock is held, and each reference is used before the next is made.
    while let Some((_, known)) = unsafe { set.active(place) } {
        let slotted = known.stream().and_then(|stream| Some((stream, stream.slot()?)));
        match slotted.filter(|_| is_silent(known, round)) {
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
