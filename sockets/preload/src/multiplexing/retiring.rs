// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parking silent sockets without sleeping. In a set that always has something ready, and so never
//! sleeps, all sockets that were ever ready would be looked at each time.

use crate::kernel::raw;
use crate::process::barrier::Owed;
use crate::waiting::epoll::registration::Registration;
use crate::waiting::epoll::set::{self, Set};
use core::sync::atomic::Ordering;

/// Number of sockets that have to become active before silent ones are parked.
const MANY: usize = 64;
/// Number of looks without a report after which a socket is silent.
const SILENT_ROUNDS: u32 = 256;
/// The same for a set that reads boards, where activation is cheap.
const MANY_BESIDE_BOARDS: usize = 24;
const SILENT_ROUNDS_BESIDE_BOARDS: u32 = 32;
/// Ticks between two times, which cost a barrier each: about half a millisecond.
const AGAIN_TICKS: u64 = 1_200_000;

/// Parks the active sockets of a set that were not reported for long, if many have become active
/// since that was done last. From then on the kernel reports their doorbells.
#[inline]
pub fn park_silent(set: &Set) {
    let (count, stayed) = (set.active_count(), set.stayed.load(Ordering::Relaxed) as usize);
    if count < stayed {
        set.stayed.store(count as u32, Ordering::Relaxed);
    } else if count - stayed >= limits(set).0 {
        park_silent_at_times(set);
    }
}

/// The number that is many, and the number of rounds after which a socket is silent.
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
    // A sleeper parks all, and expects them to stay as they are.
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

/// After the barrier, with the lock held: sockets with news since then stay active.
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
            // The last one moves to this place.
            Some(_) => set.deactivate(place, known),
            None => place += 1,
        }
    }
}
