// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Introspection: the data of `XINFO STREAM`, with and without `FULL`, `GROUPS` and `CONSUMERS`.

use super::group::{Consumer, Group};
use super::lag::Extent;
use super::range::{Nodes, StreamEntry};
use super::{PendingEntry, StreamError, StreamId, StreamRef};

/// Counters of a stream, and its first and last entry.
#[derive(Clone, Copy, Debug)]
pub struct StreamInfo<'a> {
    /// Number of entries.
    pub length: u64,
    /// Number of nodes (`radix-tree-keys`).
    pub nodes: u64,
    /// The largest id given so far.
    pub last_generated_id: StreamId,
    /// The largest id that was deleted, or `0-0`.
    pub max_deleted_entry_id: StreamId,
    /// Number of entries ever added.
    pub entries_added: u64,
    /// Id of the first entry, or `0-0`.
    pub recorded_first_entry_id: StreamId,
    /// Number of groups.
    pub groups: u64,
    /// The first entry.
    pub first_entry: Option<StreamEntry<'a>>,
    /// The last entry.
    pub last_entry: Option<StreamEntry<'a>>,
}

/// Counters of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupInfo<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Number of consumers.
    pub consumers: u64,
    /// Number of pending entries.
    pub pending: u64,
    /// The last delivered id.
    pub last_delivered_id: StreamId,
    /// Number of entries read, if it is known.
    pub entries_read: Option<u64>,
    /// Number of entries not read yet, if it is known.
    pub lag: Option<i64>,
}

/// Counters of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerInfo<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Number of pending entries.
    pub pending: u64,
    /// Time since its last command, in milliseconds.
    pub idle_ms: u64,
    /// Time since it last received an entry, in milliseconds; `None`, written as -1, if never.
    pub inactive_ms: Option<u64>,
}

/// Counters and contents of a stream.
#[derive(Clone, Debug)]
pub struct FullInfo<'a> {
    /// Counters of the stream.
    pub stream: StreamInfo<'a>,
    /// First entries.
    pub entries: Vec<StreamEntry<'a>>,
    /// All groups in the order of their names.
    pub groups: Vec<FullGroup<'a>>,
}

/// Counters and contents of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullGroup<'a> {
    /// Counters of the group.
    pub group: GroupInfo<'a>,
    /// First pending entries.
    pub pending: Vec<PendingEntry<'a>>,
    /// All consumers in the order of their names.
    pub consumers: Vec<FullConsumer<'a>>,
}

/// Counters and contents of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullConsumer<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Time of its last command, in milliseconds since 1970.
    pub seen_ms: u64,
    /// Time at which it last received an entry; `None`, written as -1, if never.
    pub active_ms: Option<u64>,
    /// Number of pending entries.
    pub pending_count: u64,
    /// First pending entries.
    pub pending: Vec<PendingEntry<'a>>,
}

impl<'a> StreamRef<'a> {
    /// Data of `XINFO STREAM`.
    pub fn info(self) -> StreamInfo<'a> {
        let nodes = match self.nodes {
            Nodes::One(bytes) => u64::from(!bytes.is_empty()),
            Nodes::Many(nodes) => nodes.len() as u64,
        };
        StreamInfo {
            length: self.length,
            nodes,
            last_generated_id: self.head.last_id,
            max_deleted_entry_id: self.head.max_deleted_id,
            entries_added: self.head.entries_added,
            recorded_first_entry_id: self.first_id(),
            groups: self.groups.map_or(0, |groups| groups.iter().len() as u64),
            first_entry: self.nodes.first(),
            last_entry: self.nodes.last(),
        }
    }

    /// Data of `XINFO STREAM` with `FULL` and `COUNT`: at most `count` entries of the stream, and
    /// as many pending entries of each group and consumer. 0 is no limit.
    pub fn full_info(self, count: u64) -> FullInfo<'a> {
        let count = super::read::limit(count);
        let extent = Extent::of(self);
        let groups = self.groups.into_iter().flat_map(|groups| groups.iter());
        FullInfo {
            stream: self.info(),
            entries: self.range(StreamId::MIN, StreamId::MAX).take(count).collect(),
            groups: groups.map(|(name, group)| group.full(name, &extent, count)).collect(),
        }
    }

    /// Data of `XINFO GROUPS`, in the order of the names.
    pub fn groups(self) -> impl Iterator<Item = GroupInfo<'a>> + use<'a> {
        let extent = Extent::of(self);
        let groups = self.groups.into_iter().flat_map(|groups| groups.iter());
        groups.map(move |(name, group)| group.info(name, &extent))
    }

    /// Data of `XINFO CONSUMERS`, in the order of the names.
    ///
    /// # Errors
    /// `NoGroup`
    pub fn consumers(
        self,
        group: &[u8],
        now_ms: u64,
    ) -> Result<impl Iterator<Item = ConsumerInfo<'a>> + use<'a>, StreamError> {
        Ok(self.group(group)?.consumers().map(move |consumer| consumer.info(now_ms)))
    }
}

impl Group {
    fn info<'a>(&'a self, name: &'a [u8], extent: &Extent) -> GroupInfo<'a> {
        GroupInfo {
            name,
            consumers: self.consumers().len() as u64,
            pending: self.pending.len() as u64,
            last_delivered_id: self.last_id,
            entries_read: self.entries_read,
            lag: extent.lag(self),
        }
    }

    fn full<'a>(&'a self, name: &'a [u8], extent: &Extent, count: usize) -> FullGroup<'a> {
        let pending = self.pending.iter().map(|(id, pending)| pending.entry(*id, self));
        FullGroup {
            group: self.info(name, extent),
            pending: pending.take(count).collect(),
            consumers: self.consumers().map(|consumer| consumer.full(self, count)).collect(),
        }
    }
}

impl Consumer {
    fn info(&self, now_ms: u64) -> ConsumerInfo<'_> {
        ConsumerInfo {
            name: &self.name,
            pending: self.pending.len() as u64,
            idle_ms: now_ms.saturating_sub(self.seen_ms),
            inactive_ms: self.active_ms.map(|active| now_ms.saturating_sub(active)),
        }
    }

    fn full<'a>(&'a self, group: &'a Group, count: usize) -> FullConsumer<'a> {
        let pending = self.pending.iter().map(|id| group.pending[id].entry(*id, group));
        FullConsumer {
            name: &self.name,
            seen_ms: self.seen_ms,
            active_ms: self.active_ms,
            pending_count: self.pending.len() as u64,
            pending: pending.take(count).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::entry::Entry;
    use crate::limits::Limits;
    use crate::stream::{GroupRead, GroupStart, NewId, ReadFrom, Stream, StreamId};

    /// Seven entries in nodes of three, of which the second is deleted, and two groups.
    fn stream() -> Stream {
        let limits = Limits { stream_node_entries: 3, ..Limits::default() };
        let mut stream = Stream::default();
        stream.create_group(b"old", GroupStart::After(StreamId::MIN), None).unwrap();
        for ms in 1..=7 {
            let value = ms.to_string();
            stream.add(&limits, NewId::AutoSeq(ms), &[b"n", value.as_bytes()], 0).unwrap();
        }
        stream.create_group(b"new", GroupStart::Last, None).unwrap();
        stream.delete(&[StreamId::new(2, 0)]);
        let read = GroupRead { from: ReadFrom::New, count: 3, is_acknowledged: false, now_ms: 50 };
        stream.read_group(b"old", b"worker", &read, |_, _| {}).unwrap();
        stream.create_consumer(b"old", b"idle", 60).unwrap();
        stream
    }

    #[test]
    fn counters_of_the_stream() {
        let stream = stream();
        let info = stream.view().info();
        assert_eq!((info.length, info.nodes, info.entries_added, info.groups), (6, 3, 7, 2));
        assert_eq!(info.last_generated_id, StreamId::new(7, 0));
        assert_eq!(info.max_deleted_entry_id, StreamId::new(2, 0));
        assert_eq!(info.recorded_first_entry_id, StreamId::new(1, 0));
        assert_eq!(info.first_entry.unwrap().id, StreamId::new(1, 0));
        assert!(info.last_entry.unwrap().fields.eq([(&b"n"[..], Entry::Integer(7))]));
    }

    #[test]
    fn counters_of_groups_and_consumers() {
        let stream = stream();
        let groups: Vec<_> = stream.view().groups().collect();
        let rows = groups.iter().map(|it| {
            (it.name, it.consumers, it.pending, it.last_delivered_id.ms, it.entries_read, it.lag)
        });
        let expected = [(&b"new"[..], 0, 0, 7, None, Some(0)), (b"old", 2, 3, 4, None, None)];
        assert!(rows.eq(expected), "{groups:?}");
        let consumers: Vec<_> = stream.view().consumers(b"old", 100).unwrap().collect();
        let rows = consumers.iter().map(|it| (it.name, it.pending, it.idle_ms, it.inactive_ms));
        assert!(rows.eq([(&b"idle"[..], 0, 40, None), (b"worker", 3, 50, Some(50))]));
        assert!(stream.view().consumers(b"none", 100).is_err());
    }

    #[test]
    fn full_data_is_limited_by_a_count() {
        let stream = stream();
        let full = stream.view().full_info(2);
        assert_eq!(full.entries.len(), 2);
        let old = &full.groups[1];
        assert_eq!((old.group.pending, old.pending.len()), (3, 2));
        let worker = &old.consumers[1];
        assert_eq!((worker.pending_count, worker.pending.len()), (3, 2));
        assert_eq!((worker.seen_ms, worker.active_ms), (50, Some(50)));
        assert_eq!(stream.view().full_info(0).groups[1].pending.len(), 3);
        let empty = Stream::default();
        assert_eq!((empty.view().info().nodes, empty.view().full_info(0).groups.len()), (0, 0));
    }
}
