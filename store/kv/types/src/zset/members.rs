// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The members of a large sorted set with their scores, each stored once, found by number or by
//! bytes.
//!
//! Members have dense numbers: the last member takes the number of a removed one. A random member
//! is thus one random number, and a scan that counts down meets every member that stays.
//!
//! Records lie in pages of 16, so that a member costs a part of an allocation only. A record is the
//! score (8 bytes), the next member of the same bucket (4), the length of the member as a variable
//! number, and the member. Pages have no gaps: removal rewrites one or two of them.
//!
//! The index by bytes is a linear hash table (Litwin, "Linear hashing", VLDB 1980): one bucket
//! splits when a member is added, and up to two are joined when one is removed. No operation
//! rehashes more, and the table has at most twice as many buckets as members.

use crate::entry::Entry;
use crate::hashing::hash;
use crate::varint;

/// Members of a full page.
const PAGE: usize = 16;

/// Bytes of a record before the length of its member.
const HEAD: usize = 12;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// Largest number of members: all numbers but [`NONE`].
pub const MAX_MEMBERS: usize = NONE as usize;

/// A table of members.
pub struct Members {
    pages: Vec<Vec<u8>>,
    /// First member of each bucket.
    heads: Vec<u32>,
    len: usize,
    seed: u64,
    page_bytes: usize,
}

impl Members {
    /// A table without members. `seed` keys its hash function.
    pub fn new(seed: u64) -> Self {
        Self { pages: vec![], heads: vec![NONE], len: 0, seed, page_bytes: 0 }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that the table has allocated.
    pub fn memory_bytes(&self) -> usize {
        self.page_bytes
            + self.pages.capacity() * size_of::<Vec<u8>>()
            + self.heads.capacity() * size_of::<u32>()
    }

    /// The number of `member`.
    pub fn find(&self, member: &[u8]) -> Option<u32> {
        let mut id = self.heads[self.bucket(member)];
        while id != NONE {
            let record = self.record(id);
            if record.member == member {
                return Some(id);
            }
            id = record.next;
        }
        None
    }

    /// The member with the number `id`.
    pub fn get(&self, id: u32) -> &[u8] {
        self.record(id).member
    }

    /// The member with the number `id`, and its score.
    pub fn entry(&self, id: u32) -> (&[u8], f64) {
        let record = self.record(id);
        (record.member, record.score)
    }

    /// The score of the member with the number `id`.
    pub fn score(&self, id: u32) -> f64 {
        self.record(id).score
    }

    /// Changes the score of the member with the number `id`.
    pub fn set_score(&mut self, id: u32, score: f64) {
        let at = self.offset(id);
        self.page_mut(id)[at..at + 8].copy_from_slice(&score.to_le_bytes());
    }

    /// Adds a member, which is not in the table, and returns its number.
    ///
    /// # Panics
    /// If the table has [`MAX_MEMBERS`] members.
    pub fn push(&mut self, member: &[u8], score: f64) -> u32 {
        assert!(self.len < MAX_MEMBERS, "a sorted set has fewer than 2^32 - 1 members");
        let id = self.len as u32;
        if self.len.is_multiple_of(PAGE) {
            if self.pages.len() == self.pages.capacity() {
                self.pages.reserve_exact(4.max(self.pages.len() / 8));
            }
            self.pages.push(vec![]);
        }
        let bucket = self.bucket(member);
        let next = std::mem::replace(&mut self.heads[bucket], id);
        self.len += 1;
        let is_full = self.len.is_multiple_of(PAGE);
        self.edit(self.pages.len() - 1, |page| {
            page.reserve(HEAD + varint::size(member.len() as u64) + member.len());
            page.extend_from_slice(&score.to_le_bytes());
            page.extend_from_slice(&next.to_le_bytes());
            varint::write(member.len() as u64, page);
            page.extend_from_slice(member);
            if is_full {
                page.shrink_to_fit();
            }
        });
        if self.len > self.heads.len() {
            self.split();
        }
        id
    }

    /// Removes the member with the number `id`. The last member takes the number.
    pub fn swap_remove(&mut self, id: u32) {
        let Record { next, member, .. } = self.record(id);
        self.relink(self.bucket(member), id, next);
        let last = self.len as u32 - 1;
        let (last_page, last_at) = (last as usize / PAGE, self.offset(last));
        let moved = self.pages[last_page][last_at..].to_vec();
        if id != last {
            self.relink(self.bucket(self.get(last)), last, id);
            let at = self.offset(id);
            let end = at + self.record(id).bytes;
            self.edit(id as usize / PAGE, |page| drop(page.splice(at..end, moved)));
        }
        // In the same page, the record before may have changed its size.
        let last_at = self.offset(last);
        self.edit(last_page, |page| page.truncate(last_at));
        self.len -= 1;
        for page in [id as usize / PAGE, last_page] {
            self.edit(page, |page| {
                if page.len() < page.capacity() / 2 {
                    page.shrink_to_fit();
                }
            });
        }
        if self.len.is_multiple_of(PAGE) {
            self.pages.pop();
            if self.pages.len() < self.pages.capacity() / 2 {
                self.pages.shrink_to_fit();
            }
        }
        // At most two: a removal halves no more.
        while self.heads.len() > 1 && self.len < self.heads.len() / 2 {
            self.join();
        }
    }

    fn page_mut(&mut self, id: u32) -> &mut Vec<u8> {
        &mut self.pages[id as usize / PAGE]
    }

    /// Changes a page, and follows its allocation.
    fn edit(&mut self, page: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let page = &mut self.pages[page];
        self.page_bytes -= page.capacity();
        change(page);
        self.page_bytes += page.capacity();
    }

    /// Offset of the record in its page.
    fn offset(&self, id: u32) -> usize {
        let page = &self.pages[id as usize / PAGE];
        let mut at = 0;
        for _ in 0..id as usize % PAGE {
            at += member_at(page, at).end - at;
        }
        at
    }

    fn record(&self, id: u32) -> Record<'_> {
        let page = &self.pages[id as usize / PAGE];
        let at = self.offset(id);
        let (score, rest) = page[at..].split_first_chunk().expect("records are whole");
        let next = rest.first_chunk().expect("records are whole");
        let member = member_at(page, at);
        Record {
            score: f64::from_le_bytes(*score),
            next: u32::from_le_bytes(*next),
            bytes: member.end - at,
            member: &page[member],
        }
    }

    /// The bucket of `member` among the present number of buckets.
    fn bucket(&self, member: &[u8]) -> usize {
        let hash = hash(self.seed, Entry::Bytes(member)) as usize;
        let mask = self.heads.len().next_power_of_two() - 1;
        let bucket = hash & mask;
        if bucket < self.heads.len() { bucket } else { bucket & (mask >> 1) }
    }

    /// Replaces the link to `from` in the chain of `bucket` by one to `target`.
    fn relink(&mut self, bucket: usize, from: u32, target: u32) {
        let mut id = self.heads[bucket];
        if id == from {
            self.heads[bucket] = target;
            return;
        }
        loop {
            let next = self.record(id).next;
            if next == from {
                return self.set_next(id, target);
            }
            id = next;
        }
    }

    fn set_next(&mut self, id: u32, next: u32) {
        let at = self.offset(id) + 8;
        self.page_mut(id)[at..at + 4].copy_from_slice(&next.to_le_bytes());
    }

    /// Adds a bucket, and moves to it what belongs there from the bucket with the same lower bits.
    fn split(&mut self) {
        let new = self.heads.len();
        let old = new ^ (1 << new.ilog2());
        if new == self.heads.capacity() {
            self.heads.reserve_exact(8.max(new / 8));
        }
        let mut id = std::mem::replace(&mut self.heads[old], NONE);
        self.heads.push(NONE);
        while id != NONE {
            let Record { next, member, .. } = self.record(id);
            let bucket = self.bucket(member);
            let head = std::mem::replace(&mut self.heads[bucket], id);
            self.set_next(id, head);
            id = next;
        }
    }

    /// Removes the last bucket, and moves its members to the bucket with the same lower bits.
    fn join(&mut self) {
        let mut id = self.heads.pop().expect("there is more than one bucket");
        let new = self.heads.len();
        let old = new ^ (1 << new.ilog2());
        while id != NONE {
            let next = self.record(id).next;
            let head = std::mem::replace(&mut self.heads[old], id);
            self.set_next(id, head);
            id = next;
        }
        if new < self.heads.capacity() / 2 {
            self.heads.shrink_to_fit();
        }
    }
}

struct Record<'a> {
    score: f64,
    next: u32,
    /// Size of the record.
    bytes: usize,
    member: &'a [u8],
}

/// Where the member of the record at `at` lies in `page`.
#[inline]
fn member_at(page: &[u8], at: usize) -> std::ops::Range<usize> {
    let rest = &page[at + HEAD..];
    let (length, size) = match rest[0] {
        short @ 0..0x80 => (u64::from(short), 1),
        _ => varint::read(rest).expect("records are whole"),
    };
    let start = at + HEAD + size;
    start..start + length as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn members_are_those_of_a_map() {
        for seed in 0..8 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut members = Members::new(seed);
            let mut model = HashMap::new();
            for step in 0..4000 {
                let length = if random.u8(..) == 0 { 300 } else { random.usize(0..3) };
                let mut member = vec![random.u8(..); length];
                member.extend(random.u16(..600).to_string().bytes());
                // Grow for half of the time, then shrink.
                let is_growing = step % 2000 < 1000;
                match (members.find(&member), random.u8(..8) < if is_growing { 2 } else { 6 }) {
                    (None, _) if is_growing => {
                        members.push(&member, f64::from(step));
                        assert_eq!(model.insert(member, f64::from(step)), None, "seed {seed}");
                    }
                    (Some(id), false) => {
                        members.set_score(id, f64::from(-step));
                        model.insert(member, f64::from(-step));
                    }
                    _ if members.len() > 0 => {
                        let id = random.u32(..members.len() as u32);
                        let member = members.get(id).to_vec();
                        members.swap_remove(id);
                        assert!(model.remove(&member).is_some(), "seed {seed}");
                        assert_eq!(members.find(&member), None, "seed {seed}");
                    }
                    _ => {}
                }
            }
            check(&members, &model, seed);
            while members.len() > 0 {
                members.swap_remove(0);
            }
            assert_eq!(members.page_bytes, 0);
            assert_eq!(members.heads.len(), 1);
        }
    }

    fn check(members: &Members, model: &HashMap<Vec<u8>, f64>, seed: u64) {
        assert_eq!(members.len(), model.len(), "seed {seed}");
        assert!(members.heads.len() <= members.len() * 2 + 2);
        assert_eq!(members.page_bytes, members.pages.iter().map(Vec::capacity).sum::<usize>());
        for (member, &score) in model {
            let id = members.find(member).expect("present");
            assert_eq!(members.entry(id), (member.as_slice(), score), "seed {seed}");
            assert_eq!(members.score(id), score, "seed {seed}");
        }
    }

    #[test]
    fn chains_stay_short() {
        let mut members = Members::new(7);
        for number in 0..10_000u32 {
            members.push(&number.to_le_bytes(), 0.0);
        }
        let present = |id: u32| (id != NONE).then_some(id);
        let length = |&head: &u32| {
            std::iter::successors(present(head), |&id| present(members.record(id).next)).count()
        };
        let longest = members.heads.iter().map(length).max();
        assert!(longest < Some(16), "{longest:?}");
        assert_eq!(members.heads.iter().map(length).sum::<usize>(), 10_000);
    }
}
