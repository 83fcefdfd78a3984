// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lag of a group: the number of entries that it has not read.
//!
//! A group counts the entries that it reads, and a stream those that are added, so the lag is a
//! difference and needs no walk. Deleted entries were added and are never read; where they may
//! lie behind the position of a group, its count says nothing. The rules for that are those of
//! Redis 7.2, which knows the largest deleted id only.

use super::group::Group;
use super::{StreamId, StreamRef};

/// Counters of a stream from which the number of entries before an id follows, or not.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    length: u64,
    first_id: StreamId,
    last_id: StreamId,
    max_deleted_id: StreamId,
    entries_added: u64,
}

impl Extent {
    /// The counters of `stream`.
    pub fn of(stream: StreamRef<'_>) -> Extent {
        Extent {
            length: stream.len(),
            first_id: stream.first_id(),
            last_id: stream.last_id(),
            max_deleted_id: stream.max_deleted_id(),
            entries_added: stream.entries_added(),
        }
    }

    /// Returns whether an entry behind the first one was deleted that is not before `id`.
    pub fn has_deleted_from(&self, id: StreamId) -> bool {
        self.length > 0
            && !self.max_deleted_id.is_zero()
            && self.first_id <= self.max_deleted_id
            && id <= self.max_deleted_id
    }

    /// Number of entries that were ever added up to `id`, if it is known.
    pub fn entries_up_to(&self, id: StreamId) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if id == self.last_id || (self.length == 0 && id < self.last_id) {
            return Some(self.entries_added);
        }
        if id > self.last_id {
            return None;
        }
        let is_whole = self.max_deleted_id.is_zero() || self.max_deleted_id < self.first_id;
        let removed = self.entries_added.saturating_sub(self.length);
        match () {
            () if !is_whole || id > self.first_id => None,
            () if id == self.first_id => Some(removed + 1),
            () => Some(removed),
        }
    }

    /// Number of entries that `group` has not read, if it is known. Negative if the counters that
    /// clients set contradict each other.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        let counted = group.entries_read.filter(|_| !self.has_deleted_from(group.last_id));
        let read = counted.or_else(|| self.entries_up_to(group.last_id))?;
        Some((self.entries_added as i64).wrapping_sub(read as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: u64) -> StreamId {
        StreamId::new(ms, 0)
    }

    /// Entries 4 to 10 of ten, of which the largest deleted one is `max_deleted`.
    fn extent(max_deleted: u64) -> Extent {
        Extent {
            length: 7,
            first_id: id(4),
            last_id: id(10),
            max_deleted_id: id(max_deleted),
            entries_added: 10,
        }
    }

    #[test]
    fn entries_are_counted_where_nothing_is_missing() {
        let whole = extent(0);
        assert_eq!(whole.entries_up_to(id(2)), Some(3));
        assert_eq!(whole.entries_up_to(id(4)), Some(4));
        assert_eq!(whole.entries_up_to(id(5)), None);
        assert_eq!(whole.entries_up_to(id(10)), Some(10));
        assert_eq!(whole.entries_up_to(id(11)), None);
        assert_eq!(extent(3).entries_up_to(id(4)), Some(4));
        assert_eq!(extent(6).entries_up_to(id(4)), None);
        assert_eq!(extent(6).entries_up_to(id(10)), Some(10));
        let empty = Extent { length: 0, first_id: StreamId::MIN, ..extent(10) };
        assert_eq!(empty.entries_up_to(id(2)), Some(10));
        let unused = Extent { entries_added: 0, ..empty };
        assert_eq!(unused.entries_up_to(id(99)), Some(0));
    }

    #[test]
    fn the_lag_is_known_if_the_count_is() {
        let lag =
            |max_deleted, last_id, read| extent(max_deleted).lag(&Group::new(id(last_id), read));
        assert_eq!(lag(0, 6, Some(6)), Some(4));
        assert_eq!(lag(0, 6, None), None);
        assert_eq!(lag(0, 10, None), Some(0));
        assert_eq!(lag(0, 3, None), Some(7));
        // An entry behind the position is deleted: the count does not help.
        assert_eq!(lag(8, 6, Some(6)), None);
        assert_eq!(lag(8, 9, Some(9)), Some(1));
        assert_eq!(lag(3, 2, Some(2)), Some(8));
        assert_eq!(lag(0, 6, Some(12)), Some(-2));
        let unused = Extent { entries_added: 0, ..extent(0) };
        assert_eq!(unused.lag(&Group::new(id(5), None)), Some(0));
    }
}
