// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a stream becomes a kept one: a connection to a busy destination is made to leave the kernel
//! at once.
//!
//! Both sides wait for that, right after `connect` and `accept`, for at most two milliseconds. The
//! two processes cannot talk to each other and have to choose the same connection: so they do it in
//! the same few milliseconds of each quarter of a second, by the processor's clock.

use super::entries::{self, For};
use super::{AFTER, is_allowed};
use crate::kernel::raw;
use crate::returning::standing_in;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::upgrade::monitor;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::flag;

/// Ticks that one side waits for the other: about two milliseconds.
const PATIENCE_TICKS: u64 = 4_800_000;
/// The same if streams are kept from the first connection on, which is for tests: the machine may
/// be busy.
const PATIENCE_AT_ONCE_TICKS: u64 = 10 * PATIENCE_TICKS;
/// Time is divided into pieces of that many ticks, as a power of two: about three and a half
/// milliseconds. Streams are recruited in one of `PIECES` pieces.
const PIECE_SHIFT: u32 = 23;
const PIECES: u64 = 64;

fn is_at_once() -> bool {
    AFTER.load(Ordering::Relaxed) == 1
}

/// Whether streams are recruited now.
fn is_time() -> bool {
    is_at_once() || (raw::ticks() >> PIECE_SHIFT).is_multiple_of(PIECES)
}

/// Makes the stream of a new connection a kept one, if the peer does so as well.
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

/// Waits until both streams are in rings. False: not in time.
fn has_left_kernel(stream: &Stream, descriptor: i32) -> bool {
    let since = raw::ticks();
    let patience = if is_at_once() { PATIENCE_AT_ONCE_TICKS } else { PATIENCE_TICKS };
    while raw::ticks().wrapping_sub(since) < patience {
        monitor::read_mail();
        stream.proceed(descriptor);
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

/// Whether this side can close the peer's end, which it has to if the peer keeps the stream and
/// this side needs the end.
fn may_end_for_peer(stream: &Stream) -> bool {
    standing_in::take(stream).is_some_and(|taken| raw::close(taken).is_ok())
}
