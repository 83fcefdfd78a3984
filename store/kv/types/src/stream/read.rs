// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading as a consumer of a group (`XREADGROUP`): new entries, which become pending, and the
//! consumer's own pending entries.

use super::group::{Extent, Group};
use super::pending::Pending;
use super::{Fields, Stream, StreamError, StreamId, StreamRef};

/// Entries that a consumer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// `>`: entries that no consumer of the group has read.
    New,
    /// Pending entries of the consumer with ids larger than this.
    After(StreamId),
}

/// Options of a read.
#[derive(Clone, Copy, Debug)]
pub struct GroupRead {
    /// Entries to read.
    pub from: ReadFrom,
    /// Most entries to read; 0 is no limit.
    pub count: u64,
    /// Whether new entries do not become pending (`NOACK`).
    pub is_acknowledged: bool,
    /// The time, in milliseconds.
    pub now_ms: u64,
}

impl ReadFrom {
    /// Reads the id argument of `XREADGROUP`. The largest id means the same as `>`.
    ///
    /// # Errors
    /// `InvalidId`
    pub fn parse(text: &[u8]) -> Result<ReadFrom, StreamError> {
        if text == b">" {
            return Ok(ReadFrom::New);
        }
        match StreamId::parse_strict(text, 0)? {
            StreamId::MAX => Ok(ReadFrom::New),
            id => Ok(ReadFrom::After(id)),
        }
    }
}

impl Stream {
    /// Reads as a consumer, which is created if necessary. `each` gets the id and the fields of
    /// every entry; no fields if a pending entry is deleted. Returns the number of entries; a
    /// consumer that reads new entries has to wait if it is 0.
    ///
    /// # Errors
    /// `NoGroup`
    pub fn read_group(
        &mut self,
        group: &[u8],
        consumer: &[u8],
        read: &GroupRead,
        mut each: impl FnMut(StreamId, Option<Fields<'_>>),
    ) -> Result<u64, StreamError> {
        self.edit_group(group, |group, stream| match read.from {
            ReadFrom::New => {
                group.read_new(consumer, read, &stream, |id, fields| each(id, Some(fields)))
            }
            ReadFrom::After(id) => group.read_pending(consumer, id, read, &stream, each),
        })
    }
}

impl Group {
    fn read_new(
        &mut self,
        consumer: &[u8],
        read: &GroupRead,
        stream: &StreamRef<'_>,
        mut each: impl FnMut(StreamId, Fields<'_>),
    ) -> u64 {
        let GroupRead { now_ms, is_acknowledged, .. } = *read;
        let number = self.see_consumer(consumer, now_ms);
        let extent = Extent::of(stream);
        let mut entries = 0;
        for entry in stream.after(self.last_id).take(limit(read.count)) {
            self.advance(entry.id, &extent);
            if !is_acknowledged {
                let delivery = Pending { delivered_ms: now_ms, deliveries: 1, consumer: number };
                self.assign(entry.id, delivery);
                self.consumer_mut(number).active_ms = Some(now_ms);
            }
            each(entry.id, entry.fields);
            entries += 1;
        }
        entries
    }

    /// Moves the position of the group to the next entry, and keeps the count of read entries if
    /// that is possible.
    fn advance(&mut self, id: StreamId, extent: &Extent) {
        let counted = self.entries_read.filter(|_| !extent.has_deleted_from(id));
        self.entries_read = match counted {
            Some(read) => Some(read.saturating_add(1)),
            None => extent.entries_up_to(id),
        };
        self.last_id = id;
    }

    fn read_pending(
        &mut self,
        consumer: &[u8],
        after: StreamId,
        read: &GroupRead,
        stream: &StreamRef<'_>,
        mut each: impl FnMut(StreamId, Option<Fields<'_>>),
    ) -> u64 {
        let number = self.see_consumer(consumer, read.now_ms);
        let Some(first) = after.next() else { return 0 };
        let (ids, pending) = self.pending_of(number);
        let mut entries = 0;
        for id in ids.range(first..).take(limit(read.count)) {
            let entry = stream.get(*id);
            if entry.is_some() {
                let delivery = pending.get_mut(id).expect("both places have the entry");
                delivery.delivered_ms = read.now_ms;
                delivery.deliveries = delivery.deliveries.saturating_add(1);
            }
            each(*id, entry.map(|entry| entry.fields));
            entries += 1;
        }
        entries
    }
}

/// The option `COUNT`, of which 0 means no limit.
pub(super) fn limit(count: u64) -> usize {
    match usize::try_from(count) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(count) => count,
    }
}
