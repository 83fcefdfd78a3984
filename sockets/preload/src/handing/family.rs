// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which processes of a family of forks have a socket, and with how many descriptors. A process
//! that is killed tells nobody that it has it no more: the others look for that when it matters.
//!
//! What is counted may be more than there is, for a moment or for good: then a socket stays where
//! it is. It is never less. So descriptors are counted before a process is noted to have them, and
//! noted to be gone before they count no more.

use crate::kernel::raw;
use crate::process;
use crate::socket::connections::Stream;
use core::sync::atomic::{AtomicU64, Ordering};

/// Processes that are noted. Those of further ones count until they are closed.
const PROCESSES: usize = 6;

/// Bits of a note, from below: the process; its descriptors; its namespace, in which alone its
/// number means something.
const COPIES_SHIFT: u32 = 22;
const NAMESPACE_SHIFT: u32 = 32;
const COPIES_MAX: u64 = (1 << (NAMESPACE_SHIFT - COPIES_SHIFT)) - 1;
const PROCESS_MASK: u64 = (1 << COPIES_SHIFT) - 1;

/// The processes that have a socket. All zero: none is noted.
#[derive(Debug)]
pub struct Holders([AtomicU64; PROCESSES]);

fn process_of(note: u64) -> u64 {
    note & PROCESS_MASK
}

fn copies_of(note: u64) -> u32 {
    (note >> COPIES_SHIFT & COPIES_MAX) as u32
}

/// What notes this process with so many descriptors; `None`: it cannot be noted.
fn note(copies: u32) -> Option<u64> {
    let number = u64::try_from(process::number()).ok().filter(|it| *it <= PROCESS_MASK)?;
    let namespace = process::namespace();
    let fits = number > 0 && namespace > 0 && u64::from(copies) <= COPIES_MAX;
    fits.then_some(
        u64::from(namespace) << NAMESPACE_SHIFT | u64::from(copies) << COPIES_SHIFT | number,
    )
}

impl Holders {
    /// For a new socket.
    pub fn forget(&self) {
        self.0.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }

    fn set(&self, copies: u32) -> bool {
        let Some(note) = note(copies) else { return false };
        let is_own = |place: &&AtomicU64| {
            let there = place.load(Ordering::Acquire);
            process_of(there) == process_of(note)
                && there >> NAMESPACE_SHIFT == note >> NAMESPACE_SHIFT
        };
        if let Some(own) = self.0.iter().find(is_own) {
            own.store(if copies > 0 { note } else { 0 }, Ordering::Release);
            return true;
        }
        let takes = |place: &AtomicU64| {
            place.compare_exchange(0, note, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        copies == 0 || self.0.iter().any(takes)
    }

    /// Takes out who is dead; gives how many descriptors those had.
    fn take_dead(&self) -> u32 {
        let (own, namespace) = (process::number() as u64, u64::from(process::namespace()));
        let mut copies = 0;
        for place in &self.0 {
            let there = place.load(Ordering::Acquire);
            let is_near = there >> NAMESPACE_SHIFT == namespace && namespace != 0;
            let other = process_of(there);
            if other == 0 || !is_near || other == own || raw::is_alive(other as i32) {
                continue;
            }
            if place.compare_exchange(there, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                copies += copies_of(there);
            }
        }
        copies
    }
}

impl Stream {
    /// Notes how many descriptors of the socket this process has, if others may have some as well.
    pub fn note_copies(&self) {
        if self.shared.is_alone() {
            return;
        }
        let copies = self.local.copies.load(Ordering::Relaxed);
        let copies = copies.saturating_sub(self.local.given_up.load(Ordering::Relaxed));
        if !self.shared.holders.set(copies) {
            self.drop_dead();
            self.shared.holders.set(copies);
        }
    }

    /// Counts the descriptors of those no more that are dead.
    #[cold]
    pub fn drop_dead(&self) {
        let copies = self.shared.holders.take_dead();
        if copies > 0 {
            let least = self.local.copies.load(Ordering::Relaxed);
            let less = |count: u32| Some(count.saturating_sub(copies).max(least));
            let references = &self.shared.references;
            _ = references.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes that have a socket with two descriptors each, of which one is a dead child.
    #[test]
    fn only_descriptors_of_the_dead_are_taken_out() {
        let holders = Holders([const { AtomicU64::new(0) }; PROCESSES]);
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
        while holders.take_dead() == 0 {
            std::thread::yield_now();
        }
        // SAFETY: its own child, a zombie until now.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        let left = holders.0.each_ref().map(|place| place.load(Ordering::Relaxed));
        assert_eq!(left, [note(2).unwrap(), 0, 0, 0, 0, elsewhere]);
        assert_eq!(holders.take_dead(), 0);
        assert!(holders.set(0));
        assert_eq!(holders.0[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn there_is_room_for_so_many_and_no_more() {
        let holders = Holders([const { AtomicU64::new(0) }; PROCESSES]);
        assert!(process::begin());
        holders.0.iter().for_each(|place| place.store(1 | 1 << NAMESPACE_SHIFT, Ordering::Relaxed));
        assert!(!holders.set(1));
        assert!(holders.set(0));
        assert!(note(COPIES_MAX as u32 + 1).is_none());
    }
}
