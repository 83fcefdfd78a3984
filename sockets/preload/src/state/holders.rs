// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which processes of a family of forks hold a socket, and with how many descriptors each. See
//! [`family`](crate::family) for when they are noted.

use crate::process;
use core::sync::atomic::{AtomicU64, Ordering};

/// Number of processes that are noted. Descriptors of further ones count until they are closed.
const PROCESSES: usize = 6;

/// Bits of a note, from below: the process; its number of descriptors; whether they are those of a
/// child that it expects; the namespace of its number.
const COPIES_SHIFT: u32 = 22;
const EXPECTED_SHIFT: u32 = 31;
const NAMESPACE_SHIFT: u32 = 32;
const COPIES_MAX: u64 = (1 << (EXPECTED_SHIFT - COPIES_SHIFT)) - 1;
const PROCESS_MASK: u64 = (1 << COPIES_SHIFT) - 1;
const EXPECTED: u64 = 1 << EXPECTED_SHIFT;
/// The bits that tell whose note it is.
const OWNER_MASK: u64 = !(COPIES_MAX << COPIES_SHIFT);

/// The processes that hold a socket. All zero: none is noted.
#[derive(Debug)]
pub struct Holders([AtomicU64; PROCESSES]);

fn process_of(note: u64) -> u64 {
    note & PROCESS_MASK
}

fn copies_of(note: u64) -> u32 {
    (note >> COPIES_SHIFT & COPIES_MAX) as u32
}

/// The note of this process with `copies` descriptors; `None`: it cannot be noted.
pub fn note(copies: u32) -> Option<u64> {
    note_of(process::number(), copies)
}

/// The same for another process of the same namespace.
pub fn note_of(number: i32, copies: u32) -> Option<u64> {
    let number = u64::try_from(number).ok().filter(|it| *it <= PROCESS_MASK)?;
    let namespace = process::namespace();
    let fits = number > 0 && namespace > 0 && u64::from(copies) <= COPIES_MAX;
    fits.then_some(
        u64::from(namespace) << NAMESPACE_SHIFT | u64::from(copies) << COPIES_SHIFT | number,
    )
}

/// The process that this one was forked from.
#[derive(Clone, Copy, Debug)]
pub struct Parent(u64);

/// This process, as the parent of its child. The child calls it before it is settled.
pub fn parent() -> Option<Parent> {
    note(0).map(Parent)
}

impl Parent {
    /// Its note, without descriptors.
    pub fn note(self) -> u64 {
        self.0
    }
}

impl Holders {
    /// For a new socket.
    pub fn forget(&self) {
        self.0.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }

    /// Notes that this process has `copies` descriptors. False: there is no place.
    pub fn set(&self, copies: u32) -> bool {
        let Some(note) = note(copies) else { return false };
        let is_own = |place: &&AtomicU64| (place.load(Ordering::Acquire) ^ note) & OWNER_MASK == 0;
        if let Some(own) = self.0.iter().find(is_own) {
            own.store(if copies > 0 { note } else { 0 }, Ordering::Release);
            return true;
        }
        copies == 0 || self.take_place(note).is_some()
    }

    /// Notes that this process is about to have a child; returns the place, counted from 1.
    /// `None`: there is none.
    pub fn expect(&self, copies: u32) -> Option<u32> {
        self.take_place(note(copies)? | EXPECTED)
    }

    fn take_place(&self, note: u64) -> Option<u32> {
        let taken = self.0.iter().position(|place| exchange(place, 0, note))?;
        u32::try_from(taken + 1).ok()
    }

    /// Turns the note in that place, of a child that the process with note `by` expects, into the
    /// note of that child, or removes it. False: there is no such note.
    pub fn replace_expected(&self, place: u32, by: u64, child: Option<u64>) -> bool {
        let Some(place) = (place as usize).checked_sub(1).and_then(|at| self.0.get(at)) else {
            return false;
        };
        let there = place.load(Ordering::Acquire);
        let of_child = child.map_or(0, |child| child | there & !OWNER_MASK);
        (there ^ (by | EXPECTED)) & OWNER_MASK == 0 && exchange(place, there, of_child)
    }

    /// Removes the notes of processes that have exited, and returns how many descriptors those had.
    /// `is_alive` tells whether a process still runs.
    pub fn take_dead(&self, is_alive: impl Fn(i32) -> bool) -> u32 {
        let (own, namespace) = (process::number() as u64, u64::from(process::namespace()));
        let mut copies = 0;
        for place in &self.0 {
            let there = place.load(Ordering::Acquire);
            let is_near = there >> NAMESPACE_SHIFT == namespace && namespace != 0;
            let other = process_of(there);
            let is_known = other != 0 && is_near && there & EXPECTED == 0;
            if !is_known || other == own || is_alive(other as i32) {
                continue;
            }
            if exchange(place, there, 0) {
                copies += copies_of(there);
            }
        }
        copies
    }
}

fn exchange(place: &AtomicU64, from: u64, to: u64) -> bool {
    place.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::raw;

    /// Two processes that have a socket with two descriptors each, of which one is a dead child.
    #[test]
    fn only_descriptors_of_the_dead_are_taken_out() {
        let holders = Holders([const { AtomicU64::new(0) }; PROCESSES]);
        crate::life::set_hooks();
        assert!(process::begin());
        assert!(holders.set(2));
        // SAFETY: the child ends at once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as said.
            unsafe { libc::_exit(0) };
        }
        let of_child = note(3).unwrap() & !PROCESS_MASK | child as u64;
        holders.0[4].store(of_child, Ordering::Relaxed);
        // In another namespace, nobody knows whether it lives.
        let elsewhere = of_child ^ 1 << NAMESPACE_SHIFT;
        holders.0[5].store(elsewhere, Ordering::Relaxed);
        while holders.take_dead(raw::is_alive) == 0 {
            std::thread::yield_now();
        }
        // SAFETY: its own child, a zombie until now.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        let left = holders.0.each_ref().map(|place| place.load(Ordering::Relaxed));
        assert_eq!(left, [note(2).unwrap(), 0, 0, 0, 0, elsewhere]);
        assert_eq!(holders.take_dead(raw::is_alive), 0);
        assert!(holders.set(0));
        assert_eq!(holders.0[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_child_that_was_expected_is_noted_once_whoever_does_it() {
        let holders = Holders([const { AtomicU64::new(0) }; PROCESSES]);
        crate::life::set_hooks();
        assert!(process::begin());
        let own = note(0).unwrap();
        assert!(holders.set(2));
        let place = holders.expect(2).unwrap();
        // Nobody knows which one it is: it is not dead, either.
        assert_eq!(holders.take_dead(raw::is_alive), 0);
        // SAFETY: the child waits until it is killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as said.
            unsafe { libc::pause() };
        }
        let noted = note_of(child, 2).unwrap();
        assert!(holders.replace_expected(place, own, note_of(child, 0)));
        assert!(!holders.replace_expected(place, own, None));
        let left = || holders.0.each_ref().map(|place| place.load(Ordering::Relaxed));
        assert_eq!(left(), [note(2).unwrap(), noted, 0, 0, 0, 0]);
        // The next one is expected before the child comes, which takes no other place.
        let next = holders.expect(1).unwrap();
        assert_ne!(next, place);
        assert!(!holders.replace_expected(place, own, note_of(child, 0)));
        assert_eq!(left(), [note(2).unwrap(), noted, note(1).unwrap() | EXPECTED, 0, 0, 0]);
        // There was no such fork after all.
        assert!(holders.replace_expected(next, own, None));
        // SAFETY: its own child and not yet waited for, so the number is the child's.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        // SAFETY: null asks for no status, so nothing is written.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        assert_eq!(holders.take_dead(raw::is_alive), 2);
        assert_eq!(left(), [note(2).unwrap(), 0, 0, 0, 0, 0]);
        assert!(!holders.replace_expected(0, own, None));
    }

    #[test]
    fn there_is_room_for_so_many_and_no_more() {
        let holders = Holders([const { AtomicU64::new(0) }; PROCESSES]);
        crate::life::set_hooks();
        assert!(process::begin());
        holders.0.iter().for_each(|place| place.store(1 | 1 << NAMESPACE_SHIFT, Ordering::Relaxed));
        assert!(!holders.set(1));
        assert!(holders.set(0));
        assert!(note(COPIES_MAX as u32 + 1).is_none());
    }
}
