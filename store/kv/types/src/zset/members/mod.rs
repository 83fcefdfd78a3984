// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The members of a large sorted set with their scores, each stored once, found by number or by
//! bytes.
//!
//! A member keeps its number, and a new member takes the number of a removed one. If more than half
//! of the numbers are free, members with the highest numbers take free ones, always lower than
//! their own. A random member is thus found with few random numbers, and a scan that counts down
//! meets every member that stays.
//!
//! Records lie in pages of 16, so that a member costs a part of an allocation only. A record is the
//! score (8 bytes) and the member; that of a free number has no bytes. Pages have no gaps: changes
//! move later records. Members of more than 2 KiB lie elsewhere, which keeps pages small.
//!
//! The index by bytes is a linear hash table (Litwin, "Linear hashing", VLDB 1980): one bucket
//! splits when a member is added, and up to two are joined when one is removed. No operation
//! rehashes more, and the table has at most twice as many buckets as members. Links between the
//! members of a bucket and a byte of each hash lie beside each other, so that a search reads few
//! other members.

mod page;

use std::collections::HashMap;

use crate::entry::Entry;
use crate::hashing::hash;

use page::{PAGE, Page};

/// Longest member in a page, in bytes. All offsets in a page fit into 16 bits.
const MAX_INLINE: usize = 2048;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// Largest number of members: all numbers but [`NONE`].
pub const MAX_MEMBERS: usize = NONE as usize;

/// A table of members.
#[derive(Clone, Debug)]
pub struct Members {
    pages: Vec<Page>,
    /// Members that are too long for a page, where they are empty.
    long: HashMap<u32, Box<[u8]>>,
    /// First member of each bucket.
    heads: Vec<u32>,
    /// Numbers that were free when they were added. Every free number is among them.
    free: Vec<u32>,
    /// Numbers, taken or free.
    numbers: usize,
    len: usize,
    seed: u64,
    /// Capacity of all pages and size of all long members, in bytes.
    record_bytes: usize,
}

impl Members {
    /// A table without members. `seed` keys its hash function.
    pub fn new(seed: u64) -> Self {
        let long = HashMap::new();
        Self {
            pages: vec![],
            long,
            heads: vec![NONE],
            free: vec![],
            numbers: 0,
            len: 0,
            seed,
            record_bytes: 0,
        }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// All numbers are below this one.
    pub fn numbers(&self) -> usize {
        self.numbers
    }

    /// Bytes of memory that the table has allocated.
    pub fn memory_bytes(&self) -> usize {
        self.record_bytes
            + self.pages.capacity() * size_of::<Page>()
            + (self.heads.capacity() + self.free.capacity()) * size_of::<u32>()
            + self.long.capacity() * size_of::<(u32, Box<[u8]>)>()
    }

    /// The number of `member`.
    pub fn find(&self, member: &[u8]) -> Option<u32> {
        let hash = self.hash(member);
        let mut id = self.heads[self.bucket(hash)];
        while id != NONE {
            let (page, slot) = self.slot(id);
            if page.tags[slot] == tag(hash) && self.get(id) == member {
                return Some(id);
            }
            id = page.next[slot];
        }
        None
    }

    /// The member with the number `id`.
    #[inline]
    pub fn get(&self, id: u32) -> &[u8] {
        self.entry(id).0
    }

    /// The member with the number `id`, and its score.
    #[inline]
    pub fn entry(&self, id: u32) -> (&[u8], f64) {
        let (page, slot) = self.slot(id);
        let (score, member) = page.record(slot);
        if member.is_empty() && !self.long.is_empty() {
            return (self.long.get(&id).map_or(member, |long| long), score);
        }
        (member, score)
    }

    /// The score of the member with the number `id`.
    pub fn score(&self, id: u32) -> f64 {
        let (page, slot) = self.slot(id);
        page.record(slot).0
    }

    /// Changes the score of the member with the number `id`.
    pub fn set_score(&mut self, id: u32, score: f64) {
        self.pages[id as usize / PAGE].set_score(id as usize % PAGE, score);
    }

    /// Adds a member, which is not in the table, and returns its number.
    ///
    /// # Panics
    /// If the table has [`MAX_MEMBERS`] members.
    pub fn push(&mut self, member: &[u8], score: f64) -> u32 {
        assert!(self.len < MAX_MEMBERS, "a sorted set has fewer than 2^32 - 1 members");
        let id = self.take_free().unwrap_or_else(|| self.append());
        let hash = self.hash(member);
        let bucket = self.bucket(hash);
        let next = std::mem::replace(&mut self.heads[bucket], id);
        let mut record = score.to_le_bytes().to_vec();
        if member.len() <= MAX_INLINE {
            record.extend_from_slice(member);
        } else {
            self.record_bytes += member.len();
            self.long.insert(id, member.into());
        }
        self.put(id, next, tag(hash), &record);
        self.len += 1;
        if self.len > self.heads.len() {
            self.split();
        }
        id
    }

    /// Removes the member with the number `id`.
    pub fn remove(&mut self, id: u32) {
        self.relink(id, self.next(id));
        let removed = self.long.remove(&id);
        self.record_bytes -= removed.map_or(0, |long| long.len());
        self.put(id, NONE, 0, &[]);
        self.len -= 1;
        self.free.push(id);
        self.trim();
        // At most two: a removal halves no more.
        while self.heads.len() > 1 && self.len < self.heads.len() / 2 {
            self.join();
        }
    }

    /// A member that has to take a free number, and that number, if too many are free.
    pub fn misplaced(&mut self) -> Option<(u32, u32)> {
        if self.len >= self.numbers / 2 {
            return None;
        }
        let last = self.numbers as u32 - 1;
        self.take_free().map(|free| (last, free))
    }

    /// Gives the member with the highest number the number `free`.
    pub fn renumber(&mut self, last: u32, free: u32) {
        self.relink(last, free);
        let (page, slot) = self.slot(last);
        let (next, tag) = (page.next[slot], page.tags[slot]);
        let record = page.records[page.range(slot)].to_vec();
        self.put(free, next, tag, &record);
        self.put(last, NONE, 0, &[]);
        let long = self.long.remove(&last);
        self.long.extend(long.map(|long| (free, long)));
        self.trim();
    }

    /// The member with the number `number` and its score, if the number is taken.
    pub fn numbered(&self, number: usize) -> Option<(&[u8], f64)> {
        (!self.is_free(number as u32)).then(|| self.entry(number as u32))
    }

    fn is_free(&self, id: u32) -> bool {
        let (page, slot) = self.slot(id);
        page.range(slot).is_empty()
    }

    /// Takes a number from the free ones.
    fn take_free(&mut self) -> Option<u32> {
        while let Some(id) = self.free.pop() {
            if (id as usize) < self.numbers && self.is_free(id) {
                return Some(id);
            }
        }
        None
    }

    /// Adds a number after all others.
    fn append(&mut self) -> u32 {
        let (id, slot) = (self.numbers as u32, self.numbers % PAGE);
        if slot == 0 {
            if self.pages.len() == self.pages.capacity() {
                self.pages.reserve_exact(1.max(self.pages.len() / 8));
            }
            self.pages.push(Page::default());
        }
        self.numbers += 1;
        let page = &mut self.pages[id as usize / PAGE];
        page.ends[slot] = page.records.len() as u16;
        id
    }

    /// Removes the free numbers after the last that is taken, and forgets those that are not free
    /// any longer if most are not.
    fn trim(&mut self) {
        while self.numbers > 0 && self.is_free(self.numbers as u32 - 1) {
            self.numbers -= 1;
            if self.numbers.is_multiple_of(PAGE) {
                let page = self.pages.pop();
                self.record_bytes -= page.map_or(0, |page| page.records.capacity());
            }
        }
        if self.pages.len() < self.pages.capacity() / 2 {
            self.pages.shrink_to_fit();
        }
        if self.free.len() > 2 * (self.numbers - self.len) + PAGE {
            let mut free = std::mem::take(&mut self.free);
            free.retain(|&id| (id as usize) < self.numbers && self.is_free(id));
            free.sort_unstable();
            free.dedup();
            self.free = free;
        }
        if self.free.len() < self.free.capacity() / 4 {
            self.free.shrink_to(2 * self.free.len());
        }
    }

    /// Puts a record, its link and its tag in place of those of a number.
    fn put(&mut self, id: u32, next: u32, tag: u8, record: &[u8]) {
        let slot = id as usize % PAGE;
        let count = PAGE.min(self.numbers - id as usize / PAGE * PAGE);
        let page = &mut self.pages[id as usize / PAGE];
        self.record_bytes -= page.records.capacity();
        (page.next[slot], page.tags[slot]) = (next, tag);
        page.put(slot, count, record);
        // Only the last page, which grows, keeps much more than it needs.
        let len = page.records.len();
        let spare = if count == PAGE { len / 8 } else { len };
        if page.records.capacity() > len + spare + PAGE {
            page.records.shrink_to_fit();
        }
        self.record_bytes += page.records.capacity();
    }

    /// The page of a member, and its place there.
    #[inline]
    fn slot(&self, id: u32) -> (&Page, usize) {
        (&self.pages[id as usize / PAGE], id as usize % PAGE)
    }

    fn hash(&self, member: &[u8]) -> u64 {
        hash(self.seed, Entry::Bytes(member))
    }

    /// The bucket of a hash among the present number of buckets.
    fn bucket(&self, hash: u64) -> usize {
        let mask = self.heads.len().next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        if bucket < self.heads.len() { bucket } else { bucket & (mask >> 1) }
    }

    fn next(&self, id: u32) -> u32 {
        let (page, slot) = self.slot(id);
        page.next[slot]
    }

    fn set_next(&mut self, id: u32, next: u32) {
        self.pages[id as usize / PAGE].next[id as usize % PAGE] = next;
    }

    /// Replaces the link to the member `id` by one to `target`.
    fn relink(&mut self, id: u32, target: u32) {
        let bucket = self.bucket(self.hash(self.get(id)));
        let mut before = self.heads[bucket];
        if before == id {
            self.heads[bucket] = target;
            return;
        }
        while self.next(before) != id {
            before = self.next(before);
        }
        self.set_next(before, target);
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
            let next = self.next(id);
            let bucket = self.bucket(self.hash(self.get(id)));
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
            let next = self.next(id);
            let head = std::mem::replace(&mut self.heads[old], id);
            self.set_next(id, head);
            id = next;
        }
        if new < self.heads.capacity() / 2 {
            self.heads.shrink_to_fit();
        }
    }
}

fn tag(hash: u64) -> u8 {
    (hash >> 56) as u8
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
                let length = if random.u8(..) == 0 { 3000 } else { random.usize(0..3) };
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
                        let number = random.usize(..members.numbers());
                        let Some((member, _)) = members.numbered(number) else { continue };
                        let member = member.to_vec();
                        remove(&mut members, number as u32);
                        assert!(model.remove(&member).is_some(), "seed {seed}");
                        assert_eq!(members.find(&member), None, "seed {seed}");
                    }
                    _ => {}
                }
            }
            check(&members, &model, seed);
            while members.len() > 0 {
                let last = members.numbers() as u32 - 1;
                remove(&mut members, last);
            }
            assert_eq!((members.record_bytes, members.long.len()), (0, 0));
            assert_eq!((members.numbers(), members.pages.len()), (0, 0));
            assert_eq!(members.heads.len(), 1);
        }
    }

    fn remove(members: &mut Members, id: u32) {
        members.remove(id);
        while let Some((last, free)) = members.misplaced() {
            assert!(free < last);
            members.renumber(last, free);
        }
        assert!(members.numbers() <= 2 * members.len() + 1);
        assert!(members.free.len() <= 2 * (members.numbers() - members.len()) + 2 * PAGE);
    }

    fn check(members: &Members, model: &HashMap<Vec<u8>, f64>, seed: u64) {
        assert_eq!(members.len(), model.len(), "seed {seed}");
        assert!(members.heads.len() <= members.len() * 2 + 2);
        let in_pages: usize = members.pages.iter().map(|page| page.records.capacity()).sum();
        let long: usize = members.long.values().map(|long| long.len()).sum();
        assert_eq!(members.record_bytes, in_pages + long);
        let used: usize = members.pages.iter().map(|page| page.records.len()).sum();
        assert!(in_pages <= used + used / 8 + (members.pages.len() + 1) * PAGE + 4096);
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
            std::iter::successors(present(head), |&id| present(members.next(id))).count()
        };
        let longest = members.heads.iter().map(length).max();
        assert!(longest < Some(16), "{longest:?}");
        assert_eq!(members.heads.iter().map(length).sum::<usize>(), 10_000);
    }
}
