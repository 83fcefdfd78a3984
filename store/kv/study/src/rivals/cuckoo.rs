// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bucketised cuckoo hashing as in MemC3: a key lies in one of two buckets of four slots.
//!
//! A lookup reads two buckets at most. An insertion that finds both full moves other entries to
//! their second buckets until one of them has a free slot there. It searches the shortest sequence
//! of moves, breadth first, and gives up after a number of buckets. The cost of an insertion thus
//! varies strongly when the table is nearly full.
//!
//! The second bucket follows from the first and from a tag of eight bits, so that a move needs no
//! hash of the key. MemC3 takes the exclusive or of both, which needs a number of buckets that is a
//! power of two. Here bucket and second bucket add up to a number that depends on the tag, modulo
//! the number of buckets: also its own inverse, for any number of buckets.

use super::bucket::{BUCKET_BYTES, Bucket, Entry, KEY_BYTES, bucket_of, hash};
use super::memory::{InvalidOptions, Memory, Options, VALUE_BYTES};
use crate::access::{Accesses, Cause};
use crate::table::{Put, Refused, Table};
use crate::workload::mix;

/// Buckets after which the search for a free slot ends. MemC3 moves at most 500 entries.
const SEARCHED_BUCKETS: usize = 500;

/// A cuckoo table.
#[derive(Clone, Debug)]
pub struct Cuckoo {
    memory: Memory,
    buckets: u64,
    seed: u64,
    pairs: u64,
    pair_bytes: u64,
}

/// A bucket of the index that was read, and its contents.
#[derive(Clone, Copy)]
struct Read {
    bucket: u64,
    contents: Bucket,
}

/// Result of a lookup.
enum Lookup {
    /// The key's bucket, slot and entry.
    Found(Read, usize, Entry),
    /// Both buckets of the key, which is in neither.
    Absent([Read; 2]),
}

/// A bucket that the search for a free slot has reached.
struct Node {
    read: Read,
    /// The node, and its slot, whose entry can move here; none at the key's own buckets.
    from: Option<(usize, usize)>,
}

impl Cuckoo {
    /// An empty table.
    ///
    /// # Errors
    /// The options are invalid.
    pub fn new(options: &Options) -> Result<Cuckoo, InvalidOptions> {
        let (memory, buckets) = Memory::new(options)?;
        Ok(Cuckoo { memory, buckets, seed: options.seed, pairs: 0, pair_bytes: 0 })
    }

    /// First bucket and tag of a key.
    fn place(&self, key: &[u8]) -> (u64, u8) {
        let hash = hash(key, self.seed);
        // The bucket follows from the upper bits, the tag from the lower ones.
        (bucket_of(hash, self.buckets), hash as u8)
    }

    /// The other bucket of an entry that lies in `bucket`.
    fn other(&self, bucket: u64, tag: u8) -> u64 {
        let sum = bucket_of(mix(u64::from(tag) ^ self.seed), self.buckets);
        (sum + self.buckets - bucket) % self.buckets
    }

    fn read(&mut self, bucket: u64) -> Read {
        let contents = self.memory.read_bucket(bucket as usize * BUCKET_BYTES, Cause::Bucket);
        Read { bucket, contents }
    }

    fn write(&mut self, read: &Read) {
        let address = read.bucket as usize * BUCKET_BYTES;
        self.memory.write_bucket(address, &read.contents, Cause::Bucket);
    }

    fn find(&mut self, key: &[u8]) -> Lookup {
        let (bucket, tag) = self.place(key);
        let first = self.read(bucket);
        if let Some((slot, entry)) = first.contents.find(key) {
            return Lookup::Found(first, slot, entry);
        }
        let second = self.read(self.other(bucket, tag));
        match second.contents.find(key) {
            Some((slot, entry)) => Lookup::Found(second, slot, entry),
            None => Lookup::Absent([first, second]),
        }
    }

    fn replace(
        &mut self,
        mut read: Read,
        (slot, entry): (usize, Entry),
        value: &[u8],
    ) -> Result<(), Refused> {
        let old = entry.pointer();
        let old_bytes = self.memory.value_length(old) as u64;
        let class = self.memory.class_of_value(value);
        if class == old.class {
            self.memory.write_value(old, value);
        } else {
            let new = self.memory.allocate(class).ok_or(Refused::Memory)?;
            self.memory.write_value(new, value);
            read.contents.set(slot, Some(Entry::new(entry.key(), entry.tag(), new)));
            self.write(&read);
            self.memory.free(old);
        }
        self.pair_bytes = self.pair_bytes - old_bytes + value.len() as u64;
        Ok(())
    }

    fn insert(&mut self, own: [Read; 2], key: &[u8], value: &[u8]) -> Result<(), Refused> {
        let pointer =
            self.memory.allocate(self.memory.class_of_value(value)).ok_or(Refused::Memory)?;
        let Some((nodes, free)) = self.search(own) else {
            self.memory.free(pointer);
            return Err(Refused::Displacement);
        };
        self.memory.write_value(pointer, value);
        // The last bucket of the sequence has the free slot. Each bucket is written once, with the
        // entry that moves in; the entry that moved out of the slot is already in its new bucket.
        let (mut at, mut slot) = free;
        while let Some((from, from_slot)) = nodes[at].from {
            let mut read = nodes[at].read;
            read.contents.set(slot, nodes[from].read.contents.entry(from_slot));
            self.write(&read);
            (at, slot) = (from, from_slot);
        }
        let mut read = nodes[at].read;
        let (_, tag) = self.place(key);
        read.contents.set(slot, Some(Entry::new(key, tag, pointer)));
        self.write(&read);
        self.pairs += 1;
        self.pair_bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    /// Searches a bucket with a free slot, breadth first from the key's own buckets. Returns the
    /// buckets that were read, and which of them has a free slot, and where.
    fn search(&mut self, own: [Read; 2]) -> Option<(Vec<Node>, (usize, usize))> {
        let mut nodes: Vec<_> = own.map(|read| Node { read, from: None }).into();
        for (at, node) in nodes.iter().enumerate() {
            if let Some(slot) = node.read.contents.free_slot() {
                return Some((nodes, (at, slot)));
            }
        }
        let mut reached = own.map(|read| read.bucket).to_vec();
        let mut at = 0;
        while at < nodes.len() {
            let Read { bucket, contents } = nodes[at].read;
            for (slot, entry) in contents.entries() {
                let other = self.other(bucket, entry.tag());
                // A bucket has one place in the search, and so one entry at most moves through it.
                if reached.contains(&other) {
                    continue;
                }
                if nodes.len() == SEARCHED_BUCKETS {
                    return None;
                }
                reached.push(other);
                let read = self.read(other);
                nodes.push(Node { read, from: Some((at, slot)) });
                if let Some(slot) = read.contents.free_slot() {
                    let last = nodes.len() - 1;
                    return Some((nodes, (last, slot)));
                }
            }
            at += 1;
        }
        None
    }
}

impl Table for Cuckoo {
    fn name(&self) -> &'static str {
        "cuckoo"
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> bool {
        if key.len() > KEY_BYTES {
            return false;
        }
        match self.find(key) {
            Lookup::Found(_, _, entry) => {
                self.memory.read_value(entry.pointer(), value);
                true
            }
            Lookup::Absent(_) => false,
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Put, Refused> {
        if key.len() > KEY_BYTES {
            return Err(Refused::KeyBytes(key.len()));
        }
        if value.len() > VALUE_BYTES {
            return Err(Refused::ValueBytes(value.len()));
        }
        match self.find(key) {
            Lookup::Found(read, slot, entry) => {
                self.replace(read, (slot, entry), value).map(|()| Put::Replaced)
            }
            Lookup::Absent(own) => self.insert(own, key, value).map(|()| Put::Inserted),
        }
    }

    fn delete(&mut self, key: &[u8]) -> bool {
        if key.len() > KEY_BYTES {
            return false;
        }
        let Lookup::Found(mut read, slot, entry) = self.find(key) else {
            return false;
        };
        read.contents.set(slot, None);
        self.write(&read);
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

    fn table(index_ratio: f64) -> Cuckoo {
        let options =
            Options { memory_bytes: 1 << 18, index_ratio, smallest_block_bytes: 32, seed: 3 };
        Cuckoo::new(&options).expect("valid")
    }

    #[test]
    fn the_other_bucket_of_the_other_bucket_is_the_first() {
        let table = table(0.3);
        for tag in 0..=255 {
            for bucket in 0..table.buckets {
                let other = table.other(bucket, tag);
                assert!(other < table.buckets);
                assert_eq!(table.other(other, tag), bucket);
            }
        }
    }

    #[test]
    fn moving_entries_fills_almost_all_slots() {
        let mut table = table(0.2);
        let slots = table.buckets * 4;
        let refused = (0..)
            .find_map(|rank| table.put(&Keys::Binary(8).key(rank), &[rank as u8; 5]).err())
            .expect("a table is full at some time");
        assert_eq!(refused, Refused::Displacement);
        let load = table.pairs as f64 / slots as f64;
        assert!(load > 0.93, "{load} of the slots are filled");
        let mut value = vec![];
        for rank in 0..table.pairs {
            assert!(table.get(&Keys::Binary(8).key(rank), &mut value), "rank {rank} is lost");
            assert_eq!(value, [rank as u8; 5]);
        }
    }

    #[test]
    fn accesses_of_the_simple_cases_are_those_of_the_publication() {
        let mut table = table(0.5);
        let mut cost = |operation: &mut dyn FnMut(&mut Cuckoo)| {
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
