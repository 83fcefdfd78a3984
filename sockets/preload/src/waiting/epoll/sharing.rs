// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of several processes that have the same socket, since a fork. Whoever is woken by doorbells
//! may take them before the others have got the processor, and the kernel tells those of nothing
//! then. Sets of one process are made to look; those of another one look by themselves, in turns.

use super::changes;
use crate::state::connection::phase;
use crate::state::table;
use crate::waiting::deadline::Until;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

/// How long a set sleeps at most while sockets are shared: as long as it can take until it sees
/// what another process was woken for.
const TURN_NANOSECONDS: u64 = 50_000_000;

/// Whether other processes may have sockets of this one.
static MAY_BE: AtomicBool = AtomicBool::new(false);

/// From now on others may have what this process has: it forks, or was forked.
pub fn begins() {
    MAY_BE.store(true, Ordering::Relaxed);
}

/// How long a set may sleep that has so much time.
pub fn turn(left: Until) -> Until {
    if MAY_BE.load(Ordering::Relaxed) { left.at_most(TURN_NANOSECONDS) } else { left }
}

/// Behind a sleep in which nothing has happened: makes sets look at all that others have as well,
/// and finds out whether there is still such a thing.
#[cold]
pub fn look() {
    // Before the look: who forks meanwhile says so again.
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
