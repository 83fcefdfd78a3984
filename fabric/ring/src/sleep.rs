// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Protocol by which no side sleeps while its condition already holds.
//!
//! Each side has a word in its notes that counts its sleeps, and is odd while it sleeps. A side
//! that wants to sleep
//! 1. announces it (`announce_sleep`), which makes the word odd,
//! 2. makes the other side execute a memory barrier, wherever it is (`membarrier(2)`),
//! 3. checks once more for its condition,
//! 4. sleeps if it does not hold, until it is woken; then announces that it is awake.
//!
//! The other side establishes the condition, and then loads the word. Without a barrier between the
//! two the processor may load first, but not across the barrier of step 2; the compiler could
//! reorder them, and is prevented from it ([`Remote::barrier`]). If the condition is established
//! before step 2, step 3 finds it; otherwise the load follows the announcement, finds it, and the
//! operation reports to its caller that the sleeper has to be woken. So the idle side pays for the
//! barrier, and a send costs a load of a cached word (`membarrier` takes 31 microseconds on such
//! machines, a fence 8 nanoseconds). Where the other side cannot be made to execute a barrier, the
//! memory has one of its own, and step 2 is an ordinary fence.
//!
//! A sleeper is woken once for each of its sleeps, however much arrives.
//!
//! A side that sleeps often sleeps *lightly*: from then on its word says so, asleep or awake, and a
//! side that finds this executes a fence of its own and loads the word again. Once a barrier of
//! step 2 has been executed after that announcement, the other side cannot have missed it, and the
//! next sleeps owe only a fence. A side that has been awake for long revokes the announcement.

use crate::layout::ASLEEP;
use crate::{Local, Remote};

/// Bit of the word: the side sleeps.
const IS_ASLEEP: u64 = 1;
/// Bit of the word: the other side has to execute a fence before it relies on the word.
const IS_LIGHT: u64 = 2;
/// The bits from this one on count sleeps.
const SLEEP: u64 = 4;

/// The sleeps that a side has announced in its notes: the word, and how long it stays light.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(C)]
pub(crate) struct Sleeps {
    word: u64,
    light_for: u32,
}

/// Result of announcing a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a sleeper may owe a barrier"]
pub struct Announced {
    /// Whether the other side sleeps and has to be woken.
    pub wake: bool,
    /// Whether the other side has yet to learn that it must execute a fence: the barrier is owed
    /// until one that began after this announcement has been executed. For a sleep that is not
    /// light it is always owed.
    pub is_new: bool,
}

impl Sleeps {
    /// Returns the state for a new owner of a side: it is awake, even if the previous owner slept,
    /// and its next sleep is a different one.
    pub(crate) fn taken_up(self) -> Self {
        Self { word: self.word & !IS_ASLEEP, ..self }
    }

    /// Announces a sleep, different from the last one even if that has not ended: the other side
    /// wakes each sleep only once, perhaps on behalf of another thread.
    pub(crate) fn announce_sleep(&mut self, notes: &mut impl Remote) {
        self.word = ((self.word & !IS_LIGHT) + SLEEP) | IS_ASLEEP;
        self.light_for = 0;
        self.note(notes);
    }

    /// Announces a light sleep, and executes a fence. True means that the side has not slept
    /// lightly before. It stays light until it has given back credits `awake_for` times without a
    /// sleep.
    pub(crate) fn announce_light_sleep(&mut self, notes: &mut impl Remote, awake_for: u32) -> bool {
        let is_new = self.word & IS_LIGHT == 0;
        self.word = (self.word + SLEEP) | IS_ASLEEP | IS_LIGHT;
        self.light_for = awake_for;
        self.note(notes);
        notes.fence();
        is_new
    }

    /// Revokes a sleep.
    pub(crate) fn announce_awake(&mut self, notes: &mut impl Remote) {
        *self = self.taken_up();
        self.note(notes);
    }

    /// Records that credits were given back, so that the side has been busy. It may be marked as
    /// asleep at this moment on behalf of another thread: a later load of the word still finds
    /// that.
    #[inline]
    pub(crate) fn has_given_back(&mut self, notes: &mut impl Remote) {
        if self.light_for > 0 {
            self.light_for -= 1;
            if self.light_for == 0 {
                self.word &= !IS_LIGHT;
                self.note(notes);
            }
        }
    }

    fn note(self, notes: &mut impl Remote) {
        // SAFETY: inside the notes.
        unsafe { notes.store(ASLEEP, self.word) };
        notes.barrier();
    }
}

/// The last sleep for which the other side was woken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Rung(u64);

impl Rung {
    /// Returns whether the other side, whose notes these are, sleeps and has not been woken yet,
    /// and records it as woken. Its condition was stored in `made` before, with a barrier after it.
    #[inline]
    pub(crate) fn has_to_wake(&mut self, notes: &impl Local, made: &impl Remote) -> bool {
        // SAFETY: inside the notes.
        let word = unsafe { notes.load(ASLEEP) };
        // CLAIM: it decides only whether the other side is woken.
        let word = word.raw();
        word & (IS_ASLEEP | IS_LIGHT) != 0 && self.has_to_wake_sleeper(word, notes, made)
    }

    #[cold]
    fn has_to_wake_sleeper(&mut self, word: u64, notes: &impl Local, made: &impl Remote) -> bool {
        let mut word = word;
        if word & IS_LIGHT != 0 {
            made.fence();
            // SAFETY: inside the notes.
            let loaded = unsafe { notes.load(ASLEEP) };
            // CLAIM: as above.
            word = loaded.raw();
        }
        let sleep = word & !IS_LIGHT;
        if word & IS_ASLEEP == 0 || sleep == self.0 {
            return false;
        }
        self.0 = sleep;
        true
    }
}
