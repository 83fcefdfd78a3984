// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The streams that this process keeps, and its own descriptors for them.

use super::keep_alive::KeepAlive;
use crate::kernel::raw;
use crate::process;
use crate::process::lock::{Held, Lock};
use crate::state::connections::{self, Stream};
use crate::state::slot::Slot;
use crate::upgrade::monitor;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use freeport_sockets_proto::slab::flag;
use freeport_sockets_proto::slab::rest::{self, Step};

/// How many a process keeps.
const ENTRIES: usize = 64;
/// How many of one place that it connects to, or of one listener.
const OF_PLACE: usize = 16;
/// The descriptors have at least this number, if the process may have so many more.
const HIGH: u64 = 1100;
/// How many more there have to be.
const SPARE: u64 = 2 * ENTRIES as u64;
/// Ticks between two looks at all of them: about ten milliseconds.
const SWEEP_TICKS: u64 = 24_000_000;

/// What a stream is kept for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum For {
    /// Connections to a [destination](super::destinations) of that number.
    Connecting(u32),
    /// Connections to a [listener](super::listener) of that number.
    Accepting(u32),
}

/// A place for a stream. All zero: it is free.
#[derive(Debug)]
pub struct Entry {
    /// The number of its connection, counted from 1.
    stream: AtomicU32,
    /// The descriptor that is the library's own.
    descriptor: AtomicI32,
    /// What it is kept for, as [`For::number`].
    kept_for: AtomicU32,
    /// Whether no connection is made over it.
    rests: AtomicBool,
    /// When this side has closed the last connection over it, in [ticks](raw::ticks).
    rested_at: AtomicU64,
    /// Whether the connection that was opened over it is counted among those that have come.
    pub is_counted: AtomicBool,
    /// How a new connection over it asks whether a silent peer is there still.
    pub keep_alive: KeepAlive,
    /// Whether a new connection over it begins with `TCP_NODELAY`, as the first one did.
    pub no_delay: AtomicBool,
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        stream: AtomicU32::new(0),
        descriptor: AtomicI32::new(-1),
        kept_for: AtomicU32::new(0),
        rests: AtomicBool::new(false),
        rested_at: AtomicU64::new(0),
        is_counted: AtomicBool::new(false),
        keep_alive: KeepAlive::new(),
        no_delay: AtomicBool::new(false),
    }
}; ENTRIES];
static COUNT: AtomicU32 = AtomicU32::new(0);
/// The least number of such a descriptor that there ever was.
static LEAST: AtomicI32 = AtomicI32::new(i32::MAX);
/// Held while an entry changes.
static LOCK: Lock = Lock::new();
static SWEPT: AtomicU64 = AtomicU64::new(0);

impl For {
    const ACCEPTING: u32 = 1 << 31;

    fn number(self) -> u32 {
        match self {
            Self::Connecting(number) => number,
            Self::Accepting(number) => number | Self::ACCEPTING,
        }
    }
}

/// Whether there are any.
#[inline]
pub fn are_any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// Keeps others from changing them. `None`: this thread does so itself, below a signal handler.
pub fn hold() -> Option<Held<'static>> {
    LOCK.take(true)
}

/// Those that are kept for something.
pub fn all_for(what: For) -> impl Iterator<Item = &'static Entry> {
    let number = what.number();
    let is_it = move |entry: &&Entry| {
        entry.stream.load(Ordering::Relaxed) != 0
            && entry.kept_for.load(Ordering::Relaxed) == number
    };
    TABLE.iter().filter(is_it)
}

/// That of a connection.
pub fn of(stream: &Stream) -> Option<&'static Entry> {
    let at = stream.local.entry.load(Ordering::Relaxed).checked_sub(1)?;
    let entry = TABLE.get(at as usize)?;
    (entry.stream.load(Ordering::Relaxed) == stream.number + 1).then_some(entry)
}

/// Whether there is room for one more.
pub fn has_room(what: For) -> bool {
    (COUNT.load(Ordering::Relaxed) as usize) < ENTRIES && all_for(what).count() < OF_PLACE
}

/// The least number for descriptors of the library's own. `None`: the process may have so few that
/// it needs each of them.
fn least() -> Option<i32> {
    let limit = raw::descriptor_limit();
    let least = if limit >= HIGH + SPARE { HIGH } else { limit.checked_sub(SPARE)? };
    i32::try_from(least).ok().filter(|least| *least as u64 >= SPARE)
}

/// Another descriptor of the same, the library's own by its number. `None`: there is none left.
pub fn copy_of(descriptor: i32) -> Option<i32> {
    raw::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, least()?).ok()
}

/// Keeps the stream of a connection, if `is_still` so. False: there is no room.
pub fn add(stream: &Stream, descriptor: i32, what: For, is_still: impl Fn() -> bool) -> bool {
    let Some(_held) = hold() else { return false };
    if !is_still() {
        return false;
    }
    let is_free = |entry: &(usize, &Entry)| entry.1.stream.load(Ordering::Relaxed) == 0;
    let numbered = TABLE.iter().enumerate();
    let (Some((at, entry)), true) = (numbered.clone().find(is_free), has_room(what)) else {
        return false;
    };
    if !entry.keep_alive.note(descriptor) {
        return false;
    }
    let Some(own) = copy_of(descriptor) else { return false };
    entry.descriptor.store(own, Ordering::Relaxed);
    entry.kept_for.store(what.number(), Ordering::Relaxed);
    entry.rests.store(false, Ordering::Relaxed);
    entry.is_counted.store(false, Ordering::Relaxed);
    let no_delay = stream.shared.no_delay.load(Ordering::Relaxed);
    entry.no_delay.store(no_delay, Ordering::Relaxed);
    entry.stream.store(stream.number + 1, Ordering::Relaxed);
    stream.local.entry.store(at as u32 + 1, Ordering::Relaxed);
    LEAST.fetch_min(own, Ordering::Relaxed);
    COUNT.fetch_add(1, Ordering::Relaxed);
    true
}

/// Whether a descriptor is the library's own.
#[inline]
pub fn is_ours(descriptor: i32) -> bool {
    descriptor >= LEAST.load(Ordering::Relaxed)
        && TABLE.iter().any(|entry| {
            entry.stream.load(Ordering::Relaxed) != 0 && entry.descriptor() == descriptor
        })
}

impl Entry {
    /// The descriptor that is the library's own.
    pub fn descriptor(&self) -> i32 {
        self.descriptor.load(Ordering::Relaxed)
    }

    /// The connection that was made over it last, with its slot.
    pub fn stream(&self) -> Option<(Stream, Slot)> {
        let number = self.stream.load(Ordering::Relaxed).checked_sub(1)?;
        let stream = connections::get(number)?;
        let slot = stream.slot()?;
        Some((stream, slot))
    }

    /// Whether no connection is made over it.
    pub fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    /// Says whether that is so.
    pub fn set_rests(&self, rests: bool) {
        self.rests.store(rests, Ordering::Relaxed);
    }

    /// The connection over it is about to be closed.
    pub fn begins_to_rest(&self) {
        self.rested_at.store(raw::ticks(), Ordering::Relaxed);
    }

    /// When the other side has opened the next one, as it says: not before this one has closed the
    /// last. So whoever says anything comes before those who wait already once only.
    pub fn opened_at(&self, slot: &Slot) -> u64 {
        slot.opened_at().max(self.rested_at.load(Ordering::Relaxed))
    }

    /// What it is kept for.
    pub fn is_for(&self) -> For {
        let number = self.kept_for.load(Ordering::Relaxed);
        match number & For::ACCEPTING {
            0 => For::Connecting(number),
            _ => For::Accepting(number & !For::ACCEPTING),
        }
    }

    /// Keeps it no more: the stream is that of the connection over it only, if there is one.
    /// Entries are held.
    pub fn is_dropped(&self) {
        let number = self.stream.swap(0, Ordering::Relaxed).checked_sub(1);
        let Some(stream) = number.and_then(connections::get) else { return };
        COUNT.fetch_sub(1, Ordering::Relaxed);
        stream.local.entry.store(0, Ordering::Relaxed);
        let own = self.descriptor.swap(-1, Ordering::Relaxed);
        let slot = stream.slot();
        if let Some(slot) = slot {
            slot.unsay(flag::REUSES);
        }
        if self.rests.swap(false, Ordering::Relaxed) {
            let is_needed = slot.is_some_and(|slot| self.ends(&slot));
            if !is_needed {
                // As nobody has a connection over it, none has to wait until its names are free.
                stream.resets_at_close(own);
            }
            stream.is_over();
        }
        _ = raw::close(own);
    }
}

impl Entry {
    /// No connection is made over it any more. Gives whether the other side has one, or will find
    /// what this one has left there.
    fn ends(&self, slot: &Slot) -> bool {
        if let For::Connecting(_) = self.is_for() {
            // Before the step: who accepts what was left here sees that nobody keeps the stream.
            slot.unsay(flag::RESTS);
            return slot.rest_does(Step::Leave).is_none_or(|was| was == rest::RESTING);
        }
        let was = slot.rest_is_over();
        if matches!(was, rest::OPENED | rest::LEFT) {
            // The other side has connected, and nobody accepts it.
            slot.say(flag::CLOSED | flag::ENDED | flag::RESET);
        }
        was == rest::RESTING
    }
}

impl Stream {
    /// Nothing is left of a connection that had ended already, and whose stream was kept.
    fn is_over(&self) {
        self.leaves_slab();
        self.local.slot.store(core::ptr::null_mut(), Ordering::Relaxed);
        let number = |word: &AtomicU32| word.load(Ordering::Relaxed);
        let shared = self.shared;
        monitor::release(number(&shared.monitor), number(&shared.slab), number(&shared.slot));
        shared.references.store(0, Ordering::Release);
        connections::is_free(self.number);
    }
}

/// Drops those of which that is so.
#[cold]
pub fn drop_all(which: impl Fn(&Entry) -> bool) {
    if !are_any() || process::is_guest() {
        return;
    }
    let Some(_held) = hold() else { return };
    for entry in &TABLE {
        if entry.stream.load(Ordering::Relaxed) != 0 && which(entry) {
            entry.is_dropped();
        }
    }
}

/// Keeps nothing more but what the other side has opened, and is to be accepted: before a fork,
/// and before a listener gets to others.
#[cold]
pub fn let_go() {
    drop_all(|entry| !entry.rests() || entry.stream().is_none_or(|(_, slot)| slot.rest_ends()));
}

/// Before all descriptors of a range are closed, or another one gets such a number: those that the
/// library has there are closed before, with all that belongs to them.
pub fn are_closing(first: u32, last: u32) {
    if are_any() {
        let range = first..=last;
        drop_all(|entry| range.contains(&entry.descriptor().cast_unsigned()));
    }
}

/// In the child of a fork: they are its parent's.
pub fn leave_to_parent() {
    for entry in &TABLE {
        let Some(number) = entry.stream.swap(0, Ordering::Relaxed).checked_sub(1) else { continue };
        if let Some(stream) = connections::get(number) {
            stream.local.entry.store(0, Ordering::Relaxed);
            if entry.rests() {
                stream.local.slot.store(core::ptr::null_mut(), Ordering::Relaxed);
            }
        }
        _ = raw::close(entry.descriptor.swap(-1, Ordering::Relaxed));
    }
    COUNT.store(0, Ordering::Relaxed);
}

/// Drops those that the other side keeps no more, if it was not looked just now.
#[inline]
pub fn sweep() {
    if are_any() {
        sweep_at_times();
    }
}

#[cold]
fn sweep_at_times() {
    let (now, swept) = (raw::ticks(), SWEPT.load(Ordering::Relaxed));
    if now.wrapping_sub(swept) >= SWEEP_TICKS {
        SWEPT.store(now, Ordering::Relaxed);
        drop_all(|entry| entry.rests() && entry.is_left_by_peer());
    }
}

impl Entry {
    /// Whether no connection can be made over it any more, as far as the slot says; or the kernel
    /// does, if it is asked.
    pub fn is_left_by_peer(&self) -> bool {
        let Some((_, slot)) = self.stream() else { return true };
        let said = slot.peer_said();
        let (rest, wrong) = (slot.rest(), flag::GONE | flag::RECALLED | flag::RESET);
        let is_closed =
            rest == rest::RESTING && said & (flag::CLOSED | flag::RESTS) == flag::CLOSED;
        rest == rest::DEAD || said & wrong != 0 && !slot.is_opened() || is_closed
    }

    /// Whether the other process is there, as far as the kernel knows.
    pub fn is_alive(&self) -> bool {
        let ended = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;
        raw::events(self.descriptor(), libc::POLLRDHUP) & ended as u32 == 0
    }
}
