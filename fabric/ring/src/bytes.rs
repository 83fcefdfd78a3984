// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream of bytes over a ring: one direction of a stream socket.
//!
//! A write becomes as many entries as it needs; a read takes from as many as it has room for. An
//! entry is split where the ring ends, so that no space is wasted, and both parts are published at
//! once. Long writes are split into [pieces](piece_bytes), each published as soon as it is in
//! place, so that the receiver copies out while the sender copies in.

use crate::layout::HEADER_BYTES;
use crate::receiver::Place;
use crate::stores::{Choice, LONG_BYTES, Stores};
use crate::{Entry, Fault, Full, Kind, Local, Receiver, Remote, Sender};

/// Returns the length of the pieces in which longer writes to a ring of this capacity are
/// published.
///
/// With four pieces per ring, one side copies while the other does. Each piece has a fixed cost, a
/// transfer between the cores, so longer pieces pay off in a large ring.
pub const fn piece_bytes(capacity: usize) -> usize {
    match capacity / 4 {
        ..=PIECE_MIN => PIECE_MIN,
        PIECE_MAX.. => PIECE_MAX,
        quarter => quarter,
    }
}

const PIECE_MIN: usize = 2 << 10;
/// Maximum number of parts that are joined into one entry.
pub const JOINED_MAX: usize = 32;
const PIECE_MAX: usize = 32 << 10;

/// Result of an operation, with whether the other side has to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the other side may have to be woken"]
pub struct Done<T> {
    /// The result.
    pub outcome: T,
    /// Whether the other side sleeps and has to be woken.
    pub wake: bool,
}

/// Writes a stream of bytes.
#[derive(Debug)]
pub struct ByteSender<R, L> {
    ring: Sender<R, L>,
    choice: Choice,
}

impl<R: Remote, L: Local> ByteSender<R, L> {
    /// Writes to a ring.
    pub fn new(ring: Sender<R, L>) -> Self {
        Self { ring, choice: Choice::default() }
    }

    /// Returns the ring below.
    pub fn ring(&mut self) -> &mut Sender<R, L> {
        &mut self.ring
    }

    /// Writes as many of the bytes as there are credits for, and returns their number. None means
    /// that the ring is full. Bytes up to the length of a [piece](piece_bytes) are published at
    /// once, even if they are split: a reader that reads a short message once per write gets all of
    /// it, as from the kernel.
    ///
    /// # Errors
    /// The receiver broke the protocol. Bytes written before this was detected do not count.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<Done<usize>, Fault> {
        if let Some(wake) = self.write_short(bytes, 0) {
            return Ok(Done { outcome: bytes.len(), wake });
        }
        if bytes.len() >= LONG_BYTES
            && let Some(began) = self.ring.ticks()
        {
            return self.write_long(bytes, began);
        }
        self.write_pieces(bytes)
    }

    /// Writes by the currently chosen stores, and records the time taken since `began`.
    fn write_long(&mut self, bytes: &[u8], began: u64) -> Result<Done<usize>, Fault> {
        self.ring.use_stores(self.choice.stores());
        let done = self.write_pieces(bytes);
        self.ring.use_stores(Stores::Ordinary);
        if let (Ok(done), Some(ended)) = (done, self.ring.ticks()) {
            let capacity = self.ring.capacity();
            self.choice.has_written((began, ended), done.outcome, capacity);
        }
        done
    }

    #[inline]
    fn write_pieces(&mut self, bytes: &[u8]) -> Result<Done<usize>, Fault> {
        // Most writes are shorter than any piece and need not compute the length.
        let is_long = bytes.len() > PIECE_MIN;
        let longest = if is_long { piece_bytes(self.ring.capacity()) } else { PIECE_MIN };
        let (mut written, mut wake) = (0, false);
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            let (piece, behind) = rest.split_at(rest.len().min(longest));
            let count = self.put_before(piece, behind.len(), longest)?;
            wake |= self.ring.publish();
            written += count;
            if count < piece.len() {
                break;
            }
        }
        Ok(Done { outcome: written, wake })
    }

    /// Writes all of the bytes, if they are few and fit one entry directly after the last one
    /// without reading the receiver's notes, and leaves `left` bytes of credits after them. Returns
    /// none if that is not possible; then nothing has happened. True means that the other side
    /// sleeps and has to be woken.
    #[inline]
    pub fn write_short(&mut self, bytes: &[u8], left: usize) -> Option<bool> {
        if bytes.is_empty() || bytes.len() > PIECE_MIN {
            return None;
        }
        self.ring.send_short(bytes, left)
    }

    /// Puts as many of the bytes into the ring as there are credits for, without publishing them:
    /// the next [`publish`](Sender::publish) or [`write`](Self::write) does. For writing parts that
    /// belong together.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        self.put_before(bytes, 0, self.ring.capacity())
    }

    /// Puts bytes from several places into the ring, without publishing them. Parts that fit are
    /// joined into one entry, at most [`JOINED_MAX`], so that many short ones take little more than
    /// their bytes.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    pub fn put_parts(&mut self, parts: &[&[u8]]) -> Result<usize, Fault> {
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let mut done = 0;
        while done < all {
            let mut room = self.ring.room(all - done)?;
            let (mut pieces, mut count, mut bytes) = ([&[][..]; JOINED_MAX], 0, 0);
            let mut skipped = done;
            for part in parts {
                let rest = part.get(skipped..).unwrap_or_default();
                skipped = skipped.saturating_sub(part.len());
                let Some(place) = pieces.get_mut(count) else { break };
                if let Some(piece) = rest.get(..rest.len().min(room))
                    && !piece.is_empty()
                {
                    *place = piece;
                    (count, room, bytes) = (count + 1, room - piece.len(), bytes + piece.len());
                }
            }
            if bytes == 0 {
                break;
            }
            match self.ring.stage_before(Kind::Data, pieces.get(..count).unwrap_or_default(), 0) {
                Ok(()) => done += bytes,
                Err(Full::Fault(fault)) => return Err(fault),
                Err(Full::NoCredit | Full::TooLong) => break,
            }
        }
        Ok(done)
    }

    /// Puts bytes that `behind` others follow directly, in pieces of at most `longest`.
    #[inline]
    fn put_before(&mut self, bytes: &[u8], behind: usize, longest: usize) -> Result<usize, Fault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, others) = rest.split_at(self.ring.room(rest.len())?.min(rest.len()));
            if !self.stage(part, others.len() + behind, longest)? {
                break;
            }
            rest = others;
        }
        Ok(bytes.len() - rest.len())
    }

    /// Announces that nothing more will be written. Returns none if there is no credit for that
    /// now.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    pub fn end(&mut self) -> Result<Option<Done<()>>, Fault> {
        match self.ring.send(Kind::Shutdown, &[]) {
            Ok(wake) => Ok(Some(Done { outcome: (), wake })),
            Err(Full::Fault(fault)) => Err(fault),
            Err(Full::NoCredit | Full::TooLong) => Ok(None),
        }
    }

    /// Stages a piece that `behind` bytes follow in pieces of at most `longest`.
    #[inline]
    fn stage(&mut self, piece: &[u8], behind: usize, longest: usize) -> Result<bool, Fault> {
        if piece.is_empty() {
            return Ok(false);
        }
        let more = match behind {
            0 => 0,
            // One piece may be split where the ring ends.
            _ => behind + (behind / longest + 2) * 2 * HEADER_BYTES,
        };
        match self.ring.stage_before(Kind::Data, &[piece], more) {
            Ok(()) => Ok(true),
            Err(Full::Fault(fault)) => Err(fault),
            Err(Full::NoCredit | Full::TooLong) => Ok(false),
        }
    }
}

/// Result of reading a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// This number of bytes.
    Bytes(usize),
    /// No bytes have arrived.
    Nothing,
    /// The stream has ended.
    End,
    /// The stream continues in other memory; see [`Receiver::move_to`].
    Moved {
        /// The sender's name for that memory.
        name: u64,
        /// The entry that announces it.
        entry: Entry,
    },
}

/// The reader of a stream of bytes.
#[derive(Debug)]
pub struct ByteReceiver<L, R> {
    ring: Receiver<L, R>,
}

impl<L: Local, R: Remote> ByteReceiver<L, R> {
    /// Reads from a ring.
    pub fn new(ring: Receiver<L, R>) -> Self {
        Self { ring }
    }

    /// Returns the ring below.
    pub fn ring(&mut self) -> &mut Receiver<L, R> {
        &mut self.ring
    }

    /// Reads as many bytes as have arrived and fit; with an empty `into`, it reads nothing.
    ///
    /// # Errors
    /// The sender broke the protocol. Bytes that arrived before are returned first.
    #[inline]
    pub fn read(&mut self, into: &mut [u8]) -> Result<Done<Read>, Fault> {
        let (mut filled, mut wake) = (0, false);
        while filled < into.len() {
            let found = match self.ring.bytes_at_head() {
                Some(entry) => Ok(Ok(entry)),
                None => self.next(),
            };
            let entry = match found {
                Ok(Ok(entry)) => entry,
                Ok(Err(Read::Nothing)) if filled == 0 => {
                    wake |= self.ring.found_nothing();
                    return Ok(Done { outcome: Read::Nothing, wake });
                }
                Ok(Err(other)) if filled == 0 => return Ok(Done { outcome: other, wake }),
                Err(fault) if filled == 0 => return Err(fault),
                _ => break,
            };
            let from = self.ring.cursor().read as usize;
            let Some(room) = into.get_mut(filled..) else { break };
            let count = self.ring.read(&entry, from, room);
            filled += count;
            if from + count == entry.length as usize {
                wake |= self.ring.take(&entry);
            } else {
                self.ring.cursor_mut().read += count as u32;
            }
        }
        let outcome = if filled == 0 { Read::Nothing } else { Read::Bytes(filled) };
        Ok(Done { outcome, wake })
    }

    /// Reads without taking: the next read returns the same bytes, and those that have arrived
    /// since.
    ///
    /// # Errors
    /// The sender broke the protocol. Bytes that arrived before are returned first.
    pub fn peek(&mut self, into: &mut [u8]) -> Result<Read, Fault> {
        self.peek_by(into, |_, _, _| None)
    }

    /// Reads without taking, and continues in other memory where the ring does: `elsewhere` returns
    /// the memory of a name, and its number of bytes.
    ///
    /// # Errors
    /// The errors of [`peek`](Self::peek).
    ///
    /// # Safety
    /// Memory that `elsewhere` returns has the stated number of bytes, and was zero before the
    /// sender moved there. If names form a cycle, `elsewhere` ends it by returning none.
    pub unsafe fn peek_through(
        &mut self,
        into: &mut [u8],
        mut elsewhere: impl FnMut(u64) -> Option<(L, usize)>,
    ) -> Result<Read, Fault>
    where
        L: Clone,
        R: Clone,
    {
        self.peek_by(into, |ring, name, place| {
            let (memory, capacity) = elsewhere(name)?;
            // SAFETY: the caller upholds the contract for `elsewhere`.
            unsafe { ring.looking_on(place, memory, capacity) }
        })
    }

    fn peek_by(
        &mut self,
        into: &mut [u8],
        elsewhere: impl FnMut(&Receiver<L, R>, u64, Place) -> Option<Receiver<L, R>>,
    ) -> Result<Read, Fault> {
        let mut filled = 0;
        let visit = |ring: &Receiver<L, R>, entry: &Entry, from| {
            let Some(room) = into.get_mut(filled..) else { return false };
            filled += ring.read(entry, from, room);
            filled < into.len()
        };
        match self.walk(visit, elsewhere) {
            _ if filled > 0 => Ok(Read::Bytes(filled)),
            what => what,
        }
    }

    /// Returns the number of bytes that have arrived in the ring's present memory.
    ///
    /// # Errors
    /// The sender broke the protocol. Bytes that arrived before are counted first.
    pub fn available(&mut self) -> Result<usize, Fault> {
        self.available_by(|_, _, _| None)
    }

    /// Returns the number of bytes that have arrived, including other memory where the ring
    /// continues.
    ///
    /// # Errors
    /// The errors of [`available`](Self::available).
    ///
    /// # Safety
    /// The obligations of [`peek_through`](Self::peek_through).
    pub unsafe fn available_through(
        &mut self,
        mut elsewhere: impl FnMut(u64) -> Option<(L, usize)>,
    ) -> Result<usize, Fault>
    where
        L: Clone,
        R: Clone,
    {
        self.available_by(|ring, name, place| {
            let (memory, capacity) = elsewhere(name)?;
            // SAFETY: the caller upholds the contract for `elsewhere`.
            unsafe { ring.looking_on(place, memory, capacity) }
        })
    }

    fn available_by(
        &mut self,
        elsewhere: impl FnMut(&Receiver<L, R>, u64, Place) -> Option<Receiver<L, R>>,
    ) -> Result<usize, Fault> {
        let mut bytes = 0;
        let visit = |_: &Receiver<L, R>, entry: &Entry, from| {
            bytes += (entry.length as usize).saturating_sub(from);
            true
        };
        match self.walk(visit, elsewhere) {
            Err(fault) if bytes == 0 => Err(fault),
            _ => Ok(bytes),
        }
    }

    /// Calls `visit` for each entry of bytes that has arrived, with the number of its bytes already
    /// read, until it returns false; returns what follows those entries. Where the ring continues
    /// in other memory, `elsewhere` returns a receiver there, if it has one.
    fn walk(
        &mut self,
        mut visit: impl FnMut(&Receiver<L, R>, &Entry, usize) -> bool,
        mut elsewhere: impl FnMut(&Receiver<L, R>, u64, Place) -> Option<Receiver<L, R>>,
    ) -> Result<Read, Fault> {
        let mut found = self.next()?;
        let first = match &found {
            Ok(entry) | Err(Read::Moved { entry, .. }) => *entry,
            Err(other) => return Ok(*other),
        };
        let mut from = self.ring.cursor().read as usize;
        // Each header is loaded once: a second load might find another length.
        let mut behind = self.ring.behind(self.ring.place(), &first);
        let mut other = None;
        loop {
            let ring = other.as_ref().unwrap_or(&self.ring);
            match found {
                Ok(entry) if visit(ring, &entry, from) => from = 0,
                Ok(_) => return Ok(Read::Nothing),
                Err(Read::Moved { name, entry }) => {
                    let Some(next) = elsewhere(ring, name, behind) else {
                        return Ok(Read::Moved { name, entry });
                    };
                    other = Some(next);
                }
                Err(what) => return Ok(what),
            }
            let ring = other.as_ref().unwrap_or(&self.ring);
            let Some((entry, place)) = ring.peek_behind(behind)? else {
                return Ok(Read::Nothing);
            };
            behind = place;
            found = Self::classify(ring, entry)?;
        }
    }

    /// Returns the entry of bytes at the head, or what there is instead.
    #[inline]
    fn next(&mut self) -> Result<Result<Entry, Read>, Fault> {
        if self.ring.cursor().ended {
            return Ok(Err(Read::End));
        }
        let Some(entry) = self.ring.peek()? else { return Ok(Err(Read::Nothing)) };
        let read = self.ring.cursor().read;
        let found = match Self::classify(&self.ring, entry) {
            _ if read != 0 && (entry.kind != Kind::Data || entry.length <= read) => {
                Err(Fault::Changed)
            }
            found => found,
        };
        let found = found.inspect_err(|_| self.ring.refuse(entry))?;
        if found == Err(Read::End) {
            self.ring.cursor_mut().ended = true;
        }
        Ok(found)
    }

    #[inline]
    fn classify(ring: &Receiver<L, R>, entry: Entry) -> Result<Result<Entry, Read>, Fault> {
        Ok(match entry.kind {
            Kind::Data if entry.length == 0 => return Err(Fault::Empty),
            Kind::Data => Ok(entry),
            Kind::Move => Err(Read::Moved { name: ring.name_of(&entry), entry }),
            Kind::Shutdown | Kind::Wrap => Err(Read::End),
        })
    }
}
