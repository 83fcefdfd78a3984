// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connecting over a stream of the kernel that is there already.
//!
//! If a process connects to another one again and again, both keep the streams of some of those
//! connections when they are closed: each has a descriptor of the library's own for it, with a high
//! number. The next connection is made over such a stream, which is in rings already, by giving it
//! descriptors again on both sides. The kernel takes no part in that, but treats it as the
//! connection that it is, with names, doorbells and an end.
//!
//! | module | what it is |
//! |---|---|
//! | [`entries`] | the streams that this process keeps |
//! | [`destinations`] | the addresses it connects to, and how often |
//! | [`listener`] | listeners, and connections to them without the kernel |
//! | [`keep_alive`] | options that are put back in between |
//! | [`recruiting`] | how a stream becomes a kept one |
//! | [`resting`] | from one connection over it to the next, and how it is released |
//! | [`connecting`] | `connect` |
//! | [`accepting`] | `accept` |
//!
//! The word of the slot with the state of a stream between two connections changes only by
//! exchanges, so a side that dies, or is stopped anywhere, leaves it in a valid state; see
//! `freeport_sockets_proto::slab::rest`.

pub mod accepting;
pub mod connecting;
pub mod destinations;
pub mod entries;
pub mod keep_alive;
pub mod listener;
pub mod recruiting;
pub mod resting;

use crate::kernel::confined;
use crate::kernel::raw;
use crate::process;
use crate::process::uring;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Number of connections to the same place, within about a second, after which streams are kept; 0:
/// never.
static AFTER: AtomicU32 = AtomicU32::new(AFTER_DEFAULT);
const AFTER_DEFAULT: u32 = 0;
/// About a second, in [ticks](raw::ticks).
const SECOND_TICKS: u64 = 2_400_000_000;

/// Number of connections of this process that were made without a new stream of the kernel.
static REUSED: AtomicU64 = AtomicU64::new(0);

/// Reads the setting from the environment, when the library is loaded.
pub fn begin() {
    // SAFETY: a name that ends with zero.
    let text = unsafe { libc::getenv(c"FREEPORT_REUSE".as_ptr()) };
    if text.is_null() {
        return;
    }
    // SAFETY: a text of the environment.
    let text = unsafe { CStr::from_ptr(text) };
    if let Some(number) = text.to_str().ok().and_then(|text| text.parse().ok()) {
        AFTER.store(number, Ordering::Relaxed);
    }
}

/// Whether streams are kept in this process at all.
#[inline]
pub fn is_on() -> bool {
    AFTER.load(Ordering::Relaxed) != 0
}

/// Number of connections that this process has made without a new stream of the kernel.
pub fn reused() -> u64 {
    REUSED.load(Ordering::Relaxed)
}

/// Whether this process may keep streams.
fn is_allowed() -> bool {
    is_on() && !process::is_guest() && !confined::is_confined() && !uring::is_used()
}

/// The rate of an event within about a second. All zero: none.
#[derive(Debug)]
pub struct Rate {
    count: AtomicU32,
    since: AtomicU64,
}

impl Rate {
    /// A rate without events.
    pub const fn new() -> Self {
        Self { count: AtomicU32::new(0), since: AtomicU64::new(0) }
    }

    /// Counts an event. True: the rate is high enough to keep streams.
    pub fn counts(&self) -> bool {
        let after = AFTER.load(Ordering::Relaxed);
        let (now, since) = (raw::ticks(), self.since.load(Ordering::Relaxed));
        let count = self.count.load(Ordering::Relaxed).saturating_add(1);
        if now.wrapping_sub(since) > SECOND_TICKS {
            self.since.store(now, Ordering::Relaxed);
            // Half of the count still reflects the rate.
            self.count.store(if count > after { after / 2 + 1 } else { 1 }, Ordering::Relaxed);
        } else {
            self.count.store(count, Ordering::Relaxed);
        }
        count >= after
    }

    /// Resets the rate.
    pub fn forget(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
    }
}

/// An option of a socket was set: its connection can no longer begin or end over a kept stream,
/// unless the option is carried over, or restored.
pub fn is_tuned(stream: &Stream, level: i32, name: i32) {
    if stream.shared.is(phase::LISTENS) {
        listener::has_changed(stream);
    } else if keep_alive::is_one(level, name) {
        stream.shared.mark(phase::KEPT_ALIVE);
    } else if level != libc::IPPROTO_TCP || name != libc::TCP_NODELAY {
        stream.shared.mark(phase::TUNED);
    }
}

/// Signals were requested for a socket, which must not reach later connections over its stream.
#[cold]
pub fn is_signalled(stream: &Stream) {
    stream.shared.mark(phase::TUNED);
}

/// Before the process gives up system calls, moves to another network, or exits: drops all streams.
#[cold]
pub fn stops() {
    entries::drop_all(|_| true);
}
