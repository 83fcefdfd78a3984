// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A registration of a socket in a set: the events to report, and those that were reported.

use crate::kernel::raw;
use crate::process;
use crate::process::lock::Lock;
use crate::state::connections::{self, Stream};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use freeport_ring::Seen;

/// Registrations of a process.
const COUNT: usize = 1 << 18;

/// The bits of a registration's state.
pub mod state {
    /// In use.
    pub const USED: u32 = 1;
    /// Its readiness is that of rings; the kernel reports doorbells.
    pub const SWITCHED: u32 = 2;
    /// It is in the list of those that are looked at.
    pub const ACTIVE: u32 = 4;
    /// Deleted by the application, but not in the kernel, which is cheaper if it is added again.
    pub const DELETED: u32 = 8;
    /// It is one-shot, and was reported.
    pub const FIRED: u32 = 16;
    /// New or changed: everything that is ready is news.
    pub const FRESH: u32 = 32;
    /// Its sleep is announced, so that the kernel reports its doorbells.
    pub const PARKED: u32 = 128;
    /// The kernel reports it under a token: its socket has a slot.
    pub const TOKENED: u32 = 256;
    /// The kernel has reported a doorbell of it.
    pub const RANG: u32 = 512;
    /// The end of the stream has been reported.
    pub const END_SEEN: u32 = 64;
    /// The end of what this side sends has been reported.
    pub const OWN_END_SEEN: u32 = 1024;
    /// The peer's end of its stream has been reported, besides the end by this side.
    pub const PEER_END_SEEN: u32 = 8192;
    /// The peer's reset has been reported.
    pub const RESET_SEEN: u32 = 2048;
    /// It has been reported that the peer of a Unix socket has shut down receiving.
    pub const DEAF_SEEN: u32 = 4096;
}

/// One registration. All zero is a free place. Reached with the lock of its set held.
#[derive(Debug, Default)]
pub struct Registration {
    /// See [`state`].
    pub state: u32,
    /// The number of its set.
    pub set: u32,
    /// The number of its socket, or of the set that is in this set.
    pub stream: u32,
    /// The descriptor under which the kernel has it.
    pub descriptor: i32,
    /// The events that the application wants.
    pub events: u32,
    /// The data that it gets with them.
    pub data: u64,
    /// How far arrived data was reported.
    pub seen: Seen,
    /// Number of times that the ring had been full when it was reported as writable.
    pub fulls: u32,
    /// Number of connections of a listener when it was reported.
    pub arrivals: u32,
    /// The round of its set in which it was reported last.
    pub round: u32,
    /// Number of doorbells that were not taken.
    pub doorbells: u32,
    /// The [generation](process::generation) of the process that has made it, and of the one that
    /// has announced its sleep. A child of a fork has copies of its parent's registrations.
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
    /// Number of places that have been used.
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

/// Frees a place that is in no list any more.
pub fn remove(number: u32) {
    let Some(_held) = PLACES.lock.take(true) else { return };
    // SAFETY: in no list, so it is nobody's.
    if let Some(place) = unsafe { get(number) } {
        *place = Registration { next: PLACES.free.load(Ordering::Relaxed), ..Default::default() };
        PLACES.free.store(number + 1, Ordering::Relaxed);
    }
}

impl Registration {
    /// Whether all these state bits are set.
    #[inline]
    pub fn is(&self, flags: u32) -> bool {
        self.state & flags == flags
    }

    /// Its socket.
    #[inline]
    pub fn stream(&self) -> Option<Stream> {
        connections::get(self.stream)
    }

    /// The events that the kernel reports of it without rings.
    pub fn of_kernel(&self) -> u32 {
        let is_fired = self.is(state::FIRED);
        self.events & if is_fired { libc::EPOLLONESHOT as u32 } else { u32::MAX }
    }

    /// Ends its parking. True: this process has announced its sleep, and has to take that back. A
    /// child does not take back its parent's announcement.
    pub fn takes_park(&mut self) -> bool {
        let was_parked = self.is(state::PARKED);
        self.state &= !state::PARKED;
        was_parked && self.parked_in == process::generation()
    }

    /// Resets its state of rings, since the next rings are new ones.
    pub fn forget_rings(&mut self) {
        let kept = state::USED | state::DELETED | state::FIRED;
        (self.state, self.seen, self.fulls) = (self.state & kept, Seen::default(), 0);
        (self.round, self.doorbells) = (0, 0);
    }
}
