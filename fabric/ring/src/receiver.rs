// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The side that empties a ring.

use crate::layout::{self, GIVEN_BACK, HEADER_BYTES, entry_bytes};
use crate::sleep::{Announced, Rung, Sleeps};
use crate::{Claimed, Fault, Header, Kind, Local, Remote, SenderCursor};

/// Number of bytes from which on a receiver that has read everything gives them back, so that the
/// sender can restart at the front of the ring.
const GIVE_BACK_WHEN_EMPTY: u64 = 2048;

/// Position of a receiver: plain values that may be kept anywhere, and continued by another process
/// of the same side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(C)]
pub struct ReceiverCursor {
    /// Bytes taken since the start.
    head: u64,
    /// Bytes taken when the ring in its present memory began: not zero once it has moved.
    base: u64,
    /// Bytes given back since the start.
    given_back: u64,
    /// Entries since the start.
    sequence: u64,
    /// Bytes already read of the entry at the head.
    pub(crate) read: u32,
    /// Whether the entry that ends the stream has been seen.
    pub(crate) ended: bool,
    /// If not zero: the word at the head with which the sender broke the protocol. Later values of
    /// the word are ignored.
    refused: u64,
    /// The last sleep of the sender from which it was woken.
    rung: Rung,
    /// Sleeps that this side has announced.
    sleeps: Sleeps,
}

/// Final position of a receiver, in numbers that can be sent to the sender: everything after it is
/// unread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Stopped {
    /// Bytes taken since the start.
    pub head: u64,
    /// Bytes taken when the ring in its present memory began.
    pub base: u64,
    /// Entries since the start.
    pub sequence: u64,
    /// Bytes read of the entry at the head.
    pub read: u64,
}

impl ReceiverCursor {
    /// Returns the position, to send it to the sender. `None` if it has seen the end of the stream,
    /// or a fault, so that nothing follows.
    pub fn stop(&self) -> Option<Stopped> {
        let &Self { head, base, sequence, read, .. } = self;
        let is_over = self.ended || self.refused != 0;
        (!is_over).then_some(Stopped { head, base, sequence, read: u64::from(read) })
    }

    /// Returns a cursor for the sender itself, to read what the receiver has not: it continues
    /// where that has stopped. `None` if the position is impossible after what the sender has sent.
    pub fn behind(stopped: &Stopped, sender: &SenderCursor) -> Option<Self> {
        let &Stopped { head, base, sequence, .. } = stopped;
        let is_possible = base <= head && head <= sender.tail() && sequence <= sender.sequence();
        is_possible.then(|| Self::at(stopped))?
    }

    /// Returns a cursor that continues there. `None` if the position is impossible.
    pub fn at(stopped: &Stopped) -> Option<Self> {
        let &Stopped { head, base, sequence, read } = stopped;
        let read = u32::try_from(read).ok()?;
        Some(Self { head, base, given_back: head, sequence, read, ..Self::default() })
    }
}

/// The receiving side of a ring: the ring and the sender's notes lie in its own memory `L`, its
/// notes in memory `R` of the other side.
#[derive(Debug)]
pub struct Receiver<L, R> {
    ring: L,
    notes: R,
    sender: L,
    mask: u64,
    cursor: ReceiverCursor,
}

/// An entry at the head of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Kind of the entry; never [`Kind::Wrap`].
    pub kind: Kind,
    /// Bytes of the payload.
    pub length: u32,
    /// Offset of the payload in the ring.
    pub(crate) at: usize,
}

impl<L: Local, R: Remote> Receiver<L, R> {
    /// Creates a receiver that continues at `cursor`; at the start with the default.
    ///
    /// `None` if a ring cannot have that capacity ([`layout::is_capacity`]).
    ///
    /// # Safety
    /// `ring` has `capacity` bytes, the others [`layout::NOTES_BYTES`] each; all was zero when the
    /// ring began.
    pub unsafe fn new(
        ring: L,
        notes: R,
        sender: L,
        capacity: usize,
        cursor: ReceiverCursor,
    ) -> Option<Self> {
        let mask = layout::is_capacity(capacity).then_some(capacity as u64 - 1)?;
        let cursor = ReceiverCursor { sleeps: cursor.sleeps.taken_up(), ..cursor };
        Some(Self { ring, notes, sender, mask, cursor })
    }

    /// Returns the position.
    pub fn cursor(&self) -> ReceiverCursor {
        self.cursor
    }

    /// Returns the position, to change it.
    pub(crate) fn cursor_mut(&mut self) -> &mut ReceiverCursor {
        &mut self.cursor
    }

    /// Returns the bytes of the ring.
    pub fn capacity(&self) -> usize {
        (self.mask + 1) as usize
    }

    /// Returns the entry at the head; `None` if nothing has arrived. It stays the same until it is
    /// [taken](Self::take).
    ///
    /// # Errors
    /// The word there cannot be an entry: the sender broke the protocol. The error is permanent.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<Entry>, Fault> {
        match self.entry_at_head()? {
            Some(entry) if entry.kind == Kind::Wrap => self.wrap(),
            found => Ok(found),
        }
    }

    /// Returns the entry at the head, if it is bytes, not all of them read. `None` means that
    /// [`peek`](Self::peek) has to be called. It is a fast path of `peek`, with a third of the
    /// instructions.
    #[inline]
    pub(crate) fn bytes_at_head(&self) -> Option<Entry> {
        let ReceiverCursor { head, sequence, read, refused, ended, .. } = self.cursor;
        let at = self.offset(head);
        // SAFETY: inside the ring; entries are multiples of 8.
        let word = unsafe { self.ring.load(at) };
        // CLAIM: compared with the only possible header, and its length with the bounds.
        let word = word.raw();
        let (length, at) = (word as u32, at + HEADER_BYTES);
        let empty = Header { kind: Kind::Data, length: 0, sequence: sequence as u16 };
        let is_next = word - u64::from(length) == empty.word() && length > read;
        let longest = layout::payload_max(self.capacity()).min(self.capacity() - at);
        let may_be = length as usize <= longest && refused == 0 && !ended;
        (is_next && may_be).then_some(Entry { kind: Kind::Data, length, at })
    }

    #[inline]
    fn entry_at_head(&mut self) -> Result<Option<Entry>, Fault> {
        let place = self.place();
        let word = match self.cursor.refused {
            0 => self.word_at(place),
            refused => Claimed::new(refused),
        };
        let found = self.parse(place, word);
        if found.is_err() {
            // CLAIM: kept so that it is refused again, regardless of later values.
            self.cursor.refused = word.raw();
        }
        found
    }

    /// Takes a wrap, and reads the entry at the start.
    #[cold]
    fn wrap(&mut self) -> Result<Option<Entry>, Fault> {
        self.pass(self.capacity() - self.offset(self.cursor.head));
        self.entry_at_head()
    }

    /// Makes every later call find this entry, which the stream cannot have at the head.
    #[cold]
    pub(crate) fn refuse(&mut self, entry: Entry) {
        let Entry { kind, length, .. } = entry;
        let sequence = self.cursor.sequence as u16;
        self.cursor.refused = Header { kind, length, sequence }.word();
    }

    /// Returns the entry at a place at or after the head, and the place after it, to inspect
    /// entries without taking them. `None` if nothing has arrived there.
    ///
    /// # Errors
    /// See [`peek`](Self::peek).
    pub(crate) fn peek_behind(&self, place: Place) -> Result<Option<(Entry, Place)>, Fault> {
        // A sender that writes beyond a lap is not followed.
        if self.ahead(place).is_none_or(|ahead| ahead > self.mask) {
            return Ok(None);
        }
        let Some(entry) = self.entry_at(place)? else { return Ok(None) };
        let behind = self.behind(place, &entry);
        if entry.kind != Kind::Wrap {
            return Ok(Some((entry, behind)));
        }
        // At most once: a wrap at the start is refused.
        let next = self.entry_at(behind)?;
        Ok(next.map(|entry| (entry, self.behind(behind, &entry))))
    }

    /// Returns the place of the head, for [`peek_behind`](Self::peek_behind).
    pub(crate) fn place(&self) -> Place {
        Place { head: self.cursor.head, sequence: self.cursor.sequence }
    }

    /// Returns the place after an entry at a place.
    pub(crate) fn behind(&self, place: Place, entry: &Entry) -> Place {
        let bytes = match entry.kind {
            Kind::Wrap => self.capacity() - self.offset(place.head),
            _ => entry_bytes(entry.length as usize),
        };
        Place { head: place.head + bytes as u64, sequence: place.sequence + 1 }
    }

    /// Returns the bytes from the head to a place after it; `None` if the head has passed it.
    #[inline]
    pub(crate) fn ahead(&self, place: Place) -> Option<u64> {
        place.head.checked_sub(self.cursor.head)
    }

    /// Returns the offset of the next entry's header, which is not zero when the entry has arrived:
    /// for a caller that polls many rings without constructing a receiver for each.
    #[inline]
    pub fn next_header(&self) -> usize {
        self.offset(self.cursor.head)
    }

    /// Copies a part of an entry's payload, from byte `from` on, as much as there is and fits, and
    /// returns its length.
    #[inline]
    pub fn read(&self, entry: &Entry, from: usize, into: &mut [u8]) -> usize {
        let at = entry.at.saturating_add(from);
        let left = (entry.length as usize).saturating_sub(from);
        // The second bound holds for each entry of this ring; the caller may pass one of another.
        let length = left.min(self.capacity().saturating_sub(at)).min(into.len());
        let Some(into) = into.get_mut(..length) else { return 0 };
        // SAFETY: `at` and the `length` bytes after it are in the ring.
        unsafe { self.ring.read(at, into) };
        length
    }

    /// Returns the name of the memory in which the ring continues after an entry [`Kind::Move`].
    pub(crate) fn name_of(&self, entry: &Entry) -> u64 {
        let mut name = [0; 8];
        self.read(entry, 0, &mut name);
        u64::from_ne_bytes(name)
    }

    /// Takes the entry at the head, which has to be the last result of [`peek`](Self::peek). True
    /// means that the sender sleeps and has to be woken, because it has credits now.
    #[inline]
    #[must_use = "a sender that sleeps has to be woken"]
    pub fn take(&mut self, entry: &Entry) -> bool {
        self.cursor.read = 0;
        self.pass(entry_bytes(entry.length as usize));
        if self.to_give_back() > (self.mask >> 1) + 1 { self.give_back() } else { false }
    }

    /// Gives back what is read, if it is enough and nothing else has arrived. True means that the
    /// sender sleeps and has to be woken.
    #[inline]
    #[must_use = "a sender that sleeps has to be woken"]
    pub fn found_nothing(&mut self) -> bool {
        if self.to_give_back() >= GIVE_BACK_WHEN_EMPTY { self.give_back() } else { false }
    }

    /// Continues in the memory that an entry [`Kind::Move`] at the head names, and gives back all
    /// of the previous memory. True means that the sender sleeps and has to be woken.
    ///
    /// Returns `None` without a change if a ring cannot have that capacity.
    ///
    /// # Safety
    /// `ring` has `capacity` bytes and was zero before the sender moved there.
    pub unsafe fn move_to(&mut self, entry: &Entry, ring: L, capacity: usize) -> Option<bool> {
        let mask = layout::is_capacity(capacity).then_some(capacity as u64 - 1)?;
        self.pass(entry_bytes(entry.length as usize));
        self.ring = ring;
        self.mask = mask;
        self.cursor.base = self.cursor.head;
        Some(self.give_back())
    }

    /// Returns another receiver, where the ring continues in other memory after an entry
    /// [`Kind::Move`]: to inspect what has arrived there, without taking anything.
    ///
    /// # Safety
    /// The obligations of [`move_to`](Self::move_to).
    pub(crate) unsafe fn looking_on(&self, behind: Place, ring: L, capacity: usize) -> Option<Self>
    where
        L: Clone,
        R: Clone,
    {
        let Place { head, sequence } = behind;
        let cursor = ReceiverCursor { head, base: head, sequence, ..ReceiverCursor::default() };
        let (notes, sender) = (self.notes.clone(), self.sender.clone());
        let mask = layout::is_capacity(capacity).then_some(capacity as u64 - 1)?;
        Some(Self { ring, notes, sender, mask, cursor })
    }

    /// Announces to the sender that this side sleeps until something arrives, and gives back
    /// everything; see [`sleep`](crate::sleep). True means that the sender sleeps and has to be
    /// woken.
    #[must_use = "a sender that sleeps has to be woken"]
    pub fn announce_sleep(&mut self) -> bool {
        self.cursor.sleeps.announce_sleep(&mut self.notes);
        if self.to_give_back() > 0 { self.give_back() } else { false }
    }

    /// Announces a light sleep, for a side that sleeps often: the barrier is owed only once, until
    /// credits were given back `awake_for` times without a sleep.
    pub fn announce_light_sleep(&mut self, awake_for: u32) -> Announced {
        let is_new = self.cursor.sleeps.announce_light_sleep(&mut self.notes, awake_for);
        let wake = if self.to_give_back() > 0 { self.give_back() } else { false };
        Announced { wake, is_new }
    }

    /// Revokes [`announce_sleep`](Self::announce_sleep).
    pub fn announce_awake(&mut self) {
        self.cursor.sleeps.announce_awake(&mut self.notes);
    }

    /// Reads the entry at a place where one begins.
    #[inline]
    fn entry_at(&self, place: Place) -> Result<Option<Entry>, Fault> {
        self.parse(place, self.word_at(place))
    }

    #[inline]
    fn word_at(&self, place: Place) -> Claimed {
        // SAFETY: inside the ring; entries are multiples of 8.
        unsafe { self.ring.load(self.offset(place.head)) }
    }

    /// Parses a word at such a place.
    #[inline]
    fn parse(&self, place: Place, word: Claimed) -> Result<Option<Entry>, Fault> {
        if word.is(0) {
            return Ok(None);
        }
        let at = self.offset(place.head);
        let Header { kind, length, sequence: found } = Header::parse(word)?;
        let expected = place.sequence as u16;
        if found != expected {
            return Err(Fault::Sequence { expected, found });
        }
        if kind == Kind::Wrap {
            let entry = Entry { kind, length, at };
            return if at == 0 { Err(Fault::WrapAtStart) } else { Ok(Some(entry)) };
        }
        // The sum cannot overflow: both are 32 bits.
        let longest = layout::payload_max(self.capacity()).min(self.capacity() - at - HEADER_BYTES);
        if length as usize > longest {
            return Err(Fault::Length(length));
        }
        Ok(Some(Entry { kind, length, at: at + HEADER_BYTES }))
    }

    #[inline]
    fn pass(&mut self, bytes: usize) {
        self.cursor.head += bytes as u64;
        self.cursor.sequence += 1;
    }

    #[inline]
    fn offset(&self, total: u64) -> usize {
        ((total - self.cursor.base) & self.mask) as usize
    }

    /// Returns the number of bytes that have been taken and not given back.
    #[inline]
    pub(crate) fn to_give_back(&self) -> u64 {
        self.cursor.head - self.cursor.given_back
    }

    /// Gives back all that has been taken. True means that the sender sleeps and has to be woken.
    pub(crate) fn give_back(&mut self) -> bool {
        self.cursor.given_back = self.cursor.head;
        // SAFETY: inside the notes.
        unsafe { self.notes.store(GIVEN_BACK, self.cursor.head) };
        self.notes.barrier();
        self.cursor.sleeps.has_given_back(&mut self.notes);
        self.cursor.rung.has_to_wake(&self.sender, &self.notes)
    }
}

/// Position where an entry begins; by default the first one of all. Both numbers continue when the
/// ring moves to other memory.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Place {
    pub(crate) head: u64,
    pub(crate) sequence: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mapped;
    use fastrand::Rng;

    const CAPACITY: usize = 128;

    /// Makes a header at a random place, which is right, or wrong in one way or several.
    fn word(random: &mut Rng, sequence: u64) -> u64 {
        let kind =
            [Kind::Data, Kind::Data, Kind::Wrap, Kind::Shutdown, Kind::Move][random.usize(..5)];
        let length = random.u32(..=CAPACITY as u32);
        let header = Header { kind, length, sequence: sequence as u16 };
        let wrong = if random.u8(..4) == 0 { 1 << random.u32(..64) } else { 0 };
        header.word() ^ wrong
    }

    #[test]
    fn the_fast_way_finds_bytes_where_the_other_does_and_nowhere_else() {
        let mut random = Rng::with_seed(3);
        let (mut found, mut others) = (0, 0);
        for _ in 0..20_000 {
            let (mut ring, mut notes) = ([0_u64; CAPACITY / 8], [0_u64; 16]);
            // SAFETY: both stay until the end of this round.
            let at = |memory: &mut [u64]| unsafe { Mapped::new(memory.as_mut_ptr().cast()) };
            let (head, sequence) = (random.u64(..1000) * 8, random.u64(..100_000));
            let ended = random.u8(..10) == 0;
            let cursor =
                ReceiverCursor { head, given_back: head, sequence, ended, ..<_>::default() };
            ring[head as usize % CAPACITY / 8] = word(&mut random, sequence);
            let (memory, others_notes) = (at(&mut ring), at(&mut notes));
            // SAFETY: the memory has that capacity.
            let new =
                unsafe { Receiver::new(memory, others_notes, others_notes, CAPACITY, cursor) };
            let mut receiver = new.expect("a capacity of rings");
            let fast = receiver.bytes_at_head();
            let is_data = |entry: &Entry| entry.kind == Kind::Data && entry.length > 0 && !ended;
            let slow = receiver.peek().ok().flatten().filter(is_data);
            assert_eq!(fast, slow, "{:x?} at {head}, entry {sequence}", ring);
            *if fast.is_some() { &mut found } else { &mut others } += 1;
        }
        assert!(found > 1000 && others > 1000, "{found} found, {others} not");
    }
}
