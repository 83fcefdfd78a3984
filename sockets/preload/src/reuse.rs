// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connecting over a stream of the kernel that is there already.
//!
//! Where a process connects to another one again and again, both keep the streams of some of those
//! connections when they are closed: each has a descriptor of its own for it, with a number that is
//! in nobody's way. The next connection is made over such a stream, which is in rings already, by
//! giving it numbers again on both sides. The kernel has nothing to do with that, but all that it
//! does for a connection it does for this one: it is one, with its names, doorbells and end.
//!
//! | module | what it is |
//! |---|---|
//! | [`entries`] | the streams that this process keeps |
//! | [`destinations`] | where it connects to, and how often |
//! | [`listener`] | what listens, and what was connected to that without the kernel |
//! | [`keep_alive`] | options that are put back in between |
//! | [`recruiting`] | how a stream becomes one that is kept |
//! | [`resting`] | from one connection over it to the next, and how it is let go |
//! | [`connecting`] | `connect` |
//! | [`accepting`] | `accept` |
//!
//! The word of the slot that says where a stream is between two connections changes only by
//! exchanges, so a side that dies, or is stopped anywhere, leaves it as one of them; see
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

/// Behind how many connections to the same place, in about a second, streams are kept; 0: never.
static AFTER: AtomicU32 = AtomicU32::new(AFTER_DEFAULT);
const AFTER_DEFAULT: u32 = 0;
/// About a second, in [ticks](raw::ticks).
const SECOND_TICKS: u64 = 2_400_000_000;

/// Connections of this process that were made without a new stream of the kernel.
static REUSED: AtomicU64 = AtomicU64::new(0);

/// Reads what the environment says, when the library is loaded.
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

/// How many connections this process has made without a new stream of the kernel.
pub fn reused() -> u64 {
    REUSED.load(Ordering::Relaxed)
}

/// Nothing of this process is against keeping streams.
fn is_allowed() -> bool {
    is_on() && !process::is_guest() && !confined::is_confined() && !uring::is_used()
}

/// How often something was done within about a second. All zero: never.
#[derive(Debug)]
pub struct Rate {
    count: AtomicU32,
    since: AtomicU64,
}

impl Rate {
    /// Never.
    pub const fn new() -> Self {
        Self { count: AtomicU32::new(0), since: AtomicU64::new(0) }
    }

    /// It is done once more. True: that is often.
    pub fn counts(&self) -> bool {
        let after = AFTER.load(Ordering::Relaxed);
        let (now, since) = (raw::ticks(), self.since.load(Ordering::Relaxed));
        let count = self.count.load(Ordering::Relaxed).saturating_add(1);
        if now.wrapping_sub(since) > SECOND_TICKS {
            self.since.store(now, Ordering::Relaxed);
            // Half of what was counted still tells how often it is.
            self.count.store(if count > after { after / 2 + 1 } else { 1 }, Ordering::Relaxed);
        } else {
            self.count.store(count, Ordering::Relaxed);
        }
        count >= after
    }

    /// Forgets it.
    pub fn forget(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
    }
}

/// An option of a socket is set: the connection is none any more that could begin or end over a
/// stream that is kept, unless it is one that is carried over, or put back.
pub fn is_tuned(stream: &Stream, level: i32, name: i32) {
    if stream.shared.is(phase::LISTENS) {
        listener::has_changed(stream);
    } else if keep_alive::is_one(level, name) {
        stream.shared.mark(phase::KEPT_ALIVE);
    } else if level != libc::IPPROTO_TCP || name != libc::TCP_NODELAY {
        stream.shared.mark(phase::TUNED);
    }
}

/// Signals that come with what happens on a stream are of its connection only.
#[cold]
pub fn is_signalled(stream: &Stream) {
    stream.shared.mark(phase::TUNED);
}

/// Before the process gives up system calls or goes elsewhere: it keeps nothing.
#[cold]
pub fn stops() {
    entries::drop_all(|_| true);
}
