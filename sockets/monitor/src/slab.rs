// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A slab as its maker sees it: who has which slot, and what is in the words for people.

mod notices;
mod sealed;
mod words;

pub use words::{Words, reused, why_in_kernel, why_returned};

use crate::Error;
use crate::member::MemberId;
use freeport_sockets_proto::slab::{self, SLAB_BYTES, SLOTS, Side};
use notices::Notices;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use words::COUNTS;

/// How far the words of the second side are behind those of the first.
const FROM_SIDE_TO_SIDE: usize = slab::state(Side::Second) - slab::state(Side::First);

/// Shared memory of two members.
pub struct Slab<T> {
    file: Arc<File>,
    notices: Notices,
    /// The first side, and the second.
    members: [MemberId; 2],
    /// Whether they are still there.
    present: [bool; 2],
    slots: Vec<Option<Slot<T>>>,
    /// No more slots are handed out: one could not be made zero, or a child of a member has the
    /// slab mapped.
    is_closed: bool,
}

/// A slot that was handed out.
struct Slot<T> {
    held: [bool; 2],
    /// What the monitor knows of the connection.
    about: T,
}

/// What becomes of a slot that a side has released.
pub enum Released<T> {
    /// It did not have it.
    NotHeld,
    /// The other side still has it.
    HalfHeld,
    /// Nobody has it: this was known of the connection, and this was said in it.
    Free(T, [Words; 2]),
}

impl<T> Slab<T> {
    /// Makes one, of zeroes.
    ///
    /// # Errors
    /// No memory, or no descriptor.
    pub fn new(members: [MemberId; 2]) -> Result<Self, Error> {
        let file = Arc::new(sealed::memory(c"freeport-slab", SLAB_BYTES)?);
        sealed::seal(&file, 0)?;
        let (notices, present) = (Notices::new()?, [true; 2]);
        let slots = (0..SLOTS).map(|_| None).collect();
        Ok(Self { file, notices, members, present, slots, is_closed: false })
    }

    /// What is handed to each of both members once: the slab, and its notices. `None`: both
    /// [have it](Self::both_have_memory).
    pub fn memory(&self) -> Option<[Arc<File>; 2]> {
        Some([self.file.clone(), self.notices.file()?])
    }

    /// It need not be handed out again.
    pub fn both_have_memory(&mut self) {
        self.notices.forget_file();
    }

    /// The members that it was made for, the first side first.
    pub fn members(&self) -> [MemberId; 2] {
        self.members
    }

    /// Which side a member is.
    pub fn side(&self, member: MemberId) -> Option<Side> {
        match self.members.iter().position(|it| *it == member)? {
            0 => Some(Side::First),
            _ => Some(Side::Second),
        }
    }

    /// A slot that nobody has, for a connection; both sides have it then.
    pub fn hand_out(&mut self, about: T) -> Result<u32, T> {
        let mut numbered = (0..SLOTS).zip(&mut self.slots);
        match numbered.find(|(_, slot)| slot.is_none()) {
            Some((number, slot)) if !self.is_closed => {
                *slot = Some(Slot { held: self.present, about });
                Ok(number)
            }
            _ => Err(about),
        }
    }

    /// A side has no more to do with a slot.
    pub fn release(&mut self, side: Side, number: u32) -> Released<T> {
        let place = self.slots.get_mut(number as usize);
        let Some(slot) = place.and_then(Option::as_mut) else { return Released::NotHeld };
        if !std::mem::take(&mut slot.held[side as usize]) {
            return Released::NotHeld;
        }
        if slot.held != [false; 2] {
            return Released::HalfHeld;
        }
        let words = self.words(number);
        let slot = self.slots[number as usize].take();
        self.notices.clear(number);
        self.is_closed |= !self.make_zero(number);
        slot.map_or(Released::NotHeld, |slot| Released::Free(slot.about, words))
    }

    /// A side is gone, and with it all that it had.
    pub fn leave(&mut self, side: Side) -> Vec<(T, [Words; 2])> {
        self.present[side as usize] = false;
        let free = (0..SLOTS).filter_map(|number| match self.release(side, number) {
            Released::Free(about, words) => Some((about, words)),
            Released::NotHeld | Released::HalfHeld => None,
        });
        free.collect()
    }

    /// The process of a side is gone. Says so in what it has, since whoever only writes to it would
    /// not notice before there is no room.
    pub fn tell_gone(&self, side: Side) {
        for number in 0..SLOTS {
            let slot = self.slots.get(number as usize).and_then(Option::as_ref);
            if slot.is_some_and(|slot| slot.held == [true; 2]) {
                self.notices.say(number, side, slab::flag::GONE);
            }
        }
    }

    /// No further slots are handed out.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether nobody will ever use it again.
    pub fn is_over(&self) -> bool {
        let can_be_handed_out = self.present == [true; 2] && !self.is_closed;
        !can_be_handed_out && self.slots.iter().all(Option::is_none)
    }

    /// Those that are used, and what is known of them.
    pub fn used(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = (0..SLOTS).zip(&self.slots);
        numbered.filter_map(|(number, slot)| Some((number, &slot.as_ref()?.about)))
    }

    /// What both sides say in a slot.
    pub fn words(&self, number: u32) -> [Words; 2] {
        // With one call, since people may ask about many.
        let mut bytes = [0; FROM_SIDE_TO_SIDE + COUNTS.end];
        let begin = slab::state(Side::First);
        // What cannot be read is told as zero: it is for people.
        let _ = self.file.read_exact_at(&mut bytes, (page_of(number) + begin) as u64);
        [Side::First, Side::Second].map(|side| Words::of_side(&bytes[slab::state(side) - begin..]))
    }

    /// How many connections both sides say that were made over the stream of a slot besides the
    /// first.
    pub fn reused(&self, number: u32) -> u64 {
        let mut bytes = [0; FROM_SIDE_TO_SIDE + 8];
        let place = page_of(number) + slab::state(Side::First) + slab::word::REUSED;
        let _ = self.file.read_exact_at(&mut bytes, place as u64);
        let word = |at: usize| bytes[at..][..8].try_into().map_or(0, u64::from_ne_bytes);
        word(0).min(word(FROM_SIDE_TO_SIDE))
    }

    /// Says something of both sides of a slot.
    pub fn say(&self, number: u32, flags: u64) {
        for side in [Side::First, Side::Second] {
            self.notices.say(number, side, flags);
        }
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |it| 512 * it.blocks())
    }

    /// Gives all memory back, whoever has it mapped still: for a slab that nobody will use again.
    pub fn make_empty(&self) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // What cannot be given back now is when nobody has it mapped any more.
        // SAFETY: no memory is passed.
        unsafe { libc::fallocate(self.file.as_raw_fd(), mode, 0, slab::SLAB_BYTES as i64) };
    }

    /// Gives the pages of a slot back: they are zero then.
    fn make_zero(&self, number: u32) -> bool {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let places = slab::places(number).unwrap_or_default();
        places.into_iter().all(|(at, length)| {
            // SAFETY: no memory is passed.
            unsafe { libc::fallocate(self.file.as_raw_fd(), mode, at as i64, length as i64) == 0 }
        })
    }
}

/// Where the page of a slot is.
fn page_of(number: u32) -> usize {
    slab::page(number).expect("a slab has slots of that number")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: [MemberId; 2] = [MemberId(1), MemberId(2)];

    #[test]
    fn a_slot_is_zero_and_free_once_both_have_released_it() {
        let mut slab = Slab::new(MEMBERS).unwrap();
        assert_eq!(slab.hand_out("a"), Ok(0));
        assert_eq!(slab.hand_out("b"), Ok(1));
        let state = slab::state(Side::Second) + slab::word::WRITING;
        slab.file.write_all_at(&7_u64.to_ne_bytes(), state as u64).unwrap();
        assert_eq!(slab.words(0)[1].at(slab::word::WRITING), 7);
        assert!(matches!(slab.release(Side::First, 0), Released::HalfHeld));
        assert!(matches!(slab.release(Side::First, 0), Released::NotHeld));
        assert_eq!(slab.hand_out("c"), Ok(2), "the second side still has it");
        let Released::Free("a", words) = slab.release(Side::Second, 0) else { panic!("held") };
        assert_eq!(words[1].at(slab::word::WRITING), 7);
        assert_eq!((slab.words(0), slab.bytes()), ([Words::default(); 2], 0));
        assert_eq!(slab.hand_out("d"), Ok(0));
    }

    #[test]
    fn a_slab_is_full_once_and_over_when_nobody_has_a_slot() {
        let mut slab = Slab::new(MEMBERS).unwrap();
        for number in 0..SLOTS {
            assert_eq!(slab.hand_out(number), Ok(number));
        }
        assert_eq!(slab.hand_out(99), Err(99));
        assert!(matches!(slab.release(Side::Second, 5), Released::HalfHeld));
        let gone: Vec<u32> = slab.leave(Side::First).into_iter().map(|(about, _)| about).collect();
        assert_eq!(gone, [5]);
        assert!(!slab.is_over(), "the second side has all others");
        assert_eq!(slab.leave(Side::Second).len(), SLOTS as usize - 1);
        assert!(slab.is_over());
    }

    #[test]
    fn a_slab_that_is_closed_is_over_with_its_last_connection() {
        let mut slab = Slab::new(MEMBERS).unwrap();
        assert_eq!(slab.hand_out("a"), Ok(0));
        slab.close();
        assert_eq!(slab.hand_out("b"), Err("b"));
        assert!(matches!(slab.release(Side::First, 0), Released::HalfHeld));
        assert!(!slab.is_over());
        assert!(matches!(slab.release(Side::Second, 0), Released::Free("a", _)));
        assert!(slab.is_over());
    }

    /// What a member can read of both sides of a slot.
    fn told<T>(slab: &Slab<T>, slot: u32) -> [u64; 2] {
        let [_, notices] = slab.memory().expect("nobody has it yet");
        [Side::First, Side::Second].map(|side| {
            let (mut word, at) = ([0; 8], slab::notice(slot, side).unwrap());
            notices.read_exact_at(&mut word, at as u64).unwrap();
            u64::from_ne_bytes(word)
        })
    }

    #[test]
    fn both_sides_of_one_slot_are_told_something_besides_what_they_say() {
        let mut slab = Slab::new(MEMBERS).unwrap();
        assert_eq!((slab.hand_out("a"), slab.hand_out("b")), (Ok(0), Ok(1)));
        let at = page_of(1) + slab::state(Side::First) + slab::word::FLAGS;
        slab.file.write_all_at(&slab::flag::ATTACHED.to_ne_bytes(), at as u64).unwrap();
        slab.say(1, slab::flag::RECALLED);
        let said = |slot| slab.words(slot).map(|words| words.at(slab::word::FLAGS));
        let (attached, recalled) = (slab::flag::ATTACHED, slab::flag::RECALLED);
        assert_eq!((said(0), said(1)), ([0, 0], [attached, 0]), "the sides' own words");
        assert_eq!([0, 1].map(|slot| told(&slab, slot)), [[0, 0], [recalled, recalled]]);
        assert!(matches!(slab.release(Side::First, 1), Released::HalfHeld));
        assert!(matches!(slab.release(Side::Second, 1), Released::Free("b", _)));
        assert_eq!(told(&slab, 1), [0, 0], "nothing is said of the next connection");
    }

    #[test]
    fn who_is_gone_is_told_in_slots_that_the_other_side_has() {
        let mut slab = Slab::new(MEMBERS).unwrap();
        (0..3).for_each(|number| assert_eq!(slab.hand_out(number), Ok(number)));
        assert!(matches!(slab.release(Side::First, 1), Released::HalfHeld));
        slab.tell_gone(Side::Second);
        let said = [0, 1, 2].map(|slot| told(&slab, slot));
        assert_eq!(said, [[0, slab::flag::GONE], [0, 0], [0, slab::flag::GONE]]);
    }

    #[test]
    fn a_slab_cannot_be_cut() {
        let slab: Slab<()> = Slab::new(MEMBERS).unwrap();
        assert!(slab.file.set_len(0).is_err());
        assert_eq!(slab.file.metadata().unwrap().len(), SLAB_BYTES as u64);
    }
}
