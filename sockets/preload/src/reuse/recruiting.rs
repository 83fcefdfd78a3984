// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a stream becomes one that is kept: a connection of a place where there are many is made
//! leave the kernel at once.
//!
//! Both sides wait for that, right behind `connect` and `accept`, for two milliseconds at most. Two
//! processes that know nothing of each other have to do so for the same connection: so they do it
//! in the same few milliseconds of each quarter of a second, by the processor's clock.

use super::entries::{self, For};
use super::{AFTER, is_allowed};
use crate::kernel::raw;
use crate::returning::standing_in;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::upgrade::monitor;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::flag;

/// How long one side waits for the other, in ticks: about two milliseconds.
const PATIENCE_TICKS: u64 = 4_800_000;
/// The same where streams are kept from the first connection on, which is for tests: there may be
/// much to do beside them.
const PATIENCE_AT_ONCE_TICKS: u64 = 10 * PATIENCE_TICKS;
/// The time is cut into pieces of so many ticks, as a power of two: about three and a half
/// milliseconds. In one of so many of them streams are recruited.
const PIECE_SHIFT: u32 = 23;
const PIECES: u64 = 64;

fn is_at_once() -> bool {
    AFTER.load(Ordering::Relaxed) == 1
}

/// Whether it is time for it.
fn is_time() -> bool {
    is_at_once() || (raw::ticks() >> PIECE_SHIFT).is_multiple_of(PIECES)
}

/// Makes the stream of a connection, which is new, one that is kept, if the peer does so as well.
#[cold]
pub fn recruit(stream: &Stream, descriptor: i32, what: For, is_still: impl Fn() -> bool) {
    let is_new = stream.shared.phase() & !phase::NEVER == 0;
    if !is_time() || !is_new || !is_allowed() || !entries::has_room(what) {
        return;
    }
    stream.claim(descriptor);
    if has_left_kernel(stream, descriptor)
        && may_end_for_peer(stream)
        && entries::add(stream, descriptor, what, is_still)
        && let Some(slot) = stream.slot()
    {
        slot.say_descriptor(descriptor);
        slot.say(flag::REUSES);
    }
}

/// Whether both streams are in rings, in time.
fn has_left_kernel(stream: &Stream, descriptor: i32) -> bool {
    let since = raw::ticks();
    let patience = if is_at_once() { PATIENCE_AT_ONCE_TICKS } else { PATIENCE_TICKS };
    while raw::ticks().wrapping_sub(since) < patience {
        monitor::read_mail();
        stream.go_on(descriptor);
        let phase = stream.shared.phase();
        if phase & (phase::LOOKS | phase::NEVER) == phase::LOOKS {
            return true;
        }
        if phase & (phase::CLAIMED | phase::NEVER) != phase::CLAIMED {
            return false;
        }
        match monitor::descriptor().map(u32::cast_signed) {
            Some(monitor) if phase & phase::ATTACHED == 0 => {
                _ = raw::wait(monitor, libc::POLLIN, 1);
            }
            _ => raw::yield_now(),
        }
    }
    false
}

/// Whether this side can close the peer's end, where that keeps its stream and this side needs its
/// end.
fn may_end_for_peer(stream: &Stream) -> bool {
    standing_in::take(stream).is_some_and(|taken| raw::close(taken).is_ok())
}
