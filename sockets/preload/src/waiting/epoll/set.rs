// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A set: its registrations, and the list of active ones.

use super::boards;
use super::registration::{self, Registration, state};
use crate::kernel::raw;
use crate::process;
use crate::process::barrier::Owed;
use crate::process::lock::Lock;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Number of sets of a process.
const SETS: usize = 1 << 12;
/// Number of sockets of a set that may be active at once; others stay parked.
const ACTIVE: usize = 1 << 16;

/// Number of listeners of a set that may get connections without the kernel.
pub const LISTENERS: usize = 4;

/// A set.
pub struct Set {
    /// Held while its registrations are used.
    pub lock: Lock,
    /// Its descriptor, counted from 1; 0: a free place.
    descriptor: AtomicI32,
    /// The first registration in it, counted from 1.
    pub first: AtomicU32,
    /// The first set in it, counted from 1.
    pub nested: AtomicU32,
    /// The registrations of listeners, counted from 1; 0: a free place.
    pub listening: [AtomicU32; LISTENERS],
    /// Number of registrations that are switched.
    pub switched: AtomicU32,
    /// The first slab whose board it reads, counted from 1; see [`boards`].
    pub boards: AtomicU32,
    /// Number of threads that sleep in the kernel on it.
    pub waiters: AtomicU32,
    /// The numbers of the registrations that are active.
    active: AtomicPtr<u32>,
    active_count: AtomicU32,
    /// Number of activations until now.
    pub activations: AtomicU32,
    /// Number of looks, so that one call reports nothing twice.
    pub round: AtomicU32,
    /// Where the next look begins, for fairness.
    pub turn: AtomicU32,
    /// When the kernel was asked last, in ticks.
    pub asked: AtomicU64,
    /// When the kernel had something last when it was asked, in ticks.
    pub answered: AtomicU64,
    /// When silent sockets were parked last, in ticks.
    pub parked: AtomicU64,
    /// Number of sockets that stayed active then.
    pub stayed: AtomicU32,
}

static TABLE: [Set; SETS] = [const {
    Set {
        lock: Lock::new(),
        descriptor: AtomicI32::new(0),
        first: AtomicU32::new(0),
        nested: AtomicU32::new(0),
        listening: [const { AtomicU32::new(0) }; LISTENERS],
        switched: AtomicU32::new(0),
        boards: AtomicU32::new(0),
        waiters: AtomicU32::new(0),
        active: AtomicPtr::new(core::ptr::null_mut()),
        active_count: AtomicU32::new(0),
        activations: AtomicU32::new(0),
        round: AtomicU32::new(0),
        turn: AtomicU32::new(0),
        asked: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        parked: AtomicU64::new(0),
        stayed: AtomicU32::new(0),
    }
}; SETS];

/// The set of that number.
#[inline]
pub fn get(number: u32) -> Option<&'static Set> {
    TABLE.get(number as usize)
}

/// All places of sets.
pub fn all() -> impl Iterator<Item = &'static Set> {
    TABLE.iter()
}

/// A free place for a set with that descriptor.
pub fn add(descriptor: i32) -> Option<u32> {
    let taken = TABLE.iter().position(|set| {
        let set = &set.descriptor;
        set.load(Ordering::Relaxed) == 0
            && set.compare_exchange(0, descriptor + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })?;
    Some(taken as u32)
}

impl Set {
    /// Frees its place. It has no registrations.
    pub fn clear(&self) {
        self.first.store(0, Ordering::Relaxed);
        self.listening.iter().for_each(|place| place.store(0, Ordering::Relaxed));
        self.switched.store(0, Ordering::Relaxed);
        self.boards.store(0, Ordering::Relaxed);
        self.waiters.store(0, Ordering::Relaxed);
        self.active_count.store(0, Ordering::Relaxed);
        self.descriptor.store(0, Ordering::Release);
    }

    /// Sets another descriptor.
    pub fn moves_to(&self, descriptor: i32) {
        self.descriptor.store(descriptor + 1, Ordering::Release);
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> i32 {
        self.descriptor.load(Ordering::Relaxed) - 1
    }

    /// Whether it reads boards.
    #[inline]
    pub fn reads_boards(&self) -> bool {
        self.boards.load(Ordering::Relaxed) != 0
    }

    /// Number of active registrations.
    #[inline]
    pub fn active_count(&self) -> usize {
        self.active_count.load(Ordering::Relaxed) as usize
    }

    /// The active registration at a place of the list.
    ///
    /// # Safety
    /// The lock is held, and no other reference to it is used meanwhile.
    #[inline]
    pub unsafe fn active(&self, at: usize) -> Option<(u32, &'static mut Registration)> {
        if at >= self.active_count() {
            return None;
        }
        // SAFETY: the list has at least as many entries as are active, and `at` is less.
        let place = unsafe { self.active.load(Ordering::Relaxed).add(at) };
        // SAFETY: active entries are initialised, and the lock is held, says the caller.
        let number = unsafe { *place };
        // SAFETY: the lock is held, and no other reference to it is used, says the caller.
        Some((number, unsafe { registration::get(number) }?))
    }

    /// Removes a registration from its listeners, if it is one.
    pub fn forget_listener(&self, number: u32) {
        for place in &self.listening {
            _ = place.compare_exchange(number + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Makes a registration active. False: it stays parked. The lock is held.
    pub fn activate(&self, number: u32, registration: &mut Registration) -> bool {
        if registration.is(state::ACTIVE) {
            return true;
        }
        if self.active.load(Ordering::Relaxed).is_null() {
            let Ok(list) = raw::map(ACTIVE * size_of::<u32>(), false, None) else { return false };
            self.active.store(list.cast(), Ordering::Relaxed);
        }
        let count = self.active_count();
        if count >= ACTIVE {
            return false;
        }
        // SAFETY: the list has `ACTIVE` entries, and `count` is less.
        let place = unsafe { self.active.load(Ordering::Relaxed).add(count) };
        // SAFETY: as above; the lock is held.
        unsafe { *place = number };
        self.active_count.store(count as u32 + 1, Ordering::Relaxed);
        self.activations.fetch_add(1, Ordering::Relaxed);
        registration.state |= state::ACTIVE;
        true
    }

    /// Takes the registration at a place out of the list: it is parked or deleted. The lock is
    /// held.
    pub fn deactivate(&self, at: usize, registration: &mut Registration) {
        registration.state &= !state::ACTIVE;
        let Some(last) = self.active_count().checked_sub(1) else { return };
        let list = self.active.load(Ordering::Relaxed);
        // SAFETY: the last active entry is inside the list.
        let from = unsafe { list.add(last) };
        // SAFETY: it is initialised, and the lock is held.
        let moved = unsafe { *from };
        // SAFETY: the caller's registration is at a place of the list.
        let to = unsafe { list.add(at) };
        // SAFETY: as above; the lock is held.
        unsafe { *to = moved };
        self.active_count.store(last as u32, Ordering::Relaxed);
    }

    /// Visits the active registrations. The lock is held.
    pub fn each_active(&self, mut visit: impl FnMut(&mut Registration, &Stream, &Slot)) {
        for place in 0..self.active_count() {
            // SAFETY: callers hold the lock.
            let Some((_, known)) = (unsafe { self.active(place) }) else { return };
            let Some(stream) = known.stream() else { continue };
            if let Some(slot) = stream.slot() {
                visit(known, &stream, &slot);
            }
        }
    }

    /// The place of a registration in the list.
    pub fn place_of(&self, number: u32) -> Option<usize> {
        let list = self.active.load(Ordering::Relaxed);
        (0..self.active_count()).find(|at| {
            // SAFETY: the list has at least as many entries as are active.
            let place = unsafe { list.add(*at) };
            // SAFETY: active entries are initialised.
            unsafe { *place == number }
        })
    }
}

/// Announces for a registration that its set sleeps, or announces it anew: each announcement gets
/// one doorbell.
pub fn park(registration: &mut Registration, stream: &Stream, slot: &Slot) -> Owed {
    if registration.takes_park() {
        stream.shared.announced.fetch_sub(1, Ordering::SeqCst);
    }
    registration.state |= state::PARKED;
    registration.parked_in = process::generation();
    let descriptor = stream.local.descriptor.load(Ordering::Relaxed);
    let takes_marks = boards::are_enough(registration, stream, slot);
    let owed = stream.announce_set_sleep(descriptor, slot, takes_marks);
    let is_full = stream.shared.send.was_full.load(Ordering::Relaxed);
    if is_full && registration.events & libc::EPOLLOUT as u32 != 0 {
        owed | stream.announce_room_sleep(slot)
    } else {
        owed
    }
}

/// Takes that back.
pub fn unpark(registration: &mut Registration, stream: &Stream, slot: &Slot) {
    if registration.takes_park() {
        stream.announce_data_awake(slot);
        stream.announce_room_awake(slot);
    }
}
