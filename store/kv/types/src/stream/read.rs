// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading as a consumer of a group (`XREADGROUP`): new entries, which become pending, and the
//! consumer's own pending entries.

use super::group::Group;
use super::lag::Extent;
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
                group.read_new(consumer, read, stream, |id, fields| each(id, Some(fields)))
            }
            ReadFrom::After(id) => group.read_pending(consumer, id, read, stream, each),
        })
    }
}

impl Group {
    fn read_new(
        &mut self,
        consumer: &[u8],
        read: &GroupRead,
        stream: StreamRef<'_>,
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
        stream: StreamRef<'_>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::stream::{GroupStart, NewId};

    /// Entries 1 to 5, and a group that has read none.
    fn stream() -> Stream {
        let mut stream = Stream::default();
        stream.create_group(b"g", GroupStart::Last, Some(0)).unwrap();
        for ms in 1..=5 {
            stream.add(&Limits::default(), NewId::AutoSeq(ms), &[b"f", b"v"], 0).unwrap();
        }
        stream
    }

    /// Times of the entries read, each with whether it exists.
    fn read(stream: &mut Stream, from: ReadFrom, count: u64, now_ms: u64) -> Vec<(u64, bool)> {
        let read = GroupRead { from, count, is_acknowledged: false, now_ms };
        let mut found = vec![];
        let each = |id: StreamId, fields: Option<Fields<'_>>| found.push((id.ms, fields.is_some()));
        let entries = stream.read_group(b"g", b"c", &read, each).unwrap();
        assert_eq!(entries, found.len() as u64);
        found
    }

    #[test]
    fn new_entries_are_delivered_once() {
        let mut stream = stream();
        assert_eq!(read(&mut stream, ReadFrom::New, 2, 7), [(1, true), (2, true)]);
        assert_eq!(read(&mut stream, ReadFrom::New, 0, 8), [(3, true), (4, true), (5, true)]);
        assert_eq!(read(&mut stream, ReadFrom::New, 0, 9), []);
        let group = stream.view().groups().next().unwrap();
        assert_eq!((group.pending, group.entries_read, group.lag), (5, Some(5), Some(0)));
        let consumer = stream.view().consumers(b"g", 10).unwrap().next().unwrap();
        assert_eq!((consumer.idle_ms, consumer.inactive_ms), (1, Some(2)));
    }

    #[test]
    fn acknowledged_entries_do_not_become_pending() {
        let mut stream = stream();
        let read = GroupRead { from: ReadFrom::New, count: 0, is_acknowledged: true, now_ms: 1 };
        assert_eq!(stream.read_group(b"g", b"c", &read, |_, _| {}), Ok(5));
        let group = stream.view().groups().next().unwrap();
        assert_eq!((group.pending, group.last_delivered_id), (0, StreamId::new(5, 0)));
        let missing = stream.read_group(b"h", b"c", &read, |_, _| {});
        assert_eq!(missing, Err(StreamError::NoGroup));
    }

    #[test]
    fn pending_entries_are_delivered_again_unless_deleted() {
        let mut stream = stream();
        read(&mut stream, ReadFrom::New, 4, 7);
        stream.delete(&[StreamId::new(3, 0)]);
        let after = ReadFrom::After(StreamId::new(1, 0));
        assert_eq!(read(&mut stream, after, 2, 9), [(2, true), (3, false)]);
        let full = stream.view().full_info(0);
        let pending = full.groups[0].pending.iter();
        let deliveries: Vec<_> = pending.map(|it| (it.delivered_ms, it.deliveries)).collect();
        assert_eq!(deliveries, [(7, 1), (9, 2), (7, 1), (7, 1)]);
    }

    #[test]
    fn positions_are_read() {
        assert_eq!(ReadFrom::parse(b">"), Ok(ReadFrom::New));
        assert_eq!(ReadFrom::parse(b"0"), Ok(ReadFrom::After(StreamId::MIN)));
        assert_eq!(ReadFrom::parse(StreamId::MAX.to_string().as_bytes()), Ok(ReadFrom::New));
        assert_eq!(ReadFrom::parse(b"$"), Err(StreamError::InvalidId));
    }
}
