// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A lock that processes share, and that knows its owner.
//!
//! While a process has one thread and does not share the lock, taking it is a load and a store. A
//! thread that holds it and tries to take it again, in a signal handler, fails instead of waiting
//! for itself. The lock of a process that has died is taken from it.

use crate::kernel::{errno, raw};
use crate::process;
use core::hint;
use core::sync::atomic::{AtomicU64, Ordering};

/// Low bits of a thread's place that are dropped: places of threads are more than a cache line
/// apart.
const PLACE_SHIFT: u32 = 6;
/// The bit of an owner at which the process begins. The bits below hold 47 bits of address without
/// the dropped ones.
const PROCESS_SHIFT: u32 = 41;

/// The owner in a process with one thread.
const ONLY: u64 = 1;

/// Number of looks at a lock before the processor is yielded.
const SPINS: u32 = 200;
/// Ticks between two checks whether the owner is alive: about a millisecond.
const OWNER_TICKS: u64 = 2_400_000;

/// A lock. All zero: it is free.
#[derive(Debug)]
#[repr(transparent)]
pub struct Lock {
    owner: AtomicU64,
}

/// Holds a lock until this is dropped.
#[derive(Debug)]
pub struct Held<'a> {
    lock: &'a Lock,
    /// Whether it was taken from a process that has died while it held the lock.
    pub from_dead: bool,
}

impl Lock {
    /// A free lock.
    pub const fn new() -> Self {
        Self { owner: AtomicU64::new(0) }
    }

    /// Takes the lock, waiting for its owner. `None`: this thread holds it.
    ///
    /// `alone`: no other process may want it.
    #[inline]
    pub fn take(&self, alone: bool) -> Option<Held<'_>> {
        if alone && process::has_one_thread() {
            if self.owner.load(Ordering::Relaxed) != 0 {
                return None;
            }
            self.owner.store(ONLY, Ordering::Relaxed);
            return Some(self.held(false));
        }
        let this = owner();
        match self.owner.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Some(self.held(false)),
            Err(_) => self.wait(this),
        }
    }

    #[inline]
    fn held(&self, from_dead: bool) -> Held<'_> {
        Held { lock: self, from_dead }
    }

    #[cold]
    fn wait(&self, this: u64) -> Option<Held<'_>> {
        let (mut looks, mut since) = (0_u32, 0);
        loop {
            let owner = self.owner.load(Ordering::Relaxed);
            if owner == this {
                return None;
            }
            let now = if looks > SPINS { raw::ticks() } else { 0 };
            let is_late = now.wrapping_sub(since) > OWNER_TICKS && since != 0;
            let is_free = owner == 0 || is_late && !is_alive(owner);
            let taken = || {
                let taken =
                    self.owner.compare_exchange(owner, this, Ordering::Acquire, Ordering::Relaxed);
                taken.is_ok()
            };
            if is_free && taken() {
                return Some(self.held(owner != 0));
            }
            if looks <= SPINS {
                looks += 1;
                hint::spin_loop();
                continue;
            }
            if since == 0 || is_late {
                since = now;
            }
            raw::yield_now();
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.owner.store(0, Ordering::Release);
    }
}

#[inline]
fn owner() -> u64 {
    (process::number() as u64) << PROCESS_SHIFT | errno::place() as u64 >> PLACE_SHIFT
}

fn is_alive(owner: u64) -> bool {
    raw::is_alive((owner >> PROCESS_SHIFT) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_a_lock_from_the_dead_knows_it() {
        crate::life::set_hooks();
        assert!(process::begin());
        let memory = raw::map(4096, true, None).unwrap();
        // SAFETY: zero, shared, and mapped until the end.
        let lock: &Lock = unsafe { &*memory.cast() };
        assert!(!lock.take(false).unwrap().from_dead);
        // SAFETY: the child touches the lock and its own number only, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            std::mem::forget(lock.take(false));
            // SAFETY: as said.
            unsafe { libc::_exit(0) };
        }
        while lock.owner.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        // It is a zombie, for which nobody else waits.
        assert!(lock.take(false).unwrap().from_dead);
        assert!(!lock.take(false).unwrap().from_dead);
        // SAFETY: its own child.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    }
}
