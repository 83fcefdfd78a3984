// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of several processes that share a socket since a fork. The first that wakes may take the
//! doorbells before the others run, and the kernel reports nothing to those then. Sets of the same
//! process are made to look; sets of another process look by themselves, at intervals.

use super::changes;
use crate::state::connection::phase;
use crate::state::table;
use crate::waiting::deadline::Until;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

/// The longest sleep of a set while sockets are shared, which bounds the delay until it sees news
/// for which another process was woken.
const TURN_NANOSECONDS: u64 = 50_000_000;

/// Whether other processes may hold sockets of this one.
static MAY_BE: AtomicBool = AtomicBool::new(false);

/// From now on other processes may hold sockets of this one: it forks, or was forked.
pub fn begins() {
    MAY_BE.store(true, Ordering::Relaxed);
}

/// The time that a set may sleep, of the time that is left.
pub fn turn(left: Until) -> Until {
    if MAY_BE.load(Ordering::Relaxed) { left.at_most(TURN_NANOSECONDS) } else { left }
}

/// After a sleep without an event: makes sets look at all shared sockets, and finds out whether
/// there still are any.
#[cold]
pub fn look() {
    // Before the look: a fork in the meantime sets it again.
    if !MAY_BE.swap(false, Ordering::SeqCst) {
        return;
    }
    let are_shared = Cell::new(false);
    table::each_stream(|_, stream| {
        if stream.shared.is(phase::ATTACHED) && !stream.is_only_here() {
            are_shared.set(true);
            changes::look_again_everywhere(&stream, None);
        }
    });
    if are_shared.get() {
        begins();
    }
}
