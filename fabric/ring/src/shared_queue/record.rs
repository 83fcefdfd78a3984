// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A side's record of each connection, and the lists that link these records.
//!
//! Numbers in links are stored plus one, so that a table of zeros is empty, and untouched memory
//! need not be initialized.

use super::at;
use crate::Fault;

/// This side's notes of one connection: 32 bytes, half a line.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(32))]
pub struct Record {
    /// Messages that were moved out of the ring: the first cell of each.
    pub(super) kept: Ends,
    /// Later messages, which are in the ring: the places of their entries.
    pub(super) in_ring: Ends,
    /// Links to the next record of each of the [`Thread`]s that contain this one.
    links: [u32; 2],
    /// Cells sent and not given back.
    pub(super) sent: u16,
    /// Cells read and not given back.
    pub(super) owed: u16,
    /// Cells received and not read.
    pub(super) unread: u16,
    /// Number of openings of the connection number, modulo 256.
    pub(super) generation: u8,
    /// Flags; see [`flag`].
    flags: u8,
}

/// First and last element of a list.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Ends {
    pub(super) first: u32,
    pub(super) last: u32,
}

/// Flags of a connection.
pub(super) mod flag {
    /// The connection exists.
    pub const OPEN: u8 = 1;
    /// The peer has opened it, and it has not been reported.
    pub const NEW: u8 = 2;
    /// This side has closed it.
    pub const CLOSED: u8 = 4;
    /// This side has sent that it has closed it.
    pub const SAID_CLOSED: u8 = 8;
    /// The peer has closed it.
    pub const PEER_CLOSED: u8 = 16;
    /// It is in a thread: this flag for the first, twice its value for the second.
    pub const THREADED: u8 = 64;
}

impl Record {
    #[inline]
    pub(super) fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    #[inline]
    pub(super) fn set(&mut self, flags: u8) {
        self.flags |= flags;
    }

    #[inline]
    pub(super) fn clear(&mut self, flags: u8) {
        self.flags &= !flags;
    }

    /// Opens or closes a connection. The record stays in its threads.
    pub(super) fn reset(&mut self, generation: u8, flags: u8) {
        let threads = self.flags & (flag::THREADED | flag::THREADED << 1);
        let links = self.links;
        *self = Self { generation, links, flags: flags | threads, ..Self::default() };
    }

    /// Returns whether the connection has an event.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        let is_over = self.has(flag::PEER_CLOSED) || self.has(flag::NEW);
        self.has(flag::OPEN) && !self.has(flag::CLOSED) && (self.unread > 0 || is_over)
    }
}

/// A first-in, first-out list of connections, without duplicates.
#[derive(Debug)]
pub(super) struct Thread {
    which: Which,
    ends: Ends,
    /// Number of connections.
    pub(super) length: u32,
}

/// A thread, by the position of its link in a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    /// Connections with events.
    Ready = 0,
    /// Connections with pending messages to the peer.
    Owing = 1,
}

impl Thread {
    pub(super) fn new(which: Which) -> Self {
        Self { which, ends: Ends::default(), length: 0 }
    }

    /// Appends a connection, if it is not in the list.
    #[inline]
    pub(super) fn push(&mut self, records: &mut [Record], number: u32) -> Result<(), Fault> {
        let record = at(records, number)?;
        let flag = flag::THREADED << self.which as u8;
        if record.has(flag) {
            return Ok(());
        }
        record.set(flag);
        *self.link(record) = 0;
        match self.ends.last.checked_sub(1) {
            None => self.ends.first = number + 1,
            Some(last) => *self.link(at(records, last)?) = number + 1,
        }
        self.ends.last = number + 1;
        self.length += 1;
        Ok(())
    }

    /// Returns the first connection.
    pub(super) fn first(&self) -> Option<u32> {
        self.ends.first.checked_sub(1)
    }

    /// Removes the first connection.
    #[inline]
    pub(super) fn pop(&mut self, records: &mut [Record]) -> Result<Option<u32>, Fault> {
        let Some(number) = self.ends.first.checked_sub(1) else { return Ok(None) };
        let record = at(records, number)?;
        record.clear(flag::THREADED << self.which as u8);
        self.ends.first = *self.link(record);
        if self.ends.first == 0 {
            self.ends.last = 0;
        }
        self.length = self.length.saturating_sub(1);
        Ok(Some(number))
    }

    #[inline]
    fn link<'a>(&self, record: &'a mut Record) -> &'a mut u32 {
        let [ready, owing] = &mut record.links;
        match self.which {
            Which::Ready => ready,
            Which::Owing => owing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn a_record_is_half_a_line() {
        assert_eq!(size_of::<Record>(), 32);
    }

    #[test]
    fn two_threads_through_the_same_records_are_two_queues() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut records = [Record::default(); 9];
        let mut threads = [Thread::new(Which::Ready), Thread::new(Which::Owing)];
        let mut queues = [VecDeque::new(), VecDeque::new()];
        for _ in 0..10_000 {
            let which = random.usize(..2);
            let (thread, queue) = (&mut threads[which], &mut queues[which]);
            if random.bool() {
                let number = random.u32(..9);
                thread.push(&mut records, number).expect("inside");
                if !queue.contains(&number) {
                    queue.push_back(number);
                }
            } else {
                assert_eq!(thread.pop(&mut records), Ok(queue.pop_front()));
            }
            assert_eq!(thread.length as usize, queue.len());
        }
    }
}
