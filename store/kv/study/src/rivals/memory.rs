// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of a rival table: a flat array with the index at its start and blocks behind it.
//!
//! Blocks have the sizes of powers of two up to 512 bytes. A block is split off a larger one if
//! none of its size is free; blocks are not merged. Free blocks are known to a cache of 24 entries
//! for each size and a stack in memory, which exchange 12 entries, a line, at once. That is the
//! published allocator's traffic (KV-Direct, hash table), counted without keeping the entries
//! twice.

use std::fmt;

use super::bucket::{BUCKET_BYTES, Bucket};
use crate::access::{Accesses, Cause, Direction};

/// Largest value in bytes.
pub const VALUE_BYTES: usize = LARGEST_BLOCK_BYTES - LENGTH_BYTES;

/// Bytes of the length in front of a value.
const LENGTH_BYTES: usize = 2;
/// Blocks are addressed in units of this many bytes.
const UNIT_BYTES: usize = 8;
const LARGEST_BLOCK_BYTES: usize = 512;
/// Sizes of blocks: 8, 16, up to 512 bytes.
const CLASSES: usize = 7;
/// Entries of five bytes in a line of an allocator's stack.
const ENTRIES_OF_LINE: usize = 12;

/// Parameters of a rival table.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of memory.
    pub memory_bytes: usize,
    /// Share of memory for the index, between 0 and 1.
    pub index_ratio: f64,
    /// Bytes of the smallest block: 8, 16, 32 or 64. The published one is 32.
    pub smallest_block_bytes: usize,
    /// Seed of hash functions.
    pub seed: u64,
}

/// Options with which no table can be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InvalidOptions {
    /// The index has fewer buckets than a table needs, or exceeds memory.
    IndexRatio,
    /// The smallest block has none of the possible sizes.
    SmallestBlock,
    /// Memory exceeds 32 GiB.
    Memory,
}

impl fmt::Display for InvalidOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            InvalidOptions::IndexRatio => "the index must have eight buckets and fit into memory",
            InvalidOptions::SmallestBlock => "the smallest block must have 8, 16, 32 or 64 bytes",
            InvalidOptions::Memory => "memory must have at most 32 GiB",
        })
    }
}

impl std::error::Error for InvalidOptions {}

/// Place and size class of a block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Pointer {
    pub unit: u32,
    pub class: u8,
}

impl Pointer {
    /// Byte at which the block begins.
    pub fn address(self) -> usize {
        self.unit as usize * UNIT_BYTES
    }
}

/// A flat memory with an allocator for what lies behind the index.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    bytes: Vec<u8>,
    accesses: Accesses,
    smallest_class: u8,
    /// Free blocks of each class, by their units.
    free: [Vec<u32>; CLASSES],
    /// How many of them the allocator's cache has.
    cached: [usize; CLASSES],
    /// Byte up to which memory was handed out.
    frontier: usize,
}

impl Memory {
    /// Memory with an index at its start. Returns the number of buckets too.
    pub fn new(options: &Options) -> Result<(Memory, u64), InvalidOptions> {
        if options.memory_bytes > u32::MAX as usize * UNIT_BYTES {
            return Err(InvalidOptions::Memory);
        }
        if ![8, 16, 32, 64].contains(&options.smallest_block_bytes) {
            return Err(InvalidOptions::SmallestBlock);
        }
        let buckets = (options.memory_bytes as f64 * options.index_ratio) as usize / BUCKET_BYTES;
        let index_bytes = buckets * BUCKET_BYTES;
        if buckets < 8 || !(0.0..=1.0).contains(&options.index_ratio) {
            return Err(InvalidOptions::IndexRatio);
        }
        let memory = Memory {
            bytes: vec![0; options.memory_bytes],
            accesses: Accesses::default(),
            smallest_class: class_of(options.smallest_block_bytes),
            free: Default::default(),
            cached: [0; CLASSES],
            frontier: index_bytes,
        };
        Ok((memory, buckets as u64))
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn take_accesses(&mut self) -> Accesses {
        std::mem::take(&mut self.accesses)
    }

    /// Reads the bucket at a byte.
    pub fn read_bucket(&mut self, address: usize, cause: Cause) -> Bucket {
        self.accesses.count(cause, Direction::Read);
        self.fetched_bucket(address)
    }

    /// The bucket at a byte, which an access counted before has read.
    pub fn fetched_bucket(&self, address: usize) -> Bucket {
        let bytes = &self.bytes[address..][..BUCKET_BYTES];
        Bucket { bytes: bytes.try_into().expect("the length of a bucket") }
    }

    /// Writes the bucket at a byte.
    pub fn write_bucket(&mut self, address: usize, bucket: &Bucket, cause: Cause) {
        self.accesses.count(cause, Direction::Write);
        self.bytes[address..][..BUCKET_BYTES].copy_from_slice(&bucket.bytes);
    }

    /// Replaces the contents of `value` by the value in a block.
    pub fn read_value(&mut self, pointer: Pointer, value: &mut Vec<u8>) {
        self.accesses.count(Cause::Data, Direction::Read);
        let block = &self.bytes[pointer.address()..];
        let length = usize::from(u16::from_le_bytes([block[0], block[1]]));
        value.clear();
        value.extend_from_slice(&block[LENGTH_BYTES..][..length]);
    }

    /// Length of the value in a block: for the count of bytes, which is no part of a table, and
    /// therefore not an access.
    pub fn value_length(&self, pointer: Pointer) -> usize {
        let block = &self.bytes[pointer.address()..];
        usize::from(u16::from_le_bytes([block[0], block[1]]))
    }

    /// Writes a value into a block of the class of its length.
    pub fn write_value(&mut self, pointer: Pointer, value: &[u8]) {
        self.accesses.count(Cause::Data, Direction::Write);
        let block = &mut self.bytes[pointer.address()..];
        block[..LENGTH_BYTES].copy_from_slice(&(value.len() as u16).to_le_bytes());
        block[LENGTH_BYTES..][..value.len()].copy_from_slice(value);
    }

    /// Size class for a value of at most `VALUE_BYTES`.
    pub fn class_of_value(&self, value: &[u8]) -> u8 {
        class_of(LENGTH_BYTES + value.len()).max(self.smallest_class)
    }

    /// Allocates a chained bucket.
    pub fn allocate_bucket(&mut self) -> Option<Pointer> {
        self.allocate(class_of(BUCKET_BYTES))
    }

    /// Allocates a block of a class; `None` if none is left.
    pub fn allocate(&mut self, class: u8) -> Option<Pointer> {
        let at = usize::from(class);
        if self.free[at].is_empty() {
            // Blocks from a larger one are in the cache; only its own class was synchronised.
            let unit = self.split(class)?;
            return Some(Pointer { unit, class });
        }
        if self.cached[at] == 0 {
            self.accesses.count(Cause::Slab, Direction::Read);
            self.cached[at] = ENTRIES_OF_LINE.min(self.free[at].len());
        }
        self.cached[at] -= 1;
        Some(Pointer { unit: self.free[at].pop()?, class })
    }

    /// Takes a block of `class` from a larger one, whose rest becomes free, or from fresh memory.
    fn split(&mut self, class: u8) -> Option<u32> {
        let bytes = UNIT_BYTES << class;
        if bytes == LARGEST_BLOCK_BYTES {
            if self.frontier + bytes > self.bytes.len() {
                return None;
            }
            let unit = self.frontier / UNIT_BYTES;
            self.frontier += bytes;
            return Some(unit as u32);
        }
        let larger = self.allocate(class + 1)?;
        self.free(Pointer { unit: larger.unit + (1 << class), class });
        Some(larger.unit)
    }

    /// Takes a block back.
    pub fn free(&mut self, pointer: Pointer) {
        let at = usize::from(pointer.class);
        self.free[at].push(pointer.unit);
        self.cached[at] += 1;
        if self.cached[at] == 2 * ENTRIES_OF_LINE {
            self.accesses.count(Cause::Slab, Direction::Write);
            self.cached[at] -= ENTRIES_OF_LINE;
        }
    }
}

/// The class of the smallest block with at least `bytes`.
fn class_of(bytes: usize) -> u8 {
    bytes.next_power_of_two().max(UNIT_BYTES).ilog2() as u8 - UNIT_BYTES.ilog2() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options =
        Options { memory_bytes: 8192, index_ratio: 0.5, smallest_block_bytes: 32, seed: 1 };

    #[test]
    fn blocks_do_not_overlap_each_other_or_the_index() {
        let (mut memory, buckets) = Memory::new(&OPTIONS).expect("valid");
        assert_eq!((buckets, memory.len()), (64, 8192));
        let mut random = fastrand::Rng::with_seed(5);
        let mut owner = vec![0u32; 8192];
        let mut blocks: Vec<Pointer> = vec![];
        for step in 1..20_000u32 {
            let is_full = if random.bool() {
                let class = random.u8(2..7);
                memory.allocate(class).inspect(|&block| blocks.push(block)).is_none()
            } else {
                true
            };
            let range = |block: Pointer| block.address()..block.address() + (8 << block.class);
            if !is_full {
                let block = blocks[blocks.len() - 1];
                assert!(range(block).start >= 4096, "step {step}");
                assert!(owner[range(block)].iter().all(|&owner| owner == 0), "step {step}");
                owner[range(block)].fill(step);
            } else if !blocks.is_empty() {
                let block = blocks.swap_remove(random.usize(..blocks.len()));
                owner[range(block)].fill(0);
                memory.free(block);
            }
        }
    }

    #[test]
    fn all_memory_can_be_allocated_in_the_smallest_blocks() {
        let (mut memory, _) = Memory::new(&OPTIONS).expect("valid");
        let blocks: Vec<_> = std::iter::from_fn(|| memory.allocate(class_of(32))).collect();
        assert_eq!(blocks.len(), 4096 / 32);
        assert_eq!(memory.allocate_bucket(), None);
        blocks.into_iter().for_each(|block| memory.free(block));
        assert!(memory.allocate(class_of(32)).is_some());
    }

    #[test]
    fn entries_of_free_blocks_are_exchanged_by_the_line() {
        let (mut memory, _) = Memory::new(&OPTIONS).expect("valid");
        let blocks: Vec<_> = (0..60).filter_map(|_| memory.allocate(2)).collect();
        memory.take_accesses();
        blocks.into_iter().for_each(|block| memory.free(block));
        let written = memory.take_accesses().writes(Cause::Slab);
        assert!((3..=5).contains(&written), "{written} lines of 12 entries for 60 blocks");
        (0..1000).for_each(|_| {
            let block = memory.allocate(2).expect("blocks are free");
            memory.free(block);
        });
        assert!(memory.take_accesses().of(Cause::Slab) <= 1, "the cache serves a stable load");
    }

    #[test]
    fn invalid_options_are_refused() {
        let found = |options| Memory::new(&options).map(|_| ()).expect_err("invalid");
        for index_ratio in [0.01, -1.0, 1.1, f64::NAN] {
            assert_eq!(found(Options { index_ratio, ..OPTIONS }), InvalidOptions::IndexRatio);
        }
        let smallest_block_bytes = 24;
        assert_eq!(
            found(Options { smallest_block_bytes, ..OPTIONS }),
            InvalidOptions::SmallestBlock
        );
        let memory_bytes = usize::MAX;
        assert_eq!(found(Options { memory_bytes, ..OPTIONS }), InvalidOptions::Memory);
    }
}
