// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A hash table of packed elements: the large form of hashes and sets.
//!
//! An element is `WIDTH` entries, and the first is its key. A bucket is a packed sequence of about
//! eight elements, one allocation for all of them. An element therefore costs a few bytes more
//! than its contents, and a search reads a few adjacent cache lines.
//!
//! The table grows and shrinks by one bucket at a time (linear hashing: Litwin, "Linear hashing: a
//! new tool for file and table addressing", VLDB 1980), so no operation moves many elements. Only
//! the array of buckets is moved when its capacity doubles, about three bytes per element. Bucket
//! `n` of a growing table takes elements from one bucket only, the one with the same number without
//! its highest bit.
//!
//! [`Table::scan`] returns each element that is there throughout exactly once, however the table
//! changes meanwhile.

mod elements;
mod scan;

pub(crate) use elements::{check_elements, elements_of, next_element};

use crate::entry::{self, Entry};
use crate::hashing::hash;
use crate::packed::{self, Packed, Place};
use std::hint::black_box;

/// Elements per bucket, on average, above which the table grows.
const MOST_ELEMENTS: usize = 8;
/// Bytes per bucket, on average, above which the table grows, up to one bucket per element.
const MOST_BYTES: usize = 1024;
/// Buckets that one operation adds or removes at most.
const STEPS: usize = 2;
/// Granularity of a bucket's allocation in bytes.
const GRAIN: usize = 16;
/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// A hash table of elements of `WIDTH` entries.
#[derive(Clone, Debug)]
pub struct Table<const WIDTH: usize> {
    seed: u64,
    len: usize,
    /// Bytes of all buckets.
    used_bytes: usize,
    /// Capacity of all buckets in bytes.
    bucket_bytes: usize,
    /// At least one.
    buckets: Vec<Vec<u8>>,
}

impl<const WIDTH: usize> Table<WIDTH> {
    /// Returns an empty table. `seed` is that of the hash function.
    pub fn new(seed: u64) -> Self {
        Self::with_room(seed, 0)
    }

    /// Returns an empty table with the buckets for `len` elements.
    pub fn with_room(seed: u64, len: usize) -> Self {
        let buckets = vec![vec![]; len.div_ceil(MOST_ELEMENTS).max(1)];
        Self { seed, len: 0, used_bytes: 0, bucket_bytes: 0, buckets }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory of the table, in bytes as allocated.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.buckets.capacity() * size_of::<Vec<u8>>() + self.bucket_bytes
    }

    /// Returns the element with this key.
    pub fn get(&self, key: Entry<'_>) -> Option<[Entry<'_>; WIDTH]> {
        let bucket = self.bucket(self.bucket_of(hash(self.seed, key)));
        let place = bucket.find(Place::START, key, WIDTH)?;
        next_element(&mut bucket.iter_from(place))
    }

    /// Whether there is an element with this key.
    pub fn contains(&self, key: Entry<'_>) -> bool {
        self.get(key).is_some()
    }

    /// Adds `element`, unless there is one with its key. Returns whether there was none.
    pub fn add(&mut self, element: [Entry<'_>; WIDTH]) -> bool {
        self.store(element, false)
    }

    /// Adds `element`, in place of the one with its key. Returns whether there was none.
    pub fn put(&mut self, element: [Entry<'_>; WIDTH]) -> bool {
        self.store(element, true)
    }

    fn store(&mut self, element: [Entry<'_>; WIDTH], overwrites: bool) -> bool {
        let at = self.bucket_of(hash(self.seed, element[0]));
        let bucket = self.bucket(at);
        let old = bucket.find(Place::START, element[0], WIDTH);
        match old {
            Some(place) if overwrites => self.edit(at, place, WIDTH, &element),
            Some(_) => {}
            None => {
                let end = bucket.end();
                self.edit(at, end, 0, &element);
                self.len += 1;
            }
        }
        self.grow();
        old.is_none()
    }

    /// Removes the element with this key. Returns whether there was one.
    pub fn remove(&mut self, key: Entry<'_>) -> bool {
        let at = self.bucket_of(hash(self.seed, key));
        let Some(place) = self.bucket(at).find(Place::START, key, WIDTH) else {
            return false;
        };
        self.edit(at, place, WIDTH, &[]);
        self.len -= 1;
        self.shrink();
        true
    }

    /// Returns all elements, in the order of buckets.
    pub fn iter(&self) -> Iter<'_, WIDTH> {
        Iter { buckets: self.buckets.iter(), entries: Packed::new(&[]).iter() }
    }
}

/// Buckets.
impl<const WIDTH: usize> Table<WIDTH> {
    /// Number of the highest bit of the number of buckets: buckets below 2^level that were not
    /// split yet are chosen by this many bits of the hash, others by one more.
    fn level(&self) -> u32 {
        self.buckets.len().ilog2()
    }

    fn bucket_of(&self, hash: u64) -> usize {
        let mask = (2u64 << self.level()) - 1;
        let at = (hash & mask) as usize;
        if at < self.buckets.len() { at } else { at & (mask >> 1) as usize }
    }

    /// Number of bits of the hash that choose bucket `at`.
    fn depth(&self, at: usize) -> u32 {
        let level = self.level();
        let first_unsplit = self.buckets.len() - (1 << level);
        level + u32::from(at < first_unsplit || at >> level != 0)
    }

    /// Reads a bucket that will be searched.
    fn bucket(&self, at: usize) -> Packed<'_> {
        read_ahead(&self.buckets[at]);
        Packed::new(&self.buckets[at])
    }

    fn edit(&mut self, at: usize, place: Place, removed: usize, inserted: &[Entry<'_>]) {
        let bucket = &mut self.buckets[at];
        self.used_bytes -= bucket.len();
        self.bucket_bytes -= bucket.capacity();
        let added: usize = inserted.iter().map(|&entry| entry::encoded_size(entry)).sum();
        // With room for the number of entries.
        let most = bucket.len() + added + 2;
        if bucket.capacity() < most {
            bucket.reserve_exact(most.next_multiple_of(GRAIN) - bucket.len());
        }
        packed::splice(bucket, place, removed, inserted);
        if bucket.capacity() > 2 * bucket.len() + 4 * GRAIN {
            bucket.shrink_to(bucket.len().next_multiple_of(GRAIN));
        }
        self.used_bytes += bucket.len();
        self.bucket_bytes += bucket.capacity();
    }

    fn grow(&mut self) {
        for _ in 0..STEPS {
            let count = self.buckets.len();
            let is_full = self.len > MOST_ELEMENTS * count
                || (self.used_bytes > MOST_BYTES * count && self.len > count);
            if !is_full {
                return;
            }
            self.split();
        }
    }

    fn shrink(&mut self) {
        for _ in 0..STEPS {
            let count = self.buckets.len();
            let is_wide = 2 * self.len < count
                || (2 * self.len < MOST_ELEMENTS * count
                    && 2 * self.used_bytes < MOST_BYTES * count);
            if count == 1 || !is_wide {
                break;
            }
            self.merge();
        }
        if self.buckets.capacity() > 4 * self.buckets.len() {
            self.buckets.shrink_to(2 * self.buckets.len());
        }
    }

    /// Adds a bucket, with part of the elements of one other.
    fn split(&mut self) {
        let level = self.level();
        let source = self.buckets.len() - (1 << level);
        let old = std::mem::take(&mut self.buckets[source]);
        let (mut low, mut high) = (vec![], vec![]);
        let sequence = Packed::new(&old);
        let mut start = Place::START;
        while let Some(key) = sequence.entry(start) {
            let end = elements::skip::<WIDTH>(sequence, start);
            let is_high = hash(self.seed, key) >> level & 1 != 0;
            let half = if is_high { &mut high } else { &mut low };
            packed::append(half, sequence, start..end, WIDTH);
            start = end;
        }
        self.buckets.push(vec![]);
        self.used_bytes -= old.len();
        self.bucket_bytes -= old.capacity();
        self.place_bucket(source, low);
        self.place_bucket(self.buckets.len() - 1, high);
    }

    /// Removes the last bucket, and adds its elements to the bucket they were split from.
    fn merge(&mut self) {
        let last = self.buckets.pop().expect("a table has a bucket");
        let target = self.buckets.len() - (1 << self.level());
        let mut both = std::mem::take(&mut self.buckets[target]);
        self.used_bytes -= last.len() + both.len();
        self.bucket_bytes -= last.capacity() + both.capacity();
        let sequence = Packed::new(&last);
        packed::append(&mut both, sequence, Place::START..sequence.end(), sequence.len());
        self.place_bucket(target, both);
    }

    fn place_bucket(&mut self, at: usize, mut bucket: Vec<u8>) {
        bucket.shrink_to(bucket.len().next_multiple_of(GRAIN));
        self.used_bytes += bucket.len();
        self.bucket_bytes += bucket.capacity();
        self.buckets[at] = bucket;
    }
}

/// Iterator over the elements of a table.
#[derive(Clone, Debug)]
pub struct Iter<'a, const WIDTH: usize> {
    buckets: std::slice::Iter<'a, Vec<u8>>,
    entries: packed::Iter<'a>,
}

impl<'a, const WIDTH: usize> Iterator for Iter<'a, WIDTH> {
    type Item = [Entry<'a>; WIDTH];

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(element) = next_element(&mut self.entries) {
                return Some(element);
            }
            self.entries = Packed::new(self.buckets.next()?).iter();
        }
    }
}

/// Reads one byte of each cache line of a bucket of usual size. A search depends on the sizes of
/// entries one by one, and would otherwise wait for each line after the other.
#[inline]
fn read_ahead(bucket: &[u8]) {
    let start = &bucket[..bucket.len().min(MOST_BYTES)];
    black_box(start.iter().step_by(LINE_BYTES).fold(0, |all, byte| all ^ byte));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums that the table keeps are those of its buckets, and elements are where they belong.
    fn check(table: &Table<2>, context: &str) {
        let sum = |of: fn(&Vec<u8>) -> usize| table.buckets.iter().map(of).sum::<usize>();
        assert_eq!(table.used_bytes, sum(Vec::len), "{context}");
        assert_eq!(table.bucket_bytes, sum(Vec::capacity), "{context}");
        assert_eq!(table.len, table.iter().count(), "{context}");
        for (at, bucket) in table.buckets.iter().enumerate() {
            packed::validate(bucket).unwrap_or_else(|corrupt| panic!("{context}: {corrupt}"));
            for [key, _] in elements_of(Packed::new(bucket)) {
                assert_eq!(table.bucket_of(hash(table.seed, key)), at, "{context}");
                let low_bits = (1u64 << table.depth(at)) - 1;
                assert_eq!(hash(table.seed, key) & low_bits, at as u64, "{context}");
            }
        }
    }

    #[test]
    fn sums_and_places_stay_right() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut table = Table::<2>::with_room(seed, random.usize(0..300));
            let (mut keys, mut longest) = (0..random.i64(1..1000), 200);
            for step in 0..2000 {
                if step % 500 == 499 {
                    check(&table, &format!("seed {seed}, step {step}"));
                    (keys, longest) = (0..random.i64(1..1000), random.usize(1..3000));
                }
                let key = Entry::Integer(random.i64(keys.clone()));
                if random.u32(0..3) == 0 {
                    table.remove(key);
                } else {
                    table.put([key, Entry::Bytes(&vec![b'v'; random.usize(0..longest)])]);
                }
            }
        }
    }

    /// Large values have a bucket of their own, so that an edit moves few bytes.
    #[test]
    fn large_values_get_more_buckets() {
        let mut table = Table::<2>::new(1);
        for at in 0..500 {
            table.put([Entry::Integer(at), Entry::Bytes(&[b'v'; 4000])]);
        }
        assert_eq!(table.buckets.len(), 500);
        for at in 0..500 {
            table.put([Entry::Integer(at), Entry::Integer(at)]);
        }
        (8..500).for_each(|at| assert!(table.remove(Entry::Integer(at))));
        assert!(table.buckets.len() <= 16, "{} buckets", table.buckets.len());
        assert!(table.memory_bytes() < 16 * 100, "{} bytes", table.memory_bytes());
    }
}
