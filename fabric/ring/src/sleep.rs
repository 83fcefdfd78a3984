// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How nobody sleeps through what he waits for.
//!
//! Each side has a word in its notes that counts how often it has gone to sleep, and is odd while
//! it sleeps. Who wants to sleep
//! 1. announces it (`announce_sleep`), which makes the word odd,
//! 2. makes the other side pass a memory barrier, wherever it is (`membarrier(2)`),
//! 3. looks once more for what it waits for,
//! 4. sleeps if there is nothing, until it is woken; then announces that it is awake.
//!
//! The other side makes what is waited for, and then loads the word. Without a barrier between the
//! two the processor may load first, but not around the barrier of step 2; the compiler might, and
//! is kept from it ([`Remote::barrier`]). If what it made comes before step 2, step 3 finds it; if
//! not, the load comes behind the announcement, finds it, and the operation tells its caller to
//! wake the sleeper. So the side that has time pays for the barrier, and a send costs a load of a
//! cached word (`membarrier` is 31 microseconds on such machines, a fence 8 nanoseconds). Where the
//! other side cannot be made to pass a barrier, the memory has one of its own, and step 2 is an
//! ordinary fence.
//!
//! A sleeper is woken once for each time that it goes to sleep, however much comes.
//!
//! Who sleeps often sleeps *lightly*: his word says so from then on, asleep or awake, and who finds
//! that passes a fence of his own and looks again. Once a barrier of step 2 has been passed behind
//! that announcement, nobody can have missed it, and the next sleeps owe nothing but a fence. Who
//! has been awake for long takes it back.

use crate::layout::ASLEEP;
use crate::{Local, Remote};

/// In the word: whether the side sleeps.
const IS_ASLEEP: u64 = 1;
/// In the word: whether the other side has to pass a fence before it relies on it.
const IS_LIGHT: u64 = 2;
/// What is above these counts sleeps.
const SLEEP: u64 = 4;

/// What a side has said of its sleeps in its notes: that word, and for how long that stays so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(C)]
pub(crate) struct Sleeps {
    word: u64,
    light_for: u32,
}

/// What comes of announcing a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "who sleeps may owe a barrier"]
pub struct Announced {
    /// The other side sleeps and has to be woken.
    pub wake: bool,
    /// The other side passes a fence from now on, but may not know that yet: the barrier is owed,
    /// until one that began behind this has been passed. It is owed for each sleep that is not
    /// light.
    pub is_new: bool,
}

impl Sleeps {
    /// For who takes up a side: he is awake, even if the one before slept, and his next sleep is
    /// another one.
    pub(crate) fn taken_up(self) -> Self {
        Self { word: self.word & !IS_ASLEEP, ..self }
    }

    /// Announces a sleep, another one than the last even if that has not ended: who was woken from
    /// that one, for somebody else perhaps, is not woken from it again.
    pub(crate) fn announce_sleep(&mut self, notes: &mut impl Remote) {
        self.word = ((self.word & !IS_LIGHT) + SLEEP) | IS_ASLEEP;
        self.light_for = 0;
        self.note(notes);
    }

    /// Announces a light sleep, and passes a fence. True: the side has not slept lightly before.
    /// It does so until it has given back credits so often without having slept.
    pub(crate) fn announce_light_sleep(&mut self, notes: &mut impl Remote, awake_for: u32) -> bool {
        let is_new = self.word & IS_LIGHT == 0;
        self.word = (self.word + SLEEP) | IS_ASLEEP | IS_LIGHT;
        self.light_for = awake_for;
        self.note(notes);
        notes.fence();
        is_new
    }

    /// Takes a sleep back.
    pub(crate) fn announce_awake(&mut self, notes: &mut impl Remote) {
        *self = self.taken_up();
        self.note(notes);
    }

    /// Has given credits back, and so had enough to do. Whether it sleeps just now, on behalf of
    /// somebody else, makes no difference: who loads the word behind this finds that he does.
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

/// The sleep for which the other side was woken last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Rung(u64);

impl Rung {
    /// Whether the other side, whose notes these are, sleeps and has not been woken yet: from now
    /// on, it has been. What it sleeps for was stored in `made` before, with a barrier behind it.
    #[inline]
    pub(crate) fn has_to_wake(&mut self, notes: &impl Local, made: &impl Remote) -> bool {
        // SAFETY: inside the notes.
        let word = unsafe { notes.load(ASLEEP) };
        // CLAIM: only whether the other side is woken follows from it.
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
