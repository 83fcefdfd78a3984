// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The side that fills a ring.

use crate::layout::{self, GIVEN_BACK, HEADER_BYTES, entry_bytes};
use crate::memory::LINE_BYTES;
use crate::sleep::{Announced, Rung, Sleeps};
use crate::stores::Stores;
use crate::{Claimed, Fault, Header, Kind, Local, Remote};

/// An empty ring restarts at its beginning once half of it has been passed, and at least this
/// number of bytes, so that a dialogue of short messages stays in a part of a large ring.
///
/// Not sooner: the bytes before the end cannot be written until the receiver has passed the wrap,
/// and a sender whose receiver has read everything may rely on half of the ring. Also, lines that
/// the receiver has just read are slower to write than lines it read some time ago.
const REWIND_BYTES: u64 = 4096;
/// After the place where it could restart, it checks whether the ring is empty only once per this
/// number of bytes, for short entries.
const REWIND_LOOK_BYTES: u64 = 512;

/// Number of entries of the same length by which lines are prefetched for writing, the minimum and
/// maximum number of bytes, and the longest entry for which this is done.
///
/// The receiver has read these lines, so they are in its cache, and a store waits until they are
/// exclusive to this side. Stores wait for each other, so without prefetching each line of a stream
/// of short entries costs a round trip to the other core: 250 ns where the cores are far apart. A
/// shorter distance does not hide that. Copies of long entries fetch their lines themselves,
/// without reading them, and prefetching slows them down.
const AHEAD_ENTRIES: usize = 8;
const AHEAD_BYTES: (usize, usize) = (192, 512);
const AHEAD_ENTRY_MAX: usize = 1024;

/// Position of a sender: plain values that may be kept anywhere, and continued by another process
/// of the same side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(C)]
pub struct SenderCursor {
    /// Bytes spent since the start.
    tail: u64,
    /// Bytes spent when the ring in its present memory began: not zero once it has moved.
    base: u64,
    /// Bytes given back since the start, as last seen.
    given_back: u64,
    /// Entries since the start.
    sequence: u64,
    /// The last sleep of the receiver from which it was woken.
    rung: Rung,
    /// Sleeps that this side has announced.
    sleeps: Sleeps,
    /// The value with which the receiver broke the protocol: it is sent nothing more.
    refused: Option<u64>,
}

impl SenderCursor {
    /// Returns the bytes spent since the start.
    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    /// Returns the entries since the start.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// The sending side of a ring: the ring and its own notes lie in memory `R` of the other side, the
/// receiver's notes in its own memory `L`.
#[derive(Debug)]
pub struct Sender<R, L> {
    ring: R,
    notes: R,
    receiver: L,
    mask: u64,
    cursor: SenderCursor,
    staged: Option<Staged>,
    clear: Clear,
    stores: Stores,
}

/// Position up to which short entries can be written without further checks, in bytes since the
/// start: 0 if unknown. It follows from the cursor.
#[derive(Clone, Copy, Default, Debug)]
struct Clear {
    /// Where the ring ends, or might be restarted.
    place: u64,
    /// Where the credits end.
    credits: u64,
}

/// Entries that are complete except for the header of the first: they are published together.
#[derive(Clone, Copy, Debug)]
struct Staged {
    /// The bytes and entries spent before the first.
    tail: u64,
    sequence: u64,
    header: Header,
}

/// Reason why nothing was put into a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// The receiver has to give something back first.
    NoCredit,
    /// No entry of this ring can have that length.
    TooLong,
    /// The receiver broke the protocol.
    Fault(Fault),
}

impl From<Fault> for Full {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<R: Remote, L: Local> Sender<R, L> {
    /// Creates a sender that continues at `cursor`; at the start with the default.
    ///
    /// `None` if a ring cannot have that capacity ([`layout::is_capacity`]).
    ///
    /// # Safety
    /// `ring` has `capacity` bytes, the others [`layout::NOTES_BYTES`] each; all was zero when the
    /// ring began.
    pub unsafe fn new(
        ring: R,
        notes: R,
        receiver: L,
        capacity: usize,
        cursor: SenderCursor,
    ) -> Option<Self> {
        let mask = layout::is_capacity(capacity).then_some(capacity as u64 - 1)?;
        let cursor = SenderCursor { sleeps: cursor.sleeps.taken_up(), ..cursor };
        let (staged, clear, stores) = (None, Clear::default(), Stores::Ordinary);
        Some(Self { ring, notes, receiver, mask, cursor, staged, clear, stores })
    }

    /// Returns the position, without staged entries: a sender that continues there overwrites them.
    #[inline]
    pub fn cursor(&self) -> SenderCursor {
        match self.staged {
            Some(Staged { tail, sequence, .. }) => SenderCursor { tail, sequence, ..self.cursor },
            None => self.cursor,
        }
    }

    /// Returns the bytes of the ring.
    #[inline]
    pub fn capacity(&self) -> usize {
        (self.mask + 1) as usize
    }

    /// Returns the longest payload that an entry can have now, in one piece and without wasting
    /// more of the end of the ring than a header. It reads the receiver's credits only if that is
    /// less than `wanted`.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    #[inline]
    pub fn room(&mut self, wanted: usize) -> Result<usize, Fault> {
        // Where only a header fits, an entry is placed at the start.
        let (skipped, piece) = match self.to_end() {
            HEADER_BYTES => (HEADER_BYTES, self.capacity()),
            to_end => (0, to_end),
        };
        let kept = skipped + HEADER_BYTES;
        let mut credits = self.credits();
        if credits < entry_bytes(wanted.min(piece)).min(piece) + kept {
            self.take_credits()?;
            credits = self.credits();
        }
        Ok(piece.min(credits.saturating_sub(kept)).saturating_sub(HEADER_BYTES))
    }

    /// Returns the number of bytes that entries with their headers may take now, in several pieces.
    /// It reads the receiver's credits only if that is less than `wanted`.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    #[inline]
    pub fn free(&mut self, wanted: usize) -> Result<usize, Fault> {
        if self.credits() < wanted {
            self.take_credits()?;
        }
        Ok(self.credits())
    }

    /// Returns whether [`stage`](Self::stage) would accept a payload of that length now. It reads
    /// the receiver's credits only if those known do not suffice.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    #[inline]
    pub fn has_room(&mut self, length: usize) -> Result<bool, Fault> {
        if length > layout::payload_max(self.capacity()) {
            return Ok(false);
        }
        let cost = self.cost(length).1;
        if self.credits() < cost {
            self.take_credits()?;
        }
        Ok(self.credits() >= cost)
    }

    /// Puts an entry after the last one, in one piece, without publishing it: all staged entries
    /// are [published](Self::publish) at once.
    ///
    /// The parts of the payload are joined.
    ///
    /// # Errors
    /// There is no room now, or never will be, or the receiver broke the protocol. Then nothing has
    /// changed.
    #[inline]
    pub fn stage(&mut self, kind: Kind, parts: &[&[u8]]) -> Result<(), Full> {
        self.stage_before(kind, parts, 0)
    }

    /// Stages an entry that others with `more` bytes, headers included, will follow directly: an
    /// empty ring restarts only if there is then room for all of them.
    ///
    /// # Errors
    /// The errors of [`stage`](Self::stage).
    #[inline]
    pub fn stage_before(&mut self, kind: Kind, parts: &[&[u8]], more: usize) -> Result<(), Full> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > layout::payload_max(self.capacity()) {
            return Err(Full::TooLong);
        }
        let entry = entry_bytes(length);
        let (skipped, cost) = self.cost(length);
        if !self.has_room(length)? {
            let never = cost > self.capacity();
            return Err(if never { Full::TooLong } else { Full::NoCredit });
        }
        if skipped != 0 {
            self.wrap(skipped);
        } else if self.at() as u64 >= self.rewind_bytes() && self.is_drained()? {
            // The place of the next header and the whole rest of the ring belong to the sender.
            let rest = self.to_end();
            if (rest + cost).saturating_add(more) <= self.capacity() {
                self.wrap(rest);
            }
        }
        let at = self.at();
        let mut place = at + HEADER_BYTES;
        // SAFETY: an offset is inside the ring and a multiple of 8. The credits cover the header
        // after the entry.
        unsafe { self.ring.set(self.offset(self.cursor.tail + entry as u64), 0) };
        for part in parts {
            match self.stores {
                // SAFETY: the entry ends inside the ring, and the credits cover all its parts.
                Stores::Ordinary => unsafe { self.ring.write(place, part) },
                // SAFETY: as above.
                Stores::NonTemporal => unsafe { self.ring.write_non_temporal(place, part) },
            }
            place += part.len();
        }
        self.append(Header { kind, length: length as u32, sequence: 0 }, entry);
        Ok(())
    }

    /// Publishes the staged entries. True means that the receiver sleeps and has to be woken.
    #[inline]
    #[must_use = "a receiver that sleeps has to be woken"]
    pub fn publish(&mut self) -> bool {
        let Some(staged) = self.staged.take() else { return false };
        let at = self.offset(staged.tail);
        // SAFETY: an entry was staged at this offset.
        unsafe { self.ring.store(at, staged.header.word()) };
        self.clear = self.is_clear_until();
        let bytes = self.at().wrapping_sub(at) & self.mask as usize;
        self.is_published(bytes)
    }

    /// Stages and publishes one entry of bytes, if it fits in one piece directly after the last one
    /// without further checks, and leaves `left` bytes after it. Returns none if it does not; then
    /// nothing has happened, and [`stage`](Self::stage) reports the reason. True means that the
    /// receiver sleeps and has to be woken.
    ///
    /// It is a fast path of [`send`](Self::send), with a third of the instructions.
    #[inline]
    pub fn send_short(&mut self, payload: &[u8], left: usize) -> Option<bool> {
        let bytes = entry_bytes(payload.len());
        let behind = self.cursor.tail + bytes as u64;
        if behind > self.clear.place || behind + left as u64 > self.clear.credits {
            return None;
        }
        let at = self.at();
        let sequence = self.cursor.sequence as u16;
        let header = Header { kind: Kind::Data, length: payload.len() as u32, sequence };
        // SAFETY: the clear range ends inside the ring with the place of a header after it; entries
        // are multiples of 8.
        unsafe { self.ring.set(at + bytes, 0) };
        // SAFETY: the payload is inside the entry, which is inside the clear range.
        unsafe { self.ring.write(at + HEADER_BYTES, payload) };
        // SAFETY: the entry begins here, at a multiple of 8 inside the clear range.
        unsafe { self.ring.store(at, header.word()) };
        self.cursor.sequence += 1;
        self.cursor.tail = behind;
        Some(self.is_published(bytes))
    }

    /// Completes the store that published this number of bytes; returns whether to wake the
    /// receiver.
    #[inline]
    fn is_published(&mut self, bytes: usize) -> bool {
        self.ring.barrier();
        self.fetch_ahead(bytes);
        self.cursor.rung.has_to_wake(&self.receiver, &self.ring)
    }

    /// Returns the position up to which entries can be written without further checks.
    fn is_clear_until(&self) -> Clear {
        let (at, tail) = (self.at() as u64, self.cursor.tail);
        let header = HEADER_BYTES as u64;
        let to_rewind = match self.rewind_bytes().saturating_sub(at) {
            0 => REWIND_LOOK_BYTES,
            bytes => bytes,
        };
        let place = tail + to_rewind.min(self.to_end() as u64 - header);
        Clear { place, credits: (tail + self.credits() as u64).saturating_sub(header) }
    }

    /// Prefetches the lines ahead that an entry of the published length would fill, but no line
    /// that the receiver may not have read yet.
    #[inline]
    fn fetch_ahead(&self, bytes: usize) {
        let ahead = (AHEAD_ENTRIES * bytes).clamp(AHEAD_BYTES.0, AHEAD_BYTES.1);
        let behind = self.cursor.tail + (ahead + bytes) as u64;
        if bytes > AHEAD_ENTRY_MAX || behind > self.clear.credits {
            return;
        }
        let at = self.at();
        let end = at + ahead + bytes;
        let mut line = (at + ahead).next_multiple_of(LINE_BYTES);
        while line < end {
            self.ring.will_write(line & self.mask as usize);
            line += LINE_BYTES;
        }
    }

    /// Stages and publishes one entry. True means that the receiver sleeps and has to be woken.
    ///
    /// # Errors
    /// See [`stage`](Self::stage).
    #[inline]
    pub fn send(&mut self, kind: Kind, parts: &[&[u8]]) -> Result<bool, Full> {
        self.stage(kind, parts)?;
        Ok(self.publish())
    }

    /// Selects the stores for staging payloads from now on.
    pub(crate) fn use_stores(&mut self, stores: Stores) {
        self.stores = stores;
    }

    /// Returns the clock of this side.
    pub(crate) fn ticks(&self) -> Option<u64> {
        self.ring.ticks()
    }

    /// Continues in other memory, which is zero and which `name` identifies to the receiver. True
    /// means that the receiver sleeps and has to be woken. The previous memory belongs to the
    /// receiver until it has [left](Self::has_left) it.
    ///
    /// # Errors
    /// The errors of [`stage`](Self::stage), and [`Full::TooLong`] if a ring cannot have that
    /// capacity. Then the ring stays where it is, and `ring` is dropped.
    ///
    /// # Safety
    /// `ring` has `capacity` bytes, all zero.
    pub unsafe fn move_to(&mut self, ring: R, capacity: usize, name: u64) -> Result<bool, Full> {
        if !layout::is_capacity(capacity) {
            return Err(Full::TooLong);
        }
        let wake = self.send(Kind::Move, &[&name.to_ne_bytes()])?;
        self.ring = ring;
        self.mask = capacity as u64 - 1;
        self.cursor.base = self.cursor.tail;
        self.clear = Clear::default();
        Ok(wake)
    }

    /// Returns whether the receiver has moved to the memory that the ring was last moved to.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    pub fn has_left(&mut self) -> Result<bool, Fault> {
        self.take_credits()?;
        Ok(self.cursor.given_back >= self.cursor.base)
    }

    /// Returns whether the receiver has given back everything, and so has read everything. A
    /// receiver that has read everything may still hold back up to half of the ring.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    #[inline]
    pub fn is_drained(&mut self) -> Result<bool, Fault> {
        self.take_credits()?;
        Ok(self.cursor.given_back == self.cursor.tail)
    }

    /// Returns whether the receiver sleeps and has to be woken, for a message that was passed
    /// outside the ring before this call.
    pub fn has_to_wake(&mut self) -> bool {
        self.is_published(0)
    }

    /// Announces to the receiver that this side sleeps until it gets credits; see
    /// [`sleep`](crate::sleep).
    pub fn announce_sleep(&mut self) {
        self.cursor.sleeps.announce_sleep(&mut self.notes);
    }

    /// Announces a light sleep, for a side that sleeps often: the barrier is owed only once, until
    /// credits were given back `awake_for` times without a sleep.
    pub fn announce_light_sleep(&mut self, awake_for: u32) -> Announced {
        let is_new = self.cursor.sleeps.announce_light_sleep(&mut self.notes, awake_for);
        Announced { wake: false, is_new }
    }

    /// Revokes [`announce_sleep`](Self::announce_sleep).
    pub fn announce_awake(&mut self) {
        self.cursor.sleeps.announce_awake(&mut self.notes);
    }

    #[inline]
    fn rewind_bytes(&self) -> u64 {
        REWIND_BYTES.max((self.mask >> 1) + 1)
    }

    /// Returns the bytes to skip before an entry with a payload of that length, which is not longer
    /// than the ring, and the credits for both and the next header.
    #[inline]
    fn cost(&self, length: usize) -> (usize, usize) {
        let entry = entry_bytes(length);
        let to_end = self.to_end();
        let skipped = if entry > to_end { to_end } else { 0 };
        (skipped, skipped + entry + HEADER_BYTES)
    }

    /// Spends the bytes before the end of the ring.
    fn wrap(&mut self, skipped: usize) {
        // SAFETY: the caller has checked that there are credits for more than that. The receiver
        // may read the start as soon as it sees the wrap: there is no header yet.
        unsafe { self.ring.set(0, 0) };
        self.append(Header { kind: Kind::Wrap, length: 0, sequence: 0 }, skipped);
    }

    /// Counts an entry that is complete except for its header, which is written unless the entry is
    /// the first one staged.
    #[inline]
    fn append(&mut self, header: Header, bytes: usize) {
        let header = Header { sequence: self.cursor.sequence as u16, ..header };
        let SenderCursor { tail, sequence, .. } = self.cursor;
        match self.staged {
            None => {
                self.clear = Clear::default();
                self.staged = Some(Staged { tail, sequence, header });
            }
            // SAFETY: the terminator of the previous entry is at this offset.
            Some(_) => unsafe { self.ring.set(self.at(), header.word()) },
        }
        self.cursor.sequence += 1;
        self.cursor.tail += bytes as u64;
    }

    #[inline]
    fn offset(&self, total: u64) -> usize {
        ((total - self.cursor.base) & self.mask) as usize
    }

    /// Returns the offset of the next header.
    #[inline]
    fn at(&self) -> usize {
        self.offset(self.cursor.tail)
    }

    /// Returns the bytes from there to the end of the ring: at least 8.
    #[inline]
    fn to_end(&self) -> usize {
        self.capacity() - self.at()
    }

    /// Returns the number of bytes that may be overwritten. Bytes in the memory before a move do
    /// not count against the present memory.
    #[inline]
    fn credits(&self) -> usize {
        if self.cursor.refused.is_some() {
            return 0;
        }
        let free_from = self.cursor.given_back.max(self.cursor.base);
        (self.mask + 1 - (self.cursor.tail - free_from)) as usize
    }

    /// Accepts the receiver's count of bytes given back, if it can be true.
    #[inline]
    fn take_credits(&mut self) -> Result<(), Fault> {
        // SAFETY: inside the notes.
        let load = || unsafe { self.receiver.load(GIVEN_BACK) };
        let claimed = self.cursor.refused.map_or_else(load, Claimed::new);
        let SenderCursor { given_back: before, tail: sent, .. } = self.cursor();
        match claimed.within(before, sent) {
            Ok(given_back) => self.cursor.given_back = given_back,
            Err(claimed) => {
                // CLAIM: kept so that it is refused again, regardless of later values.
                let claimed = claimed.raw();
                self.cursor.refused = Some(claimed);
                self.clear = Clear::default();
                return Err(Fault::Credits { before, claimed, sent });
            }
        }
        Ok(())
    }
}
