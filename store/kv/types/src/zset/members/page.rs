// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A page of the table: the records of sixteen numbers, one after the other, and the links and tags
//! that a search reads before records.

use std::ops::Range;

/// Members of a full page.
pub const PAGE: usize = 16;

/// Bytes of the score in a record.
const SCORE: usize = 8;

/// Sixteen members, or fewer if it is the last page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The next member of the same bucket.
    pub next: [u32; PAGE],
    /// Highest byte of the hash.
    pub tags: [u8; PAGE],
    /// Ends of the records.
    pub ends: [u16; PAGE],
    /// Records in the order of their slots.
    pub records: Vec<u8>,
}

impl Page {
    /// Where record `slot` lies.
    #[inline]
    pub fn range(&self, slot: usize) -> Range<usize> {
        let start = slot.checked_sub(1).map_or(0, |before| self.ends[before]);
        usize::from(start)..usize::from(self.ends[slot])
    }

    /// Score and member of record `slot`.
    #[inline]
    pub fn record(&self, slot: usize) -> (f64, &[u8]) {
        let record = &self.records[self.range(slot)];
        let (score, member) = record.split_first_chunk().expect("records have a score");
        (f64::from_le_bytes(*score), member)
    }

    /// Changes the score of record `slot`.
    pub fn set_score(&mut self, slot: usize, score: f64) {
        let start = self.range(slot).start;
        self.records[start..start + SCORE].copy_from_slice(&score.to_le_bytes());
    }

    /// Replaces record `slot` of `count`; later records move. A full page takes the memory that it
    /// needs, and one that grows takes more.
    pub fn put(&mut self, slot: usize, count: usize, record: &[u8]) {
        let (len, old) = (self.records.len(), self.range(slot));
        let end = old.start + record.len();
        let moved = len - old.end;
        if end + moved > len {
            if count == PAGE {
                self.records.reserve_exact(end + moved - len);
            }
            self.records.resize(end + moved, 0);
        }
        self.records.copy_within(old.end..len, end);
        self.records.truncate(end + moved);
        self.records[old.start..end].copy_from_slice(record);
        let small = |offset: usize| u16::try_from(offset).expect("pages are smaller than 64 KiB");
        self.ends[slot] = small(end);
        for later in self.ends[..count].iter_mut().skip(slot + 1) {
            *later = small(usize::from(*later) - old.end + end);
        }
    }
}
