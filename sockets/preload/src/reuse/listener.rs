// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Listeners of this process, and connections to them without the kernel.
//!
//! A thread that sleeps in the kernel for a connection is woken by the kernel only. So before it
//! sleeps, the streams that are kept for the listener are [shut](closes): connections come through
//! the kernel then. Each stream is shut by an exchange of its word, so either a connection was
//! opened over it before, which is found, or none will be.
//!
//! Connections that came through the kernel until then are accepted before the streams are opened
//! again, so that several connections of one client keep their order. For the same reason, and so
//! that none waits for ever, the kernel has its turn after some of the others.

use super::Rate;
use super::entries::{self, Entry, For};
use super::resting;
use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::{self, Stream};
use crate::state::table::{self, What};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use freeport_sockets_proto::slab::rest::{self, Step};
use freeport_sockets_proto::slab::word;

/// Ticks for which a listener counts as busy after it has given a connection: about ten
/// milliseconds.
const BUSY_TICKS: u64 = 24_000_000;

/// Number of connections that are accepted without the kernel before it has its turn.
const TURN: u32 = 16;

/// Number of listeners that are remembered.
const LISTENERS: usize = 16;
/// Least backlog. With a smaller one, a program would notice that connections without the kernel do
/// not count there.
const LEAST_BACKLOG: i32 = 16;

struct Listener {
    /// The number of the socket, counted from 1.
    stream: AtomicU32,
    /// The generation of the socket.
    generation: AtomicU32,
    /// Number of threads that sleep in the kernel for a connection, or are about to.
    sleepers: AtomicU32,
    /// Whether the kernel may have connections that came before those opened from now on.
    drains: AtomicBool,
    /// Whether all connections come through the kernel, since only it can wake the waiting threads.
    is_refused: AtomicBool,
    /// Number of connections accepted without the kernel since the kernel was asked.
    taken: AtomicU32,
    /// Number of connections opened without the kernel so far.
    arrivals: AtomicU32,
    /// When a connection was accepted last, in [ticks](raw::ticks).
    gave: AtomicU64,
    rate: Rate,
}

static TABLE: [Listener; LISTENERS] = [const {
    Listener {
        stream: AtomicU32::new(0),
        generation: AtomicU32::new(0),
        sleepers: AtomicU32::new(0),
        drains: AtomicBool::new(false),
        is_refused: AtomicBool::new(false),
        taken: AtomicU32::new(0),
        arrivals: AtomicU32::new(0),
        gave: AtomicU64::new(0),
        rate: Rate::new(),
    }
}; LISTENERS];

impl Listener {
    fn is(&self, stream: &Stream) -> bool {
        self.stream.load(Ordering::Relaxed) == stream.number + 1
            && self.generation.load(Ordering::Relaxed)
                == stream.shared.generation.load(Ordering::Relaxed)
    }

    /// Whether the socket still listens.
    fn exists(&self) -> bool {
        let number = self.stream.load(Ordering::Relaxed).checked_sub(1);
        number.and_then(connections::get).is_some_and(|stream| {
            stream.shared.references.load(Ordering::Acquire) > 0
                && stream.shared.is(phase::LISTENS)
                && self.is(&stream)
        })
    }
}

fn number_of(listener: &Stream) -> Option<u32> {
    if !super::is_on() {
        return None;
    }
    TABLE.iter().position(|known| known.is(listener)).map(|at| at as u32)
}

/// A socket listens from now on, or again.
#[cold]
pub fn listens(stream: &Stream, backlog: i32) {
    has_changed(stream);
    if !super::is_allowed() || stream.is_unix() || backlog < LEAST_BACKLOG {
        return;
    }
    let Some(_held) = entries::hold() else { return };
    let place = TABLE.iter().find(|known| !known.exists());
    let Some(known) = place.filter(|_| number_of(stream).is_none()) else { return };
    known.generation.store(stream.shared.generation.load(Ordering::Relaxed), Ordering::Relaxed);
    known.sleepers.store(0, Ordering::Relaxed);
    known.is_refused.store(false, Ordering::Relaxed);
    known.drains.store(false, Ordering::Relaxed);
    known.rate.forget();
    known.stream.store(stream.number + 1, Ordering::Relaxed);
}

/// The options of a listener have changed: kept streams do not match its new connections, except
/// those with a connection that is open already.
pub fn has_changed(listener: &Stream) {
    let Some(number) = number_of(listener).filter(|_| entries::are_any()) else { return };
    closes(listener);
    entries::drop_all(|entry| {
        let ends = |entry: &Entry| entry.stream().is_none_or(|(_, slot)| slot.rest_ends());
        entry.is_for() == For::Accepting(number) && (!entry.rests() || ends(entry))
    });
    opens(listener);
}

/// A thread waits for a listener in a way in which only the kernel can wake it: from now on all
/// connections come through the kernel, except those opened already.
#[cold]
pub fn is_refused(listener: &Stream) {
    if let Some(known) = number_of(listener).and_then(|number| TABLE.get(number as usize))
        && !known.is_refused.swap(true, Ordering::SeqCst)
    {
        closes(listener);
    }
}

/// A listener is closed.
pub fn is_closed(listener: &Stream) {
    let Some(number) = number_of(listener) else { return };
    entries::drop_all(|entry| entry.is_for() == For::Accepting(number));
    if let Some(known) = TABLE.get(number as usize) {
        known.stream.store(0, Ordering::Relaxed);
    }
}

/// Counts an accepted connection of a listener, and returns its number. `None`: the rate is too
/// low, or other processes hold the listener as well.
pub fn counts(listener: &Stream) -> Option<u32> {
    let number = number_of(listener).filter(|_| listener.shared.is_alone())?;
    let known = TABLE.get(number as usize)?;
    known.gave.store(raw::ticks(), Ordering::Relaxed);
    let may_be = !known.is_refused.load(Ordering::Relaxed) && known.rate.counts();
    may_be.then_some(number)
}

/// Whether no thread sleeps on a listener in the kernel. `None`: it no longer listens.
pub fn is_open(number: u32) -> Option<bool> {
    let known = TABLE.get(number as usize).filter(|known| known.exists())?;
    let sleeps = known.sleepers.load(Ordering::SeqCst) > 0;
    Some(!sleeps && !known.drains.load(Ordering::SeqCst))
}

/// Whether streams are kept for a listener.
#[inline]
pub fn has(listener: &Stream) -> bool {
    entries::are_any() && has_any(listener)
}

/// Whether streams may be kept for a listener, now or later.
pub fn is_known(listener: &Stream) -> bool {
    number_of(listener).is_some()
}

/// Whether it is worth looking for connections for a while before sleeping.
pub fn is_busy(listener: &Stream) -> bool {
    let known = number_of(listener).and_then(|number| TABLE.get(number as usize));
    has(listener)
        && known.is_some_and(|known| {
            raw::ticks().wrapping_sub(known.gave.load(Ordering::Relaxed)) < BUSY_TICKS
        })
}

/// Number of connections opened without the kernel so far, as of the last [look](is_ready).
pub fn arrivals(listener: &Stream) -> u32 {
    let known = number_of(listener).and_then(|number| TABLE.get(number as usize));
    known.map_or(0, |known| known.arrivals.load(Ordering::Relaxed))
}

fn has_any(listener: &Stream) -> bool {
    number_of(listener).is_some_and(|number| entries::all_for(For::Accepting(number)).count() > 0)
}

/// Whether there is a connection without the kernel that was not accepted yet. The caller is awake,
/// so more may come as soon as the kernel has no earlier ones.
#[inline]
pub fn is_ready(listener: &Stream) -> bool {
    entries::are_any() && number_of(listener).is_some_and(|number| is_ready_now(listener, number))
}

fn is_ready_now(listener: &Stream, number: u32) -> bool {
    if let Some(known) = TABLE.get(number as usize)
        && known.drains.load(Ordering::SeqCst)
        && !has_kernel_any(listener)
    {
        known.drains.store(false, Ordering::SeqCst);
    }
    is_ready_at(number)
}

/// Whether the kernel has a connection to be accepted.
fn has_kernel_any(listener: &Stream) -> bool {
    let descriptor = listener.local.descriptor.load(Ordering::Relaxed);
    raw::events(descriptor, libc::POLLIN) != 0
}

/// Whether it is the turn of a connection through the kernel, and there is one.
pub fn is_turn_of_kernel(listener: &Stream) -> bool {
    let known = number_of(listener).and_then(|number| TABLE.get(number as usize));
    let Some(known) = known.filter(|known| known.taken.load(Ordering::Relaxed) >= TURN) else {
        return false;
    };
    known.taken.store(0, Ordering::Relaxed);
    has_kernel_any(listener)
}

fn is_ready_at(number: u32) -> bool {
    let (mut is_ready, mut is_shut) = (false, false);
    for entry in entries::all_for(For::Accepting(number)).filter(|entry| entry.rests()) {
        let Some((_, slot)) = entry.stream() else { continue };
        match slot.rest() {
            rest::OPENED | rest::LEFT => {
                is_ready = true;
                let known = TABLE.get(number as usize);
                if let Some(known) =
                    known.filter(|_| !entry.is_counted.swap(true, Ordering::Relaxed))
                {
                    known.arrivals.fetch_add(1, Ordering::Relaxed);
                }
            }
            rest::SHUT => is_shut = true,
            _ => {}
        }
    }
    if is_shut && is_open(number) == Some(true) {
        looks_again(number);
    }
    is_ready
}

/// Allows connections again, if no thread sleeps. A thread that is about to sleep is counted before
/// it takes the lock, under which it looks at all streams: so it finds connections opened
/// meanwhile.
fn looks_again(number: u32) {
    let Some(_held) = entries::hold() else { return };
    if is_open(number) != Some(true) {
        return;
    }
    for entry in entries::all_for(For::Accepting(number)).filter(|entry| entry.rests()) {
        if let Some((_, slot)) = entry.stream() {
            slot.rest_does(Step::Look);
        }
    }
}

/// A thread no longer sleeps in the kernel for a connection; see [`closes`].
pub fn opens(listener: &Stream) {
    let Some(number) = number_of(listener) else { return };
    if let Some(known) = TABLE.get(number as usize) {
        let less = |sleepers: u32| sleepers.checked_sub(1);
        known.drains.store(true, Ordering::SeqCst);
        _ = known.sleepers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }
    is_ready(listener);
}

/// Before a thread sleeps in the kernel for a connection. Until it [`opens`] the listener again,
/// all connections come through the kernel. True: there is already one that did not.
pub fn closes(listener: &Stream) -> bool {
    let Some(number) = number_of(listener) else { return false };
    if let Some(known) = TABLE.get(number as usize) {
        known.sleepers.fetch_add(1, Ordering::SeqCst);
    }
    let Some(_held) = entries::hold() else { return true };
    let mut is_ready = false;
    for entry in entries::all_for(For::Accepting(number)).filter(|entry| entry.rests()) {
        let Some((_, slot)) = entry.stream() else { continue };
        if slot.rest_does(Step::LookAway).is_none() {
            is_ready |= slot.is_opened();
        }
    }
    is_ready
}

/// Counts a thread as sleeping in the kernel for a connection until this is dropped, also if the
/// thread is cancelled there.
#[derive(Debug)]
pub struct Sleeper {
    listener: Stream,
}

impl Sleeper {
    /// Calls [`closes`]. Also returns whether there is a connection that did not come through the
    /// kernel.
    pub fn new(listener: &Stream) -> (Self, bool) {
        let is_ready = closes(listener);
        (Self { listener: *listener }, is_ready)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        opens(&self.listener);
    }
}

/// Accepts a connection to a listener without the kernel, as `accept4` with these flags. `None`:
/// there is none; an error is that of `accept4`.
pub fn take(listener: &Stream, flags: i32) -> Option<raw::Result<i32>> {
    if !entries::are_any() {
        return None;
    }
    let number = number_of(listener)?;
    let _held = entries::hold()?;
    let mut first: Option<(&Entry, u64)> = None;
    for entry in entries::all_for(For::Accepting(number)).filter(|entry| entry.rests()) {
        let Some((_, slot)) = entry.stream().filter(|(_, slot)| slot.is_opened()) else { continue };
        let at = entry.opened_at(&slot);
        if first.is_none_or(|(_, earliest)| at < earliest) {
            first = Some((entry, at));
        }
    }
    let (entry, _) = first?;
    if let Some(known) = TABLE.get(number as usize) {
        known.gave.store(raw::ticks(), Ordering::Relaxed);
        known.taken.fetch_add(1, Ordering::Relaxed);
    }
    entry.is_counted.store(false, Ordering::Relaxed);
    Some(accept(entry, flags))
}

/// Accepts the connection over an entry. Entries are held.
fn accept(entry: &Entry, flags: i32) -> raw::Result<i32> {
    let Some((stream, slot)) = entry.stream() else { return Err(libc::ECONNABORTED) };
    let is_closed = flags & libc::SOCK_CLOEXEC != 0;
    let command = if is_closed { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let new = raw::fcntl(entry.descriptor(), command, 0)?;
    entry.set_rests(false);
    slot.rest_does(Step::Accept);
    let no_delay = entry.no_delay.load(Ordering::Relaxed);
    resting::begins(&stream, &slot, new, no_delay);
    stream.sets_blocking(new, flags & libc::SOCK_NONBLOCK == 0);
    slot.count(word::REUSED, 1);
    if !table::set(new, What::Stream(stream.number)) {
        // The number cannot be tracked, and without the library the rings are not read.
        entry.is_dropped();
        _ = raw::close(new);
        return Err(libc::ENFILE);
    }
    Ok(new)
}
