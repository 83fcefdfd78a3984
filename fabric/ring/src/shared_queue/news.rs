// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processing of entries from the peer: each one once, in order.

use super::area::cells_of;
use super::at;
use super::end::End;
use super::inbox::News;
use super::label::What;
use super::record::{Record, flag};
use crate::memory::will_write;
use crate::{Fault, Local, Remote};

impl<R: Remote, L: Local> End<'_, R, L> {
    /// Scans the next entry and returns whether one had arrived.
    #[inline]
    pub(super) fn scan(&mut self) -> Result<bool, Fault> {
        if let Some(fault) = self.refused {
            return Err(fault);
        }
        let scanned = self.scan_next();
        self.refuse(scanned)
    }

    /// Makes a fault permanent.
    #[inline]
    pub(super) fn refuse<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(fault) = &result {
            self.refused = Some(*fault);
        }
        result
    }

    #[inline]
    fn scan_next(&mut self) -> Result<bool, Fault> {
        if self.is_large {
            self.fetch_ahead();
        }
        let Some(news) = self.inbox.scan()? else { return Ok(false) };
        let is_linked = match news.label.what {
            What::Message => self.message(&news)?,
            _ => {
                self.word_of_peer(&news)?;
                false
            }
        };
        if !is_linked {
            self.inbox.take(news.mark)?;
            self.inbox.reclaim()?;
        }
        if self.inbox.is_pinned() {
            self.make_room()?;
        }
        Ok(true)
    }

    /// Prefetches the records of entries that will be scanned soon, because many records are in no
    /// cache.
    #[inline]
    fn fetch_ahead(&mut self) {
        while let Some(number) = self.inbox.foresee() {
            if let Some(record) = self.records.get(number as usize) {
                will_write(record);
            }
        }
    }

    /// Links a message to the others of its connection; returns false if it will not be read.
    #[inline]
    fn message(&mut self, news: &News) -> Result<bool, Fault> {
        let number = news.label.connection;
        let cells = cells_of(news.length);
        let window = usize::from(self.limits.window);
        let record = self.of_peer(news)?;
        if record.has(flag::CLOSED) {
            return Ok(false);
        }
        let unread = usize::from(record.unread) + cells;
        if unread + usize::from(record.owed) > window {
            return Err(Fault::Overdrawn(number));
        }
        record.unread = unread as u16;
        let last = record.in_ring.last;
        let is_first = record.in_ring.first == 0;
        record.in_ring.last = news.mark;
        if is_first {
            record.in_ring.first = news.mark;
        } else {
            self.inbox.append(last, news.mark)?;
        }
        self.ready.push(self.records, number)?;
        Ok(true)
    }

    /// Processes an entry that is not a message.
    fn word_of_peer(&mut self, news: &News) -> Result<(), Fault> {
        let number = news.label.connection;
        match news.label.what {
            What::Open => {
                let generation = news.label.generation;
                let is_own = self.own.contains(&number);
                let record = at(self.records, number)?;
                let is_next = generation == record.generation.wrapping_add(1);
                if is_own || record.has(flag::OPEN) || !is_next {
                    return Err(Fault::Connection(number));
                }
                record.reset(generation, flag::OPEN | flag::NEW);
                self.ready.push(self.records, number)
            }
            What::Close => {
                self.of_peer(news)?.set(flag::PEER_CLOSED);
                self.ready.push(self.records, number)?;
                self.free_if_over(number)
            }
            What::Credit => {
                let record = self.of_peer(news)?;
                let sent = record.sent.checked_sub(news.label.amount);
                record.sent = sent.ok_or(Fault::Overdrawn(number))?;
                Ok(())
            }
            What::Message => Ok(()),
        }
    }

    /// Returns the record of a connection that the peer may send entries for.
    #[inline]
    fn of_peer(&mut self, news: &News) -> Result<&mut Record, Fault> {
        let number = news.label.connection;
        let record = at(self.records, number)?;
        let may_be = record.has(flag::OPEN) && !record.has(flag::PEER_CLOSED);
        if !may_be || record.generation != news.label.generation {
            return Err(Fault::Connection(number));
        }
        Ok(record)
    }

    /// Frees the number of a connection that both sides have closed.
    pub(super) fn free_if_over(&mut self, number: u32) -> Result<(), Fault> {
        let is_own = self.own.contains(&number);
        let record = at(self.records, number)?;
        if !record.has(flag::OPEN | flag::SAID_CLOSED | flag::PEER_CLOSED) {
            return Ok(());
        }
        record.reset(record.generation, 0);
        if is_own {
            record.kept.first = self.free;
            self.free = number + 1;
        }
        Ok(())
    }

    /// Gives at least half of the ring back to the sender: taken entries, and, if unread entries
    /// pin more than the other half, these too. They move to the side area.
    #[cold]
    fn make_room(&mut self) -> Result<(), Fault> {
        let half = self.inbox.half();
        if self.inbox.is_ahead(half) {
            // More than necessary, so that it does not have to be repeated for each message.
            while self.inbox.is_ahead(half / 2) {
                let Some(front) = self.inbox.front()? else { break };
                if !front.is_taken {
                    self.keep(front.mark, front.connection)?;
                }
                self.inbox.pass(&front);
            }
        }
        self.inbox.give_back();
        Ok(())
    }

    /// Moves the first message of a connection in the ring to the end of its messages in the side
    /// area.
    fn keep(&mut self, mark: u32, number: u32) -> Result<(), Fault> {
        let length = self.inbox.length(mark)?;
        let inbox = &self.inbox;
        let first = self.area.keep(length, |from, into| inbox.read(mark, from, into))?;
        let next = self.inbox.take(mark)?;
        let record = at(self.records, number)?;
        record.in_ring.first = next;
        let last = record.kept.last;
        record.kept.last = first;
        if record.kept.first == 0 {
            record.kept.first = first;
            return Ok(());
        }
        self.area.append(last, first)
    }
}
