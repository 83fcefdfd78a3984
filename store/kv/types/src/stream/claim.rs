// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Claims: a consumer takes over pending entries of others (`XCLAIM`, `XAUTOCLAIM`).
//!
//! A claim also removes what it finds pending although its entry is deleted: nobody can process
//! that any more.

use super::group::{ConsumerNumber, Group};
use super::pending::Pending;
use super::{Stream, StreamEntry, StreamError, StreamId, StreamRef};

/// Entries that a claim of the second kind looks at for each that it may return.
const ATTEMPTS_PER_ENTRY: u64 = 10;

/// Options of `XCLAIM`. The option `JUSTID` also makes the caller reply with ids only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claim {
    /// Least time since the last delivery, in milliseconds. Not checked for forced entries.
    pub min_idle_ms: u64,
    /// The new time of the last delivery.
    pub delivered: ClaimTime,
    /// The new number of deliveries (`RETRYCOUNT`).
    pub deliveries: Option<u64>,
    /// Whether entries become pending that were not (`FORCE`).
    pub is_forced: bool,
    /// Whether the number of deliveries stays as it is (`JUSTID`).
    pub is_silent: bool,
    /// Lowest position of the group afterwards (`LASTID`).
    pub last_id: Option<StreamId>,
    /// The time, in milliseconds.
    pub now_ms: u64,
}

/// Time of the last delivery of a claimed entry. A time in the future or before 1970 becomes the
/// present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimTime {
    /// The present.
    #[default]
    Now,
    /// This long ago, in milliseconds (`IDLE`).
    Idle(i64),
    /// A time in milliseconds since 1970 (`TIME`).
    At(i64),
}

/// Options of `XAUTOCLAIM`.
#[derive(Clone, Copy, Debug)]
pub struct AutoClaim {
    /// Least time since the last delivery, in milliseconds.
    pub min_idle_ms: u64,
    /// Smallest id to look at.
    pub start: StreamId,
    /// Most entries to claim or to remove. At least 1; the default of Redis is 100.
    pub count: u64,
    /// Whether the number of deliveries stays as it is (`JUSTID`).
    pub is_silent: bool,
    /// The time, in milliseconds.
    pub now_ms: u64,
}

/// Result of `XAUTOCLAIM`, apart from the claimed entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoClaimed {
    /// Start of the next call, or `0-0` at the end.
    pub next: StreamId,
    /// Ids that were pending although their entries are deleted, and are not any more.
    pub deleted: Vec<StreamId>,
}

impl Stream {
    /// Claims entries for a consumer, which is created if necessary. `each` gets every claimed
    /// entry.
    ///
    /// # Errors
    /// `NoGroup`
    pub fn claim(
        &mut self,
        group: &[u8],
        consumer: &[u8],
        ids: &[StreamId],
        claim: &Claim,
        mut each: impl FnMut(StreamEntry<'_>),
    ) -> Result<(), StreamError> {
        self.edit_group(group, |group, stream| {
            group.last_id = group.last_id.max(claim.last_id.unwrap_or_default());
            let number = group.see_consumer(consumer, claim.now_ms);
            for id in ids {
                group.claim(*id, stream.get(*id), number, claim).map(&mut each);
            }
        })
    }

    /// Claims entries that are pending for a long time, for a consumer, which is created if
    /// necessary. `each` gets every claimed entry.
    ///
    /// # Errors
    /// `NoGroup`
    pub fn claim_idle(
        &mut self,
        group: &[u8],
        consumer: &[u8],
        claim: &AutoClaim,
        each: impl FnMut(StreamEntry<'_>),
    ) -> Result<AutoClaimed, StreamError> {
        self.edit_group(group, |group, stream| {
            let number = group.see_consumer(consumer, claim.now_ms);
            group.claim_idle(number, claim, stream, each)
        })
    }
}

impl Group {
    /// Claims one entry, which is given unless it is deleted. Returns it if it is claimed.
    fn claim<'a>(
        &mut self,
        id: StreamId,
        entry: Option<StreamEntry<'a>>,
        number: ConsumerNumber,
        claim: &Claim,
    ) -> Option<StreamEntry<'a>> {
        if entry.is_none() {
            self.acknowledge(id);
            return None;
        }
        let before = match self.pending.get(&id) {
            Some(pending) if pending.idle_ms(claim.now_ms) < claim.min_idle_ms => return None,
            Some(pending) => pending.deliveries,
            // An entry that becomes pending counts as delivered before it is claimed.
            None if claim.is_forced => 1,
            None => return None,
        };
        let after = before.saturating_add(u64::from(!claim.is_silent));
        let pending = Pending {
            delivered_ms: claim.delivered.resolve(claim.now_ms),
            deliveries: claim.deliveries.unwrap_or(after),
            consumer: number,
        };
        self.assign(id, pending);
        self.consumer_mut(number).active_ms = Some(claim.now_ms);
        entry
    }

    fn claim_idle(
        &mut self,
        number: ConsumerNumber,
        claim: &AutoClaim,
        stream: StreamRef<'_>,
        mut each: impl FnMut(StreamEntry<'_>),
    ) -> AutoClaimed {
        let one = Claim {
            min_idle_ms: claim.min_idle_ms,
            is_silent: claim.is_silent,
            now_ms: claim.now_ms,
            ..Claim::default()
        };
        let mut deleted = vec![];
        let mut next = self.pending_from(Some(claim.start));
        let mut left = claim.count;
        let mut attempts = claim.count.saturating_mul(ATTEMPTS_PER_ENTRY);
        while let Some(id) = next.filter(|_| left > 0 && attempts > 0) {
            let entry = stream.get(id);
            let is_deleted = entry.is_none();
            let claimed = self.claim(id, entry, number, &one);
            left -= u64::from(is_deleted || claimed.is_some());
            attempts -= 1;
            if is_deleted {
                deleted.push(id);
            }
            claimed.map(&mut each);
            next = self.pending_from(id.next());
        }
        AutoClaimed { next: next.unwrap_or_default(), deleted }
    }

    /// The first pending id that is not before `id`.
    fn pending_from(&self, id: Option<StreamId>) -> Option<StreamId> {
        self.pending.range(id?..).next().map(|(id, _)| *id)
    }
}

impl ClaimTime {
    fn resolve(self, now_ms: u64) -> u64 {
        let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
        let given = match self {
            ClaimTime::Now => now,
            ClaimTime::Idle(ms) => now.wrapping_sub(ms),
            ClaimTime::At(ms) => ms,
        };
        if (0..=now).contains(&given) { given as u64 } else { now_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::stream::{GroupRead, GroupStart, NewId, ReadFrom};

    #[test]
    fn times_of_delivery_are_in_the_past() {
        assert_eq!(ClaimTime::Now.resolve(100), 100);
        assert_eq!(ClaimTime::Idle(30).resolve(100), 70);
        assert_eq!(ClaimTime::Idle(101).resolve(100), 100);
        assert_eq!(ClaimTime::Idle(-5).resolve(100), 100);
        assert_eq!(ClaimTime::Idle(i64::MIN).resolve(100), 100);
        assert_eq!(ClaimTime::At(40).resolve(100), 40);
        assert_eq!(ClaimTime::At(-1).resolve(100), 100);
        assert_eq!(ClaimTime::At(101).resolve(100), 100);
    }

    #[test]
    fn a_call_looks_at_ten_entries_for_each_that_it_may_return() {
        let mut stream = Stream::default();
        stream.create_group(b"g", GroupStart::Last, None).unwrap();
        for ms in 1..=25 {
            stream.add(&Limits::default(), NewId::AutoSeq(ms), &[b"f", b"v"], 0).unwrap();
        }
        let read = GroupRead { from: ReadFrom::New, count: 0, is_acknowledged: false, now_ms: 50 };
        stream.read_group(b"g", b"c", &read, |_, _| {}).unwrap();
        let mut start = StreamId::MIN;
        for next in [11, 21, 0] {
            let (count, is_silent) = (1, false);
            let claim = AutoClaim { min_idle_ms: 10, start, count, is_silent, now_ms: 55 };
            let claimed = stream.claim_idle(b"g", b"d", &claim, |_| panic!("none is idle"));
            start = StreamId::new(next, 0);
            assert_eq!(claimed, Ok(AutoClaimed { next: start, deleted: vec![] }));
        }
    }
}
