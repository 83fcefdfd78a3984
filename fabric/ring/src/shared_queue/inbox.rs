// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ring from the peer, read in any order: each entry is scanned once, in order, and taken when
//! its connection is read.
//!
//! Scanned entries are recorded in slots of this side's own memory: the next entry of the same
//! connection, and whether it was taken. Nothing is written into the ring, which may be memory that
//! only the peer's writes reach. Taken entries at the front are given back to the sender; entries
//! after an untaken one wait until that one is moved away.

use super::at;
use super::label::{LABEL_BYTES, Label};
use crate::layout::HEADER_BYTES;
use crate::receiver::Place;
use crate::{Entry, Fault, Kind, Local, Receiver, Remote};

/// Bytes of the shortest entry, which has a header and a label.
pub(super) const ENTRY_BYTES_MIN: usize = HEADER_BYTES + LABEL_BYTES;

/// Number of entries by which records are prefetched, to hide the latency of a distant record.
const FORESEEN: u64 = 12;

/// This side's record of an entry in the ring.
#[derive(Clone, Copy, Default, Debug)]
pub struct Slot {
    /// The next entry of the same connection; 0 is none.
    next: u32,
    /// Bytes of its payload, and [`TAKEN`].
    length: u32,
    /// Number of its connection.
    connection: u32,
}

/// Flag in the length of a slot: its entry has been taken.
const TAKEN: u32 = 1 << 31;

/// A scanned entry: the index of its header's word in the ring, plus one.
pub(super) type Mark = u32;

/// An entry that has arrived.
pub(super) struct News {
    pub(super) mark: Mark,
    pub(super) label: Label,
    /// Length of the message.
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
    /// The place after the last scanned entry.
    scanned: Place,
    /// The place after the last entry that was [foreseen](Self::foresee).
    foreseen: Place,
    /// Whether the sender has to be woken.
    pub(super) wake: bool,
}

impl<'a, L: Local, R: Remote> Inbox<'a, L, R> {
    pub(super) fn new(ring: Receiver<L, R>, slots: &'a mut [Slot]) -> Self {
        let scanned = ring.place();
        Self { ring, slots, scanned, foreseen: scanned, wake: false }
    }

    /// Returns the maximum number of entries in the ring.
    pub(super) fn entries_max(&self) -> usize {
        self.slots.len()
    }

    /// Returns the connection of an entry a little further on, if one has arrived: a guess, because
    /// the entry is not checked.
    #[inline]
    pub(super) fn foresee(&mut self) -> Option<u32> {
        // The peer may have changed lengths in the meantime.
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

    /// Scans the next entry, if one has arrived, without taking it.
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

    /// Links an entry after another one of the same connection.
    #[inline]
    pub(super) fn append(&mut self, last: Mark, mark: Mark) -> Result<(), Fault> {
        self.slot(last)?.next = mark;
        Ok(())
    }

    /// Returns the length of a scanned entry's message.
    #[inline]
    pub(super) fn length(&mut self, mark: Mark) -> Result<usize, Fault> {
        Ok((self.slot(mark)?.length & !TAKEN).saturating_sub(LABEL_BYTES as u32) as usize)
    }

    /// Copies a part of an entry's message.
    #[inline]
    pub(super) fn read(&self, mark: Mark, from: usize, into: &mut [u8]) {
        let at = mark as usize * 8;
        let length = LABEL_BYTES + from + into.len();
        let entry = Entry { kind: Kind::Data, length: length as u32, at };
        self.ring.read(&entry, LABEL_BYTES + from, into);
    }

    /// Marks an entry as taken and returns the next one of its connection.
    #[inline]
    pub(super) fn take(&mut self, mark: Mark) -> Result<Mark, Fault> {
        let slot = self.slot(mark)?;
        slot.length |= TAKEN;
        Ok(slot.next)
    }

    /// Gives back the taken entries at the front of the ring.
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

    /// Returns the first entry of the ring, if it was scanned. A change of it by the peer is a
    /// fault.
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

    /// Returns whether scanned entries keep more than half of the ring from the sender.
    #[inline]
    pub(super) fn is_pinned(&self) -> bool {
        let ahead = self.ring.ahead(self.scanned).unwrap_or_default();
        ahead + self.ring.to_give_back() > self.half()
    }

    /// Returns whether the untaken entries, with everything after them, exceed such a part of the
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

    /// Returns the slot of an entry. Entries have at least two words, so no two of them share a
    /// slot.
    #[inline]
    fn slot(&mut self, mark: Mark) -> Result<&mut Slot, Fault> {
        at(self.slots, mark.wrapping_sub(1) / 2)
    }
}
