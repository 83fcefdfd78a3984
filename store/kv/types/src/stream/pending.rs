// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pending entries: delivered to a consumer of a group, and not acknowledged yet.
//!
//! A pending entry is in two places: the map of its group has all there is to know about it, and
//! the set of its consumer has its id. The functions of this file change both together.

use super::group::{ConsumerNumber, Group};
use super::{StreamError, StreamId, StreamRef};

/// A delivery that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Time of the last delivery, in milliseconds.
    pub delivered_ms: u64,
    /// Number of deliveries.
    pub deliveries: u64,
    /// The consumer to which it was delivered.
    pub consumer: ConsumerNumber,
}

/// A pending entry, as `XPENDING` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingEntry<'a> {
    /// Id of the entry, which may be deleted in the meantime.
    pub id: StreamId,
    /// Name of the consumer to which it was delivered.
    pub consumer: &'a [u8],
    /// Time of the last delivery, in milliseconds.
    pub delivered_ms: u64,
    /// Number of deliveries.
    pub deliveries: u64,
}

/// Pending entries of a group in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingSummary<'a> {
    /// Number of pending entries.
    pub count: u64,
    /// The smallest and the largest id, if there are any.
    pub bounds: Option<(StreamId, StreamId)>,
    /// Consumers with pending entries and their number, in the order of the names.
    pub consumers: Vec<(&'a [u8], u64)>,
}

/// Interval and filter of the extended form of `XPENDING`.
#[derive(Clone, Copy, Debug)]
pub struct PendingQuery<'a> {
    /// Smallest id.
    pub first: StreamId,
    /// Largest id.
    pub last: StreamId,
    /// Least time since the last delivery, in milliseconds.
    pub min_idle_ms: u64,
    /// Entries of this consumer only.
    pub consumer: Option<&'a [u8]>,
}

impl<'a> StreamRef<'a> {
    /// Counts the pending entries of a group.
    ///
    /// # Errors
    /// `NoGroup`
    pub fn pending_summary(self, group: &[u8]) -> Result<PendingSummary<'a>, StreamError> {
        let group = self.group(group)?;
        let first = group.pending.first_key_value().map(|(id, _)| *id);
        let last = group.pending.last_key_value().map(|(id, _)| *id);
        let consumers = group.consumers().filter(|consumer| !consumer.pending.is_empty());
        Ok(PendingSummary {
            count: group.pending.len() as u64,
            bounds: first.zip(last),
            consumers: consumers
                .map(|consumer| (&*consumer.name, consumer.pending.len() as u64))
                .collect(),
        })
    }

    /// Lists pending entries of a group in ascending order of their ids. No entries for a consumer
    /// that does not exist. The option `COUNT` is left to the caller.
    ///
    /// # Errors
    /// `NoGroup`
    pub fn pending(
        self,
        group: &[u8],
        query: &PendingQuery<'_>,
        now_ms: u64,
    ) -> Result<impl Iterator<Item = PendingEntry<'a>> + use<'a>, StreamError> {
        let group = self.group(group)?;
        let PendingQuery { first, last, min_idle_ms, .. } = *query;
        let is_empty = first > last;
        let number = query.consumer.map(|name| group.number_of(name));
        let of_group = (number.is_none() && !is_empty).then(|| group.pending.range(first..=last));
        let of_consumer = number.flatten().filter(|_| !is_empty).map(|number| {
            let ids = group.consumer(number).pending.range(first..=last);
            ids.map(|id| (id, &group.pending[id]))
        });
        let all = of_group.into_iter().flatten().chain(of_consumer.into_iter().flatten());
        let idle = all.filter(move |(_, it)| it.idle_ms(now_ms) >= min_idle_ms);
        Ok(idle.map(|(id, pending)| pending.entry(*id, group)))
    }

    pub(super) fn group(self, name: &[u8]) -> Result<&'a Group, StreamError> {
        self.groups.and_then(|groups| groups.get(name)).ok_or(StreamError::NoGroup)
    }
}

impl Pending {
    /// Time since the last delivery, in milliseconds.
    pub fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.delivered_ms)
    }

    /// The entry as it is listed.
    pub fn entry<'a>(&self, id: StreamId, group: &'a Group) -> PendingEntry<'a> {
        let consumer = &group.consumer(self.consumer).name;
        let Pending { delivered_ms, deliveries, .. } = *self;
        PendingEntry { id, consumer, delivered_ms, deliveries }
    }
}

impl Group {
    /// Makes an entry pending for a consumer, also if it was pending for another.
    pub fn assign(&mut self, id: StreamId, pending: Pending) {
        let before = self.pending.insert(id, pending);
        if let Some(before) = before.filter(|before| before.consumer != pending.consumer) {
            self.consumer_mut(before.consumer).pending.remove(&id);
        }
        if before.is_none_or(|before| before.consumer != pending.consumer) {
            self.consumer_mut(pending.consumer).pending.insert(id);
        }
    }

    /// Removes a pending entry. Returns whether it was pending.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        self.consumer_mut(pending.consumer).pending.remove(&id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{GroupRead, GroupStart, NewId, ReadFrom, Stream};

    /// Entries 1 to 6: the first three pending for `a` since 10, the others for `b` since 20.
    fn stream() -> Stream {
        let mut stream = Stream::default();
        stream.create_group(b"g", GroupStart::Last, None).unwrap();
        for ms in 1..=6 {
            stream.add(&Default::default(), NewId::AutoSeq(ms), &[b"f", b"v"], 0).unwrap();
        }
        for (name, now_ms) in [(b"a", 10), (b"b", 20)] {
            let read = GroupRead { from: ReadFrom::New, count: 3, is_acknowledged: false, now_ms };
            assert_eq!(stream.read_group(b"g", name, &read, |_, _| {}), Ok(3));
        }
        stream
    }

    fn times(stream: &Stream, query: &PendingQuery<'_>) -> Vec<u64> {
        stream.view().pending(b"g", query, 25).unwrap().map(|it| it.id.ms).collect()
    }

    #[test]
    fn queries_select_an_interval_a_consumer_and_an_age() {
        let stream = stream();
        let (first, last) = (StreamId::new(2, 0), StreamId::new(5, 0));
        let query = PendingQuery { first, last, min_idle_ms: 0, consumer: None };
        assert_eq!(times(&stream, &query), [2, 3, 4, 5]);
        assert_eq!(times(&stream, &PendingQuery { min_idle_ms: 6, ..query }), [2, 3]);
        let of = |consumer| PendingQuery { consumer: Some(consumer), ..query };
        assert_eq!(times(&stream, &of(b"b")), [4, 5]);
        assert_eq!(times(&stream, &of(b"nobody")), []);
        let reversed = PendingQuery { first: last, last: first, ..query };
        assert_eq!(times(&stream, &reversed), []);
        assert_eq!(times(&stream, &PendingQuery { first: last, last: first, ..of(b"b") }), []);
        assert!(stream.view().pending(b"h", &query, 25).is_err());
    }

    #[test]
    fn a_summary_lists_consumers_with_pending_entries() {
        let mut stream = stream();
        stream.create_consumer(b"g", b"idle", 0).unwrap();
        let ids = [1, 2, 3, 3, 9].map(|ms| StreamId::new(ms, 0));
        assert_eq!(stream.acknowledge(b"g", &ids[1..]), Ok(2));
        let summary = stream.view().pending_summary(b"g").unwrap();
        assert_eq!(summary.count, 4);
        assert_eq!(summary.bounds, Some((ids[0], StreamId::new(6, 0))));
        assert_eq!(summary.consumers, [(&b"a"[..], 1), (&b"b"[..], 3)]);
        assert_eq!(stream.delete_consumer(b"g", b"b"), Ok(3));
        assert_eq!(stream.acknowledge(b"g", &ids), Ok(1));
        let summary = stream.view().pending_summary(b"g").unwrap();
        assert_eq!((summary.count, summary.bounds), (0, None));
    }
}
