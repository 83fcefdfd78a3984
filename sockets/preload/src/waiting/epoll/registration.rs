// SPDX-License-Identifier: Apache-2.0 OR MIT
//! That a socket is in a set: what is to be reported of it, and what was.

use crate::kernel::raw;
use crate::process;
use crate::process::lock::Lock;
use crate::state::connection::phase;
use crate::state::connections::{self, Stream};
use crate::state::slot::{In, Slot};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use freeport_ring::Seen;
use freeport_sockets_proto::slab::flag;

/// Registrations of a process.
const COUNT: usize = 1 << 18;

/// What something that has come is news for.
const READING: i32 = libc::EPOLLIN | libc::EPOLLRDNORM | libc::EPOLLRDBAND | libc::EPOLLPRI;

/// A bit of what a registration is.
pub mod state {
    /// In use.
    pub const USED: u32 = 1;
    /// Its readiness is that of rings; the kernel reports doorbells.
    pub const SWITCHED: u32 = 2;
    /// It is among those that are looked at.
    pub const ACTIVE: u32 = 4;
    /// Deleted by the application, but not in the kernel, which is cheaper if it comes back.
    pub const DELETED: u32 = 8;
    /// To be reported once, and was.
    pub const FIRED: u32 = 16;
    /// New or changed: whatever is ready is news.
    pub const FRESH: u32 = 32;
    /// Its sleep is announced, so that the kernel reports its doorbells.
    pub const PARKED: u32 = 128;
    /// The kernel reports it under a token: its socket has a slot.
    pub const TOKENED: u32 = 256;
    /// The kernel has reported a doorbell of it.
    pub const RANG: u32 = 512;
    /// The end of the stream has been reported.
    pub const END_SEEN: u32 = 64;
    /// That of what this side sends has been, if it was there.
    pub const OWN_END_SEEN: u32 = 1024;
    /// That the peer has ended its stream has been, besides the end by this side.
    pub const PEER_END_SEEN: u32 = 8192;
    /// The peer's reset has been.
    pub const RESET_SEEN: u32 = 2048;
    /// That the peer of a Unix socket reads nothing more has been.
    pub const DEAF_SEEN: u32 = 4096;
}

/// One registration. All zero is a free place. Reached with the lock of its set held.
#[derive(Debug, Default)]
pub struct Registration {
    /// See [`state`].
    pub state: u32,
    /// The number of its set.
    pub set: u32,
    /// The number of its socket; of a set that is in another one, the number of that.
    pub stream: u32,
    /// The descriptor under which the kernel has it.
    pub descriptor: i32,
    /// What the application wants to know.
    pub events: u32,
    /// What it wants to get with that.
    pub data: u64,
    /// How far what has come was reported.
    pub seen: Seen,
    /// How often the ring was full when it was reported as writable.
    pub fulls: u32,
    /// Of a listener: how many had come when it was reported.
    pub arrivals: u32,
    /// The round of its set in which it was reported last.
    pub round: u32,
    /// Doorbells that nobody has taken.
    pub doorbells: u32,
    /// The [generation](process::generation) of the process that has made it, and of the one that
    /// has announced its sleep. A child of a fork has copies of what are its parent's.
    pub made_in: u32,
    /// See `made_in`.
    pub parked_in: u32,
    /// The next one of the same socket, counted from 1.
    pub next_of_stream: u32,
    /// The next one of the same set, or the next free one, counted from 1.
    pub next: u32,
}

struct Places {
    memory: AtomicPtr<UnsafeCell<Registration>>,
    /// Places that have been used.
    used: AtomicU32,
    /// The first free one, counted from 1.
    free: AtomicU32,
    lock: Lock,
}

static PLACES: Places = Places {
    memory: AtomicPtr::new(core::ptr::null_mut()),
    used: AtomicU32::new(0),
    free: AtomicU32::new(0),
    lock: Lock::new(),
};

/// The place of that number.
///
/// # Safety
/// The lock of its set is held, and no other reference to it is used meanwhile.
#[inline]
pub unsafe fn get(number: u32) -> Option<&'static mut Registration> {
    let memory = PLACES.memory.load(Ordering::Acquire);
    if memory.is_null() || number >= PLACES.used.load(Ordering::Acquire) {
        return None;
    }
    // SAFETY: all places that are used are inside the memory, and `number` is one of these.
    let place = unsafe { memory.add(number as usize) };
    // SAFETY: the memory stays, and all of its places are initialised.
    let cell = unsafe { &*place };
    // SAFETY: the caller says that no other reference to it is used.
    Some(unsafe { &mut *cell.get() })
}

/// The number of a place.
pub fn number_of(place: &Registration) -> Option<u32> {
    let start = PLACES.memory.load(Ordering::Acquire).addr();
    let at = core::ptr::from_ref(place).addr().checked_sub(start)?;
    u32::try_from(at / size_of::<Registration>()).ok()
}

/// A free place. `None`: there is none.
pub fn add() -> Option<u32> {
    let _held = PLACES.lock.take(true)?;
    if PLACES.memory.load(Ordering::Acquire).is_null() {
        let memory = raw::map(COUNT * size_of::<Registration>(), false, None).ok()?;
        PLACES.memory.store(memory.cast(), Ordering::Release);
    }
    let free = PLACES.free.load(Ordering::Relaxed);
    if let Some(number) = free.checked_sub(1) {
        // SAFETY: a free place is nobody's.
        let place = unsafe { get(number) }?;
        PLACES.free.store(place.next, Ordering::Relaxed);
        return Some(number);
    }
    let number = PLACES.used.load(Ordering::Relaxed);
    if number as usize >= COUNT {
        return None;
    }
    PLACES.used.store(number + 1, Ordering::Release);
    Some(number)
}

/// Gives a place back that is in no list any more.
pub fn remove(number: u32) {
    let Some(_held) = PLACES.lock.take(true) else { return };
    // SAFETY: in no list, so it is nobody's.
    if let Some(place) = unsafe { get(number) } {
        *place = Registration { next: PLACES.free.load(Ordering::Relaxed), ..Default::default() };
        PLACES.free.store(number + 1, Ordering::Relaxed);
    }
}

impl Registration {
    /// Whether it is all of that.
    #[inline]
    pub fn is(&self, flags: u32) -> bool {
        self.state & flags == flags
    }

    /// Its socket.
    #[inline]
    pub fn stream(&self) -> Option<Stream> {
        connections::get(self.stream)
    }

    /// What the kernel is to report of it without rings.
    pub fn of_kernel(&self) -> u32 {
        let is_fired = self.is(state::FIRED);
        self.events & if is_fired { libc::EPOLLONESHOT as u32 } else { u32::MAX }
    }

    /// It is parked no more. True: and this process has announced its sleep, which is to be taken
    /// back. What a parent has announced is not its child's to take back.
    pub fn takes_park(&mut self) -> bool {
        let was_parked = self.is(state::PARKED);
        self.state &= !state::PARKED;
        was_parked && self.parked_in == process::generation()
    }

    /// What it says of rings is over: the next ones are others.
    pub fn forget_rings(&mut self) {
        let kept = state::USED | state::DELETED | state::FIRED;
        (self.state, self.seen, self.fulls) = (self.state & kept, Seen::default(), 0);
        (self.round, self.doorbells) = (0, 0);
    }

    /// What is to be reported now; 0: nothing.
    #[inline]
    pub fn ready(&mut self, stream: &Stream, slot: &Slot) -> u32 {
        if self.state & (state::DELETED | state::FIRED) != 0 {
            return 0;
        }
        let mut ready = events_of(stream, slot, self.events);
        if ready != 0 && self.events & libc::EPOLLET as u32 != 0 {
            if !self.is_news(stream, slot) {
                return 0;
            }
            // What came meanwhile counts as reported, so it has to be.
            ready = events_of(stream, slot, self.events);
        }
        if ready == 0 {
            return 0;
        }
        if self.events & libc::EPOLLONESHOT as u32 != 0 {
            self.state |= state::FIRED;
        }
        ready
    }

    /// Whether something is to be reported now, without reporting it.
    pub fn would_be_ready(&mut self, stream: &Stream, slot: &Slot) -> bool {
        let (state, seen, fulls) = (self.state, self.seen, self.fulls);
        let ready = self.ready(stream, slot);
        (self.state, self.seen, self.fulls) = (state, seen, fulls);
        ready != 0
    }

    /// Edge-triggered: whether something has come, or room, since it was reported last. Who does
    /// not wait for one of both learns nothing from that.
    fn is_news(&mut self, stream: &Stream, slot: &Slot) -> bool {
        let mut is_news = self.is(state::FRESH);
        self.state &= !state::FRESH;
        if self.events & READING as u32 != 0
            && slot.next_header(stream) != 0
            && let Some(mut half) = stream.shared.receive.take(stream.shared.is_alone())
        {
            let has_news = |receiver: &mut In| slot.has_news(stream, receiver, &mut self.seen);
            is_news |= stream.with_receiver(slot, &mut half, has_news) == Some(true);
        }
        if !self.is(state::END_SEEN) && stream.has_read_end(slot) {
            self.state |= state::END_SEEN;
            is_news = true;
        }
        // The peer may end after this side has shut its own reading, and reset after either.
        let has_peer_ended = || slot.peer_said() & (flag::ENDED | flag::CLOSED) != 0;
        let seen = state::END_SEEN | state::PEER_END_SEEN | state::RESET_SEEN;
        if self.state & seen == state::END_SEEN && has_peer_ended() {
            self.state |= state::PEER_END_SEEN;
            is_news = true;
        }
        if self.is(state::END_SEEN) && !self.is(state::RESET_SEEN) && stream.reset().is_some() {
            self.state |= state::RESET_SEEN;
            is_news = true;
        }
        if stream.is_unix() && !self.is(state::DEAF_SEEN) && stream.is_refused(slot) {
            self.state |= state::DEAF_SEEN;
            is_news = true;
        }
        if !self.is(state::OWN_END_SEEN) && stream.shared.is(phase::ENDED) {
            // Whoever of the processes that have the socket has done that.
            self.state |= state::OWN_END_SEEN;
            is_news = true;
        }
        let fulls = stream.shared.send.fulls.load(Ordering::Relaxed);
        let writes = self.events & (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32 != 0;
        if writes && fulls != self.fulls && stream.is_writable(slot) {
            self.fulls = fulls;
            is_news = true;
        }
        is_news
    }
}

/// What ends in rings make of a socket that is halfway. Bytes may be left in the kernel, which does
/// not know of the end behind them.
pub fn ends_of_rings(stream: &Stream, slot: &Slot) -> u32 {
    let ends = match (stream.has_read_end(slot), stream.shared.is(phase::ENDED)) {
        (true, true) => libc::EPOLLRDHUP | libc::EPOLLHUP,
        (true, false) => libc::EPOLLRDHUP,
        _ => 0,
    };
    ends as u32
}

/// What a socket whose streams are in rings is ready for, of what is asked for.
#[inline]
pub fn events_of(stream: &Stream, slot: &Slot, events: u32) -> u32 {
    let mut ready = 0;
    if events & (libc::EPOLLIN | libc::EPOLLRDNORM) as u32 != 0 && stream.is_readable(slot) {
        ready |= (libc::EPOLLIN | libc::EPOLLRDNORM) as u32;
    }
    if events & (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32 != 0 && stream.is_writable(slot) {
        ready |= (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
        stream.shared.send.has_told_room.store(true, Ordering::Relaxed);
    }
    let phase = stream.shared.phase();
    if phase & phase::UNIX != 0 {
        ready |= stream.unix_ends(slot);
    } else if stream.has_read_end(slot) {
        ready |= libc::EPOLLRDHUP as u32;
        if phase & phase::ENDED != 0 {
            ready |= libc::EPOLLHUP as u32;
        }
        if stream.has_error() {
            ready |= libc::EPOLLERR as u32;
        }
        if stream.reset().is_some() {
            ready |= libc::EPOLLHUP as u32;
        } else if phase & phase::PEER_GONE != 0 {
            // The kernel knows the rest.
            let descriptor = stream.local.descriptor.load(Ordering::Relaxed);
            ready |= raw::errors(descriptor);
        }
    }
    ready & (events | (libc::EPOLLHUP | libc::EPOLLERR) as u32)
}
