// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One side of a shared queue: the operations on its connections.

use super::area::{Area, cells_of};
use super::inbox::Inbox;
use super::label::{LABEL_BYTES, Label, What};
use super::record::{Record, Thread, Which, flag};
use super::{Came, Connection, Event, Limits, Notes, Refused, at};
use crate::memory::will_write;
use crate::{Fault, Kind, Local, Receiver, Remote, Sender};
use core::ops::Range;

/// Length up to which a message and its label are joined before they are written.
const SHORT_BYTES: usize = 56;
/// Number of connections from which on prefetching records pays off: half a mebibyte of records.
const LARGE_FROM: u32 = 1 << 14;

/// One side of a queue: it sends into memory `R` of the peer and reads memory `L` of its own.
///
/// No operation waits. The peer may be sleeping until any one of them: see
/// [`take_wake`](Self::take_wake).
#[derive(Debug)]
pub struct End<'a, R, L> {
    pub(super) sender: Sender<R, L>,
    pub(super) inbox: Inbox<'a, L, R>,
    pub(super) records: &'a mut [Record],
    pub(super) area: Area<'a>,
    pub(super) limits: Limits,
    message_max: usize,
    /// Whether the records exceed the caches near the processor.
    pub(super) is_large: bool,
    /// Numbers of connections that this side opens.
    pub(super) own: Range<u32>,
    /// A closed one of these; further ones are linked through their records.
    pub(super) free: u32,
    /// The first of them that was never used.
    unused: u32,
    pub(super) ready: Thread,
    pub(super) owing: Thread,
    /// The fault with which the peer broke the protocol.
    pub(super) refused: Option<Fault>,
    pub(super) wake: bool,
}

impl<'a, R: Remote, L: Local> End<'a, R, L> {
    /// Creates a side of a new queue, whose rings have carried nothing. `side` is 0 for the first
    /// side and 1 for the other one.
    ///
    /// Returns `None` if a queue with such limits is impossible, or the notes have other lengths.
    pub fn new(
        sender: Sender<R, L>,
        receiver: Receiver<L, R>,
        limits: Limits,
        side: usize,
        notes: Notes<'a>,
    ) -> Option<Self> {
        let total = limits.total()?;
        let first = *limits.connections.first()?;
        let own = [0..first, first..total].into_iter().nth(side)?;
        let Notes { records, slots, cells } = notes;
        let has_notes = records.len() == total as usize
            && slots.len() == Limits::slots(receiver.capacity())
            && Some(cells.len()) == limits.cells();
        let message_max = limits.message_max(sender.capacity());
        (has_notes && message_max > 0).then(|| Self {
            sender,
            inbox: Inbox::new(receiver, slots),
            records,
            area: Area::new(cells),
            limits,
            message_max,
            is_large: total >= LARGE_FROM,
            free: 0,
            unused: own.start,
            own,
            ready: Thread::new(Which::Ready),
            owing: Thread::new(Which::Owing),
            refused: None,
            wake: false,
        })
    }

    /// Returns the rings below, to announce a sleep and revoke it.
    pub fn rings(&mut self) -> (&mut Sender<R, L>, &mut Receiver<L, R>) {
        (&mut self.sender, &mut self.inbox.ring)
    }

    /// Returns whether a message to the peer is pending for lack of room: a side that sleeps then
    /// also has to wait for room.
    pub fn owes(&self) -> bool {
        self.owing.length > 0
    }

    /// Returns whether the peer sleeps and has to be woken, because of an operation since the last
    /// call.
    #[inline]
    #[must_use = "a peer that sleeps has to be woken"]
    pub fn take_wake(&mut self) -> bool {
        let wake = self.wake | self.inbox.wake;
        (self.wake, self.inbox.wake) = (false, false);
        wake
    }

    /// Returns the length of the longest message that can be sent.
    #[inline]
    pub fn message_max(&self) -> usize {
        self.message_max
    }

    /// Opens a connection. Messages can be sent to the peer immediately.
    ///
    /// # Errors
    /// The ring is full, too many are open, or the peer broke the protocol.
    pub fn open(&mut self) -> Result<Connection, Refused> {
        self.flush()?;
        let number = match self.free.checked_sub(1) {
            Some(number) => number,
            None if self.unused < self.own.end => self.unused,
            None => return Err(Refused::NoNumber),
        };
        let record = at(self.records, number)?;
        let (generation, next_free) = (record.generation.wrapping_add(1), record.kept.first);
        self.put(Label { what: What::Open, connection: number, generation, amount: 0 }, &[])?;
        at(self.records, number)?.reset(generation, flag::OPEN);
        if self.free == 0 {
            self.unused += 1;
        } else {
            self.free = next_free;
        }
        Ok(Connection { number, generation })
    }

    /// Sends a message.
    ///
    /// The message is not sent, for the returned reason.
    /// It is not sent, for the reason that it says.
    #[inline]
    pub fn send(&mut self, connection: Connection, message: &[u8]) -> Result<(), Refused> {
        let Connection { number, generation } = connection;
        let (window, longest) = (self.limits.window, self.message_max);
        let record = self.record(connection).ok_or(Refused::Closed)?;
        if record.has(flag::PEER_CLOSED) {
            return Err(Refused::Closed);
        }
        let sent = usize::from(record.sent) + cells_of(message.len());
        if message.len() > longest {
            return Err(Refused::TooLong);
        }
        if sent > usize::from(window) {
            return Err(Refused::Window);
        }
        let label = Label { what: What::Message, connection: number, generation, amount: 0 };
        self.put(label, message)?;
        at(self.records, number)?.sent = sent as u16;
        Ok(())
    }

    /// Announces that a message will be sent on a connection soon, after a few others, so that the
    /// notes of the connection are prefetched; for a caller that has several answers ready.
    #[inline]
    pub fn will_send(&self, connection: Connection) {
        if let Some(record) = self.records.get(connection.number as usize) {
            will_write(record);
        }
    }

    /// Copies the next message of a connection to the start of `into`; continues scanning if none
    /// of it has been scanned yet.
    ///
    /// # Errors
    /// The peer broke the protocol, and all messages of the connection before that are read.
    #[inline]
    pub fn receive(&mut self, connection: Connection, into: &mut [u8]) -> Result<Came, Fault> {
        for _ in 0..=self.inbox.entries_max() {
            let came = self.receive_noted(connection, into)?;
            if came != Came::Nothing {
                return Ok(came);
            }
            self.flush()?;
            if !self.scan()? {
                break;
            }
        }
        Ok(Came::Nothing)
    }

    /// Returns what [`receive`](Self::receive) finds among the scanned entries.
    #[inline]
    fn receive_noted(&mut self, connection: Connection, into: &mut [u8]) -> Result<Came, Fault> {
        let Some(record) = self.record(connection) else { return Ok(Came::Closed) };
        let (kept, in_ring) = (record.kept.first, record.in_ring.first);
        let is_over = record.has(flag::PEER_CLOSED);
        let length = match (kept, in_ring) {
            (0, 0) => return Ok(if is_over { Came::End } else { Came::Nothing }),
            (0, mark) => self.inbox.length(mark)?,
            (first, _) => self.area.length(first)?,
        };
        let Some(into) = into.get_mut(..length) else { return Ok(Came::Longer(length)) };
        if kept == 0 {
            self.inbox.read(in_ring, 0, into);
            let next = self.inbox.take(in_ring)?;
            at(self.records, connection.number)?.in_ring.first = next;
            self.reclaim()?;
        } else {
            self.area.read(kept, into)?;
            let next = self.area.release(kept)?;
            at(self.records, connection.number)?.kept.first = next;
        }
        self.has_read(connection.number, cells_of(length) as u16)?;
        Ok(Came::Message(length))
    }

    /// Counts cells that were read, and gives them back when they are half a window.
    #[inline]
    fn has_read(&mut self, number: u32, cells: u16) -> Result<(), Fault> {
        let part = self.limits.given_back_at();
        let record = at(self.records, number)?;
        record.unread = record.unread.saturating_sub(cells);
        record.owed = record.owed.saturating_add(cells);
        if record.owed < part || record.has(flag::PEER_CLOSED) {
            return Ok(());
        }
        self.owing.push(self.records, number)?;
        // The message has been read: the next operation reports a fault.
        _ = self.flush();
        Ok(())
    }

    /// Closes a connection: this side sends and reads nothing more. Unread messages are dropped,
    /// sent messages arrive. Closing a closed connection has no effect.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn close(&mut self, connection: Connection) -> Result<(), Fault> {
        let Some(record) = self.record(connection) else { return Ok(()) };
        let (mut kept, mut mark) = (record.kept.first, record.in_ring.first);
        record.kept.first = 0;
        record.in_ring.first = 0;
        record.unread = 0;
        record.set(flag::CLOSED);
        self.owing.push(self.records, connection.number)?;
        while kept != 0 {
            kept = self.area.release(kept)?;
        }
        while mark != 0 {
            mark = self.inbox.take(mark)?;
        }
        self.reclaim()?;
        self.flush()
    }

    /// Fills in connections with an event (a message, the end, or a new connection) and returns
    /// their number. Events are in order of arrival, and repeat in each call until they are read or
    /// closed. The cost depends on what has arrived since and on the events, not on the number of
    /// connections.
    ///
    /// # Errors
    /// The peer broke the protocol, and no earlier event is left.
    pub fn poll(&mut self, into: &mut [Event]) -> Result<usize, Fault> {
        let flushed = self.flush();
        for _ in 0..=self.inbox.entries_max() {
            // Even if there are enough events, new ones are scanned for, so that no connection
            // starves.
            let wanted = into.len().saturating_sub(self.ready.length as usize).max(1);
            let scanned = self.scan_some(wanted);
            let count = self.tell(into)?;
            if count > 0 {
                return Ok(count);
            }
            flushed?;
            if !scanned? {
                break;
            }
        }
        Ok(0)
    }

    /// Scans everything that has arrived, and returns whether [`poll`](Self::poll) would report an
    /// event.
    ///
    /// # Errors
    /// The peer broke the protocol, and no earlier event is left.
    pub fn look(&mut self) -> Result<bool, Fault> {
        let flushed = self.flush();
        let scanned = self.scan_some(self.inbox.entries_max());
        while let Some(number) = self.ready.first() {
            if at(self.records, number)?.is_ready() {
                return Ok(true);
            }
            self.ready.pop(self.records)?;
        }
        flushed.and(scanned).map(|_| false)
    }

    /// Scans this number of entries; returns false if fewer have arrived.
    #[inline]
    fn scan_some(&mut self, wanted: usize) -> Result<bool, Fault> {
        for _ in 0..wanted {
            if !self.scan()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reports each ready connection once, and moves it to the end of the list.
    fn tell(&mut self, into: &mut [Event]) -> Result<usize, Fault> {
        let mut left = self.ready.length;
        let mut count = 0;
        while let Some(event) = into.get_mut(count).filter(|_| left > 0) {
            left -= 1;
            let Some(number) = self.ready.pop(self.records)? else { break };
            let record = at(self.records, number)?;
            if record.is_ready() {
                let connection = Connection { number, generation: record.generation };
                *event = Event { connection, is_new: record.has(flag::NEW) };
                record.clear(flag::NEW);
                self.ready.push(self.records, number)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Sends pending messages to the peer: credits, and closings. Each operation does so as far as
    /// there is room.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub(super) fn flush(&mut self) -> Result<(), Fault> {
        for _ in 0..self.owing.length {
            let Some(number) = self.owing.pop(self.records)? else { break };
            match self.tell_peer(number) {
                Ok(()) => {}
                Err(Refused::Fault(fault)) => return Err(fault),
                Err(_) => return self.owing.push(self.records, number),
            }
        }
        Ok(())
    }

    fn tell_peer(&mut self, number: u32) -> Result<(), Refused> {
        let record = *at(self.records, number)?;
        let generation = record.generation;
        if record.has(flag::CLOSED) {
            let label = Label { what: What::Close, connection: number, generation, amount: 0 };
            self.put(label, &[])?;
            at(self.records, number)?.set(flag::SAID_CLOSED);
            return Ok(self.free_if_over(number)?);
        }
        if record.owed > 0 && record.has(flag::OPEN) && !record.has(flag::PEER_CLOSED) {
            let amount = record.owed;
            let label = Label { what: What::Credit, connection: number, generation, amount };
            self.put(label, &[])?;
            at(self.records, number)?.owed = 0;
        }
        Ok(())
    }

    /// Puts an entry into the ring.
    #[inline]
    fn put(&mut self, label: Label, message: &[u8]) -> Result<(), Refused> {
        let label = label.word().to_ne_bytes();
        let mut together = [0; LABEL_BYTES + SHORT_BYTES];
        let (front, rest) = together.split_at_mut(LABEL_BYTES);
        if let Some(rest) = rest.get_mut(..message.len()) {
            front.copy_from_slice(&label);
            rest.copy_from_slice(message);
            let whole = together.get(..LABEL_BYTES + message.len()).unwrap_or_default();
            if let Some(wake) = self.sender.send_short(whole, 0) {
                self.wake |= wake;
                return Ok(());
            }
        }
        self.wake |= self.sender.send(Kind::Data, &[&label, message])?;
        Ok(())
    }

    /// Returns the record of a connection that this side may use.
    #[inline]
    fn record(&mut self, connection: Connection) -> Option<&mut Record> {
        let record = self.records.get_mut(connection.number as usize)?;
        let is_same = record.generation == connection.generation;
        (is_same && record.has(flag::OPEN) && !record.has(flag::CLOSED)).then_some(record)
    }

    /// Gives back the taken entries at the front of the ring.
    #[inline]
    pub(super) fn reclaim(&mut self) -> Result<(), Fault> {
        let reclaimed = self.inbox.reclaim();
        self.refuse(reclaimed)
    }
}
