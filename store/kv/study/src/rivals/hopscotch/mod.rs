// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chained associative hopscotch hashing as in FaRM: a key lies in its bucket or in the next one, a
//! neighbourhood of eight slots, or in a chain of its bucket.
//!
//! An insertion that finds the neighbourhood full looks for the nearest bucket with a free slot,
//! and moves the free slot back: an entry of the bucket before it that has its home there can move
//! one bucket forward. If no entry can, or no near bucket has a free slot, the entry is put into a
//! bucket chained to the home bucket. A deletion takes an entry back from the chain, so that chains
//! stay short.
//!
//! A lookup reads the home bucket first, and the next one only if needed. FaRM fetches both with
//! one request; [`Fetch`] says which of the two is counted.

mod placement;

use super::bucket::{BUCKET_BYTES, Bucket, Entry, KEY_BYTES, bucket_of, hash};
use super::memory::{InvalidOptions, Memory, Options, Pointer, VALUE_BYTES};
use crate::access::{Accesses, Cause};
use crate::table::{Put, Refused, Table};

/// Buckets, from the home bucket on, among which a free slot is looked for.
const NEAR_BUCKETS: u64 = 16;

/// How a neighbourhood is fetched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fetch {
    /// Line by line, the second if the first has not the key. Each is an access.
    Lines,
    /// Both lines with one request, as in FaRM. It is one access.
    Neighbourhood,
}

/// A chained hopscotch table.
#[derive(Clone, Debug)]
pub struct Hopscotch {
    fetch: Fetch,
    memory: Memory,
    buckets: u64,
    seed: u64,
    pairs: u64,
    pair_bytes: u64,
}

/// A bucket that was read: where it lies, what kind it is, and its contents.
#[derive(Clone, Copy)]
struct Read {
    address: usize,
    cause: Cause,
    contents: Bucket,
}

/// The buckets that a lookup has read, in order: home, the next one, the chain.
struct Walk {
    reads: Vec<Read>,
    /// Slot and entry in the last bucket read, if the key is there.
    found: Option<(usize, Entry)>,
}

/// Place of the home bucket and its neighbour in [`Walk::reads`].
const HOME: usize = 0;
const NEXT: usize = 1;

impl Hopscotch {
    /// An empty table.
    ///
    /// # Errors
    /// The options are invalid.
    pub fn new(options: &Options, fetch: Fetch) -> Result<Hopscotch, InvalidOptions> {
        let (memory, buckets) = Memory::new(options)?;
        Ok(Hopscotch { fetch, memory, buckets, seed: options.seed, pairs: 0, pair_bytes: 0 })
    }

    fn home(&self, key: &[u8]) -> u64 {
        bucket_of(hash(key, self.seed), self.buckets)
    }

    /// Reads a bucket of the index. The last bucket is followed by the first.
    fn read(&mut self, bucket: u64) -> Read {
        let address = self.address(bucket);
        let contents = self.memory.read_bucket(address, Cause::Bucket);
        Read { address, cause: Cause::Bucket, contents }
    }

    /// Reads the bucket after the home bucket, with the request for that one or another.
    fn read_next(&mut self, home: u64) -> Read {
        match self.fetch {
            Fetch::Lines => self.read(home + 1),
            Fetch::Neighbourhood => {
                let address = self.address(home + 1);
                let contents = self.memory.fetched_bucket(address);
                Read { address, cause: Cause::Bucket, contents }
            }
        }
    }

    fn address(&self, bucket: u64) -> usize {
        (bucket % self.buckets) as usize * BUCKET_BYTES
    }

    fn read_chained(&mut self, unit: u32) -> Read {
        let address = bucket_pointer(unit).address();
        let contents = self.memory.read_bucket(address, Cause::Chain);
        Read { address, cause: Cause::Chain, contents }
    }

    fn write(&mut self, read: &Read) {
        self.memory.write_bucket(read.address, &read.contents, read.cause);
    }

    fn find(&mut self, key: &[u8]) -> Walk {
        let home = self.home(key);
        let mut walk = Walk { reads: Vec::with_capacity(2), found: None };
        let read = self.read(home);
        walk.found = read.contents.find(key);
        walk.reads.push(read);
        if walk.found.is_some() {
            return walk;
        }
        let read = self.read_next(home);
        walk.found = read.contents.find(key);
        walk.reads.push(read);
        if walk.found.is_some() {
            return walk;
        }
        let mut unit = walk.reads[HOME].contents.next();
        while unit != 0 && walk.found.is_none() {
            let read = self.read_chained(unit);
            walk.found = read.contents.find(key);
            unit = read.contents.next();
            walk.reads.push(read);
        }
        walk
    }

    fn replace(&mut self, walk: &mut Walk, value: &[u8]) -> Result<(), Refused> {
        let (slot, entry) = walk.found.expect("only stored values are replaced");
        let old = entry.pointer();
        let old_bytes = self.memory.value_length(old) as u64;
        let class = self.memory.class_of_value(value);
        if class == old.class {
            self.memory.write_value(old, value);
        } else {
            let new = self.memory.allocate(class).ok_or(Refused::Memory)?;
            self.memory.write_value(new, value);
            let read = walk.reads.last_mut().expect("the entry's bucket was read");
            read.contents.set(slot, Some(Entry::new(entry.key(), 0, new)));
            self.write(read);
            self.memory.free(old);
        }
        self.pair_bytes = self.pair_bytes - old_bytes + value.len() as u64;
        Ok(())
    }

    fn insert(&mut self, walk: &mut Walk, key: &[u8], value: &[u8]) -> Result<(), Refused> {
        let class = self.memory.class_of_value(value);
        let pointer = self.memory.allocate(class).ok_or(Refused::Memory)?;
        let entry = Entry::new(key, 0, pointer);
        if !self.place_near(walk, self.home(key), entry) && !self.place_in_chain(walk, entry) {
            self.memory.free(pointer);
            return Err(Refused::Memory);
        }
        self.memory.write_value(pointer, value);
        self.pairs += 1;
        self.pair_bytes += (key.len() + value.len()) as u64;
        Ok(())
    }
}

/// The block of a chained bucket.
fn bucket_pointer(unit: u32) -> Pointer {
    Pointer { unit, class: BUCKET_BYTES.ilog2() as u8 - 3 }
}

impl Table for Hopscotch {
    fn name(&self) -> &'static str {
        match self.fetch {
            Fetch::Lines => "hopscotch",
            Fetch::Neighbourhood => "farm",
        }
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> bool {
        if key.len() > KEY_BYTES {
            return false;
        }
        match self.find(key).found {
            Some((_, entry)) => {
                self.memory.read_value(entry.pointer(), value);
                true
            }
            None => false,
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Put, Refused> {
        if key.len() > KEY_BYTES {
            return Err(Refused::KeyBytes(key.len()));
        }
        if value.len() > VALUE_BYTES {
            return Err(Refused::ValueBytes(value.len()));
        }
        let mut walk = self.find(key);
        match walk.found {
            Some(_) => self.replace(&mut walk, value).map(|()| Put::Replaced),
            None => self.insert(&mut walk, key, value).map(|()| Put::Inserted),
        }
    }

    fn delete(&mut self, key: &[u8]) -> bool {
        if key.len() > KEY_BYTES {
            return false;
        }
        let mut walk = self.find(key);
        let Some((slot, entry)) = walk.found else {
            return false;
        };
        self.remove(&mut walk, slot);
        let value_bytes = self.memory.value_length(entry.pointer());
        self.memory.free(entry.pointer());
        self.pairs -= 1;
        self.pair_bytes -= (key.len() + value_bytes) as u64;
        true
    }

    fn pairs(&self) -> u64 {
        self.pairs
    }

    fn pair_bytes(&self) -> u64 {
        self.pair_bytes
    }

    fn memory_bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    fn take_accesses(&mut self) -> Accesses {
        self.memory.take_accesses()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Keys;

    fn table(index_ratio: f64) -> Hopscotch {
        fetching(Fetch::Lines, index_ratio)
    }

    fn fetching(fetch: Fetch, index_ratio: f64) -> Hopscotch {
        let options =
            Options { memory_bytes: 1 << 18, index_ratio, smallest_block_bytes: 32, seed: 3 };
        Hopscotch::new(&options, fetch).expect("valid")
    }

    /// Every entry lies in the neighbourhood or in the chain of its home bucket.
    fn check_places(table: &mut Hopscotch) -> u64 {
        let mut pairs = 0;
        for bucket in 0..table.buckets {
            let mut read = table.read(bucket);
            let before = (bucket + table.buckets - 1) % table.buckets;
            for (_, entry) in read.contents.entries() {
                assert!([before, bucket].contains(&table.home(entry.key())), "bucket {bucket}");
                pairs += 1;
            }
            while read.contents.next() != 0 {
                read = table.read_chained(read.contents.next());
                assert!(!read.contents.is_empty(), "an empty bucket in the chain of {bucket}");
                for (_, entry) in read.contents.entries() {
                    assert_eq!(table.home(entry.key()), bucket);
                    pairs += 1;
                }
            }
        }
        pairs
    }

    #[test]
    fn chains_take_entries_until_memory_is_full() {
        let mut table = table(0.2);
        let refused = (0..).find_map(|rank| table.put(&Keys::Binary(8).key(rank), &[7; 5]).err());
        assert_eq!(refused, Some(Refused::Memory));
        let slots = table.buckets * 4;
        assert!(table.pairs > slots, "{} entries in {slots} slots and chains", table.pairs);
        assert_eq!(check_places(&mut table), table.pairs);
        for rank in (0..table.pairs).rev() {
            assert!(table.delete(&Keys::Binary(8).key(rank)), "rank {rank} is lost");
            if rank % 1000 == 0 {
                assert_eq!(check_places(&mut table), rank);
            }
        }
        let index = 0..table.buckets;
        assert!(index.into_iter().all(|bucket| table.read(bucket).contents == Bucket::EMPTY));
    }

    #[test]
    fn moving_entries_keeps_most_of_them_out_of_chains() {
        let mut table = table(0.3);
        let slots = table.buckets * 4;
        for rank in 0..slots * 4 / 5 {
            table.put(&Keys::Binary(8).key(rank), b"").expect("there is room");
        }
        assert_eq!(check_places(&mut table), table.pairs);
        table.take_accesses();
        for rank in 0..table.pairs {
            assert!(table.get(&Keys::Binary(8).key(rank), &mut vec![]));
        }
        let chained = table.take_accesses().reads(Cause::Chain) as f64 / table.pairs as f64;
        assert!(chained < 0.05, "{chained} chained buckets read for each key");
    }

    #[test]
    fn a_neighbourhood_is_one_access_if_it_is_fetched_with_one_request() {
        let mut tables = [Fetch::Lines, Fetch::Neighbourhood].map(|fetch| fetching(fetch, 0.2));
        let [lines, requests] = tables.each_mut().map(|table| {
            for rank in 0..table.buckets * 3 {
                table.put(&Keys::Binary(8).key(rank), b"value").expect("there is room");
            }
            table.take_accesses();
            for rank in 0..table.pairs {
                assert!(table.get(&Keys::Binary(8).key(rank), &mut vec![]));
            }
            (table.take_accesses(), table.pairs)
        });
        assert_eq!(lines.1, requests.1);
        assert_eq!(lines.0.of(Cause::Chain), requests.0.of(Cause::Chain));
        assert_eq!(requests.0.of(Cause::Bucket), requests.1);
        assert!(lines.0.of(Cause::Bucket) > lines.1);
    }

    #[test]
    fn accesses_of_the_simple_cases_are_those_of_the_publication() {
        let mut table = table(0.5);
        let mut cost = |operation: &mut dyn FnMut(&mut Hopscotch)| {
            table.take_accesses();
            operation(&mut table);
            let accesses = table.take_accesses();
            (accesses.all_reads(), accesses.all_writes())
        };
        let insert = cost(&mut |table| assert_eq!(table.put(b"key", b"value"), Ok(Put::Inserted)));
        let hit = cost(&mut |table| assert!(table.get(b"key", &mut vec![])));
        let miss = cost(&mut |table| assert!(!table.get(b"other", &mut vec![])));
        let update = cost(&mut |table| assert_eq!(table.put(b"key", b"other"), Ok(Put::Replaced)));
        let grow = cost(&mut |table| assert_eq!(table.put(b"key", &[1; 99]), Ok(Put::Replaced)));
        let delete = cost(&mut |table| assert!(table.delete(b"key")));
        assert_eq!(
            [insert, hit, miss, update, grow, delete],
            [(2, 2), (2, 0), (2, 0), (1, 1), (1, 2), (1, 1)]
        );
    }
}
