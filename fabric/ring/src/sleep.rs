// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How nobody sleeps through what he waits for.
//!
//! Each side has a word in its notes that counts its steps between being awake (even) and asleep
//! (odd). Who wants to sleep
//! 1. announces it (`announce_sleep`), which makes the word odd,
//! 2. makes the other side pass a memory barrier, wherever it is (`membarrier(2)`),
//! 3. looks once more for what it waits for,
//! 4. sleeps if there is nothing, until it is woken; then announces that it is awake.
//!
//! The other side makes what is waited for, and then loads the word. Without a barrier between the
//! two the processor may load first, but not around the barrier of step 2; the compiler might, and
//! is kept from it ([`Remote::barrier`](crate::Remote::barrier)). If what it made comes before
//! step 2, step 3 finds it; if not, the load comes behind the announcement, finds it, and the
//! operation tells its caller to wake the sleeper. So the side that has time pays for the barrier,
//! and a send costs a load of a cached word (`membarrier` is 31 microseconds on such machines, a
//! fence 8 nanoseconds). Where the other side cannot be made to pass a barrier, the memory has one
//! of its own, and step 2 is an ordinary fence.
//!
//! A sleeper is woken once for each time that it goes to sleep, however much comes.

use crate::Remote;
use crate::layout::ASLEEP;

/// How often a side has gone to sleep or woken up, as its notes say. Odd: it sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub(crate) struct Sleeps(u64);

impl Sleeps {
    /// For who takes up a side: he is awake, even if the one before slept, and his next sleep is
    /// another one.
    pub(crate) fn taken_up(self) -> Self {
        Self(self.0 + (self.0 & 1))
    }

    /// Announces a sleep, another one than the last even if that has not ended: who was woken from
    /// that one, for somebody else perhaps, is not woken from it again.
    pub(crate) fn announce_sleep(&mut self, notes: &mut impl Remote) {
        self.0 = (self.0 + 1) | 1;
        self.note(notes);
    }

    /// Takes that back.
    pub(crate) fn announce_awake(&mut self, notes: &mut impl Remote) {
        *self = self.taken_up();
        self.note(notes);
    }

    fn note(self, notes: &mut impl Remote) {
        // SAFETY: inside the notes.
        unsafe { notes.store(ASLEEP, self.0) };
        notes.barrier();
    }
}

/// The sleep for which the other side was woken last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Rung(u64);

impl Rung {
    /// Whether the other side, whose word that is, sleeps and has not been woken yet: from now on,
    /// it has been.
    #[inline]
    pub fn has_to_wake(&mut self, asleep: u64) -> bool {
        if asleep & 1 == 0 || asleep == self.0 {
            return false;
        }
        self.0 = asleep;
        true
    }
}
