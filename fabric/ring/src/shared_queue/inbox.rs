// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ring from the peer, read in any order: each entry is scanned once, in order, and taken
//! whenever its connection is read.
//!
//! Entries that were scanned are noted in slots of this side's own memory: the next one of the same
//! connection, and whether it was taken. Nothing is written into the ring, which may be a place
//! that only the peer's writes reach. What was taken at the front goes back to the sender; what is
//! behind an entry that nobody has taken waits, until that is moved away.

use super::at;
use super::label::{LABEL_BYTES, Label};
use crate::layout::HEADER_BYTES;
use crate::receiver::Place;
use crate::{Entry, Fault, Kind, Local, Receiver, Remote};

/// The shortest entry has a header and a label.
pub(super) const ENTRY_BYTES_MIN: usize = HEADER_BYTES + LABEL_BYTES;

/// How many entries ahead it is looked whose they are: what a record that is far away takes.
const FORESEEN: u64 = 12;

/// What a side notes of an entry in the ring.
#[derive(Clone, Copy, Default, Debug)]
pub struct Slot {
    /// The next entry of the same connection; 0 is none.
    next: u32,
    /// Bytes of its payload, and [`TAKEN`].
    length: u32,
    /// Whose it is.
    connection: u32,
}

/// In the length of a slot: its entry is done with.
const TAKEN: u32 = 1 << 31;

/// An entry that was scanned: one more than the word of the ring in which its header is.
pub(super) type Mark = u32;

/// An entry that has come.
pub(super) struct News {
    pub(super) mark: Mark,
    pub(super) label: Label,
    /// How long the message is.
    pub(super) length: usize,
}

/// The entry at the front of the ring.
pub(super) struct Front {
    entry: Entry,
    pub(super) mark: Mark,
    pub(super) connection: u32,
    pub(super) is_taken: bool,
}

#[derive(Debug)]
pub(super) struct Inbox<'a, L, R> {
    pub(super) ring: Receiver<L, R>,
    slots: &'a mut [Slot],
    /// Behind the last entry that was scanned.
    scanned: Place,
    /// Behind the last entry that was [foreseen](Self::foresee).
    foreseen: Place,
    /// Whether the sender has to be woken.
    pub(super) wake: bool,
}

impl<'a, L: Local, R: Remote> Inbox<'a, L, R> {
    pub(super) fn new(ring: Receiver<L, R>, slots: &'a mut [Slot]) -> Self {
        let scanned = ring.place();
        Self { ring, slots, scanned, foreseen: scanned, wake: false }
    }

    /// The most entries that the ring has at once.
    pub(super) fn entries_max(&self) -> usize {
        self.slots.len()
    }

    /// Whose an entry a little further on is, if it has come: a guess, for it is not checked.
    #[inline]
    pub(super) fn foresee(&mut self) -> Option<u32> {
        // A peer may have changed lengths since.
        let Place { head, sequence } = self.foreseen;
        if sequence < self.scanned.sequence || head < self.scanned.head {
            self.foreseen = self.scanned;
        }
        if self.foreseen.sequence - self.scanned.sequence >= FORESEEN {
            return None;
        }
        let (entry, behind) = self.ring.peek_behind(self.foreseen).ok()??;
        self.foreseen = behind;
        let mut label = [0; LABEL_BYTES];
        self.ring.read(&entry, 0, &mut label);
        Some(Label::connection_of(u64::from_ne_bytes(label)))
    }

    /// Scans the next entry, if one has come. It is not taken.
    #[inline]
    pub(super) fn scan(&mut self) -> Result<Option<News>, Fault> {
        let Some((entry, behind)) = self.ring.peek_behind(self.scanned)? else {
            self.wake |= self.ring.found_nothing();
            return Ok(None);
        };
        if entry.kind != Kind::Data {
            return Err(Fault::UnknownKind(entry.kind as u8));
        }
        let mut label = [0; LABEL_BYTES];
        if self.ring.read(&entry, 0, &mut label) < LABEL_BYTES {
            return Err(Fault::Length(entry.length));
        }
        let behind_label = entry.length.saturating_sub(LABEL_BYTES as u32);
        let label = Label::parse(u64::from_ne_bytes(label), behind_label)?;
        let mark = Self::mark(&entry);
        *self.slot(mark)? = Slot { next: 0, length: entry.length, connection: label.connection };
        self.scanned = behind;
        Ok(Some(News { mark, label, length: behind_label as usize }))
    }

    /// Puts an entry behind another one of the same connection.
    #[inline]
    pub(super) fn append(&mut self, last: Mark, mark: Mark) -> Result<(), Fault> {
        self.slot(last)?.next = mark;
        Ok(())
    }

    /// How long the message of an entry is that was scanned.
    #[inline]
    pub(super) fn length(&mut self, mark: Mark) -> Result<usize, Fault> {
        Ok((self.slot(mark)?.length & !TAKEN).saturating_sub(LABEL_BYTES as u32) as usize)
    }

    /// Copies a part of its message.
    #[inline]
    pub(super) fn read(&self, mark: Mark, from: usize, into: &mut [u8]) {
        let at = mark as usize * 8;
        let length = LABEL_BYTES + from + into.len();
        let entry = Entry { kind: Kind::Data, length: length as u32, at };
        self.ring.read(&entry, LABEL_BYTES + from, into);
    }

    /// Is done with an entry; gives the next one of its connection.
    #[inline]
    pub(super) fn take(&mut self, mark: Mark) -> Result<Mark, Fault> {
        let slot = self.slot(mark)?;
        slot.length |= TAKEN;
        Ok(slot.next)
    }

    /// Passes what was taken at the front of the ring.
    #[inline]
    pub(super) fn reclaim(&mut self) -> Result<(), Fault> {
        while let Some(front) = self.front()? {
            if !front.is_taken {
                break;
            }
            self.pass(&front);
        }
        Ok(())
    }

    /// The first entry of the ring, if it was scanned. The peer may not have changed it since.
    #[inline]
    pub(super) fn front(&mut self) -> Result<Option<Front>, Fault> {
        match self.ring.ahead(self.scanned) {
            Some(0) => return Ok(None),
            Some(_) => {}
            None => return Err(Fault::Changed),
        }
        let entry = self.ring.peek()?.ok_or(Fault::Changed)?;
        let mark = Self::mark(&entry);
        let Slot { length, connection, .. } = *self.slot(mark)?;
        if entry.length != length & !TAKEN {
            return Err(Fault::Changed);
        }
        Ok(Some(Front { entry, mark, connection, is_taken: length & TAKEN != 0 }))
    }

    #[inline]
    pub(super) fn pass(&mut self, front: &Front) {
        self.wake |= self.ring.take(&front.entry);
    }

    /// Whether the sender lacks more than half of the ring for what was scanned.
    #[inline]
    pub(super) fn is_pinned(&self) -> bool {
        let ahead = self.ring.ahead(self.scanned).unwrap_or_default();
        ahead + self.ring.to_give_back() > self.half()
    }

    /// Whether entries that are not taken, with all behind them, are more than such a part of the
    /// ring.
    pub(super) fn is_ahead(&self, part: u64) -> bool {
        self.ring.ahead(self.scanned).is_some_and(|ahead| ahead > part)
    }

    pub(super) fn half(&self) -> u64 {
        self.ring.capacity() as u64 / 2
    }

    pub(super) fn give_back(&mut self) {
        self.wake |= self.ring.give_back();
    }

    #[inline]
    fn mark(entry: &Entry) -> Mark {
        (entry.at / 8) as u32
    }

    /// Entries are two words at least, so no two of them have the same slot.
    #[inline]
    fn slot(&mut self, mark: Mark) -> Result<&mut Slot, Fault> {
        at(self.slots, mark.wrapping_sub(1) / 2)
    }
}
