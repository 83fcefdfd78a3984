// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A slab as the monitor sees it: the holders of its slots, and the words for users.

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

/// Distance of the second side's words from those of the first.
const FROM_SIDE_TO_SIDE: usize = slab::state(Side::Second) - slab::state(Side::First);

/// Shared memory of two members.
pub struct Slab<T> {
    file: Arc<File>,
    notices: Notices,
    /// Members of the first side and of the second.
    members: [MemberId; 2],
    /// Whether they are still connected.
    present: [bool; 2],
    slots: Vec<Option<Slot<T>>>,
    /// Whether no more slots are assigned: one could not be zeroed, or a child of a member has the
    /// slab mapped.
    is_closed: bool,
}

/// A slot in use.
struct Slot<T> {
    held: [bool; 2],
    /// The monitor's record of the connection.
    about: T,
}

/// Result of releasing a slot.
pub enum Released<T> {
    /// The side did not hold it.
    NotHeld,
    /// The other side still holds it.
    HalfHeld,
    /// No side holds it any more: the record of the connection, and its last words.
    Free(T, [Words; 2]),
}

impl<T> Slab<T> {
    /// Creates a zeroed slab.
    ///
    /// # Errors
    /// [`Error::System`]: no memory, or no descriptor.
    pub fn new(members: [MemberId; 2]) -> Result<Self, Error> {
        let file = Arc::new(sealed::memory(c"freeport-slab", SLAB_BYTES)?);
        sealed::seal(&file, 0)?;
        let (notices, present) = (Notices::new()?, [true; 2]);
        let slots = (0..SLOTS).map(|_| None).collect();
        Ok(Self { file, notices, members, present, slots, is_closed: false })
    }

    /// Returns the files that each member receives once: the slab, and its notices. `None` once
    /// both [have them](Self::both_have_memory).
    pub fn memory(&self) -> Option<[Arc<File>; 2]> {
        Some([self.file.clone(), self.notices.file()?])
    }

    /// Drops the notices' file, once both members have received it.
    pub fn both_have_memory(&mut self) {
        self.notices.forget_file();
    }

    /// Returns its members, first side first.
    pub fn members(&self) -> [MemberId; 2] {
        self.members
    }

    /// Returns the side of a member.
    pub fn side(&self, member: MemberId) -> Option<Side> {
        match self.members.iter().position(|it| *it == member)? {
            0 => Some(Side::First),
            _ => Some(Side::Second),
        }
    }

    /// Assigns a free slot to a connection; both sides hold it then.
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

    /// Releases a side's hold on a slot.
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

    /// Releases all slots of a side that has left.
    pub fn leave(&mut self, side: Side) -> Vec<(T, [Words; 2])> {
        self.present[side as usize] = false;
        let free = (0..SLOTS).filter_map(|number| match self.release(side, number) {
            Released::Free(about, words) => Some((about, words)),
            Released::NotHeld | Released::HalfHeld => None,
        });
        free.collect()
    }

    /// Sets the notice that the process of a side has exited in all slots it held: a peer that only
    /// writes would not notice until the ring is full.
    pub fn tell_gone(&self, side: Side) {
        for number in 0..SLOTS {
            let slot = self.slots.get(number as usize).and_then(Option::as_ref);
            if slot.is_some_and(|slot| slot.held == [true; 2]) {
                self.notices.say(number, side, slab::flag::GONE);
            }
        }
    }

    /// Stops the assignment of slots.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns whether it will not be used again.
    pub fn is_over(&self) -> bool {
        let can_be_handed_out = self.present == [true; 2] && !self.is_closed;
        !can_be_handed_out && self.slots.iter().all(Option::is_none)
    }

    /// Returns the slots in use, with their records.
    pub fn used(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = (0..SLOTS).zip(&self.slots);
        numbered.filter_map(|(number, slot)| Some((number, &slot.as_ref()?.about)))
    }

    /// Returns the words of both sides of a slot.
    pub fn words(&self, number: u32) -> [Words; 2] {
        // With one call, since a listing reads many slots.
        let mut bytes = [0; FROM_SIDE_TO_SIDE + COUNTS.end];
        let begin = slab::state(Side::First);
        // On a failure the words are zero: they are only shown to users.
        let _ = self.file.read_exact_at(&mut bytes, (page_of(number) + begin) as u64);
        [Side::First, Side::Second].map(|side| Words::of_side(&bytes[slab::state(side) - begin..]))
    }

    /// Number of connections made over the stream of a slot, not counting the first, as confirmed
    /// by both sides.
    pub fn reused(&self, number: u32) -> u64 {
        let mut bytes = [0; FROM_SIDE_TO_SIDE + 8];
        let place = page_of(number) + slab::state(Side::First) + slab::word::REUSED;
        let _ = self.file.read_exact_at(&mut bytes, place as u64);
        let word = |at: usize| bytes[at..][..8].try_into().map_or(0, u64::from_ne_bytes);
        word(0).min(word(FROM_SIDE_TO_SIDE))
    }

    /// Sets flags in the notices of both sides of a slot.
    pub fn say(&self, number: u32, flags: u64) {
        for side in [Side::First, Side::Second] {
            self.notices.say(number, side, flags);
        }
    }

    /// Memory in use, in bytes.
    pub fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |it| 512 * it.blocks())
    }

    /// Frees all memory, although it may still be mapped: for a slab that will not be used again.
    pub fn make_empty(&self) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // If this fails, the memory is freed when it is no longer mapped.
        // SAFETY: no memory is passed.
        unsafe { libc::fallocate(self.file.as_raw_fd(), mode, 0, slab::SLAB_BYTES as i64) };
    }

    /// Frees the pages of a slot, which zeroes them.
    fn make_zero(&self, number: u32) -> bool {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let places = slab::places(number).unwrap_or_default();
        places.into_iter().all(|(at, length)| {
            // SAFETY: no memory is passed.
            unsafe { libc::fallocate(self.file.as_raw_fd(), mode, at as i64, length as i64) == 0 }
        })
    }
}

/// Offset of a slot's page.
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

    /// Returns the notices about both sides of a slot, as a member can read them.
    fn reported<T>(slab: &Slab<T>, slot: u32) -> [u64; 2] {
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
        assert_eq!([0, 1].map(|slot| reported(&slab, slot)), [[0, 0], [recalled, recalled]]);
        assert!(matches!(slab.release(Side::First, 1), Released::HalfHeld));
        assert!(matches!(slab.release(Side::Second, 1), Released::Free("b", _)));
        assert_eq!(reported(&slab, 1), [0, 0], "nothing is said of the next connection");
    }

    #[test]
    fn who_is_gone_is_told_in_slots_that_the_other_side_has() {
        let mut slab = Slab::new(MEMBERS).unwrap();
        (0..3).for_each(|number| assert_eq!(slab.hand_out(number), Ok(number)));
        assert!(matches!(slab.release(Side::First, 1), Released::HalfHeld));
        slab.tell_gone(Side::Second);
        let said = [0, 1, 2].map(|slot| reported(&slab, slot));
        assert_eq!(said, [[0, slab::flag::GONE], [0, 0], [0, slab::flag::GONE]]);
    }

    #[test]
    fn a_slab_cannot_be_cut() {
        let slab: Slab<()> = Slab::new(MEMBERS).unwrap();
        assert!(slab.file.set_len(0).is_err());
        assert_eq!(slab.file.metadata().unwrap().len(), SLAB_BYTES as u64);
    }
}
